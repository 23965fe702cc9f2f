//! `tt.histogram`: counters in shared memory.
//!
//! The threads clear the counters, then each element is counted by one of the threads that hold it, by an
//! atomic addition; after a barrier every thread reads the bins of its result. A value that is no bin
//! counts nowhere.

use llopt_dialects::tt;
use llopt_plan::tensor::ValueType;

use crate::llvm::emitter::V;
use crate::targets::hooks::{Ordering, Update};
use crate::walk::function::{FunctionLowering, Lowered, operand};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.histogram`: counters in shared memory.
    pub(crate) fn histogram(&mut self, op: tt::HistogramOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let e = self.e;
        let source = operand(operation, 0);
        let from = self.type_of(source)?;
        let to = self.tensor_of(operation, op.result())?;
        if self.program.num_ctas > 1 {
            let reason = "the blocks of a cluster would have to count together";
            return Err(self.unsupported(operation, Some(reason.to_owned())));
        }
        let base = self.scratch_of(operation)?;
        let counter = self.memory_type(to.element);
        let bytes = to.element.memory_bits() / 8;
        let address = |place: V<'ctx>| e.gep(counter, base, place);

        let bins: u32 = to.shape.iter().product();
        let threads = self.program.threads_per_warp * self.context.warps;
        let numbers: Vec<u32> = (0..threads.trailing_zeros()).map(|bit| 1 << bit).collect();
        let thread = self.linear(&numbers, &[]);
        let clear = |first: u32| {
            let place = e.add(thread, e.i32(i64::from(first)));
            e.store(e.zero(counter), address(place), bytes);
        };
        if bins < threads {
            let acts = e.icmp(inkwell::IntPredicate::ULT, thread, e.i32(i64::from(bins)));
            self.only_if(Some(acts), || clear(0));
        } else {
            (0..bins).step_by(threads as usize).for_each(clear);
        }
        self.barrier();

        let acts = self.acting_thread(&from);
        let values = self.registers(source);
        let masks = op.mask().map(|mask| self.registers(mask));
        let one = e.int_like(e.zero(counter), 1);
        let scope = self.hooks().block_scope();
        for register in self.distinct_registers(&from).collect::<Vec<_>>() {
            let value = values[register];
            let mask = self.both(acts, masks.as_ref().map(|masks| masks[register]));
            // Narrow values may be bins, all of them.
            let all = crate::llvm::emitter::bit_width(value.get_type()) <= bins.trailing_zeros();
            let is_bin = (!all).then(|| {
                let bins = e.int_like(value, i64::from(bins));
                e.icmp(inkwell::IntPredicate::ULT, value, bins)
            });
            let mask = match (mask, is_bin) {
                (Some(mask), Some(is_bin)) => Some(e.and(mask, is_bin)),
                (one, other) => one.or(other),
            };
            let place = address(self.to_i32(value));
            self.only_if(mask, || {
                e.atomic_update(Update::Add, place, one, Ordering::Relaxed, scope);
            });
        }
        self.barrier();

        let of = ValueType::Tensor(to.clone());
        let places = self.threads.elements(e, self.hooks(), &to);
        let counts: Vec<V<'ctx>> = self
            .distinct_registers(&of)
            .map(|register| e.load(counter, address(places[register]), bytes))
            .collect();
        self.bind_result(operation, self.spread(&of, &counts));
        Ok(())
    }
}
