//! The rounds of a conversion inside a warp: packing, exchanges, and shuffles in order.

use alloc::vec::Vec;

use super::fetch::Fetch;
use super::{Condition, Exchange, ShufflePlan, ShuffleStep};
use crate::InlineList;
use crate::f2::{Echelon, Matrix, Subspace, WORD, low_mask, ones};
use crate::plan::endpoint::{Endpoint, Vectors};

impl Fetch {
    /// The plan that follows the order of this search.
    pub fn into_plan(self, source: &Endpoint, target: &Endpoint, element_bits: u32) -> ShufflePlan {
        let offered: Vectors = (0..self.registers.len())
            .map(|bit| self.offered(bit))
            .collect();
        let packing = Packing::choose(&self, &offered, source, element_bits);
        let (words, rounds) = (&packing.source_words, &packing.target_words);

        let mut steps = Vec::with_capacity(1 << rounds.len());
        let identity = self.has_identical_lanes()
            && self
                .warps
                .iter()
                .chain(&self.blocks)
                .all(|&(lane, _)| lane == 0);
        // The contribution of each bit of a round's index; a round is the sum over its bits.
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
            swaps: InlineList::new(),
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

/// Splits register coordinates of both sides into a word and a slot inside the word.
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
    /// Packs as many elements together as fit into 32 bits and come from the same lane.
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
        // Slots must be directions that the stages do not move.
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

    /// Whether lanes with nonzero `ahead` find the slots of a word in the same order.
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
