//! The plan of a conversion inside warps, step by step, and its counts.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::InlineList;
use crate::f2::{Matrix, WORD, low_mask, ones};
use crate::plan::Costs;

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

/// Where `condition` holds, words `i` and `i ^ xor` are exchanged, for all `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Exchange {
    /// The threads in which this happens.
    pub condition: Condition,
    /// The difference of the indices of the exchanged words.
    pub xor: u32,
}

/// For each word `i` without bit `side`: the lanes with bit `lane` of word `i` and the lanes without it of word `i ^
/// xor` are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Swap {
    /// The bit of the lane.
    pub lane: u32,
    /// The difference of the indices of the words; it has the bit `side`.
    pub xor: u32,
    /// The bit of the index of a word that is set in the second of two.
    pub side: u32,
}

impl Swap {
    /// The indices of the words that change lanes, of `words`.
    pub fn pairs(self, words: u32) -> impl Iterator<Item = (u32, u32)> {
        (0..words)
            .filter(move |word| word & self.side == 0)
            .map(move |word| (word, word ^ self.xor))
    }
}

/// One round: every lane takes one word from one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct ShuffleStep {
    /// The word that every lane offers, by its index after the first exchanges.
    pub word: u32,
    /// Lane `l` of warp `w` reads lane `plan.lane(l, w, b) ^ lane_xor`.
    pub lane_xor: u32,
    /// Whether any lane reads another lane. If not, the word stays where it is.
    pub moves: bool,
    /// Slot `e` of the result is slot `e ^ slot_xor` of the word.
    pub slot_xor: u32,
}

/// A conversion inside warps; the module `shuffle` describes the stages.
#[derive(Clone, Debug, PartialEq)]
pub struct ShufflePlan {
    /// The elements that are moved in one word, as log2. A word has 32 bits, or one element if that is wider.
    pub slots_log2: u32,
    /// From the index of a word (low bits) and slot (the `slots_log2` bits above them) to the
    /// register of the operand that lies there: how words are packed.
    pub packing: Matrix,
    /// The number of words of the operand, as log2.
    pub words_log2: u32,
    /// The exchanges of half of the lanes of words, in order, before everything else.
    pub swaps: InlineList<Swap, WORD>,
    /// The exchanges before the shuffles, in order.
    pub before: InlineList<Exchange, WORD>,
    /// The rounds; round `i` yields word `i` of the result.
    pub steps: Vec<ShuffleStep>,
    /// The exchanges after the shuffles, in order.
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

    /// Applies if a lane reads itself in round 0, or, if a condition on the thread holds, the lane at a fixed
    /// distance, and lanes exchange words by arithmetic over all distances of the rounds: returns the condition and
    /// that distance.
    ///
    /// Two rounds for one word whose distances differ by that distance then take one exchange and two selects: one
    /// takes the lane's own word where the other takes the other lane's.
    pub fn by_condition(&self, costs: &Costs) -> Option<(Condition, u32)> {
        let own = (0u32..).zip(&self.lanes).map(|(i, &lane)| lane ^ 1 << i);
        let mut distance = 0;
        let mut condition = Condition::default();
        let parts = [
            (&mut condition.lanes, own.collect::<Vec<u32>>()),
            (&mut condition.warps, self.warps.to_vec()),
            (&mut condition.blocks, self.blocks.to_vec()),
        ];
        for (bits, columns) in parts {
            for (i, column) in (0u32..).zip(columns) {
                match column {
                    0 => {}
                    column if distance == 0 || column == distance => {
                        distance = column;
                        *bits |= 1 << i;
                    }
                    _ => return None,
                }
            }
        }
        let is_near = |step: &ShuffleStep| {
            costs.is_near(step.lane_xor) && costs.is_near(step.lane_xor ^ distance)
        };
        (distance != 0 && self.steps.iter().all(is_near)).then_some((condition, distance))
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

    /// Whether the slots of words are exchanged before registers are: after that, words consist of parts of several
    /// words.
    pub fn turns_words(&self) -> bool {
        !self.after.is_empty()
    }
}
