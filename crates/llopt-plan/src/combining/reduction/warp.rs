//! The part of a reduction that happens between the lanes of a warp.
//!
//! # The plans
//!
//! Each lane holds one value for each key. A [`LaneStep`] names the other lane that holds values of the same keys for
//! the same results. With `n` keys and `s` steps:
//!
//! - *Exchange*: in each step each lane gets the other's value of each key and combines it with its own. That is
//!   `n s` shuffles, and every lane ends with every result.
//! - *Halve*: as long as there are several keys, two lanes can share the work: of two keys each lane keeps one, gives
//!   away its value of the other, and combines. One shuffle and two selects for two keys, and the steps after it have
//!   half as many keys. In the end the results are sent back, again with a shuffle and two selects for each two keys.
//!   With `d` halvings this takes `2 (n - n / 2^d) + (s - d) n / 2^d` shuffles: for 32 keys and 5 steps 62 in place
//!   of 160. (These are the reduce-scatter and all-gather of collective communication, see R. Rabenseifner,
//!   "Optimization of Collective Reduction Operations", ICCS 2004.) Every result is computed once, so all lanes end
//!   with the same bits, whatever the combination does. Results that go through memory stay where they are: each lane
//!   writes the keys that it has kept, for half of the shuffles and `n / 2^d` stores instead of `n`.
//! - *Instruction*: where the steps join all lanes of the warp and the combination is one that the hardware
//!   has (`redux.sync`), one instruction for each key.
//!
//! Where copies of a result have to agree and the region may give other bits when its arguments change places
//! ([`super`]), an *agreement* follows the exchanges: each lane takes the values of the lane in which all bits that
//! the exchanges have told apart are zero. Its source is a linear function of the lane's number.
//!
//! The prices of the target decide. Elements of less than 32 bits share the words that are shuffled and
//! selected.
//!
//! # Which lane keeps what
//!
//! Halving needs a bit of the lane's number that this step flips and no other step flips. The masks of the steps that
//! leave keys alone are independent, and any basis of their span serves as well; a reduced echelon basis has such a
//! bit for each of its vectors: the pivot. Where lanes repeat others and copies have to agree, the bits are a functional
//! that is one on this mask and zero on all others and on the distances of repeated lanes: a row of the inverse of the
//! matrix whose columns are these vectors. So it is where another basis has cheaper distances: rows of eight lanes that are
//! reversed (7) exchange halves of them as well as 4 does, and AMD's data-parallel primitives can do only the former.
//! Steps that also change the key are done first, by exchange. Keys form a
//! linear space; those kept are the ones without the highest bit of some key, a space again.
//!
//! # Neighbours in a word
//!
//! Two elements of 16 bits share a word, and most targets compute with both at once: a tensor is loaded, multiplied and
//! summed by pairs of neighbours. If lanes keep one of two neighbours each, what they give away consists of halves of two
//! words, and LLVM forms the pairs of which that is made from the beginning: each word that was loaded is taken apart. So
//! of narrow elements lanes keep neighbours together as long as they can: they divide the keys by the highest bit.

use llopt_layout::f2::{Echelon, Matrix};
use llopt_layout::plan::Costs;
use llopt_target::{Feature, Target};

use super::combination::Combination;
pub use super::combination::WarpCombination;
use crate::element::Element;

/// A step within a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStep {
    /// The distance of the lanes that exchange.
    pub lanes: u32,
    /// The difference of the other lane's key.
    pub rest: u32,
}

/// The threads that hold the same elements of each row as others when the steps in the thread are done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Generators of the distances in a warp at which lanes hold the same, key by key.
    pub lanes: Vec<u32>,
    /// Whether some of these lanes have the elements of a key in another order.
    pub is_in_other_order: bool,
    /// Whether threads hold the same under other keys, or in other lanes of other warps, so that lanes of one warp
    /// cannot bring their results into agreement.
    pub is_far: bool,
}

/// What the lanes of a warp combine.
#[derive(Clone, Debug)]
pub struct Lanes<'a> {
    /// The keys of which each lane has a value.
    pub keys: Vec<u32>,
    /// The steps that combine them.
    pub steps: &'a [LaneStep],
    /// Where copies of a result have to agree, the lanes that repeat others.
    pub agreement: Option<&'a Repeats>,
    /// Whether each lane may end with a part of the results, as they are written to memory.
    pub may_divide: bool,
}

/// How two lanes share keys that differ by `keys`: a lane whose number has the bits `told_by` an odd number of
/// times keeps the key with the highest bit of `keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The distance of the lanes.
    pub lanes: u32,
    /// The bits of the lane's number that decide which lane keeps which key.
    pub told_by: u32,
    /// The difference of the keys.
    pub keys: u32,
}

impl Share {
    /// Whether it is the first of the two keys that share a position.
    pub fn is_first(self, key: u32) -> bool {
        key & 1 << self.keys.ilog2() == 0
    }
}

/// A stage in which all lanes do the same work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Each lane combines what it has with what the other has.
    Exchange(LaneStep),
    /// Of each two keys a lane keeps one and sends the other.
    Halve(Share),
    /// Each lane takes the values of the lane whose number is this linear function of its own, given by the images of
    /// the bits.
    Agree(Vec<u32>),
    /// The results of the keys that were sent come back.
    Join(Share),
}

/// Which keys a lane has a value of after some stages: `kept`, each moved by a linear function of the lane's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The keys of lane 0.
    pub keys: Vec<u32>,
    /// What each bit of a lane's number adds to them.
    pub lanes: Vec<u32>,
}

#[cfg(test)]
impl Kept {
    /// What a lane's number adds to the keys of lane 0.
    fn moved(&self, lane: u32) -> u32 {
        let own = self.lanes.iter().enumerate();
        let own = own.filter(|(bit, _)| lane >> bit & 1 == 1);
        own.fold(0, |all, (_, key)| all ^ key)
    }
}

/// The stages of a plan without the hardware's own instruction.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stages(pub Vec<Stage>);

/// The instruction counts of a plan, in values of one key.
#[derive(Clone, Debug, PartialEq, Default)]
struct Counts {
    /// Keys that move between lanes at each distance.
    shuffles: Vec<(u32, u32)>,
    /// For each stage with selects, the number of values that are selected.
    selects: Vec<u32>,
    combinations: u32,
    /// Values that lanes take from others so that copies agree.
    agreed: u32,
    /// Values that a lane has in the end.
    values: u32,
}

impl Stages {
    /// The stages with as many halvings as requested, or as many as possible. Copies agree if `agreement` says which
    /// lanes repeat others.
    fn new(work: &Work<'_>, halvings: usize, price: &impl Fn(u32) -> f32) -> Self {
        let Work {
            keys,
            steps,
            lane_bits,
            agreement,
            may_divide,
            ..
        } = *work;
        let (plain, changing): (Vec<LaneStep>, Vec<LaneStep>) =
            steps.iter().partition(|step| step.rest == 0);
        let mut masks = Echelon::new();
        for step in &plain {
            masks.insert(step.lanes);
        }
        let mut stages: Vec<Stage> = changing.into_iter().map(Stage::Exchange).collect();
        let mut kept = keys.to_vec();
        let mut joins = Vec::new();
        let repeated = agreement.map_or(&[][..], |repeats| &repeats.lanes);
        let reduced: Vec<u32> = masks.vectors().collect();
        let steps = cheapest_basis(&reduced, price);
        let distances: Vec<u32> = steps.iter().chain(repeated).copied().collect();
        let functionals = match agreement {
            None if steps == reduced => distances
                .iter()
                .map(|lanes| lanes & masks.pivots())
                .collect(),
            _ => dual(&distances),
        };
        let mut told_apart: Vec<(u32, u32)> = Vec::new();
        for (i, lanes) in steps.into_iter().enumerate() {
            let difference = work.difference(&kept);
            match difference {
                Some(keys) if i < halvings => {
                    let share = Share {
                        lanes,
                        told_by: functionals[i],
                        keys,
                    };
                    kept.retain(|key| share.is_first(*key));
                    stages.push(Stage::Halve(share));
                    joins.push(Stage::Join(share));
                }
                _ => {
                    told_apart.push((lanes, functionals[i]));
                    stages.push(Stage::Exchange(LaneStep { lanes, rest: 0 }));
                }
            }
        }
        if agreement.is_some_and(|repeats| !told_apart.is_empty() || repeats.is_in_other_order) {
            let first = distances.len() - repeated.len();
            told_apart.extend((first..distances.len()).map(|i| (distances[i], functionals[i])));
            let image = |bit: u32| {
                let told = told_apart.iter().filter(|(_, by)| by >> bit & 1 == 1);
                told.fold(1 << bit, |image, (lanes, _)| image ^ lanes)
            };
            stages.push(Stage::Agree((0..lane_bits).map(image).collect()));
        }
        if !may_divide {
            joins.reverse();
            stages.extend(joins);
        }
        Self(stages)
    }

    /// Which of these keys each lane has in the end.
    fn kept(&self, keys: &[u32], lane_bits: u32) -> Kept {
        let mut kept = Kept {
            keys: keys.to_vec(),
            lanes: vec![0; lane_bits as usize],
        };
        if self.0.iter().any(|stage| matches!(stage, Stage::Join(_))) {
            return kept;
        }
        for stage in &self.0 {
            if let Stage::Halve(share) = stage {
                kept.keys.retain(|key| share.is_first(*key));
                for (bit, added) in kept.lanes.iter_mut().enumerate() {
                    *added ^= (share.told_by >> bit & 1) * share.keys;
                }
            }
        }
        kept
    }

    /// The source of each lane where the lanes come to agree.
    fn agreement(&self) -> Option<&[u32]> {
        self.0.iter().find_map(|stage| match stage {
            Stage::Agree(source) => Some(source.as_slice()),
            Stage::Exchange(_) | Stage::Halve(_) | Stage::Join(_) => None,
        })
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
                Stage::Agree(_) => counts.agreed = values,
                Stage::Join(share) => {
                    counts.shuffles.push((share.lanes, values));
                    counts.selects.extend([values; 2]);
                    values *= 2;
                }
            }
        }
        counts.values = values;
        counts
    }
}

/// The bits of `word` at `positions`, moved next to each other.
pub(super) fn together(word: u32, positions: u32) -> u32 {
    (0..u32::BITS)
        .filter(|bit| positions >> bit & 1 == 1)
        .enumerate()
        .fold(0, |all, (i, bit)| all | (word >> bit & 1) << i)
}

/// A basis of the same space of distances as a reduced one, each at least price: a vector, or its sum with lower ones.
fn cheapest_basis(reduced: &[u32], price: &impl Fn(u32) -> f32) -> Vec<u32> {
    let cheapest = |vector: &u32| {
        let lower = reduced.iter().filter(|lower| *lower < vector);
        let mut sums = vec![*vector];
        for lower in lower {
            sums.extend(sums.iter().map(|sum| sum ^ lower).collect::<Vec<_>>());
        }
        // Of equal ones the first, the vector itself, stays.
        let least = sums
            .into_iter()
            .min_by(|one, other| price(*one).total_cmp(&price(*other)));
        least.unwrap_or(*vector)
    };
    reduced.iter().map(cheapest).collect()
}

/// For each of some independent vectors the functional that is one on it and zero on the others, as the bits that it
/// sums.
fn dual(vectors: &[u32]) -> Vec<u32> {
    let pivots = Echelon::of(vectors).pivots();
    let columns: Vec<u32> = vectors
        .iter()
        .map(|vector| together(*vector, pivots))
        .collect();
    let Some(inverse) = Matrix::from_columns(&columns).inverse() else {
        return vec![0; vectors.len()];
    };
    let positions = || (0..u32::BITS).filter(|bit| pivots >> bit & 1 == 1);
    let apart = |row: &u32| {
        let chosen = positions().enumerate().filter(|(i, _)| row >> i & 1 == 1);
        chosen.fold(0, |all, (_, bit)| all | 1 << bit)
    };
    let rows = inverse.transpose(vectors.len() as u32);
    rows.columns().iter().map(apart).collect()
}

/// The plan of a warp's part of a reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpReduction {
    /// The instructions.
    pub way: Way,
    /// Its price.
    pub cost: f32,
    /// Shuffles of a 32-bit register.
    pub shuffles: u32,
    /// Instructions that combine the values of all lanes.
    pub instructions: u32,
}

/// A plan to combine the values of lanes.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// Shuffles, stage by stage.
    Stages(Stages),
    /// One instruction of the hardware for each key.
    Instruction(WarpCombination),
}

/// What the choice depends on.
struct Work<'a> {
    keys: &'a [u32],
    steps: &'a [LaneStep],
    /// log2 of the lanes of a warp.
    lane_bits: u32,
    /// Where copies of a result have to agree, the lanes that repeat others.
    agreement: Option<&'a Repeats>,
    /// The bits of an element of each operand.
    bits: &'a [u32],
    /// Arithmetic instructions of one combination.
    combination: f32,
    /// The hardware's own instruction for it.
    instruction: Option<WarpCombination>,
    /// Whether each lane may end with a part of the results.
    may_divide: bool,
}

impl Work<'_> {
    /// Of two keys with this difference each lane keeps one.
    fn difference(&self, kept: &[u32]) -> Option<u32> {
        let differences = || kept.iter().copied().filter(|key| *key != 0);
        // The smallest one has the lowest highest bit of all.
        let smallest = differences().min();
        if self.bits.iter().all(|bits| *bits >= 32) {
            return smallest;
        }
        let highest = differences().max()?.ilog2();
        differences().filter(|key| key.ilog2() == highest).min()
    }

    /// The 32-bit registers of some values of each operand.
    fn words(&self, values: u32) -> u32 {
        let words = self.bits.iter().map(|bits| (bits * values).div_ceil(32));
        words.sum()
    }
}

impl WarpReduction {
    /// The plan for the values of the keys of a reduction, one of each operand. A warp has `2^lane_bits` lanes.
    #[must_use]
    pub fn new(
        lanes: &Lanes<'_>,
        elements: &[Element],
        combination: &Combination,
        lane_bits: u32,
        target: Target,
    ) -> Self {
        let costs = target.movement_costs();
        let steps = lanes.steps;
        let whole_warp = steps.len() as u32 == lane_bits && steps.iter().all(|step| step.rest == 0);
        let has_it = target.has(Feature::WarpReduceInteger);
        let instruction = match elements {
            [one] if whole_warp && has_it && !one.is_float() && one.bits() <= 32 => {
                combination.in_hardware
            }
            _ => None,
        };
        let bits: Vec<u32> = elements
            .iter()
            .map(|element| element.memory_bits())
            .collect();
        let work = Work {
            keys: &lanes.keys,
            steps,
            lane_bits,
            agreement: lanes.agreement,
            bits: &bits,
            combination: combination.instructions,
            instruction,
            may_divide: lanes.may_divide,
        };
        let by_arithmetic = |is_it: bool| match is_it {
            true => (costs.select, true),
            false => (costs.shuffle, false),
        };
        let agreement = |source: &[u32]| by_arithmetic(target.maps_lanes_by_arithmetic(source));
        Self::cheapest(&work, &costs, agreement, |lanes| {
            by_arithmetic(target.shuffles_by_arithmetic(lanes))
        })
    }

    /// Which of these keys, of which each lane has had a value, it has a result of.
    #[must_use]
    pub fn kept(&self, keys: &[u32], lane_bits: u32) -> Kept {
        match &self.way {
            Way::Stages(stages) => stages.kept(keys, lane_bits),
            Way::Instruction(_) => Stages::default().kept(keys, lane_bits),
        }
    }

    /// The cheapest plan. `distance` gives the price of a shuffle between lanes at a distance, and whether an
    /// arithmetic unit executes it; `agreement` does so for one whose source is a function of the lane.
    fn cheapest(
        work: &Work<'_>,
        costs: &Costs,
        agreement: impl Fn(&[u32]) -> (f32, bool),
        distance: impl Fn(u32) -> (f32, bool),
    ) -> Self {
        let mut best: Option<(f32, Self)> = None;
        // What each lane ends with it writes to memory.
        let writing = |values: u32| match work.may_divide {
            true => work.words(values) as f32 * (costs.issue + costs.store + costs.wavefront),
            false => 0.0,
        };
        let mut consider = |price: f32, values: u32, way: Self| {
            let with_writing = price + writing(values);
            if best.as_ref().is_none_or(|(least, _)| with_writing < *least) {
                best = Some((with_writing, Self { cost: price, ..way }));
            }
        };
        for halvings in 0..=work.steps.len() {
            let stages = Stages::new(work, halvings, &|lanes| distance(lanes).0);
            if stages.halvings() < halvings {
                break;
            }
            let counts = stages.counts(work.keys.len());
            let (mut memory, mut arithmetic) = (0.0, 0.0);
            let mut shuffles = 0;
            let shuffled = counts
                .shuffles
                .iter()
                .map(|(lanes, values)| (distance(*lanes), *values));
            let agreed = stages
                .agreement()
                .map(|source| (agreement(source), counts.agreed));
            for ((price, by_arithmetic), values) in shuffled.chain(agreed) {
                let words = work.words(values);
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
            let stages_that_wait = counts.shuffles.len() + usize::from(counts.agreed > 0);
            let waits = stages_that_wait as f32 * costs.exchange;
            consider(
                costs.together(memory, arithmetic) + waits,
                counts.values,
                Self {
                    cost: 0.0,
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
                keys,
                Self {
                    cost: 0.0,
                    way: Way::Instruction(instruction),
                    shuffles: 0,
                    instructions: keys,
                },
            );
        }
        best.map_or_else(
            || Self {
                cost: 0.0,
                way: Way::Stages(Stages::default()),
                shuffles: 0,
                instructions: 0,
            },
            |(_, way)| way,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANES: u32 = 32;

    /// For each key that a lane holds, the values combined into it.
    type Held = Vec<(u32, Vec<(u32, u32)>)>;

    /// Follows stages on sets of elements `(lane, key)`: in the end every lane holds for every key, or for those that it
    /// has kept, what the lanes that belong to it had, each once.
    fn check(keys: &[u32], steps: &[LaneStep], halvings: usize) -> usize {
        let divided = follow(keys, steps, halvings, true);
        assert_eq!(follow(keys, steps, halvings, false), divided);
        divided
    }

    fn follow(keys: &[u32], steps: &[LaneStep], halvings: usize, may_divide: bool) -> usize {
        // Halves of eight lanes are nearer if these are reversed.
        let price = |lanes: u32| f32::from(u8::from(lanes == 4));
        let work = Work {
            keys,
            steps,
            lane_bits: LANES.ilog2(),
            agreement: None,
            bits: &[32],
            combination: 1.0,
            instruction: None,
            may_divide,
        };
        let stages = Stages::new(&work, halvings, &price);
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
                        Stage::Agree(_) => unreachable!("nothing has to agree"),
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
        let kept = stages.kept(keys, LANES.ilog2());
        let divisor = if may_divide {
            1 << stages.halvings()
        } else {
            1
        };
        assert_eq!(kept.keys.len() * divisor, keys.len());
        for lane in 0..LANES {
            let moved = kept.moved(lane);
            assert_eq!(held[lane as usize].len(), kept.keys.len());
            for name in &kept.keys {
                let mut found = find(&held[lane as usize], *name);
                found.sort_unstable();
                let key = name ^ moved;
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
            // Masks of several lanes, and keys that are not consecutive from zero.
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
    fn distances_are_the_cheapest_with_the_same_span() {
        let target = llopt_target::Target::parse("hip:gfx942").unwrap();
        let price = |lanes: u32| match target.shuffles_by_arithmetic(lanes) {
            true => 1.0,
            false => 2.0,
        };
        assert_eq!(cheapest_basis(&[1, 2, 4, 8, 16], &price), [1, 2, 7, 8, 16]);
        // Without the lower distances there is no other one.
        assert_eq!(cheapest_basis(&[4, 8], &price), [4, 8]);
    }

    #[test]
    fn narrow_neighbours_stay_together() {
        let keys: Vec<u32> = (0..8).collect();
        let differences = |bits: &[u32]| {
            let work = Work {
                keys: &keys,
                steps: &plain(&[4, 8]),
                lane_bits: 5,
                agreement: None,
                bits,
                combination: 1.0,
                instruction: None,
                may_divide: true,
            };
            let stages = Stages::new(&work, 2, &|_| 1.0);
            let of = |stage: &Stage| match stage {
                Stage::Halve(share) => Some(share.keys),
                _ => None,
            };
            stages.0.iter().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(differences(&[32]), [1, 2]);
        // Lanes keep the keys 0 and 1, or two that differ from these by the same number.
        assert_eq!(differences(&[16]), [4, 2]);
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
                lane_bits: 5,
                agreement: None,
                bits: &[32],
                combination: 1.0,
                instruction,
                may_divide: false,
            };
            let way = WarpReduction::cheapest(
                &work,
                &costs,
                |_| (costs.shuffle, false),
                |_| (costs.shuffle, false),
            );
            (way.shuffles, way.instructions)
        };
        assert_eq!(choose(1, None), (5, 0), "one value is exchanged");
        assert_eq!(choose(4, None), (9, 0), "four are shared");
        assert_eq!(choose(32, None), (64, 0), "many are shared");
        assert_eq!(choose(1, Some(WarpCombination::Add)), (0, 1));
    }
}
