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
//!    threads that hold a partial result writes it at `rest * 2^p + q`, where `q` numbers the cosets.
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
pub use price::{ReductionPrice, price};
use warp::LaneStep;

/// The steps of a reduction; pure arithmetic on the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionPlan {
    /// The keys, each with the registers that are combined for it.
    pub keys: Vec<(u32, Vec<usize>)>,
    /// The steps between the lanes of a warp.
    pub lane_steps: Vec<LaneStep>,
    /// log2 of the partial results per element that different warps and blocks hold.
    pub partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    pub rest_bits: u32,
    /// The bits of an element's number in the result that tell apart the elements of one block.
    told_by: u32,
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
        let place = |element: u32| {
            let coset = combined.reduce(axis.along(element));
            together(axis.rest(element), rests.pivots()) << partial_bits | together(coset, free)
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
            partial_bits,
            rest_bits: rests.rank(),
            told_by: rests.pivots(),
            repeated_threads,
            exchanges,
        }
    }

    /// The position of the first partial result of an element of the result. Linear in the element's number.
    pub fn first_place(&self, rest: u32) -> u32 {
        together(rest, self.told_by) << self.partial_bits
    }

    /// Elements of shared memory per operand.
    pub fn scratch_elements(&self) -> u32 {
        if self.partial_bits == 0 {
            0
        } else {
            1 << (self.rest_bits + self.partial_bits)
        }
    }
}

/// The bits of `word` at `positions`, moved next to each other.
fn together(word: u32, positions: u32) -> u32 {
    (0..u32::BITS)
        .filter(|bit| positions >> bit & 1 == 1)
        .enumerate()
        .fold(0, |all, (i, bit)| all | (word >> bit & 1) << i)
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

    use proptest::prelude::*;

    use super::*;
    use crate::cluster::distances;

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
    fn blocks_exchange_along_the_axis_only() {
        // 8 x 16 on four blocks that halve both dimensions.
        let places = in_blocks(&[1, 2], &[4, 16], &[32], &[64, 8]);
        assert_eq!(check(&[8, 16], 0, &places).exchanges, [1]);
        let along_rows = check(&[8, 16], 1, &places);
        assert_eq!(along_rows.exchanges, [2]);
        // Each block holds half of the rows, and has memory for this half.
        assert_eq!(along_rows.rest_bits, 2);
        assert_eq!(along_rows.scratch_elements(), 8);
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
    }
}
