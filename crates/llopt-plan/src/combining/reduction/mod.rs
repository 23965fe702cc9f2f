//! Reductions: any combine region, several operands, any layout, any axis.
//!
//! # How
//!
//! Write an element's number as `(rest, a)`: its position outside of the axis, and its coordinate along it. A thread
//! holds the elements `L(r) ^ L(t)` for its registers `r`. Three steps bring the elements of one `rest` together,
//! each as far as the layout allows and each after duplicates were dropped:
//!
//! 1. *In the thread*: registers with the same `rest` are combined. What is left is one value per `rest`,
//!    a *key*, which stands for a coset of the subspace `S` of the axis.
//! 2. *In the warp*: a mask `m` of lane bits is useful if lane `t ^ m` holds the same keys (`rest(L(m))` is
//!    the `rest` of some registers) with other coordinates along the axis. Then key `k` is combined with
//!    key `k ^ rest(L(m))` of that lane, and `S` grows by a dimension.
//! 3. *In memory*: if `S` is not the whole axis yet, `2^p` partial results are left for each `rest`, in different
//!    warps, or in different blocks of a cluster. They are combined through shared memory ([`memory`]): one of the
//!    threads that hold a partial result writes it at `rest * 2^p + q`, where `q` numbers the cosets. The bits of `rest` are
//!    ordered such that lanes beside each other write beside each other (`places_of`): in the order of the tensor, the
//!    results of a thread would lie between them, and its lanes would write to few of the banks.
//!
//! # Copies of a result
//!
//! After the second step several lanes hold the value of a key, and each has combined the same elements in an order of
//! its own: `t` its own value with that of `t ^ m`, and `t ^ m` its own with that of `t`. Sums have the same bits
//! either way, but not every region gives the same bits when its arguments change places
//! ([`combination::Combination`]), and threads that hold copies must agree: all of them may write the same place of
//! shared memory, and decide by the value where to go. So for other regions there is one lane of each group from
//! which the others take the value, a shuffle more ([`warp`]). Lanes whose elements repeat those of other lanes belong
//! to the group, since they may have the elements in other registers. Where copies are further away ([`warp::Repeats`]), the
//! result goes through shared memory, written by one thread and read by all, as partial results do.
//!
//! Rejected: to order the two arguments of each combination by a bit of the lane's number. It takes two selects for
//! each operand and step, where a value that comes from another lane takes one shuffle for each operand.
//!
//! # Blocks of a cluster
//!
//! Blocks whose numbers differ by a mask `d` hold the same `rest`s if `rest(L(d))` is the `rest` of some registers,
//! lanes and warps; these masks form a space `D`. Some of them only repeat what the blocks hold (`L(d)` is an element
//! that registers, lanes and warps reach); `E` is a complement of these in `D`. So the blocks `b ^ e` for `e` in `E`
//! together hold every partial result of the `rest`s of block `b`, each once, and each block writes what it holds to
//! the memory of exactly these blocks, itself included. Every block then finishes by itself what it needs, and
//! repeated blocks never communicate.
//!
//! Writing to other blocks instead of reading from them has two advantages. A store waits for nothing, whereas a load
//! from another block's memory takes several times as long as one from the block's own, and each partial result
//! crosses once instead of once for each reader. Also, the cluster barrier that has to come first (no block may write
//! where another still reads) is begun before the steps in the thread and in the warp, and waited for after them.
//! Rejected: to finish in each block first, and exchange one value for each block. It writes fewer values to other
//! blocks, by a factor of the number of warps, but takes one more barrier and one more trip through memory.

pub mod combination;
pub mod kind;
pub mod memory;
mod price;
pub mod warp;

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;

use crate::element::Element;
use crate::tensor::TensorType;
use combination::Combination;
pub use price::{ReductionPrice, price};
use warp::{LaneStep, Lanes, Repeats, together};

/// The steps of a reduction; pure arithmetic on the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionPlan {
    /// The keys, each with the registers that are combined for it.
    pub keys: Vec<(u32, Vec<usize>)>,
    /// The steps between the lanes of a warp.
    pub lane_steps: Vec<LaneStep>,
    /// Which threads hold the same elements, or elements that other threads have combined.
    pub repeats: Repeats,
    /// log2 of the partial results per element that different warps and blocks hold.
    pub partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    pub rest_bits: u32,
    /// The bits of an element's number in the result that tell apart the elements of one block.
    told_by: u32,
    /// The position of each of them in memory.
    order: Vec<u32>,
    /// What each key adds to the position of a partial result.
    pub key_places: Vec<u32>,
    /// What each bit of the thread's number adds to it.
    pub thread_places: Vec<u32>,
    /// What each bit of the block's number adds to it.
    pub block_places: Vec<u32>,
    /// Bits of the thread's number that change no place: threads that repeat others.
    pub repeated_threads: u32,
    /// Generators of the distances in the cluster (masks of the block's number) at which a partial result is
    /// wanted; empty if every block needs its own only.
    pub exchanges: Vec<u32>,
}

/// The relations among threads, by elimination with masks of threads: modulo what registers reach, and then along
/// the axis modulo what a thread combines (`in_thread`).
fn repeats(tensor: &TensorType, axis: Axis, registers: &Vectors, in_thread: &Echelon) -> Repeats {
    let only_axis = (1u32 << axis.bits) - 1;
    let threads = tensor.thread_bases();
    let lanes = (1u32 << tensor.thread_bits().0) - 1;
    let highest = |vector: u32| 1u32 << (31 - vector.leading_zeros());
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let mut repeats = Repeats::default();
    for (i, basis) in threads.iter().enumerate() {
        let mut vector = registers.reduce_high(joined(axis, *basis), only_axis);
        let mut mask = 1u32 << i;
        for is_along in [false, true] {
            let field = if is_along { only_axis } else { !only_axis };
            if is_along {
                vector = in_thread.reduce(vector);
            }
            for (row, row_mask) in rows.iter().filter(|(row, _)| highest(*row) & field != 0) {
                if vector & highest(*row) != 0 {
                    vector ^= row;
                    mask ^= row_mask;
                }
            }
            if vector & field != 0 {
                break;
            }
        }
        let element = (0..threads.len())
            .filter(|bit| mask >> bit & 1 == 1)
            .fold(0, |all, bit| all ^ threads[bit]);
        let is_in_warp = mask & !lanes == 0;
        let changes_key = axis.rest(element) != 0;
        if vector != 0 {
            // The lane has other elements: of another row, or of the same row and then a step combines them.
            repeats.is_far |= vector & !only_axis == 0 && is_in_warp && changes_key;
            rows.push((vector, mask));
        } else if is_in_warp && !changes_key {
            repeats.lanes.push(mask);
            repeats.is_in_other_order |= element != 0;
        } else {
            // Whole warps that repeat each other agree lane by lane.
            repeats.is_far |= mask & lanes != 0 || element != 0;
        }
    }
    repeats
}

/// The axis as a field of row-major numbers.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: u32,
    bits: u32,
}

impl Axis {
    /// Dimension `axis` of a tensor.
    pub fn of(tensor: &TensorType, axis: usize) -> Self {
        let (low, bits) = tensor.bits_of_dim(axis);
        Self { low, bits }
    }

    /// log2 of the extent.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The coordinate along the axis.
    pub fn along(self, element: u32) -> u32 {
        element >> self.low & ((1 << self.bits) - 1)
    }

    /// The row-major number without the axis.
    pub fn rest(self, element: u32) -> u32 {
        let below = element & ((1 << self.low) - 1);
        below | element >> (self.low + self.bits) << self.low
    }
}

/// The registers of each place outside of the axis.
fn keys_of(tensor: &TensorType, axis: Axis) -> Vec<(u32, Vec<usize>)> {
    let mut keys: Vec<(u32, Vec<usize>)> = Vec::new();
    for register in (0..tensor.registers()).filter(|register| tensor.is_canonical(*register)) {
        let rest = axis.rest(tensor.element_in(register));
        match keys.iter_mut().find(|(key, _)| *key == rest) {
            Some((_, registers)) => registers.push(register),
            None => keys.push((rest, vec![register])),
        }
    }
    keys
}

/// An element as (rest, along), the rest in the high bits.
fn joined(axis: Axis, element: u32) -> u32 {
    axis.rest(element) << axis.bits | axis.along(element)
}

/// The combinations between lanes, which extend what is `combined` of the axis already: a kernel of the lanes' rests
/// modulo those of registers, by elimination with masks of lanes.
fn lane_steps(
    tensor: &TensorType,
    axis: Axis,
    registers: &Vectors,
    combined: &mut Echelon,
) -> Vec<LaneStep> {
    let only_axis = (1u32 << axis.bits) - 1;
    let lanes = tensor.layout().flat_bases_of(Dim::LANE);
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let mut lane_steps = Vec::new();
    for (i, basis) in lanes.iter().enumerate() {
        let mut vector = registers.reduce_high(joined(axis, *basis), only_axis);
        let mut mask = 1u32 << i;
        for (row, row_mask) in &rows {
            let pivot = 1u32 << (31 - (row & !only_axis).leading_zeros());
            if vector & pivot != 0 {
                vector ^= row;
                mask ^= row_mask;
            }
        }
        if vector & !only_axis != 0 {
            rows.push((vector, mask));
        } else if combined.insert(vector).is_none() {
            let all = (0..lanes.len())
                .filter(|lane| mask >> lane & 1 == 1)
                .fold(0, |all, lane| all ^ lanes[lane]);
            lane_steps.push(LaneStep {
                lanes: mask,
                rest: axis.rest(all),
            });
        }
    }
    lane_steps
}

/// The order in memory of the bits that tell apart the elements of a result: those that single lanes change first.
fn places_of(lanes: impl Iterator<Item = u32>, bits: u32) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    let single = lanes.filter(|number| number.is_power_of_two());
    for bit in single.map(u32::trailing_zeros).chain(0..bits) {
        if !order.contains(&bit) {
            order.push(bit);
        }
    }
    let mut places = vec![0; order.len()];
    for (place, bit) in (0..).zip(&order) {
        places[*bit as usize] = place;
    }
    places
}

/// A number with its bits at these places.
fn reordered(number: u32, places: &[u32]) -> u32 {
    let bits = (0..).zip(places);
    bits.fold(0, |all, (bit, place)| all | (number >> bit & 1) << place)
}

impl ReductionPlan {
    /// The plan for reducing `tensor` along `axis`.
    pub fn new(tensor: &TensorType, axis: usize) -> Self {
        let axis = Axis::of(tensor, axis);
        let keys = keys_of(tensor, axis);

        // The registers' vectors as (rest, along), the rest in the high bits, so that elimination tells
        // which registers have a wanted rest, and what is left of the axis when there is none.
        let only_axis = (1u32 << axis.bits) - 1;
        let mut registers = Vectors::default();
        for bit in 0..tensor.registers().trailing_zeros() {
            registers.insert(joined(axis, tensor.element_in(1 << bit)));
        }
        // S: the part of the axis that is combined already.
        let mut combined = Echelon::of(&[]);
        for vector in &registers.rows {
            if vector & !only_axis == 0 {
                combined.insert(*vector);
            }
        }

        let repeats = repeats(tensor, axis, &registers, &combined);
        let lane_steps = lane_steps(tensor, axis, &registers, &mut combined);
        let thread_bases = tensor.thread_bases();
        let within: Vec<u32> = (0..tensor.registers().trailing_zeros())
            .map(|bit| tensor.element_in(1 << bit))
            .chain(thread_bases.iter().copied())
            .collect();
        let mut rests = Echelon::of(&[]);
        for element in &within {
            rests.insert(axis.rest(*element));
        }
        let partial_bits = axis.bits - combined.rank();
        let free = only_axis & !combined.pivots();
        let told_by = rests.pivots();
        let lanes = &thread_bases[..tensor.thread_bits().0 as usize];
        let lanes = lanes
            .iter()
            .map(|element| together(axis.rest(*element), told_by));
        let order = places_of(lanes, rests.rank());
        let place = |element: u32| {
            let coset = combined.reduce(axis.along(element));
            let rest = reordered(together(axis.rest(element), told_by), &order);
            rest << partial_bits | together(coset, free)
        };

        let (in_register, in_thread) = within.split_at(within.len() - thread_bases.len());
        let mut seen = Echelon::of(&[]);
        for element in in_register {
            seen.insert(place(*element));
        }
        let mut repeated_threads = 0;
        for (bit, element) in in_thread.iter().enumerate() {
            if seen.insert(place(*element)).is_some() {
                repeated_threads |= 1 << bit;
            }
        }
        // D: the relations among what blocks add to the rests; among these, the ones that add to the positions.
        let blocks = tensor.block_bases();
        let mut foreign = Echelon::of(&[]);
        let mut exchanges = Vec::new();
        for basis in blocks {
            let Some(distance) = foreign.insert(rests.reduce(axis.rest(*basis))) else {
                continue;
            };
            let element = (0..blocks.len())
                .filter(|bit| distance >> bit & 1 == 1)
                .fold(0, |all, bit| all ^ blocks[bit]);
            if seen.insert(place(element)).is_none() {
                exchanges.push(distance);
            }
        }
        Self {
            key_places: keys
                .iter()
                .map(|(_, registers)| place(tensor.element_in(registers[0])))
                .collect(),
            thread_places: in_thread.iter().copied().map(place).collect(),
            block_places: blocks.iter().copied().map(place).collect(),
            keys,
            lane_steps,
            repeats,
            partial_bits,
            rest_bits: rests.rank(),
            told_by,
            order,
            repeated_threads,
            exchanges,
        }
    }

    /// The position of the first partial result of an element of the result. Linear in the element's number.
    pub fn first_place(&self, rest: u32) -> u32 {
        reordered(together(rest, self.told_by), &self.order) << self.partial_bits
    }

    /// The bits of a lane's number that do not change which elements of the result it holds.
    pub fn alike_lanes(&self, lane_bits: u32) -> u32 {
        let rest = |bit: u32| self.thread_places[bit as usize] >> self.partial_bits;
        (0..lane_bits).fold(0, |all, bit| all | u32::from(rest(bit) == 0) << bit)
    }

    /// Whether results go through shared memory: partial results do, and results whose copies would differ otherwise.
    pub fn goes_through_memory(&self, combination: &Combination) -> bool {
        self.partial_bits > 0 || !combination.is_commutative && self.repeats.is_far
    }

    /// What the lanes of a warp combine. They have to take their results from one of them where the order of arguments
    /// matters, unless the results go through memory.
    pub fn lanes(&self, combination: &Combination) -> Lanes<'_> {
        let agree = !combination.is_commutative && !self.goes_through_memory(combination);
        Lanes {
            keys: self.keys.iter().map(|(key, _)| *key).collect(),
            steps: &self.lane_steps,
            agreement: agree.then_some(&self.repeats),
        }
    }

    /// Elements of shared memory per operand.
    pub fn scratch_elements(&self, combination: &Combination) -> u32 {
        if self.goes_through_memory(combination) {
            1 << (self.rest_bits + self.partial_bits)
        } else {
            0
        }
    }
}

/// Vectors in echelon form by their highest bit.
#[derive(Default)]
struct Vectors {
    rows: Vec<u32>,
}

impl Vectors {
    fn insert(&mut self, vector: u32) {
        let reduced = self.reduce_high(vector, 0);
        if reduced != 0 {
            self.rows.push(reduced);
            self.rows.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Subtracts rows that have their highest bit in `vector`, and outside of `keep`.
    fn reduce_high(&self, vector: u32, keep: u32) -> u32 {
        self.rows.iter().fold(vector, |vector, row| {
            let pivot = 1u32 << (31 - row.leading_zeros());
            if vector & pivot & !keep != 0 {
                vector ^ row
            } else {
                vector
            }
        })
    }
}

/// Bytes of shared memory of one operand, with the next operand's alignment.
pub fn operand_bytes(elements: u32, element: Element) -> u32 {
    const ALIGNMENT: u32 = 16;
    (elements * element.memory_bits() / 8).next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use llopt_target::Target;
    use proptest::prelude::*;

    use super::warp::{WarpReduction, Way};
    use super::*;
    use crate::cluster::distances;
    use crate::combining::reduction::combination::SUM;

    /// Bases as row-major numbers.
    #[derive(Clone, Debug)]
    struct Places {
        registers: Vec<u32>,
        lanes: Vec<u32>,
        warps: Vec<u32>,
        blocks: Vec<u32>,
    }

    /// The sum of the chosen vectors.
    fn sum(vectors: &[u32], chosen: u32) -> u32 {
        (0..vectors.len())
            .filter(|i| chosen >> i & 1 == 1)
            .fold(0, |all, i| all ^ vectors[i])
    }

    /// Follows a plan on sets of elements: in the memory of every block, each row that the block holds must in the
    /// end be complete, with each element once.
    fn check(shape: &[u32], axis: usize, places: &Places) -> ReductionPlan {
        let bits: u32 = shape.iter().map(|extent| extent.trailing_zeros()).sum();
        let numbers = [
            (Dim::REGISTER, places.registers.clone()),
            (Dim::LANE, places.lanes.clone()),
            (Dim::WARP, places.warps.clone()),
            (Dim::BLOCK, places.blocks.clone()),
        ];
        let tensor = TensorType::from_numbers(Element::F32, shape.to_vec(), &numbers).unwrap();
        let plan = ReductionPlan::new(&tensor, axis);
        let axis = Axis::of(&tensor, axis);

        let threads = 1u32 << (places.lanes.len() + places.warps.len());
        let lane_mask = (1u32 << places.lanes.len()) - 1;
        let thread_bases = tensor.thread_bases();
        // For every block and every thread in it, the elements in each key.
        let held_by = |block: u32| -> Vec<Vec<Vec<u32>>> {
            let mut held: Vec<Vec<Vec<u32>>> = (0..threads)
                .map(|t| {
                    let own = sum(&thread_bases, t) ^ sum(&places.blocks, block);
                    let of_key = |registers: &Vec<usize>| {
                        registers
                            .iter()
                            .map(|r| tensor.element_in(*r) ^ own)
                            .collect()
                    };
                    plan.keys.iter().map(|(_, all)| of_key(all)).collect()
                })
                .collect();
            for step in &plan.lane_steps {
                assert_eq!(step.lanes & !lane_mask, 0);
                let of_key = |t: u32, i: usize| {
                    let wanted = plan.keys[i].0 ^ step.rest;
                    let other = plan.keys.iter().position(|(key, _)| *key == wanted);
                    let mut all = held[t as usize][i].clone();
                    all.extend(&held[(t ^ step.lanes) as usize][other.unwrap()]);
                    all
                };
                held = (0..threads)
                    .map(|t| (0..plan.keys.len()).map(|i| of_key(t, i)).collect())
                    .collect();
            }
            held
        };
        let blocks = 1u32 << places.blocks.len();
        let mut memories: Vec<HashMap<u32, Vec<u32>>> = vec![HashMap::new(); blocks as usize];
        for block in 0..blocks {
            let held = held_by(block);
            for t in (0..threads).filter(|t| t & plan.repeated_threads == 0) {
                let own = sum(&plan.thread_places, t) ^ sum(&plan.block_places, block);
                for (place, set) in plan.key_places.iter().zip(&held[t as usize]) {
                    for distance in distances(&plan.exchanges) {
                        let memory = &mut memories[(block ^ distance) as usize];
                        let before = memory.insert(place ^ own, set.clone());
                        assert!(before.is_none(), "two threads write one place");
                    }
                }
            }
        }
        for (block, memory) in (0u32..).zip(&memories) {
            assert_eq!(memory.len(), 1 << (plan.rest_bits + plan.partial_bits));
            let own = sum(&places.blocks, block);
            let mut rests: Vec<u32> = (0..threads)
                .flat_map(|t| {
                    let own = own ^ sum(&thread_bases, t);
                    (0..1u32 << places.registers.len())
                        .map(move |r| own ^ sum(&places.registers, r))
                })
                .map(|element| axis.rest(element))
                .collect();
            rests.sort_unstable();
            rests.dedup();
            assert_eq!(rests.len(), 1 << plan.rest_bits);
            for rest in rests {
                let first = plan.first_place(rest);
                let mut all: Vec<u32> = (0..1u32 << plan.partial_bits)
                    .flat_map(|q| memory[&(first | q)].clone())
                    .collect();
                all.sort_unstable();
                let wanted: Vec<u32> = (0..1u32 << bits)
                    .filter(|element| axis.rest(*element) == rest)
                    .collect();
                assert_eq!(all, wanted, "{shape:?} {places:?}, block {block}");
            }
        }
        plan
    }

    /// Follows the plan of a reduction whose region depends on the order of its arguments, on expressions: all threads
    /// of a block that hold a result must have computed it in the same way.
    fn check_copies(shape: &[u32], axis: usize, places: &Places, target: &str) {
        let target = Target::parse(target).unwrap();
        let lane_bits = target.warp_size().ilog2();
        let mut lanes = places.lanes.clone();
        lanes.resize(lane_bits as usize, 0);
        let numbers = [
            (Dim::REGISTER, places.registers.clone()),
            (Dim::LANE, lanes),
            (Dim::WARP, places.warps.clone()),
            (Dim::BLOCK, places.blocks.clone()),
        ];
        let tensor = TensorType::from_numbers(Element::F32, shape.to_vec(), &numbers).unwrap();
        let plan = ReductionPlan::new(&tensor, axis);
        let axis = Axis::of(&tensor, axis);
        let combination = Combination {
            is_commutative: false,
            ..SUM
        };
        if plan.goes_through_memory(&combination) {
            check_in_warps(&tensor, axis, &plan, target);
            return;
        }
        let lanes = plan.lanes(&combination);
        let in_warp = WarpReduction::new(&lanes, &[Element::F32], &combination, lane_bits, target);
        let Way::Stages(stages) = in_warp.way else {
            panic!("no instruction combines like this");
        };
        // An expression is the number of a pair of others, or of an element.
        let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
        let mut combine = |a: u32, b: u32| {
            let next = 1 << 16 | pairs.len() as u32;
            *pairs.entry((a, b)).or_insert(next)
        };
        let threads = tensor.thread_bases();
        let count = 1u32 << threads.len();
        let held: Vec<HashMap<u32, u32>> = (0..count)
            .map(|t| {
                let own = sum(&threads, t);
                let mut of_key = |(key, registers): &(u32, Vec<usize>)| {
                    let elements = registers.iter().map(|r| tensor.element_in(*r) ^ own);
                    let mut level: Vec<u32> = elements.collect();
                    while level.len() > 1 {
                        let pairs = level.chunks(2);
                        level = pairs.map(|pair| combine(pair[0], pair[1])).collect();
                    }
                    (*key, level[0])
                };
                plan.keys.iter().map(&mut of_key).collect()
            })
            .collect();
        let held = follow(&stages, held, lane_bits, &mut combine);
        let mut results: HashMap<u32, u32> = HashMap::new();
        for (t, values) in (0..count).zip(&held) {
            for (key, value) in values {
                let rest = key ^ axis.rest(sum(&threads, t));
                let known = *results.entry(rest).or_insert(*value);
                assert_eq!(known, *value, "{shape:?} {places:?} thread {t}, row {rest}");
            }
        }
    }

    /// What each thread holds for each key after some stages.
    fn follow(
        stages: &warp::Stages,
        mut held: Vec<HashMap<u32, u32>>,
        lane_bits: u32,
        combine: &mut impl FnMut(u32, u32) -> u32,
    ) -> Vec<HashMap<u32, u32>> {
        for stage in &stages.0 {
            let is_second =
                |share: &warp::Share, lane: u32| (lane & share.told_by).count_ones() & 1 == 1;
            held = (0..held.len() as u32)
                .map(|t| {
                    let own = &held[t as usize];
                    let at = |distance: u32| &held[(t ^ distance) as usize];
                    match stage {
                        warp::Stage::Exchange(step) => own
                            .iter()
                            .map(|(key, value)| {
                                let received = at(step.lanes)[&(key ^ step.rest)];
                                (*key, combine(*value, received))
                            })
                            .collect(),
                        warp::Stage::Halve(share) => own
                            .keys()
                            .filter(|key| share.is_first(**key))
                            .map(|key| {
                                let kept = if is_second(share, t) { share.keys } else { 0 };
                                let received = at(share.lanes)[&(key ^ kept)];
                                (*key, combine(own[&(key ^ kept)], received))
                            })
                            .collect(),
                        warp::Stage::Agree(source) => {
                            let lane = t & ((1 << lane_bits) - 1);
                            at(lane ^ sum(source, lane)).clone()
                        }
                        warp::Stage::Join(share) => own
                            .iter()
                            .flat_map(|(key, value)| {
                                let pair = [*value, at(share.lanes)[key]];
                                let second = usize::from(is_second(share, t));
                                [(*key, pair[second]), (key ^ share.keys, pair[1 - second])]
                            })
                            .collect(),
                    }
                })
                .collect();
        }
        held
    }

    /// Follows the plan in memory of a block on expressions: each thread must in the end have combined every partial
    /// result of its elements once, and all threads in the same way.
    fn check_in_warps(tensor: &TensorType, axis: Axis, plan: &ReductionPlan, target: Target) {
        let (lane_bits, warp_bits) = tensor.thread_bits();
        // A combination that takes long is divided among lanes.
        let combination = Combination {
            is_commutative: false,
            instructions: 30.0,
            ..SUM
        };
        let needed: Vec<u32> = plan.keys.iter().map(|(key, _)| *key).collect();
        let work = memory::Work {
            partial_bits: plan.partial_bits,
            rest_bits: plan.rest_bits,
            thread_bits: lane_bits + warp_bits,
            lane_bits,
            alike: plan.alike_lanes(lane_bits),
            needed: &needed,
            elements: &[Element::F32],
            combination: &combination,
        };
        let memory::Combining::Warps(warps) = work.cheapest(target) else {
            return;
        };
        let Way::Stages(stages) = &warps.steps.way else {
            panic!("no instruction combines like this");
        };
        // Of an expression, the partial results in it, in order.
        let mut all: Vec<Vec<u32>> = Vec::new();
        fn number(all: &mut Vec<Vec<u32>>, leaves: Vec<u32>) -> u32 {
            let found = all.iter().position(|other| *other == leaves);
            found.unwrap_or_else(|| {
                all.push(leaves);
                all.len() - 1
            }) as u32
        }
        let threads = tensor.thread_bases();
        let lane_places = warps.lane_places(lane_bits);
        let mut held: Vec<HashMap<u32, u32>> = Vec::new();
        for t in 0..1u32 << threads.len() {
            let own = plan.first_place(axis.rest(sum(&threads, t)))
                ^ sum(&lane_places, t & ((1 << lane_bits) - 1));
            let read = |key: &u32| {
                let first = plan.first_place(*key) ^ own;
                let leaves = (0..1 << warps.own_bits).map(|i| first ^ i);
                (*key, number(&mut all, leaves.collect()))
            };
            held.push(needed.iter().map(read).collect());
        }
        let mut combine = |a: u32, b: u32| {
            let both = [&all[a as usize][..], &all[b as usize]].concat();
            number(&mut all, both)
        };
        assert_eq!(warps.keys, [0]);
        let mut all_held = vec![HashMap::new(); held.len()];
        for key in &needed {
            let of_key = held.iter().map(|values| HashMap::from([(0, values[key])]));
            let of_key = follow(stages, of_key.collect(), lane_bits, &mut combine);
            for (all, values) in all_held.iter_mut().zip(of_key) {
                all.insert(*key, values[&0]);
            }
        }
        let held = all_held;
        let mut results: HashMap<u32, Vec<u32>> = HashMap::new();
        for (t, values) in (0..).zip(&held) {
            for (key, value) in values {
                let rest = key ^ axis.rest(sum(&threads, t));
                let leaves = &all[*value as usize];
                assert_eq!(results.entry(rest).or_insert(leaves.clone()), leaves);
                let mut sorted = leaves.clone();
                sorted.sort_unstable();
                let first = plan.first_place(rest);
                let wanted: Vec<u32> = (0..1 << plan.partial_bits).map(|q| first + q).collect();
                assert_eq!(sorted, wanted, "thread {t}, row {rest}");
            }
        }
    }

    fn in_one_block(registers: &[u32], lanes: &[u32], warps: &[u32]) -> Places {
        in_blocks(registers, lanes, warps, &[])
    }

    fn in_blocks(registers: &[u32], lanes: &[u32], warps: &[u32], blocks: &[u32]) -> Places {
        Places {
            registers: registers.to_vec(),
            lanes: lanes.to_vec(),
            warps: warps.to_vec(),
            blocks: blocks.to_vec(),
        }
    }

    #[test]
    fn blocked_layouts_reduce_each_element_once() {
        // 8 x 16, two columns in registers, four lanes along the row, two along the column, two warps.
        for axis in 0..2 {
            let columns = in_one_block(&[1, 2], &[4, 8, 16], &[32, 64]);
            check(&[8, 16], axis, &columns);
            let mixed = in_one_block(&[16, 1], &[2, 32, 4], &[8, 64]);
            check(&[8, 16], axis, &mixed);
        }
    }

    #[test]
    fn repeated_registers_lanes_and_warps_count_once() {
        for axis in 0..2 {
            check(
                &[4, 8],
                axis,
                &in_one_block(&[0, 1, 8], &[0, 2, 4], &[16, 0]),
            );
            check(
                &[4, 8],
                axis,
                &in_one_block(&[1, 1], &[2, 4, 8, 3], &[16, 8]),
            );
        }
    }

    #[test]
    fn vectors_that_mix_both_dimensions_are_fine() {
        for axis in 0..2 {
            check(&[8, 8], axis, &in_one_block(&[9, 2], &[1, 20, 36], &[32]));
            let diagonal = [1 | 8, 2 | 16, 4 | 32];
            check(&[8, 8], axis, &in_one_block(&diagonal, &[8, 16], &[32]));
            check(
                &[2, 32],
                axis,
                &in_one_block(&[33], &[1, 2, 4 | 32, 8], &[16]),
            );
        }
    }

    #[test]
    fn copies_agree_where_lanes_share_keys_and_repeat_each_other() {
        for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
            // Four keys, whose axis is in four lanes; others repeat them, one with its registers exchanged.
            let places = in_one_block(&[1, 8, 16], &[2, 4, 0, 1], &[]);
            check_copies(&[4, 8], 1, &places, target);
            // The first lane repeats a step of the second.
            check_copies(
                &[4, 8],
                1,
                &in_one_block(&[8, 16], &[3, 1, 3, 4], &[0]),
                target,
            );
            // The axis is in all lanes.
            check_copies(
                &[32],
                0,
                &in_one_block(&[], &[1, 2, 4, 8, 16], &[0]),
                target,
            );
        }
    }

    #[test]
    fn results_that_warps_would_not_agree_on_go_through_memory() {
        let combination = |is_commutative| Combination {
            is_commutative,
            ..SUM
        };
        // The second warp has the elements of the first in another order.
        let plan = check(&[8], 0, &in_one_block(&[1], &[2, 4], &[2]));
        assert!(plan.repeats.is_far && plan.partial_bits == 0);
        assert!(plan.goes_through_memory(&combination(false)));
        assert!(!plan.goes_through_memory(&combination(true)));
        // Warps that are equal lane by lane agree.
        let plan = check(&[8], 0, &in_one_block(&[1], &[2, 4], &[0]));
        assert!(!plan.goes_through_memory(&combination(false)));
    }

    #[test]
    fn blocks_exchange_along_the_axis_only() {
        // 8 x 16 on four blocks that halve both dimensions.
        let places = in_blocks(&[1, 2], &[4, 16], &[32], &[64, 8]);
        assert_eq!(check(&[8, 16], 0, &places).exchanges, [1]);
        let along_rows = check(&[8, 16], 1, &places);
        assert_eq!(along_rows.exchanges, [2]);
        // Each block holds half of the rows, and has memory for this half.
        assert_eq!(along_rows.rest_bits, 2);
        assert_eq!(along_rows.scratch_elements(&SUM), 8);
    }

    #[test]
    fn blocks_that_repeat_others_exchange_apart() {
        // Blocks 0 and 1 share the row, 2 and 3 hold the same.
        let places = in_blocks(&[1], &[2, 4], &[0], &[8, 0]);
        assert_eq!(check(&[16], 0, &places).exchanges, [1]);
        // Each block holds all of it.
        let places = in_blocks(&[1], &[2, 4], &[8], &[0, 0]);
        assert_eq!(check(&[16], 0, &places).exchanges, [0u32; 0]);
        // Blocks 1 and 2 hold the same.
        let places = in_blocks(&[1], &[2, 4], &[], &[8, 8]);
        assert_eq!(check(&[16], 0, &places).exchanges, [1]);
    }

    /// A shape, an axis of it, and places that reach every element, each in any way.
    fn arrangement() -> impl Strategy<Value = (Vec<u32>, usize, Places)> {
        (prop::collection::vec(0..4u32, 1..4), any::<usize>()).prop_flat_map(|(extents, axis)| {
            let bits: u32 = extents.iter().sum();
            let shape: Vec<u32> = extents.iter().map(|bits| 1 << bits).collect();
            let axis = axis % shape.len();
            let below = prop::collection::vec(0..1u32 << bits, (bits + 3) as usize);
            let owners = prop::collection::vec(0..4usize, (bits + 3) as usize);
            (below, owners).prop_map(move |(vectors, owners)| {
                // Unit vectors, each with random lower bits, are a basis; then some that repeat.
                let all = vectors.iter().enumerate().map(|(i, vector)| {
                    if (i as u32) < bits {
                        1 << i | vector & ((1 << i) - 1)
                    } else {
                        *vector
                    }
                });
                let mut lists: [Vec<u32>; 4] = Default::default();
                for (vector, owner) in all.zip(owners) {
                    // At most eight blocks and sixteen warps.
                    let full = owner >= 2 && lists[owner].len() > 5 - owner;
                    lists[if full { 0 } else { owner }].push(vector);
                }
                let [registers, lanes, warps, blocks] = lists;
                let places = Places {
                    registers,
                    lanes,
                    warps,
                    blocks,
                };
                (shape.clone(), axis, places)
            })
        })
    }

    proptest! {
        #[test]
        fn any_arrangement_reduces_each_element_once((shape, axis, places) in arrangement()) {
            check(&shape, axis, &places);
        }

        #[test]
        fn copies_of_a_result_agree((shape, axis, places) in arrangement()) {
            for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
                check_copies(&shape, axis, &places, target);
            }
        }
    }
}
