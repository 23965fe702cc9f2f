//! What a conversion inside warps takes, counted without a look at each word.
//!
//! # Theory
//!
//! All that a plan says of words, rounds and registers is linear in their numbers. So what differs is a subspace, and
//! is counted by its dimension:
//!
//! - Rounds that have the same word of the same lane share a shuffle. Round `s` has the pair `(W s, S s)` of word and
//!   lane; there are `2^rank(W, S)` pairs, of which `2^(rank(W, S) - rank(S))` have the own lane.
//! - Where two rounds serve one exchange between lanes at a distance `d`, the pairs with `d` added count as well: the
//!   span of all pairs and `(0, d)`.
//! - The words that are offered are the span of the columns of `W`, and an exchange that wants some words is given these
//!   and their partners: the span with the exchange's difference.
//! - The permutes of bytes are those of linear maps ([`linear_permutes`]).

use alloc::vec::Vec;

use super::{ShufflePlan, ShuffleStep};
use crate::f2::{Echelon, Subspace, ones};
use crate::plan::packing::{MAX_REGISTER_BITS, linear_permutes, per_word};
use crate::plan::{Costs, Counts};

impl ShufflePlan {
    /// What each bit of a round's number adds to the round.
    fn rounds(&self) -> impl Iterator<Item = &ShuffleStep> {
        let bits = self.steps.len().trailing_zeros();
        (0..bits).filter_map(|bit| self.steps.get(1 << bit))
    }

    /// What the conversion takes: what moves words, and the permutes of bytes.
    pub(crate) fn counts(&self, element_bits: u32, costs: &Costs) -> Counts {
        let (counts, offered) = self.counts_of_words(element_bits, costs);
        Counts {
            permutes: self.permutes(element_bits, &offered),
            ..counts
        }
    }

    /// What moves words, without the permutes of bytes; then the words of the operand that are offered to others or
    /// kept.
    fn counts_of_words(&self, element_bits: u32, costs: &Costs) -> (Counts, Subspace) {
        let parts = element_bits.div_ceil(32);
        let (words, rounds) = (1u32 << self.words_log2, self.steps.len() as u32);
        let mut offered = Subspace::ZERO;
        let mut lanes = Subspace::ZERO;
        let mut pairs = Subspace::ZERO;
        for round in self.rounds() {
            offered.add(round.word);
            lanes.add(round.lane_xor);
            pairs.add(self.pair(round.word, round.lane_xor));
        }
        let of_other_lanes = |pairs: &Subspace, lanes: &Subspace| {
            let own = pairs.dimension() - lanes.dimension();
            (1u32 << pairs.dimension()) - (1u32 << own)
        };
        let is_moved = self.steps.first().is_some_and(|step| step.moves);
        let mut moving = match is_moved {
            true => 1 << pairs.dimension(),
            false => of_other_lanes(&pairs, &lanes),
        };
        // All rounds are wanted, so each exchange after them makes all words.
        let mut selects = rounds * self.after.len() as u32;
        if let Some((_, distance)) = self.by_condition(costs) {
            selects += moving;
            pairs.add(self.pair(0, distance));
            lanes.add(distance);
            moving = of_other_lanes(&pairs, &lanes);
        }
        for exchange in self.before.iter().rev() {
            selects += 1 << offered.dimension();
            offered.add(exchange.xor);
        }
        let counts = Counts {
            swaps: (self.swaps.len() as u32 * words / 2) * parts,
            shuffles: moving * parts,
            selects: selects * parts,
            extra_registers: if moving > 0 {
                words.min(rounds) * parts
            } else {
                0
            },
            ..Counts::default()
        };
        (counts, offered)
    }

    /// A word and a lane as one vector.
    fn pair(&self, word: u32, lane: u32) -> u32 {
        word | lane << MAX_REGISTER_BITS
    }

    /// The byte permutes that pack the words that are `offered`, turn those of the rounds and unpack them, where operand
    /// and result are words that hold elements in the order of their registers.
    fn permutes(&self, element_bits: u32, offered: &Subspace) -> u32 {
        let Some(full) = per_word(element_bits) else {
            return 0;
        };
        let slots = self.slots_log2;
        let words = offered.basis();
        let of_words = words.iter().map(|&word| self.source(word, 0));
        let packed: Vec<u32> = (0..slots)
            .map(|slot| self.source(0, 1 << slot))
            .chain(of_words)
            .collect();
        // The place of the first round that has the same word of the same lane, and how the slots of this one lie.
        let mut pairs = Echelon::new();
        for round in self.rounds() {
            let _ = pairs.insert(self.pair(round.word, round.lane_xor));
        }
        let turned: Vec<u32> = self
            .rounds()
            .map(|round| {
                let first = pairs.solve(self.pair(round.word, round.lane_xor));
                (first.unwrap_or(0) * full) ^ round.slot_xor
            })
            .collect();
        let sum = |round: u32| {
            ones(round).fold(0, |sum, bit| {
                sum ^ turned.get(bit as usize).copied().unwrap_or(0)
            })
        };
        let registers = 0..self.unpacking.columns().len();
        let results: Vec<u32> = registers
            .map(|bit| {
                let (word, slot) = self.target(1 << bit);
                match self.turns_words() {
                    true => (word * full) ^ slot,
                    false => sum(word) ^ slot,
                }
            })
            .collect();
        let mut permutes = linear_permutes(element_bits, slots as usize, &packed)
            + linear_permutes(element_bits, full.trailing_zeros() as usize, &results);
        if self.turns_words() {
            let in_order = (0..slots).map(|slot| 1 << slot);
            let columns: Vec<u32> = in_order.chain(turned.iter().copied()).collect();
            permutes += linear_permutes(element_bits, slots as usize, &columns);
        }
        permutes
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec;

    use super::*;
    use crate::plan::endpoint::endpoints;
    use crate::plan::packing::permutes;
    use crate::plan::{Machine, Movement, within_warp};
    use crate::{Dim, LinearLayout};

    /// Numbers that are random enough and the same on every run.
    struct Random(u32);

    impl Random {
        fn below(&mut self, most: u32) -> u32 {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 8) % most.max(1)
        }
    }

    /// The same counts, word by word.
    fn counted(plan: &ShufflePlan, element_bits: u32, costs: &Costs) -> Counts {
        let parts = element_bits.div_ceil(32);
        let mut known = BTreeMap::new();
        let first: Vec<u32> = (0u32..)
            .zip(&plan.steps)
            .map(|(round, step)| *known.entry((step.word, step.lane_xor)).or_insert(round))
            .collect();
        assert_eq!(first, plan.shuffled());
        let mut moving = (0u32..)
            .zip(&plan.steps)
            .filter(|(round, step)| step.moves && first[*round as usize] == *round)
            .count() as u32;
        let (words, rounds) = (1u32 << plan.words_log2, plan.steps.len() as u32);
        let mut selects = rounds * plan.after.len() as u32;
        if let Some((_, distance)) = plan.by_condition(costs) {
            selects += moving;
            let read = plan.steps.iter().flat_map(|step| {
                let both = [step.lane_xor, step.lane_xor ^ distance];
                both.map(|lane_xor| (step.word, lane_xor))
            });
            let exchanged: BTreeSet<_> = read.filter(|(_, lane_xor)| *lane_xor != 0).collect();
            moving = exchanged.len() as u32;
        }
        let mut offered = vec![false; words as usize];
        for step in &plan.steps {
            offered[step.word as usize] = true;
        }
        for exchange in plan.before.iter().rev() {
            selects += offered
                .iter()
                .map(|offered| u32::from(*offered))
                .sum::<u32>();
            let after = offered.clone();
            for (word, _) in after.iter().enumerate().filter(|(_, wanted)| **wanted) {
                offered[word ^ exchange.xor as usize] = true;
            }
        }
        let permutes = per_word(element_bits).map_or(0, |full| {
            let slots = 1u32 << plan.slots_log2;
            let packed: Vec<Option<u32>> = (0..words)
                .filter(|&word| offered[word as usize])
                .flat_map(|word| (0..slots).map(move |slot| Some(plan.source(word, slot))))
                .collect();
            let turns = plan.turns_words();
            let turned: Vec<Option<u32>> = (0..plan.steps.len())
                .filter(|_| turns)
                .flat_map(|round| {
                    let turn = plan.steps[round].slot_xor;
                    let word = first[round] * full;
                    (0..slots).map(move |slot| Some(word + (slot ^ turn)))
                })
                .collect();
            let results: Vec<Option<u32>> = (0..1u32 << plan.unpacking.columns().len())
                .map(|register| {
                    let (word, slot) = plan.target(register);
                    let round = word as usize;
                    Some(match turns {
                        true => word * full + slot,
                        false => first[round] * full + (slot ^ plan.steps[round].slot_xor),
                    })
                })
                .collect();
            permutes(element_bits, slots, &packed)
                + permutes(element_bits, slots, &turned)
                + permutes(element_bits, full, &results)
        });
        Counts {
            permutes,
            swaps: (plan.swaps.len() as u32 * words / 2) * parts,
            shuffles: moving * parts,
            selects: selects * parts,
            extra_registers: if moving > 0 {
                words.min(rounds) * parts
            } else {
                0
            },
            ..Counts::default()
        }
    }

    /// A layout of `registers` and five lane bits, whose vectors are a basis of `bits` bits and repeats.
    fn layout(random: &mut Random, bits: u32, registers: u32) -> Option<LinearLayout> {
        let mut vectors: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        for _ in 0..random.below(bits) {
            let (a, b) = (random.below(bits) as usize, random.below(bits) as usize);
            if a != b {
                vectors[a] ^= vectors[b];
            }
        }
        while (vectors.len() as u32) < registers + 5 {
            let repeat = vectors[random.below(bits) as usize];
            vectors.push(if random.below(4) == 0 { repeat } else { 0 });
        }
        for i in (1..vectors.len()).rev() {
            vectors.swap(i, random.below(i as u32 + 1) as usize);
        }
        let bases: Vec<[u32; 1]> = vectors.iter().map(|vector| [*vector]).collect();
        let (of_registers, of_lanes) = bases.split_at(registers as usize);
        let parts = [(Dim::REGISTER, of_registers), (Dim::LANE, of_lanes)];
        LinearLayout::from_bases(&parts, &[(Dim::tensor(0), 1 << bits)]).ok()
    }

    #[test]
    fn subspaces_count_what_words_count() {
        let mut random = Random(7);
        let mut shuffles = 0;
        for case in 0..20_000u32 {
            let bits = 5 + random.below(5);
            let least = bits - 5;
            let mut registers = || least + random.below(3);
            let (here, there) = (registers(), registers());
            let layouts = [here, there].map(|count| layout(&mut random, bits, count));
            let [Some(from), Some(to)] = layouts else {
                continue;
            };
            let costs = Costs {
                near: if case % 3 == 0 { 0b1_0001_0110 } else { 0 },
                swapped_lanes: if case % 5 == 0 { 0b11000 } else { 0 },
                ..Costs::default()
            };
            let machine = Machine {
                lanes_log2: 5,
                banks: crate::banks::BankModel {
                    banks_log2: 5,
                    bank_bytes_log2: 2,
                    phases: &[],
                },
                max_vector_bits: 32,
                matrix: &[],
                shared_bytes: 1 << 16,
                cluster: false,
                costs,
            };
            let element_bits = [8, 16, 32, 64][case as usize % 4];
            let Ok((source, target)) = endpoints(&from, &to, element_bits, &machine) else {
                continue;
            };
            for plan in within_warp(&source, &target, element_bits, &machine) {
                if let Movement::Shuffle(shuffle) = &plan.movement {
                    shuffles += 1;
                    let expected = counted(shuffle, element_bits, &costs);
                    assert_eq!(plan.counts, expected, "{case}: {shuffle:?}");
                }
            }
        }
        assert!(shuffles > 10_000, "{shuffles}");
    }
}
