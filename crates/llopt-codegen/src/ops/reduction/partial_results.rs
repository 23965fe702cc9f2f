//! The last step of a reduction, in shared memory: follows [`llopt_plan::reduction::memory`].

use llopt_dialects::tt;
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_plan::element::Element;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::reduction::memory::Work;
use llopt_plan::reduction::{ReductionPlan, operand_bytes};
use llopt_plan::tensor::ValueType;
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::V;
use crate::ops::memory::cluster::Announced;
use crate::ops::reduction::reduce::Tuple;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// The elements of the result that each thread needs, from the partial results of `plan`.
    pub(crate) fn reduce_in_memory(
        &mut self,
        reduce: tt::ReduceOp<'c, 'a>,
        plan: &ReductionPlan,
        announced: &Announced<'_>,
        values: &[Tuple<'ctx>],
        elements: &[Element],
        shape: &ValueType,
    ) -> Lowered<Vec<Tuple<'ctx>>> {
        let (op, region) = (reduce.operation(), reduce.combine_op());
        let e = self.e;
        let offset = integer_attribute(op, ALLOCATION_OFFSET).ok_or_else(|| {
            self.unsupported(op, Some("no shared memory was allocated for it".to_owned()))
        })?;
        let count = plan.scratch_elements();
        let mut bases = Vec::with_capacity(elements.len());
        let mut at = offset;
        for element in elements {
            bases.push(e.byte_offset(self.hidden.shared, at));
            at += i64::from(operand_bytes(count, *element));
        }
        let own = self.linear(&plan.thread_places, &plan.block_places);
        let acts = self
            .threads
            .acts_under(e, self.hooks(), plan.repeated_threads);
        self.write_to_blocks(announced, acts, &bases, |bases| {
            for (place, tuple) in plan.key_places.iter().zip(values) {
                let index = e.xor(own, e.i32(i64::from(*place)));
                self.store_tuple(elements, bases, index, tuple);
            }
        });

        let places: Vec<V<'ctx>> = match shape {
            ValueType::Scalar(_) => vec![e.i32(0)],
            ValueType::Tensor(to) => {
                let of_element = |element| plan.first_place(element);
                let all = self.threads.numbers(e, self.hooks(), to, of_element);
                self.distinct_registers(shape)
                    .map(|register| all[register])
                    .collect()
            }
        };
        let lane_bits = self.program.threads_per_warp.trailing_zeros();
        let work = Work {
            partial_bits: plan.partial_bits,
            rest_bits: plan.rest_bits,
            thread_bits: lane_bits + self.context.warps.trailing_zeros(),
            lane_bits,
            needed: places.len() as u32,
            words: elements
                .iter()
                .map(|element| element.memory_bits().div_ceil(32))
                .sum(),
            combination: Combination::of(region).instructions,
        };
        if work.is_better_spread(self.hooks().target()) {
            self.combine_spread(op, region, work, elements, &bases)?;
            self.barrier();
            return Ok(places
                .into_iter()
                .map(|place| self.load_tuple(elements, &bases, place))
                .collect());
        }
        let partials = 1usize << plan.partial_bits;
        let mut distinct = Vec::with_capacity(places.len());
        for place in places {
            let columns: Vec<Vec<V<'ctx>>> = bases
                .iter()
                .zip(elements)
                .map(|(base, element)| self.load_consecutive(*element, *base, place, partials))
                .collect();
            let mut level: Vec<Tuple<'ctx>> = (0..partials)
                .map(|i| columns.iter().map(|column| column[i]).collect())
                .collect();
            distinct.push(self.combine_all(op, region, &mut level)?);
        }
        Ok(distinct)
    }

    /// Combines the partial results of each element in neighbouring lanes, and writes what comes out where
    /// each of them was.
    fn combine_spread(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        work: Work,
        elements: &[Element],
        bases: &[V<'ctx>],
    ) -> Lowered {
        let e = self.e;
        let all_bits = work.partial_bits + work.rest_bits;
        // Whole warps act or not: their number is in the high bits.
        let idle = (1u32 << work.thread_bits) - (1u32 << all_bits.min(work.thread_bits));
        let acts = self.threads.acts_under(e, self.hooks(), idle);
        let thread = self.threads.thread(e, self.hooks());
        let rounds = work.rounds();
        let elements = elements.to_vec();
        let after = acts.map(|acts| {
            let function = e.function();
            let (then, after) = (e.new_block(function), e.new_block(function));
            e.branch_if(acts, then, after);
            e.enter(then);
            after
        });
        for round in 0..rounds {
            let index = e.add(thread, e.i32(i64::from(round) << work.thread_bits));
            let mut tuple = self.load_tuple(&elements, bases, index);
            for step in 0..work.partial_bits {
                let received: Tuple<'ctx> = tuple
                    .iter()
                    .zip(&elements)
                    .map(|(value, element)| self.shuffle_value(*element, *value, 1 << step))
                    .collect();
                tuple = self.combine(op, region, &tuple, &received)?;
            }
            self.store_tuple(&elements, bases, index, &tuple);
        }
        if let Some(after) = after {
            e.branch(after);
            e.enter(after);
        }
        Ok(())
    }

    fn load_tuple(&self, elements: &[Element], bases: &[V<'ctx>], index: V<'ctx>) -> Tuple<'ctx> {
        let e = self.e;
        bases
            .iter()
            .zip(elements)
            .map(|(base, element)| {
                let memory = self.memory_type(*element);
                let address = e.gep(memory, *base, index);
                self.to_register(*element, e.load(memory, address, element.memory_bits() / 8))
            })
            .collect()
    }

    fn store_tuple(
        &self,
        elements: &[Element],
        bases: &[V<'ctx>],
        index: V<'ctx>,
        tuple: &Tuple<'ctx>,
    ) {
        let e = self.e;
        for ((base, value), element) in bases.iter().zip(tuple).zip(elements) {
            let memory = self.memory_type(*element);
            e.store(
                self.to_memory(*element, *value),
                e.gep(memory, *base, index),
                element.memory_bits() / 8,
            );
        }
    }
}
