//! The part of a reduction that happens between the lanes of a warp.
//!
//! # The ways
//!
//! Each lane holds one value for each key, and a [`LaneStep`] says which other lane holds values of the same
//! keys that belong to the same results. With `n` keys and `s` steps:
//!
//! - *Exchange*: in each step each lane gets the other's value of each key and combines it with its own. That is
//!   `n s` shuffles, and every lane ends with every result.
//! - *Halve*: as long as there are several keys, two lanes can share the work: of two keys each lane keeps
//!   one, gives away its value of the other, and combines. One shuffle and two selects for two keys, and the
//!   steps after it have half as many keys. In the end results go back the same way, a shuffle and two selects
//!   for each two keys again. With `d` halvings this takes `2 (n - n / 2^d) + (s - d) n / 2^d` shuffles: for 32
//!   keys and 5 steps 62 in place of 160. (These are the reduce-scatter and all-gather of collective
//!   communication, see R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.) Every
//!   result is computed once, so all lanes end with the same bits, whatever the combination does.
//! - *Instruction*: where the steps join all lanes of the warp and the combination is one that the hardware
//!   has (`redux.sync`), one instruction for each key.
//!
//! The prices of the target decide. Elements of less than 32 bits share the words that are shuffled and
//! selected.
//!
//! # Which lane keeps what
//!
//! Halving needs a bit of the lane's number that the step flips and no other step does. The masks of
//! the steps that leave keys alone are independent, and any basis of their span serves as well; a
//! reduced echelon basis has such a bit for each of its vectors: the pivot. Steps that also change the key
//! are done first, by exchange. Keys form a linear space; those kept are the ones without the highest
//! bit of some key, a space again.

use llopt_layout::f2::Echelon;
use llopt_layout::plan::Costs;
use llopt_target::Feature;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionLike, RegionRef, ValueLike};

use crate::llvm::emitter::V;
use crate::ops::reduction::partial_results::combination;
use crate::ops::reduction::reduce::Tuple;
use crate::targets::hooks::WarpCombination;
use crate::values::element::Element;
use crate::walk::function::{FunctionLowering, Lowered};

/// A step inside of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneStep {
    /// The distance of the lanes that exchange.
    pub(crate) lanes: u32,
    /// What the other lane's key differs in.
    pub(crate) rest: u32,
}

/// How two lanes share keys that differ by `keys`: a lane whose number has the bits `told_by` an odd number of
/// times keeps the key with the highest bit of `keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    lanes: u32,
    told_by: u32,
    keys: u32,
}

impl Share {
    /// Whether it is the first of the two keys that share a place.
    fn is_first(self, key: u32) -> bool {
        key & 1 << self.keys.ilog2() == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Exchange(LaneStep),
    Halve(Share),
    Join(Share),
}

/// The stages of a way without the hardware's own instruction.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Stages(Vec<Stage>);

/// The instructions of a way, in values of one key.
#[derive(Clone, Debug, PartialEq, Default)]
struct Counts {
    /// Keys that pass between lanes at each distance.
    shuffles: Vec<(u32, u32)>,
    /// Values of which one of two is selected, at a time.
    selects: Vec<u32>,
    combinations: u32,
}

impl Stages {
    /// The stages with as many halvings as asked for, or as there can be.
    fn new(keys: &[u32], steps: &[LaneStep], halvings: usize) -> Self {
        let (plain, changing): (Vec<LaneStep>, Vec<LaneStep>) =
            steps.iter().partition(|step| step.rest == 0);
        let mut masks = Echelon::new();
        for step in &plain {
            masks.insert(step.lanes);
        }
        let mut stages: Vec<Stage> = changing.into_iter().map(Stage::Exchange).collect();
        let mut kept = keys.to_vec();
        let mut joins = Vec::new();
        for (i, lanes) in masks.vectors().enumerate() {
            // The smallest difference has the lowest highest bit of all.
            let difference = kept.iter().copied().filter(|key| *key != 0).min();
            match difference {
                Some(keys) if i < halvings => {
                    let share = Share {
                        lanes,
                        told_by: lanes & masks.pivots(),
                        keys,
                    };
                    kept.retain(|key| share.is_first(*key));
                    stages.push(Stage::Halve(share));
                    joins.push(Stage::Join(share));
                }
                _ => stages.push(Stage::Exchange(LaneStep { lanes, rest: 0 })),
            }
        }
        joins.reverse();
        stages.extend(joins);
        Self(stages)
    }

    fn halvings(&self) -> usize {
        let halves = |stage: &&Stage| matches!(stage, Stage::Halve(_));
        self.0.iter().filter(halves).count()
    }

    fn counts(&self, keys: usize) -> Counts {
        let mut counts = Counts::default();
        let mut values = keys as u32;
        for stage in &self.0 {
            match stage {
                Stage::Exchange(step) => {
                    counts.shuffles.push((step.lanes, values));
                    counts.combinations += values;
                }
                Stage::Halve(share) => {
                    values /= 2;
                    counts.selects.extend([values; 2]);
                    counts.shuffles.push((share.lanes, values));
                    counts.combinations += values;
                }
                Stage::Join(share) => {
                    counts.shuffles.push((share.lanes, values));
                    counts.selects.extend([values; 2]);
                    values *= 2;
                }
            }
        }
        counts
    }
}

/// The way that a warp's part of a reduction goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WarpReduction {
    way: Way,
    /// Shuffles of a 32-bit register.
    pub(crate) shuffles: u32,
    /// Instructions that combine the values of all lanes.
    pub(crate) instructions: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Way {
    Stages(Stages),
    Instruction(WarpCombination),
}

/// What is known of a reduction when its way is chosen.
struct Work<'a> {
    keys: &'a [u32],
    steps: &'a [LaneStep],
    /// The bits of an element of each operand.
    bits: &'a [u32],
    /// Arithmetic instructions of one combination.
    combination: f32,
    /// The hardware's own instruction for it.
    instruction: Option<WarpCombination>,
}

impl Work<'_> {
    /// The 32-bit registers of some values of each operand.
    fn words(&self, values: u32) -> u32 {
        let words = self.bits.iter().map(|bits| (bits * values).div_ceil(32));
        words.sum()
    }
}

impl WarpReduction {
    /// The cheapest way. `distance` gives the price of a shuffle between lanes at a distance, and whether
    /// an arithmetic unit does it.
    fn cheapest(work: &Work<'_>, costs: &Costs, distance: impl Fn(u32) -> (f32, bool)) -> Self {
        let mut best: Option<(f32, Self)> = None;
        let mut consider = |price: f32, way: Self| {
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, way));
            }
        };
        for halvings in 0..=work.steps.len() {
            let stages = Stages::new(work.keys, work.steps, halvings);
            if stages.halvings() < halvings {
                break;
            }
            let counts = stages.counts(work.keys.len());
            let (mut memory, mut arithmetic) = (0.0, 0.0);
            let mut shuffles = 0;
            for (lanes, values) in &counts.shuffles {
                let (price, by_arithmetic) = distance(*lanes);
                let words = work.words(*values);
                shuffles += words;
                let pipe = if by_arithmetic {
                    &mut arithmetic
                } else {
                    &mut memory
                };
                *pipe += words as f32 * price;
            }
            let selects = counts.selects.iter().map(|values| work.words(*values));
            arithmetic += costs.select
                * (selects.sum::<u32>() as f32 + counts.combinations as f32 * work.combination);
            // Each shuffle waits for the one before it.
            let waits = counts.shuffles.len() as f32 * costs.exchange;
            consider(
                costs.together(memory, arithmetic) + waits,
                Self {
                    way: Way::Stages(stages),
                    shuffles,
                    instructions: 0,
                },
            );
        }
        if let Some(instruction) = work.instruction {
            let keys = work.keys.len() as u32;
            consider(
                keys as f32 * costs.warp_reduce + costs.exchange,
                Self {
                    way: Way::Instruction(instruction),
                    shuffles: 0,
                    instructions: keys,
                },
            );
        }
        best.map_or_else(
            || Self {
                way: Way::Stages(Stages::default()),
                shuffles: 0,
                instructions: 0,
            },
            |(_, way)| way,
        )
    }
}

/// The combination of a region that is a single operation on its two arguments.
fn single_combination(region: RegionRef<'_, '_>) -> Option<WarpCombination> {
    let block = region.first_block()?;
    let op = block.first_operation()?;
    let end = op.next_in_block()?;
    let arguments =
        [block.argument(0).ok()?, block.argument(1).ok()?].map(|argument| argument.to_raw().ptr);
    let mut operands =
        [op.operand(0).ok()?, op.operand(1).ok()?].map(|operand| operand.to_raw().ptr);
    if operands != arguments {
        operands.reverse();
    }
    let is_it = operands == arguments
        && op.operand_count() == 2
        && end.operand_count() == 1
        && end.operand(0).ok()?.to_raw().ptr == op.result(0).ok()?.to_raw().ptr;
    if !is_it {
        return None;
    }
    Some(match op.name().as_string_ref().as_str().ok()? {
        "arith.addi" => WarpCombination::Add,
        "arith.andi" => WarpCombination::And,
        "arith.ori" => WarpCombination::Or,
        "arith.xori" => WarpCombination::Xor,
        "arith.minsi" => WarpCombination::MinSigned,
        "arith.maxsi" => WarpCombination::MaxSigned,
        "arith.minui" => WarpCombination::MinUnsigned,
        "arith.maxui" => WarpCombination::MaxUnsigned,
        _ => return None,
    })
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// The way for the values of `keys`, one of each operand.
    pub(crate) fn plan_in_warp(
        &self,
        region: RegionRef<'c, 'a>,
        keys: &[u32],
        steps: &[LaneStep],
        elements: &[Element],
    ) -> WarpReduction {
        let costs = self.hooks().target().movement_costs();
        let whole_warp = steps.len() as u32 == self.program.threads_per_warp.trailing_zeros()
            && steps.iter().all(|step| step.rest == 0);
        let has_it = self.hooks().target().has(Feature::WarpReduceInteger);
        let instruction = match elements {
            [one] if whole_warp && has_it && !one.is_float() && one.bits() <= 32 => {
                single_combination(region)
            }
            _ => None,
        };
        let bits: Vec<u32> = elements
            .iter()
            .map(|element| element.memory_bits())
            .collect();
        let work = Work {
            keys,
            steps,
            bits: &bits,
            combination: combination(region),
            instruction,
        };
        WarpReduction::cheapest(&work, &costs, |lanes| {
            if self.hooks().shuffles_by_arithmetic(lanes) {
                (costs.select, true)
            } else {
                (costs.shuffle, false)
            }
        })
    }

    /// The values of `keys` after all lanes that belong together have combined theirs.
    pub(crate) fn reduce_in_warp(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        plan: &WarpReduction,
        keys: &[u32],
        values: Vec<Tuple<'ctx>>,
        elements: &[Element],
    ) -> Lowered<Vec<Tuple<'ctx>>> {
        match &plan.way {
            Way::Instruction(combination) => values
                .into_iter()
                .map(|tuple| {
                    let combined = self.combine_in_warp(*combination, tuple[0]);
                    let no_code = || self.unsupported(op, Some("no code for it".to_owned()));
                    Ok(vec![combined.ok_or_else(no_code)?])
                })
                .collect(),
            Way::Stages(stages) => {
                let mut held: Vec<(u32, Tuple<'ctx>)> = keys.iter().copied().zip(values).collect();
                for stage in &stages.0 {
                    held = self.follow_stage(op, region, *stage, &held, elements)?;
                }
                // Joining has changed the order.
                Ok(keys
                    .iter()
                    .map(|key| value_of(&held, *key).clone())
                    .collect())
            }
        }
    }

    /// The hardware's combination of the values that all lanes have.
    fn combine_in_warp(&self, combination: WarpCombination, value: V<'ctx>) -> Option<V<'ctx>> {
        let e = self.e;
        let (of, word) = (value.get_type(), e.int(32).into());
        if of == word {
            return self.hooks().combine_warp(e, combination, value);
        }
        let wide = match combination {
            WarpCombination::MinSigned | WarpCombination::MaxSigned => e.sext(value, word),
            _ => e.zext(value, word),
        };
        let combined = self.hooks().combine_warp(e, combination, wide)?;
        Some(e.trunc(combined, of))
    }

    fn follow_stage(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        stage: Stage,
        held: &[(u32, Tuple<'ctx>)],
        elements: &[Element],
    ) -> Lowered<Vec<(u32, Tuple<'ctx>)>> {
        match stage {
            Stage::Exchange(step) => {
                let given = held.iter().map(|(key, _)| value_of(held, key ^ step.rest));
                let given = self.in_words(elements, given);
                let received = self.out_of_words(
                    elements,
                    &self.shuffle_words(&given, step.lanes),
                    held.len(),
                );
                held.iter()
                    .zip(received)
                    .map(|((key, own), received)| {
                        Ok((*key, self.combine(op, region, own, &received)?))
                    })
                    .collect()
            }
            Stage::Halve(share) => {
                let second = self.parity(share.told_by, 0, 0);
                let keys = held.iter().map(|(key, _)| *key);
                let keys: Vec<u32> = keys.filter(|key| share.is_first(*key)).collect();
                let [ones, others] = [0, share.keys].map(|side| {
                    self.in_words(elements, keys.iter().map(|key| value_of(held, key ^ side)))
                });
                let kept = self.select_words(second, &others, &ones);
                let given = self.select_words(second, &ones, &others);
                let received = self.shuffle_words(&given, share.lanes);
                let [kept, received] =
                    [kept, received].map(|words| self.out_of_words(elements, &words, keys.len()));
                keys.into_iter()
                    .zip(kept.iter().zip(&received))
                    .map(|(key, (kept, received))| {
                        Ok((key, self.combine(op, region, kept, received)?))
                    })
                    .collect()
            }
            Stage::Join(share) => {
                let second = self.parity(share.told_by, 0, 0);
                let own = self.in_words(elements, held.iter().map(|(_, own)| own));
                let other = self.shuffle_words(&own, share.lanes);
                let ones = self.select_words(second, &other, &own);
                let others = self.select_words(second, &own, &other);
                let sides = [(0, ones), (share.keys, others)];
                Ok(sides
                    .into_iter()
                    .flat_map(|(side, words)| {
                        let values = self.out_of_words(elements, &words, held.len());
                        let keys = held.iter().map(move |(key, _)| key ^ side);
                        keys.zip(values).collect::<Vec<_>>()
                    })
                    .collect())
            }
        }
    }

    /// The values of each operand, several of narrow ones in a word of 32 bits.
    fn in_words<'v>(
        &self,
        elements: &[Element],
        values: impl Iterator<Item = &'v Tuple<'ctx>> + Clone,
    ) -> Vec<Vec<V<'ctx>>>
    where
        'ctx: 'v,
    {
        let column = |(i, element): (usize, &Element)| {
            let narrow: Vec<V<'ctx>> = values
                .clone()
                .map(|tuple| self.to_memory(*element, tuple[i]))
                .collect();
            let bits = element.memory_bits();
            let words = narrow.chunks(values_of_a_word(*element)).map(|chunk| {
                let word = self.e.int(bits * chunk.len() as u32).into();
                self.e.bitcast(self.e.pack(chunk), word)
            });
            words.collect()
        };
        elements.iter().enumerate().map(column).collect()
    }

    /// The other way round.
    fn out_of_words(
        &self,
        elements: &[Element],
        words: &[Vec<V<'ctx>>],
        count: usize,
    ) -> Vec<Tuple<'ctx>> {
        let columns: Vec<Vec<V<'ctx>>> = words
            .iter()
            .zip(elements)
            .map(|(words, element)| {
                let memory = self.memory_type(*element);
                let all = words.iter().flat_map(|word| {
                    let parts =
                        crate::llvm::emitter::bit_width(word.get_type()) / element.memory_bits();
                    let of = if parts == 1 {
                        memory
                    } else {
                        self.e.vector(memory, parts).into()
                    };
                    self.e.unpack(self.e.bitcast(*word, of))
                });
                all.map(|value| self.to_register(*element, value)).collect()
            })
            .collect();
        (0..count)
            .map(|i| columns.iter().map(|column| column[i]).collect())
            .collect()
    }

    fn shuffle_words(&self, words: &[Vec<V<'ctx>>], lanes: u32) -> Vec<Vec<V<'ctx>>> {
        let shuffle = |word: &V<'ctx>| self.shuffle_word(*word, None, lanes);
        words
            .iter()
            .map(|column| column.iter().map(shuffle).collect())
            .collect()
    }

    fn select_words(
        &self,
        condition: V<'ctx>,
        a: &[Vec<V<'ctx>>],
        b: &[Vec<V<'ctx>>],
    ) -> Vec<Vec<V<'ctx>>> {
        let select = |(a, b): (&V<'ctx>, &V<'ctx>)| self.e.select(condition, *a, *b);
        a.iter()
            .zip(b)
            .map(|(a, b)| a.iter().zip(b).map(select).collect())
            .collect()
    }
}

/// How many elements share a word of 32 bits.
fn values_of_a_word(element: Element) -> usize {
    (32 / element.memory_bits()).max(1) as usize
}

/// The value of a key that is held.
fn value_of<'v, 'ctx>(held: &'v [(u32, Tuple<'ctx>)], key: u32) -> &'v Tuple<'ctx> {
    let found = held.iter().find(|(known, _)| *known == key);
    &found.unwrap_or(&held[0]).1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANES: u32 = 32;

    /// For each key that a lane holds, whose values are in it.
    type Held = Vec<(u32, Vec<(u32, u32)>)>;

    /// Follows stages on sets of elements `(lane, key)`: in the end every lane holds for every key what the
    /// lanes that belong to it had, each once.
    fn check(keys: &[u32], steps: &[LaneStep], halvings: usize) -> usize {
        let stages = Stages::new(keys, steps, halvings);
        let mut held: Vec<Held> = (0..LANES)
            .map(|lane| keys.iter().map(|key| (*key, vec![(lane, *key)])).collect())
            .collect();
        let find = |held: &Held, key: u32| {
            let found = held.iter().find(|(known, _)| *known == key);
            found.expect("the key is held").1.clone()
        };
        for stage in &stages.0 {
            held = (0..LANES)
                .map(|lane| {
                    let own = &held[lane as usize];
                    let is_second =
                        |share: &Share, lane: u32| (lane & share.told_by).count_ones() & 1 == 1;
                    match stage {
                        Stage::Exchange(step) => own
                            .iter()
                            .map(|(key, set)| {
                                let other = &held[(lane ^ step.lanes) as usize];
                                (*key, [set.clone(), find(other, key ^ step.rest)].concat())
                            })
                            .collect(),
                        Stage::Halve(share) => own
                            .iter()
                            .filter(|(key, _)| share.is_first(*key))
                            .map(|(key, _)| {
                                let other = lane ^ share.lanes;
                                let kept = if is_second(share, lane) {
                                    share.keys
                                } else {
                                    0
                                };
                                let given = if is_second(share, other) {
                                    0
                                } else {
                                    share.keys
                                };
                                let received = find(&held[other as usize], key ^ given);
                                (*key, [find(own, key ^ kept), received].concat())
                            })
                            .collect(),
                        Stage::Join(share) => own
                            .iter()
                            .flat_map(|(key, set)| {
                                let other = find(&held[(lane ^ share.lanes) as usize], *key);
                                let pair = [set.clone(), other];
                                let [first, second] = if is_second(share, lane) {
                                    [pair[1].clone(), pair[0].clone()]
                                } else {
                                    pair
                                };
                                [(*key, first), (key ^ share.keys, second)]
                            })
                            .collect(),
                    }
                })
                .collect();
        }
        for lane in 0..LANES {
            for key in keys {
                let mut found = find(&held[lane as usize], *key);
                found.sort_unstable();
                let mut wanted: Vec<(u32, u32)> = (0..1u32 << steps.len())
                    .map(|chosen| {
                        let of = |(i, step): (usize, &LaneStep)| (chosen >> i & 1) * step.lanes;
                        let rest = |(i, step): (usize, &LaneStep)| (chosen >> i & 1) * step.rest;
                        let all = steps.iter().enumerate();
                        (
                            lane ^ all.clone().map(of).fold(0, |a, b| a ^ b),
                            key ^ all.map(rest).fold(0, |a, b| a ^ b),
                        )
                    })
                    .collect();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{keys:?} {steps:?} {stages:?}");
            }
        }
        stages.halvings()
    }

    fn plain(masks: &[u32]) -> Vec<LaneStep> {
        let step = |lanes: &u32| LaneStep {
            lanes: *lanes,
            rest: 0,
        };
        masks.iter().map(step).collect()
    }

    #[test]
    fn every_way_combines_each_value_once() {
        let keys: Vec<u32> = (0..8).collect();
        for halvings in 0..=4 {
            assert_eq!(
                check(&keys, &plain(&[1, 2, 4, 8, 16]), halvings),
                halvings.min(3)
            );
            assert_eq!(check(&keys, &plain(&[8, 16]), halvings), halvings.min(2));
            // Masks of several lanes, and keys that are no numbers from zero on.
            assert_eq!(
                check(&[0, 5, 6, 3], &plain(&[3, 6, 31]), halvings),
                halvings.min(2)
            );
            assert_eq!(check(&[0], &plain(&[1, 2]), halvings), 0);
            let changing = LaneStep { lanes: 4, rest: 5 };
            let steps = [plain(&[1]), vec![changing], plain(&[2])].concat();
            assert_eq!(check(&[0, 5, 6, 3], &steps, halvings), halvings.min(2));
        }
    }

    #[test]
    fn the_cheapest_way_follows_the_prices() {
        let costs = llopt_target::Target::parse("cuda:90")
            .unwrap()
            .movement_costs();
        let steps = plain(&[1, 2, 4, 8, 16]);
        let choose = |keys: u32, instruction| {
            let keys: Vec<u32> = (0..keys).collect();
            let work = Work {
                keys: &keys,
                steps: &steps,
                bits: &[32],
                combination: 1.0,
                instruction,
            };
            let way = WarpReduction::cheapest(&work, &costs, |_| (costs.shuffle, false));
            (way.shuffles, way.instructions)
        };
        assert_eq!(choose(1, None), (5, 0), "one value is exchanged");
        assert_eq!(choose(4, None), (9, 0), "four are shared");
        assert_eq!(choose(32, None), (64, 0), "many are shared");
        assert_eq!(choose(1, Some(WarpCombination::Add)), (0, 1));
    }
}
