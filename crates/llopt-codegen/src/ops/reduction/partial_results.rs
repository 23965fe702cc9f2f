//! The last step of a reduction: partial results of different warps, and of different blocks of a cluster,
//! meet in shared memory.
//!
//! Write `2^p` for the partial results of each element of the result, `2^r` for the elements that a block
//! holds, and let the partial results lie at `rest * 2^p + q`. A block writes its own to the memory of every
//! block that needs them ([`crate::ops::reduction::reduce`] says which, [`crate::ops::memory::cluster`] how), so that from then on each block
//! reads its own memory only. Then there are two ways on.
//!
//! * *Everyone*: each thread reads the `2^p` partial results of each element that it needs, next to each
//!   other, and combines them itself. One trip through memory; as many combinations as the thread has
//!   elements, times `2^p - 1`.
//! * *Spread*: thread `t` reads the partial results `t`, `t + threads`, …, so that those of one element lie in
//!   `2^p` neighbouring lanes, which combine them by `p` shuffles. Each lane writes the result back where it
//!   has read, and after a second barrier the threads read the elements they need. Threads without a
//!   partial result do nothing, so this way needs at least a whole warp's worth of them.
//!
//! A thread needs few elements of most reductions, and then everyone is cheaper. Where it needs many, or the
//! combination divides, the work is worth a second trip. The prices are those of conversions
//! ([`llopt_layout::plan::Costs`]).

use llopt_dialects::tt;
use llopt_target::Target;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionLike, RegionRef};

use crate::llvm::emitter::V;
use crate::ops::memory::cluster::Announced;
use crate::ops::reduction::reduce::{ReductionPlan, Tuple, operand_bytes};
use crate::values::element::Element;
use crate::values::tensor::ValueType;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute, name};

/// Instructions that one op stands for, about: a quotient and a function of a real variable take several.
fn instructions(op: OperationRef<'_, '_>) -> f32 {
    const SEVERAL: f32 = 10.0;
    let name = name(op);
    let divides = ["div", "rem"].iter().any(|word| name.contains(word));
    if divides || name.starts_with("math.") {
        SEVERAL
    } else {
        1.0
    }
}

/// Instructions of one combination, about.
pub(crate) fn combination(region: RegionRef<'_, '_>) -> f32 {
    let mut all = 0.0;
    let mut next_block = region.first_block();
    while let Some(block) = next_block {
        let mut next = block.first_operation();
        while let Some(op) = next {
            all += instructions(op);
            next = op.next_in_block();
        }
        next_block = block.next_in_region();
    }
    all
}

/// What decides between the two ways.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// log2 of the partial results of each element.
    partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    rest_bits: u32,
    /// log2 of the threads of the block, and of a warp.
    thread_bits: u32,
    lane_bits: u32,
    /// Elements of the result that each thread needs.
    needed: u32,
    /// 32-bit registers of one partial result, all operands together.
    words: u32,
    /// Instructions of one combination.
    combination: f32,
}

impl Work {
    /// Whether to spread the partial results over the lanes.
    fn is_better_spread(self, target: Target) -> bool {
        let costs = target.movement_costs();
        let all_bits = self.partial_bits + self.rest_bits;
        if self.partial_bits > self.lane_bits || all_bits < self.lane_bits {
            return false;
        }
        let instruction = costs.select;
        let (words, needed) = (self.words as f32, self.needed as f32);
        let partials = (1u32 << self.partial_bits) as f32;
        // Four words at a time.
        let reads = (words * partials / 4.0).ceil();
        let everyone = needed
            * (reads * (costs.issue + 4.0 * costs.wavefront)
                + (partials - 1.0) * self.combination * instruction);

        let own = (1u32 << all_bits.saturating_sub(self.thread_bits)) as f32;
        let steps = self.partial_bits as f32;
        let access = words * (costs.issue + costs.wavefront);
        let spread = own
            * (2.0 * access + steps * (words * costs.shuffle + self.combination * instruction))
            + costs.block_barrier
            + needed * access;
        spread < everyone
    }
}

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
        let offset = integer_attribute(op, "allocation.offset").ok_or_else(|| {
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
            thread_bits: lane_bits + self.program.num_warps.trailing_zeros(),
            lane_bits,
            needed: places.len() as u32,
            words: elements
                .iter()
                .map(|element| element.memory_bits().div_ceil(32))
                .sum(),
            combination: combination(region),
        };
        if work.is_better_spread(self.hooks().target()) {
            self.combine_spread(op, region, work, elements, &bases)?;
            self.hooks().barrier(e);
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
        let rounds = 1u32 << all_bits.saturating_sub(work.thread_bits);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rest_bits: u32, needed: u32, combination: f32) -> Work {
        Work {
            partial_bits: 2,
            rest_bits,
            thread_bits: 8,
            lane_bits: 6,
            needed,
            words: 1,
            combination,
        }
    }

    #[test]
    fn partial_results_are_spread_where_many_are_needed_or_combining_is_dear() {
        let target = Target::parse("hip:gfx942").unwrap();
        let is_spread = |work: Work| work.is_better_spread(target);
        assert!(!is_spread(work(4, 1, 1.0)), "one sum");
        assert!(is_spread(work(4, 16, 1.0)), "sixteen sums");
        assert!(is_spread(work(4, 4, 30.0)), "four of Welford's");
        assert!(!is_spread(work(3, 16, 30.0)), "less than a warp of them");
    }
}
