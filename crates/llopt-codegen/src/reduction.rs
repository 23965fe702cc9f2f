//! `tt.reduce`: any combine region, several operands, any layout, any axis.
//!
//! # How
//!
//! Write an element's number as `(rest, a)`: its place outside of the axis, and its coordinate along it. A
//! thread holds the elements `L(r) ^ L(t)` for its registers `r`. Three steps bring the elements of one
//! `rest` together, each as far as the layout allows and each after duplicates were dropped:
//!
//! 1. *In the thread*: registers with the same `rest` are combined. What is left is one value per `rest`,
//!    a *key*, which stands for a coset of the subspace `S` of the axis.
//! 2. *In the warp*: a mask `m` of lane bits is useful if lane `t ^ m` holds the same keys (`rest(L(m))` is
//!    the `rest` of some registers) with other coordinates along the axis. Then key `k` is combined with
//!    key `k ^ rest(L(m))` of that lane, and `S` grows by a dimension.
//! 3. *In the block*: if `S` is not the whole axis yet, `2^p` partial results are left for each `rest`, in
//!    different warps. They meet in shared memory ([`crate::partial_results`]): one thread of those that
//!    hold it writes each of them at `rest * 2^p + q`, where `q` numbers the cosets.

use llopt_dialects::tt;
use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionRef};

use crate::decision::Choice;
use crate::element::Element;
use crate::emitter::V;
use crate::function::{FunctionLowering, Lowered, Registers, result};
use crate::tensor::{TensorType, ValueType};

/// A step inside of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LaneStep {
    /// The distance of the lanes that exchange.
    lanes: u32,
    /// What the other lane's key differs in.
    rest: u32,
}

/// The steps of a reduction; pure arithmetic on the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReductionPlan {
    /// The keys, each with the registers that are combined for it.
    keys: Vec<(u32, Vec<usize>)>,
    lane_steps: Vec<LaneStep>,
    /// log2 of the partial results per element that different warps hold.
    pub(crate) partial_bits: u32,
    /// log2 of the elements of the result.
    pub(crate) rest_bits: u32,
    /// What each key, and each bit of the thread's number, adds to the place of a partial result.
    pub(crate) key_places: Vec<u32>,
    pub(crate) thread_places: Vec<u32>,
    /// Bits of the thread's number that change no place: threads that repeat others.
    pub(crate) repeated_threads: u32,
}

/// The axis as a field of row-major numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: u32,
    bits: u32,
}

impl Axis {
    pub(crate) fn of(tensor: &TensorType, axis: usize) -> Self {
        let (low, bits) = tensor.bits_of_dim(axis);
        Self { low, bits }
    }

    /// log2 of the extent.
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    /// The coordinate along the axis.
    pub(crate) fn along(self, element: u32) -> u32 {
        element >> self.low & ((1 << self.bits) - 1)
    }

    /// The row-major number without the axis.
    pub(crate) fn rest(self, element: u32) -> u32 {
        let below = element & ((1 << self.low) - 1);
        below | element >> (self.low + self.bits) << self.low
    }
}

impl ReductionPlan {
    /// The plan for reducing `tensor` along `axis`; `None` when blocks of a cluster would have to work
    /// together.
    pub(crate) fn new(tensor: &TensorType, axis: usize) -> Option<Self> {
        let axis = Axis::of(tensor, axis);
        let blocks = tensor.block_bases();
        if blocks.iter().any(|basis| axis.along(*basis) != 0) {
            return None;
        }
        let mut keys: Vec<(u32, Vec<usize>)> = Vec::new();
        for register in (0..tensor.registers()).filter(|register| tensor.is_canonical(*register)) {
            let rest = axis.rest(tensor.element_in(register));
            match keys.iter_mut().find(|(key, _)| *key == rest) {
                Some((_, registers)) => registers.push(register),
                None => keys.push((rest, vec![register])),
            }
        }

        // The registers' vectors as (rest, along), the rest in the high bits, so that elimination tells
        // which registers have a wanted rest, and what is left of the axis when there is none.
        let joined = |element: u32| axis.rest(element) << axis.bits | axis.along(element);
        let only_axis = (1u32 << axis.bits) - 1;
        let mut registers = Vectors::default();
        for bit in 0..tensor.registers().trailing_zeros() {
            registers.insert(joined(tensor.element_in(1 << bit)));
        }
        // S: what of the axis is combined already.
        let mut combined = Echelon::of(&[]);
        for vector in &registers.rows {
            if vector & !only_axis == 0 {
                combined.insert(*vector);
            }
        }

        // Masks of lanes whose rest is that of registers: a kernel, by elimination with masks.
        let lanes = tensor.layout().flat_bases_of(Dim::LANE);
        let mut rows: Vec<(u32, u32)> = Vec::new();
        let mut lane_steps = Vec::new();
        for (i, basis) in lanes.iter().enumerate() {
            let mut vector = registers.reduce_high(joined(*basis), only_axis);
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

        let partial_bits = axis.bits - combined.rank();
        let free: Vec<u32> = (0..axis.bits)
            .filter(|bit| combined.pivots() >> bit & 1 == 0)
            .collect();
        let place = |element: u32| {
            let coset = combined.reduce(axis.along(element));
            let number = free
                .iter()
                .enumerate()
                .fold(0, |number, (i, bit)| number | (coset >> bit & 1) << i);
            axis.rest(element) << partial_bits | number
        };
        let key_places: Vec<u32> = keys
            .iter()
            .map(|(_, registers)| place(tensor.element_in(registers[0])))
            .collect();
        let thread_places: Vec<u32> = tensor.thread_bases().into_iter().map(place).collect();
        let mut seen = Echelon::of(&[]);
        for bit in 0..tensor.registers().trailing_zeros() {
            seen.insert(place(tensor.element_in(1 << bit)));
        }
        let mut repeated_threads = 0;
        for (bit, basis) in thread_places.iter().enumerate() {
            if seen.insert(*basis).is_some() {
                repeated_threads |= 1 << bit;
            }
        }
        let all_bits: u32 = tensor
            .shape
            .iter()
            .map(|extent| extent.trailing_zeros())
            .sum();
        Some(Self {
            keys,
            lane_steps,
            partial_bits,
            rest_bits: all_bits - axis.bits,
            key_places,
            thread_places,
            repeated_threads,
        })
    }

    /// Elements of shared memory per operand.
    pub(crate) fn scratch_elements(&self) -> u32 {
        if self.partial_bits == 0 {
            0
        } else {
            1 << (self.rest_bits + self.partial_bits)
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
pub(crate) fn operand_bytes(elements: u32, element: Element) -> u32 {
    const ALIGNMENT: u32 = 16;
    (elements * element.memory_bits() / 8).next_multiple_of(ALIGNMENT)
}

/// One value per operand.
pub(crate) type Tuple<'ctx> = Vec<V<'ctx>>;

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.reduce`.
    pub(crate) fn reduce(&mut self, op: tt::ReduceOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let sources = op.srcs();
        let Some(first) = sources.first() else {
            return Err(self.invalid(operation, "it has no operand"));
        };
        let tensor = self.tensor_of(operation, *first)?;
        let axis = usize::try_from(op.axis()).unwrap_or(0);
        let elements: Vec<Element> = sources
            .iter()
            .map(|value| Ok(self.type_of(*value)?.element()))
            .collect::<Lowered<_>>()?;
        let operands: Vec<Registers<'ctx>> =
            sources.iter().map(|value| self.registers(*value)).collect();
        let region = op.combine_op();
        let plan = ReductionPlan::new(&tensor, axis).ok_or_else(|| {
            self.unsupported(
                operation,
                Some("it reduces across the blocks of a cluster".to_owned()),
            )
        })?;

        self.record(operation, || Choice::Reduction {
            in_thread: plan.keys.iter().map(|(_, all)| all.len() as u32 - 1).sum(),
            values: (plan.keys.len() * elements.len()) as u32,
            lane_steps: plan.lane_steps.len() as u32,
            partial_results: 1 << plan.partial_bits,
            shared_bytes: elements
                .iter()
                .map(|element| operand_bytes(plan.scratch_elements(), *element))
                .sum(),
        });

        // In the thread, as a tree.
        let mut values: Vec<Tuple<'ctx>> = Vec::with_capacity(plan.keys.len());
        for (_, registers) in &plan.keys {
            let mut level: Vec<Tuple<'ctx>> = registers
                .iter()
                .map(|register| operands.iter().map(|operand| operand[*register]).collect())
                .collect();
            values.push(self.combine_all(operation, region, &mut level)?);
        }
        // In the warp.
        let position = |key: u32| plan.keys.iter().position(|(known, _)| *known == key);
        for step in &plan.lane_steps {
            let mut next = Vec::with_capacity(values.len());
            for (i, (key, _)) in plan.keys.iter().enumerate() {
                let other = position(key ^ step.rest).unwrap_or(i);
                let received: Tuple<'ctx> = values[other]
                    .iter()
                    .zip(&elements)
                    .map(|(value, element)| self.shuffle_value(*element, *value, step.lanes))
                    .collect();
                next.push(self.combine(operation, region, &values[i], &received)?);
            }
            values = next;
        }
        let results: Vec<ValueType> = (0..operation.result_count())
            .map(|i| self.type_of(result(operation, i)))
            .collect::<Lowered<_>>()?;
        let Some(shape) = results.first() else {
            return Ok(());
        };

        let distinct: Vec<Tuple<'ctx>> = if plan.partial_bits == 0 {
            self.pick_keys(operation, &plan, &values, shape)?
        } else {
            self.reduce_across_warps(operation, region, &plan, &values, &elements, shape)?
        };
        for (i, of) in results.iter().enumerate() {
            let column: Vec<V<'ctx>> = distinct.iter().map(|tuple| tuple[i]).collect();
            let registers = self.spread(of, &column);
            self.bind_result_at(operation, i, registers);
        }
        Ok(())
    }

    /// The keys that the distinct registers of the result are.
    fn pick_keys(
        &self,
        op: OperationRef<'c, 'a>,
        plan: &ReductionPlan,
        values: &[Tuple<'ctx>],
        shape: &ValueType,
    ) -> Lowered<Vec<Tuple<'ctx>>> {
        let ValueType::Tensor(to) = shape else {
            return Ok(vec![values[0].clone()]);
        };
        let moves = || {
            self.unsupported(
                op,
                Some("its result would have to move between threads".to_owned()),
            )
        };
        if to.thread_bases() != plan.thread_places {
            return Err(moves());
        }
        self.distinct_registers(shape)
            .map(|register| {
                let wanted = to.element_in(register);
                let key = plan
                    .keys
                    .iter()
                    .position(|(key, _)| *key == wanted)
                    .ok_or_else(moves)?;
                Ok(values[key].clone())
            })
            .collect()
    }

    /// `count` elements from element `first` on, in the widest loads; `first` is a multiple of `count`.
    pub(crate) fn load_consecutive(
        &self,
        element: Element,
        base: V<'ctx>,
        first: V<'ctx>,
        count: usize,
    ) -> Vec<V<'ctx>> {
        let e = self.e;
        let bits = element.memory_bits();
        let width = count.min((128 / bits) as usize);
        let memory = self.memory_type(element);
        let words = crate::hooks::Words::of(bits, width as u32);
        let word = e.int(words.bits).into();
        let of = if words.count == 1 {
            word
        } else {
            e.vector(word, words.count).into()
        };
        let start = e.gep(memory, base, first);
        (0..count)
            .step_by(width)
            .flat_map(|at| {
                let address = e.byte_offset(start, (at as u32 * bits / 8).into());
                self.unpack_words(
                    element,
                    words,
                    &e.unpack(e.load(of, address, words.bytes())),
                )
            })
            .collect()
    }

    /// The value of an element type that the lane at distance `lanes` has.
    pub(crate) fn shuffle_value(&self, element: Element, value: V<'ctx>, lanes: u32) -> V<'ctx> {
        self.to_register(
            element,
            self.shuffle_word(self.to_memory(element, value), None, lanes),
        )
    }

    /// Combines neighbours until one tuple is left.
    pub(crate) fn combine_all(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        level: &mut Vec<Tuple<'ctx>>,
    ) -> Lowered<Tuple<'ctx>> {
        while level.len() > 1 {
            let mut next = Vec::with_capacity(level.len().div_ceil(2));
            for pair in level.chunks(2) {
                next.push(match pair {
                    [a, b] => self.combine(op, region, a, b)?,
                    _ => pair[0].clone(),
                });
            }
            *level = next;
        }
        level
            .pop()
            .ok_or_else(|| self.invalid(op, "there is nothing to combine"))
    }

    /// Runs the combine region.
    pub(crate) fn combine(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        a: &[V<'ctx>],
        b: &[V<'ctx>],
    ) -> Lowered<Tuple<'ctx>> {
        let arguments: Vec<Registers<'ctx>> =
            a.iter().chain(b).map(|value| vec![*value].into()).collect();
        Ok(self
            .inline_region(op, region, &arguments)?
            .into_iter()
            .map(|registers| registers[0])
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use llopt_layout::LinearLayout;

    /// Follows a plan on sets of elements: every key must end with its whole row, each element once.
    fn check(shape: &[u32], axis: usize, registers: &[u32], lanes: &[u32], warps: &[u32]) {
        let bits: u32 = shape.iter().map(|extent| extent.trailing_zeros()).sum();
        let split = |number: &u32| -> Vec<u32> {
            let mut rest = *number;
            let mut coordinates: Vec<u32> = shape
                .iter()
                .rev()
                .map(|extent| {
                    let coordinate = rest & (extent - 1);
                    rest >>= extent.trailing_zeros();
                    coordinate
                })
                .collect();
            coordinates.reverse();
            coordinates
        };
        let vectors = |list: &[u32]| list.iter().map(split).collect::<Vec<_>>();
        let (r, l, w) = (vectors(registers), vectors(lanes), vectors(warps));
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &r),
            (Dim::LANE, &l),
            (Dim::WARP, &w),
            (Dim::BLOCK, &[]),
        ];
        let outs: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(i, size)| (Dim::tensor(i), *size))
            .collect();
        let layout = LinearLayout::from_bases(&bases, &outs).unwrap();
        let tensor = TensorType::new(Element::F32, shape.to_vec(), &layout).unwrap();
        let plan = ReductionPlan::new(&tensor, axis).unwrap();
        let axis = Axis::of(&tensor, axis);

        let threads = 1u32 << (lanes.len() + warps.len());
        let lane_mask = (1u32 << lanes.len()) - 1;
        let of_thread = |bases: &[u32], thread: u32| {
            (0..bases.len())
                .filter(|i| thread >> i & 1 == 1)
                .fold(0, |all, i| all ^ bases[i])
        };
        let thread_bases = tensor.thread_bases();
        let mut held: Vec<Vec<Vec<u32>>> = (0..threads)
            .map(|t| {
                let own = of_thread(&thread_bases, t);
                plan.keys
                    .iter()
                    .map(|(_, registers)| {
                        registers
                            .iter()
                            .map(|r| tensor.element_in(*r) ^ own)
                            .collect()
                    })
                    .collect()
            })
            .collect();
        for step in &plan.lane_steps {
            assert_eq!(step.lanes & !lane_mask, 0);
            held = (0..threads)
                .map(|t| {
                    (0..plan.keys.len())
                        .map(|i| {
                            let other = plan
                                .keys
                                .iter()
                                .position(|(key, _)| *key == plan.keys[i].0 ^ step.rest)
                                .unwrap();
                            let mut all = held[t as usize][i].clone();
                            all.extend(&held[(t ^ step.lanes) as usize][other]);
                            all
                        })
                        .collect()
                })
                .collect();
        }
        let mut memory: HashMapOfSets = HashMapOfSets::new();
        for t in (0..threads).filter(|t| t & plan.repeated_threads == 0) {
            for (place, set) in plan.key_places.iter().zip(&held[t as usize]) {
                let at = place ^ of_thread(&plan.thread_places, t);
                assert!(
                    memory.insert(at, set.clone()).is_none(),
                    "two threads write one place"
                );
            }
        }
        assert_eq!(memory.len(), 1 << (plan.rest_bits + plan.partial_bits));
        for rest in 0..1u32 << plan.rest_bits {
            let mut all: Vec<u32> = (0..1u32 << plan.partial_bits)
                .flat_map(|q| memory[&(rest << plan.partial_bits | q)].clone())
                .collect();
            all.sort_unstable();
            let wanted: Vec<u32> = (0..1u32 << bits)
                .filter(|element| axis.rest(*element) == rest)
                .collect();
            assert_eq!(all, wanted, "{shape:?} {registers:?} {lanes:?} {warps:?}");
        }
    }

    type HashMapOfSets = std::collections::HashMap<u32, Vec<u32>>;

    #[test]
    fn blocked_layouts_reduce_each_element_once() {
        // 8 x 16, two columns in registers, four lanes along the row, two along the column, two warps.
        for axis in 0..2 {
            check(&[8, 16], axis, &[1, 2], &[4, 8, 16], &[32, 64]);
            check(&[8, 16], axis, &[16, 1], &[2, 32, 4], &[8, 64]);
        }
    }

    #[test]
    fn repeated_registers_lanes_and_warps_count_once() {
        for axis in 0..2 {
            check(&[4, 8], axis, &[0, 1, 8], &[0, 2, 4], &[16, 0]);
            check(&[4, 8], axis, &[1, 1], &[2, 4, 8, 3], &[16, 8]);
        }
    }

    #[test]
    fn vectors_that_mix_both_dimensions_are_fine() {
        for axis in 0..2 {
            check(&[8, 8], axis, &[9, 2], &[1, 20, 36], &[32]);
            check(&[8, 8], axis, &[1 | 8, 2 | 16, 4 | 32], &[8, 16], &[32]);
            check(&[2, 32], axis, &[33], &[1, 2, 4 | 32, 8], &[16]);
        }
    }
}
