//! Conversions inside warps: renaming, selects, and shuffles.
//!
//! # The scheme
//!
//! Every lane of the result wants, for register `r`, the value that the operand holds at some
//! register of some lane. A shuffle lets each lane offer one register and take what one other lane
//! offers. The question is how to arrange the wishes in rounds such that in every round each lane
//! is asked for one register only, by however many lanes.
//!
//! Let `X(r, l) = (P r + Q l, S r + T l)` be the place, register and lane, to fetch from. If every
//! lane fetched its register `r` in round `r`, lane `T l + S r` would be asked for registers
//! `P r + Q l` for all `l` with the same `T l`: for a transposition of a lane bit with a register
//! bit, `T` is singular and these are two. So let lane `l` fetch register `s + G l` in round `s`,
//! with a linear `G` to be chosen: then the lane asked is `S s + (T + S G) l`, and a good `G` makes
//! this either a bijection or such that lanes which ask the same lane want the same register. The
//! register then is a function of the lane asked, `(P + H S) s + H l'`.
//!
//! So there are three stages, each linear:
//!
//! 1. In lane `l'`, registers change places by `H l'`: a few [`Exchange`]s, each of which swaps
//!    pairs of registers where some lane bits have odd parity.
//! 2. One shuffle per round: lane `l` reads lane `l' = L l + S s`. Rounds in which every lane reads
//!    itself take nothing.
//! 3. In lane `l`, registers change places by `G l`.
//!
//! With `m` transpositions of lane and register bits this takes `N (1 - 2^-m)` shuffles for `N`
//! registers. Doing the transpositions one after another takes `N/2` each, as many or more.
//! Elements narrower than 32 bits travel together where they come from the same lane.
//!
//! # Why there always is a `G`
//!
//! In terms of the tensor: `A_R`, `B_R` are the spans of the registers of the two layouts. A good
//! `G` exists exactly when some complement of `B_R` (what the lanes hold in one round) lies in a
//! subspace that the lanes of `A` can offer in one round; for bijective layouts that is a common
//! complement of `A_R` and `B_R`, which two subspaces of one dimension always have. (Where a warp
//! wants only a part of what it holds there may be none; then the missing part is asked for, too.) The search here
//! takes lane after lane and prefers, in this order, the lane itself, the fewest registers moved,
//! and other lanes; for bijective layouts it never has to go back.

mod fetch;
mod rounds;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Counts, Endpoint, Movement};
use crate::InlineList;
use crate::f2::{Matrix, WORD, low_mask, ones};
use crate::plan::endpoint::Vectors;
use crate::plan::packing::{per_word, permutes};
use fetch::Fetch;

/// A condition on a thread: the parity of some bits of its lane, warp and block is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Condition {
    /// The bits of the lane.
    pub lanes: u32,
    /// The bits of the warp.
    pub warps: u32,
    /// The bits of the block.
    pub blocks: u32,
}

impl Condition {
    /// Whether the condition holds in this thread.
    pub fn holds(&self, lane: u32, warp: u32, block: u32) -> bool {
        let ones = (lane & self.lanes).count_ones()
            + (warp & self.warps).count_ones()
            + (block & self.blocks).count_ones();
        ones % 2 == 1
    }
}

/// Where `condition` holds, words `i` and `i ^ xor` change places, for all `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Exchange {
    /// The threads in which it happens.
    pub condition: Condition,
    /// The difference of the indices of the words that change places.
    pub xor: u32,
}

/// One round: every lane takes one word from one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct ShuffleStep {
    /// The word that every lane offers, by its index after the first exchanges.
    pub word: u32,
    /// Lane `l` of warp `w` reads lane `plan.lane(l, w, b) ^ lane_xor`.
    pub lane_xor: u32,
    /// Whether any lane reads another one. If not, the word stays where it is.
    pub moves: bool,
    /// Slot `e` of what the result wants is slot `e ^ slot_xor` of the word.
    pub slot_xor: u32,
}

/// A conversion inside warps; see the head of this file for the stages.
#[derive(Clone, Debug, PartialEq)]
pub struct ShufflePlan {
    /// The elements that travel in one word, as log2. A word has 32 bits, or one element if that is
    /// wider.
    pub slots_log2: u32,
    /// From the index of a word (low bits) and slot (the `slots_log2` bits above them) to the
    /// register of the operand that lies there: how words are packed.
    pub packing: Matrix,
    /// The number of words of the operand, as log2.
    pub words_log2: u32,
    /// What happens before the shuffles, in order.
    pub before: InlineList<Exchange, WORD>,
    /// The rounds; round `i` yields word `i` of the result.
    pub steps: Vec<ShuffleStep>,
    /// What happens after the shuffles, in order.
    pub after: InlineList<Exchange, WORD>,
    /// From a register of the result to the index of a word (low bits) and slot (above them).
    pub unpacking: Matrix,
    /// The lane that lane `2^i` reads in round 0.
    pub lanes: InlineList<u32, WORD>,
    /// What bit `i` of the warp adds to that.
    pub warps: InlineList<u32, WORD>,
    /// What bit `i` of the block adds to that.
    pub blocks: InlineList<u32, WORD>,
}

impl ShufflePlan {
    /// The lane that a thread reads in round 0; the other rounds add their `lane_xor`.
    pub fn lane(&self, lane: u32, warp: u32, block: u32) -> u32 {
        let part = |columns: &[u32], word: u32| {
            ones(word & low_mask(columns.len() as u32)).fold(0, |acc, i| acc ^ columns[i as usize])
        };
        part(&self.lanes, lane) ^ part(&self.warps, warp) ^ part(&self.blocks, block)
    }

    /// Whether every lane starts from itself, so that every round is an exchange with the lane at
    /// a fixed xor distance.
    pub fn is_butterfly(&self) -> bool {
        self.lanes
            .iter()
            .enumerate()
            .all(|(i, &lane)| lane == 1 << i)
            && self.warps.iter().chain(&self.blocks).all(|&lane| lane == 0)
    }

    /// The word and slot of register `r` of the result, after all stages.
    pub fn target(&self, register: u32) -> (u32, u32) {
        let place = self.unpacking.apply(register);
        let words = self.steps.len().trailing_zeros();
        (place & low_mask(words), place >> words)
    }

    /// The register of the operand in slot `slot` of word `word`.
    pub fn source(&self, word: u32, slot: u32) -> u32 {
        self.packing.apply(word | slot << self.words_log2)
    }

    /// The index of the first round that has the same word of the same lane, for each round: one shuffle
    /// serves them all.
    pub fn shuffled(&self) -> Vec<u32> {
        let mut known = BTreeMap::new();
        (0u32..)
            .zip(&self.steps)
            .map(|(round, step)| *known.entry((step.word, step.lane_xor)).or_insert(round))
            .collect()
    }

    /// Whether the slots of words change places before registers do: after that, words are made of several.
    pub fn turns_words(&self) -> bool {
        !self.after.is_empty()
    }

    /// The byte permutes that pack the words that are `offered`, turn those of the `wanted` rounds and unpack
    /// them, where operand and result are words that hold elements in the order of their registers.
    fn permutes(&self, element_bits: u32, offered: &[bool], wanted: &[bool]) -> u32 {
        let Some(full) = per_word(element_bits) else {
            return 0;
        };
        let slots = 1u32 << self.slots_log2;
        let packed: Vec<Option<u32>> = (0..1u32 << self.words_log2)
            .filter(|&word| offered[word as usize])
            .flat_map(|word| (0..slots).map(move |slot| Some(self.source(word, slot))))
            .collect();
        let shuffled = self.shuffled();
        let turned: Vec<Option<u32>> = (0..self.steps.len())
            .filter(|&round| self.turns_words() && wanted[round])
            .flat_map(|round| {
                let turn = self.steps[round].slot_xor;
                let word = shuffled[round] * full;
                (0..slots).map(move |slot| Some(word + (slot ^ turn)))
            })
            .collect();
        let results: Vec<Option<u32>> = (0..1u32 << self.unpacking.columns().len())
            .map(|register| {
                let (word, slot) = self.target(register);
                Some(if self.turns_words() {
                    word * full + slot
                } else {
                    let round = word as usize;
                    shuffled[round] * full + (slot ^ self.steps[round].slot_xor)
                })
            })
            .collect();
        permutes(element_bits, slots, &packed)
            + permutes(element_bits, slots, &turned)
            + permutes(element_bits, full, &results)
    }

    pub(super) fn counts(&self, element_bits: u32) -> Counts {
        let parts = element_bits.div_ceil(32);
        let shuffled = self.shuffled();
        let moving = (0u32..)
            .zip(&self.steps)
            .filter(|(round, step)| step.moves && shuffled[*round as usize] == *round)
            .count() as u32;
        let (words, rounds) = (1u32 << self.words_log2, self.steps.len() as u32);
        let mut wanted = vec![true; self.steps.len()];
        let mut selects = selects_for(&self.after, &mut wanted);
        let mut offered = vec![false; words as usize];
        for (step, _) in self
            .steps
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted)
        {
            offered[step.word as usize] = true;
        }
        selects += selects_for(&self.before, &mut offered);
        Counts {
            shuffles: moving * parts,
            selects: selects * parts,
            permutes: self.permutes(element_bits, &offered, &wanted),
            extra_registers: if moving > 0 {
                words.min(rounds) * parts
            } else {
                0
            },
            ..Counts::default()
        }
    }
}

/// The selects that exchanges take if the words marked are wanted after them; then the words that these are
/// made of are marked.
fn selects_for(exchanges: &[Exchange], wanted: &mut [bool]) -> u32 {
    let mut selects = 0;
    for exchange in exchanges.iter().rev() {
        selects += wanted.iter().filter(|wanted| **wanted).count() as u32;
        let after = wanted.to_vec();
        for (word, is_wanted) in after.into_iter().enumerate() {
            if is_wanted && let Some(other) = wanted.get_mut(word ^ exchange.xor as usize) {
                *other = true;
            }
        }
    }
    selects
}

/// More registers than any machine has: a plan that names each would only take memory.
pub(super) const MAX_REGISTER_BITS: usize = 12;

/// The conversion, if no element has to leave its warp.
pub(super) fn in_warp(source: &Endpoint, target: &Endpoint, element_bits: u32) -> Option<Movement> {
    let registers = source.registers.len().max(target.registers.len());
    if registers > MAX_REGISTER_BITS {
        return None;
    }
    let map = Fetch::solve(source, target)?;
    if map.is_register_only() {
        let columns: Vectors = (0..target.register_bits)
            .map(|bit| {
                let coordinates = map.register_of_fold(target, target.fold.apply(1 << bit));
                source.register_index(coordinates)
            })
            .collect();
        let same = source.register_bits == target.register_bits
            && columns
                .iter()
                .enumerate()
                .all(|(i, &column)| column == 1 << i);
        return Some(if same {
            Movement::Nothing
        } else {
            Movement::Registers {
                sources: Matrix::from_columns(&columns),
            }
        });
    }
    let plan = map.into_plan(source, target, element_bits);
    Some(Movement::Shuffle(Box::new(plan)))
}
