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

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Counts, Endpoint, Movement};
use crate::f2::{Echelon, Matrix, Subspace, WORD, low_mask, ones};
use crate::{InlineList, plan::endpoint::Vectors};

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

    pub(super) fn counts(&self, element_bits: u32) -> Counts {
        let parts = element_bits.div_ceil(32);
        let moving = self.steps.iter().filter(|step| step.moves).count() as u32;
        let (words, rounds) = (1u32 << self.words_log2, self.steps.len() as u32);
        let per_word = (1 << self.slots_log2) - 1;
        Counts {
            shuffles: moving * parts,
            selects: (self.before.len() as u32 * words + self.after.len() as u32 * rounds) * parts,
            permutes: per_word * (words.min(rounds) + rounds),
            extra_registers: if moving > 0 {
                words.min(rounds) * parts
            } else {
                0
            },
            ..Counts::default()
        }
    }
}

/// More registers than any machine has: a plan that names each would only take memory.
const MAX_REGISTER_BITS: usize = 12;

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

/// Where each bit of the result's place is fetched from, arranged in rounds.
struct Fetch {
    /// `P`: for each register bit of the result the registers of the operand, as coordinates.
    registers: Vectors,
    /// `S`: for each register bit of the result the lane.
    register_lanes: Vectors,
    /// `L`: for each lane bit the lane that is read in round 0.
    lanes: Vectors,
    /// `G`: for each lane bit the registers of the result by which the lane is ahead.
    ahead: Vectors,
    /// `H`: for each lane bit of the operand by how much its registers change places.
    rotate: Vectors,
    /// For each warp bit and each block bit: the lane, and by how much registers change places.
    warps: InlineList<(u32, u32), WORD>,
    blocks: InlineList<(u32, u32), WORD>,
}

/// The solver of `A(register, lane) = vector`, registers preferred.
struct Places {
    echelon: Echelon,
    /// Only the registers, for what can stay in its lane.
    registers: Echelon,
    count: u32,
    /// Places that hold zero without being trivial: lanes that repeat what others hold.
    repeats: InlineList<(u32, u32), WORD>,
}

impl Places {
    fn new(source: &Endpoint) -> Option<Places> {
        let count = source.registers.len() as u32;
        if source.registers.len() + source.lanes.len() > WORD {
            return None;
        }
        let registers = Echelon::of(&source.registers);
        let mut echelon = registers;
        let mut repeats = InlineList::new();
        for &lane in &source.lanes {
            if let Some(recipe) = echelon.insert(lane) {
                repeats.add(split(recipe, count));
            }
        }
        Some(Places {
            echelon,
            registers,
            count,
            repeats,
        })
    }

    /// Register coordinates and lane.
    fn solve(&self, vector: u32) -> Option<(u32, u32)> {
        self.echelon
            .solve(vector)
            .map(|recipe| split(recipe, self.count))
    }
}

fn split(recipe: u32, registers: u32) -> (u32, u32) {
    (
        recipe & low_mask(registers),
        recipe.checked_shr(registers).unwrap_or(0),
    )
}

/// The choice for one lane bit of the result.
#[derive(Clone, Copy, Default)]
struct Choice {
    lane: u32,
    register: u32,
    ahead: u32,
}

/// How many choices the search looks at before it gives up; far more than it ever needed.
const SEARCH_BUDGET: u32 = 4096;

struct Search<'a> {
    source: &'a Endpoint,
    target: &'a Endpoint,
    places: &'a Places,
    budget: u32,
    choices: InlineList<Choice, WORD>,
}

impl Search<'_> {
    /// Extends the choices to all lane bits, `chosen` being the lanes read so far.
    fn extend(&mut self, chosen: &Echelon) -> bool {
        let bit = self.choices.len();
        let Some(&own) = self.target.lanes.get(bit) else {
            return true;
        };
        let registers = self.target.registers.len() as u32;
        // First without being ahead, then by one register bit, then by any.
        for ahead in ahead_by_weight(registers) {
            let vector = self.target.register_vector(ahead) ^ own;
            if self.attempt(chosen, bit, vector, ahead) {
                return true;
            }
            if self.budget == 0 {
                return false;
            }
        }
        false
    }

    fn attempt(&mut self, chosen: &Echelon, bit: usize, vector: u32, ahead: u32) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        // The lane itself, if the element is there.
        if let Some(register) = self.places.registers.solve(vector ^ self.source.lanes[bit]) {
            let choice = Choice {
                lane: 1 << bit,
                register,
                ahead,
            };
            if self.accept(chosen, choice) {
                return true;
            }
        }
        let Some((register, lane)) = self.places.solve(vector) else {
            return false;
        };
        if self.accept(
            chosen,
            Choice {
                lane,
                register,
                ahead,
            },
        ) {
            return true;
        }
        // The same element in another lane.
        let repeats = self.places.repeats;
        for choice in 1..1u32 << repeats.len() {
            let (mut register, mut lane) = (register, lane);
            for i in ones(choice) {
                register ^= repeats[i as usize].0;
                lane ^= repeats[i as usize].1;
            }
            if self.accept(
                chosen,
                Choice {
                    lane,
                    register,
                    ahead,
                },
            ) {
                return true;
            }
        }
        false
    }

    /// Takes the choice if the register asked for is a function of the lane asked, and goes on.
    fn accept(&mut self, chosen: &Echelon, choice: Choice) -> bool {
        if let Some(recipe) = chosen.solve(choice.lane) {
            let known = ones(recipe).fold(0, |acc, i| acc ^ self.choices[i as usize].register);
            if known != choice.register {
                return false;
            }
        }
        let mut next = *chosen;
        let _ = next.insert(choice.lane);
        self.choices.add(choice);
        if self.extend(&next) {
            return true;
        }
        let len = self.choices.len();
        self.choices.truncate(len - 1);
        false
    }
}

/// Zero, then the single bits, then all other words of `bits` bits.
fn ahead_by_weight(bits: u32) -> impl Iterator<Item = u32> {
    let singles = (0..bits).map(|bit| 1u32 << bit);
    let others = (3..=low_mask(bits)).filter(|word| word.count_ones() > 1);
    core::iter::once(0).chain(singles).chain(others)
}

impl Endpoint {
    /// What a vector of coordinates over the registers holds in lane 0.
    fn register_vector(&self, coordinates: u32) -> u32 {
        ones(coordinates).fold(0, |acc, i| acc ^ self.registers[i as usize])
    }
}

impl Fetch {
    fn solve(source: &Endpoint, target: &Endpoint) -> Option<Fetch> {
        let places = Places::new(source)?;
        if target
            .lanes
            .iter()
            .any(|&lane| !places.echelon.contains(lane))
        {
            return None;
        }
        // A warp that wants only a part of what it holds may have to ask one lane for more than one
        // register per round. Then it takes as many rounds more as if it wanted the missing part,
        // too, in registers of which the result keeps none.
        let mut extended = target.clone();
        let mut wanted = Echelon::of(&target.registers);
        for &lane in &target.lanes {
            let _ = wanted.insert(lane);
        }
        let mut missing = source.registers.iter().chain(&source.lanes);
        loop {
            if let Some(fetch) = Fetch::solve_exactly(source, &extended, &places) {
                return Some(fetch);
            }
            let &vector = missing.find(|&&v| !wanted.contains(v))?;
            let _ = wanted.insert(vector);
            extended.registers.push(vector).ok()?;
            extended.register_masks.push(0).ok()?;
        }
    }

    fn solve_exactly(source: &Endpoint, target: &Endpoint, places: &Places) -> Option<Fetch> {
        let (mut registers, mut register_lanes) = (Vectors::new(), Vectors::new());
        for &vector in &target.registers {
            let (register, lane) = places.solve(vector)?;
            registers.add(register);
            register_lanes.add(lane);
        }
        if target
            .lanes
            .iter()
            .any(|&lane| !places.echelon.contains(lane))
        {
            return None;
        }
        let mut outer = [InlineList::<(u32, u32), WORD>::new(); 2];
        for (own, (wanted, there)) in outer.iter_mut().zip([
            (&target.warps, &source.warps),
            (&target.blocks, &source.blocks),
        ]) {
            for (&wanted, &there) in wanted.iter().zip(there) {
                own.add(places.solve(wanted ^ there)?);
            }
        }

        let mut search = Search {
            source,
            target,
            places,
            budget: SEARCH_BUDGET,
            choices: InlineList::new(),
        };
        if !search.extend(&Echelon::new()) {
            return None;
        }
        let choices = search.choices;
        let (lanes, ahead): (Vectors, Vectors) = (
            choices.iter().map(|c| c.lane).collect(),
            choices.iter().map(|c| c.ahead).collect(),
        );

        // H is given on the lanes that are read; elsewhere it does not matter and is zero.
        let mut known = Echelon::of(&lanes);
        let count = lanes.len();
        for bit in 0..count {
            if !known.contains(1 << bit) {
                let _ = known.insert(1 << bit);
            }
        }
        let rotation = |lane: u32| {
            ones(known.solve(lane).unwrap_or(0) & low_mask(count as u32))
                .fold(0, |acc, i| acc ^ choices[i as usize].register)
        };
        let rotate: Vectors = (0..count).map(|bit| rotation(1 << bit)).collect();
        // A warp's contribution (register, lane) becomes (lane, register + H lane).
        let [warps, blocks] = outer.map(|list| {
            list.iter()
                .map(|&(register, lane)| (lane, register ^ rotation(lane)))
                .collect()
        });
        Some(Fetch {
            registers,
            register_lanes,
            lanes,
            ahead,
            rotate,
            warps,
            blocks,
        })
    }

    fn is_register_only(&self) -> bool {
        let zero = |list: &[u32]| list.iter().all(|&v| v == 0);
        zero(&self.register_lanes)
            && zero(&self.ahead)
            && zero(&self.rotate)
            && self
                .lanes
                .iter()
                .enumerate()
                .all(|(i, &lane)| lane == 1 << i)
            && self
                .warps
                .iter()
                .chain(&self.blocks)
                .all(|&pair| pair == (0, 0))
    }

    /// The register coordinates of the operand for a register index of the result.
    fn register_of_fold(&self, target: &Endpoint, index: u32) -> u32 {
        self.registers
            .iter()
            .zip(&target.register_masks)
            .filter(|&(_, &mask)| index & mask != 0)
            .fold(0, |acc, (&register, _)| acc ^ register)
    }

    /// `(P + H S) s` for the unit vector `s`: the register offered in that round.
    fn offered(&self, bit: usize) -> u32 {
        let lane = self.register_lanes[bit];
        ones(lane).fold(self.registers[bit], |acc, i| acc ^ self.rotate[i as usize])
    }

    fn into_plan(self, source: &Endpoint, target: &Endpoint, element_bits: u32) -> ShufflePlan {
        let offered: Vectors = (0..self.registers.len())
            .map(|bit| self.offered(bit))
            .collect();
        let packing = Packing::choose(&self, &offered, source, element_bits);
        let (words, rounds) = (&packing.source_words, &packing.target_words);

        let mut steps = Vec::with_capacity(1 << rounds.len());
        let identity = self
            .lanes
            .iter()
            .enumerate()
            .all(|(i, &lane)| lane == 1 << i)
            && self
                .warps
                .iter()
                .chain(&self.blocks)
                .all(|&(lane, _)| lane == 0);
        // The contribution of each bit of the round's index, then all rounds by Gray code order.
        let parts: InlineList<ShuffleStep, WORD> = rounds
            .iter()
            .map(|&direction| {
                let register = ones(direction).fold(0, |acc, i| acc ^ offered[i as usize]);
                let lane = ones(direction).fold(0, |acc, i| acc ^ self.register_lanes[i as usize]);
                let place = packing.source_place(register);
                ShuffleStep {
                    word: place & low_mask(words.len() as u32),
                    lane_xor: lane,
                    moves: false,
                    slot_xor: place >> words.len(),
                }
            })
            .collect();
        for round in 0..1u32 << rounds.len() {
            let mut step = ShuffleStep::default();
            for i in ones(round) {
                step.word ^= parts[i as usize].word;
                step.lane_xor ^= parts[i as usize].lane_xor;
                step.slot_xor ^= parts[i as usize].slot_xor;
            }
            step.moves = !identity || step.lane_xor != 0;
            steps.push(step);
        }

        let rotation = |column: u32| packing.source_place(column);
        let before = exchanges(
            self.rotate.iter().map(|&v| rotation(v)),
            self.warps.iter().map(|&(_, v)| rotation(v)),
            self.blocks.iter().map(|&(_, v)| rotation(v)),
        );
        let after = exchanges(
            self.ahead.iter().map(|&v| packing.target_place(v)),
            core::iter::empty(),
            core::iter::empty(),
        );
        ShufflePlan {
            slots_log2: packing.source_slots.len() as u32,
            packing: Matrix::from_columns(
                &words
                    .iter()
                    .chain(&packing.source_slots)
                    .map(|&coordinates| source.register_index(coordinates))
                    .collect::<Vectors>(),
            ),
            words_log2: words.len() as u32,
            before,
            steps,
            after,
            unpacking: Matrix::from_columns(
                &(0..target.register_bits)
                    .map(|bit| {
                        let folded = target.fold.apply(1 << bit);
                        let coordinates = target
                            .register_masks
                            .iter()
                            .enumerate()
                            .filter(|&(_, &mask)| folded & mask != 0)
                            .fold(0, |acc, (i, _)| acc | 1 << i);
                        packing.target_place(coordinates)
                    })
                    .collect::<Vectors>(),
            ),
            lanes: self.lanes,
            warps: self.warps.iter().map(|&(lane, _)| lane).collect(),
            blocks: self.blocks.iter().map(|&(lane, _)| lane).collect(),
        }
    }
}

/// Cuts register coordinates of both sides into a word and a slot inside the word.
struct Packing {
    /// Directions of the operand's registers that number words, and those that number slots.
    source_words: Vectors,
    source_slots: Vectors,
    source: Echelon,
    /// The same for the result.
    target_words: Vectors,
    target: Echelon,
}

impl Packing {
    /// Packs as many elements as fit into 32 bits and come from the same lane together.
    fn choose(fetch: &Fetch, offered: &Vectors, source: &Endpoint, element_bits: u32) -> Packing {
        let most = (32 / element_bits.min(32)).trailing_zeros() as usize;
        // Directions of the result's registers along which the lane does not change.
        let still = Matrix::from_columns(&fetch.register_lanes).kernel();
        let mut wanted: Vectors = still;
        // Single registers first: they need no change of basis.
        wanted.sort_unstable_by_key(|direction| (direction.count_ones(), *direction));
        for slots in (1..=most.min(wanted.len())).rev() {
            let packing = Packing::with(fetch, offered, source, &wanted, slots);
            if packing.source_slots.len() == slots && packing.keeps_order(fetch, offered) {
                return packing;
            }
        }
        Packing::with(fetch, offered, source, &wanted, 0)
    }

    /// The packing with up to `slots` of the `wanted` directions, as many as the stages do not move.
    fn with(
        fetch: &Fetch,
        offered: &Vectors,
        source: &Endpoint,
        wanted: &[u32],
        slots: usize,
    ) -> Packing {
        let rotated = fetch
            .rotate
            .iter()
            .copied()
            .chain(fetch.warps.iter().map(|&(_, v)| v))
            .chain(fetch.blocks.iter().map(|&(_, v)| v));
        let mut source_words = Subspace::ZERO;
        let mut source_list = Vectors::new();
        for v in rotated {
            if source_words.add(v) {
                source_list.add(v);
            }
        }
        let mut target_words = Subspace::ZERO;
        let mut target_list = Vectors::new();
        for &v in &fetch.ahead {
            if target_words.add(v) {
                target_list.add(v);
            }
        }
        // Slots must not be what the stages move.
        let (mut source_space, mut target_space) = (source_words, target_words);
        let (mut source_slots, mut target_slots) = (Vectors::new(), Vectors::new());
        for &direction in wanted {
            if source_slots.len() == slots {
                break;
            }
            let there = ones(direction).fold(0, |acc, i| acc ^ offered[i as usize]);
            if !source_space.contains(there) && !target_space.contains(direction) {
                source_space.add(there);
                target_space.add(direction);
                source_slots.add(there);
                target_slots.add(direction);
            }
        }
        // The rounds are the other directions of the result, the single registers first.
        for bit in 0..offered.len() {
            if target_space.add(1 << bit) {
                target_list.add(1 << bit);
            }
        }
        // Words that rounds offer become directions of words, so that slots keep their order.
        for direction in &target_list {
            let there = ones(*direction).fold(0, |acc, i| acc ^ offered[i as usize]);
            if source_space.add(there) {
                source_list.add(there);
            }
        }
        for bit in 0..source.registers.len() {
            if source_space.add(1 << bit) {
                source_list.add(1 << bit);
            }
        }
        let joined = |words: &Vectors, slots: &Vectors| {
            Echelon::of(&words.iter().chain(slots).copied().collect::<Vectors>())
        };
        Packing {
            source: joined(&source_list, &source_slots),
            target: joined(&target_list, &target_slots),
            source_words: source_list,
            source_slots,
            target_words: target_list,
        }
    }

    /// Whether lanes that are ahead find the slots of a word in the same order.
    fn keeps_order(&self, fetch: &Fetch, offered: &Vectors) -> bool {
        fetch.ahead.iter().all(|&ahead| {
            let there = ones(ahead).fold(0, |acc, i| acc ^ offered[i as usize]);
            self.source_place(there) >> self.source_words.len() == 0
        })
    }

    /// Word (low bits) and slot of register coordinates of the operand.
    fn source_place(&self, coordinates: u32) -> u32 {
        self.source.solve(coordinates).unwrap_or(0)
    }

    /// Word (low bits) and slot of register coordinates of the result.
    fn target_place(&self, coordinates: u32) -> u32 {
        self.target.solve(coordinates).unwrap_or(0)
    }
}

/// The fewest exchanges that together move word `i` to `i ^ (sum of the columns at the bits of the
/// lane, the warp and the block)`.
fn exchanges(
    lanes: impl Iterator<Item = u32>,
    warps: impl Iterator<Item = u32>,
    blocks: impl Iterator<Item = u32>,
) -> InlineList<Exchange, WORD> {
    let mut result: InlineList<Exchange, WORD> = InlineList::new();
    let mut echelon = Echelon::new();
    let all = lanes
        .enumerate()
        .map(|(i, v)| {
            (
                Condition {
                    lanes: 1 << i,
                    ..Condition::default()
                },
                v,
            )
        })
        .chain(warps.enumerate().map(|(i, v)| {
            (
                Condition {
                    warps: 1 << i,
                    ..Condition::default()
                },
                v,
            )
        }))
        .chain(blocks.enumerate().map(|(i, v)| {
            (
                Condition {
                    blocks: 1 << i,
                    ..Condition::default()
                },
                v,
            )
        }));
    for (condition, xor) in all {
        if xor == 0 {
            continue;
        }
        match echelon.solve(xor) {
            None => {
                let _ = echelon.insert(xor);
                result.add(Exchange { condition, xor });
            }
            Some(recipe) => {
                for i in ones(recipe) {
                    let own = &mut result[i as usize].condition;
                    own.lanes ^= condition.lanes;
                    own.warps ^= condition.warps;
                    own.blocks ^= condition.blocks;
                }
            }
        }
    }
    result
}
