//! `tt.reduce`: follows the plan of [`llopt_plan::reduction`].
//!
//! | plan | code |
//! |---|---|
//! | registers of a key | combinations as a tree |
//! | steps between lanes | shuffles and selects, or the hardware's own instruction ([`super::warp`]) |
//! | partial results | a trip through shared memory ([`super::partial_results`]) |

use llopt_dialects::tt;
use llopt_plan::element::Element;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::reduction::warp::WarpReduction;
use llopt_plan::reduction::{ReductionPlan, operand_bytes};
use llopt_plan::tensor::ValueType;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::V;
use crate::walk::decision::{self, Choice};
use crate::walk::function::{FunctionLowering, Lowered, Registers, result};

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
        let plan = self.program.plans.reduction(&tensor, axis);
        let announced = self.announce(operation, &plan.exchanges)?;

        let keys: Vec<u32> = plan.keys.iter().map(|(key, _)| *key).collect();
        let in_warp = WarpReduction::new(
            &keys,
            &plan.lane_steps,
            &elements,
            &Combination::of(region),
            self.program.threads_per_warp.trailing_zeros(),
            self.hooks().target(),
        );
        self.record(operation, || {
            Choice::Reduction(decision::Reduction {
                in_thread: plan.keys.iter().map(|(_, all)| all.len() as u32 - 1).sum(),
                values: (plan.keys.len() * elements.len()) as u32,
                lane_steps: plan.lane_steps.len() as u32,
                shuffles: in_warp.shuffles,
                warp_instructions: in_warp.instructions,
                partial_results: 1 << plan.partial_bits,
                blocks: 1 << plan.exchanges.len(),
                shared_bytes: elements
                    .iter()
                    .map(|element| operand_bytes(plan.scratch_elements(), *element))
                    .sum(),
            })
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
        let values = self.reduce_in_warp(operation, region, &in_warp, &keys, values, &elements)?;
        let results: Vec<ValueType> = (0..operation.result_count())
            .map(|i| self.type_of(result(operation, i)))
            .collect::<Lowered<_>>()?;
        let Some(shape) = results.first() else {
            return Ok(());
        };

        let distinct: Vec<Tuple<'ctx>> = if plan.partial_bits == 0 {
            self.pick_keys(operation, &plan, &values, shape)?
        } else {
            self.reduce_in_memory(op, &plan, &announced, &values, &elements, shape)?
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
        let places: Vec<u32> = to
            .thread_bases()
            .into_iter()
            .map(|rest| plan.first_place(rest))
            .collect();
        if places != plan.thread_places {
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
        let words = crate::targets::hooks::Words::of(bits, width as u32);
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
