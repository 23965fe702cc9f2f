//! `tt.histogram`: counters in shared memory.
//!
//! The threads clear the counters, then each element is counted by one of the threads that hold it, by an atomic
//! addition; after a barrier every thread reads the bins of its result. A value that is not a bin is not counted.

use llopt_dialects::tt;
use llopt_plan::tensor::ValueType;

use crate::llvm::emitter::V;
use crate::ops::memory::{atomic, global, scratch};
use crate::targets::hooks::{Ordering, Update};
use crate::values::{storage, threads, words};
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// `tt.histogram`: counters in shared memory.
pub(crate) fn histogram<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::HistogramOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let e = lowering.e;
    let source = operand(operation, 0);
    let from = lowering.type_of(source)?;
    let to = lowering.tensor_of(operation, op.result())?;
    if lowering.program.num_ctas > 1 {
        let reason = "the blocks of a cluster would have to count together";
        return Err(lowering.unsupported(operation, Some(reason.to_owned())));
    }
    let base = scratch::base(lowering, operation)?;
    let counter = storage::element_type(e, to.element);
    let bytes = to.element.memory_bits() / 8;
    let address = |place: V<'ctx>| e.gep(counter, base, place);

    let bins: u32 = to.shape.iter().product();
    let threads = lowering.own_threads();
    let numbers: Vec<u32> = (0..threads.trailing_zeros()).map(|bit| 1 << bit).collect();
    let thread = lowering.linear(&numbers, &[]);
    let clear = |first: u32| {
        let place = e.add(thread, e.i32(i64::from(first)));
        e.store(e.zero(counter), address(place), bytes);
    };
    if bins < threads {
        let acts = e.icmp(inkwell::IntPredicate::ULT, thread, e.i32(i64::from(bins)));
        threads::only_if(e, Some(acts), || clear(0));
    } else {
        (0..bins).step_by(threads as usize).for_each(clear);
    }
    lowering.barrier();

    let acts = global::acting_thread(lowering, &from);
    let values = lowering.registers(source);
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let one = e.int_like(e.zero(counter), 1);
    let scope = lowering.hooks().block_scope();
    for register in from.distinct_registers().collect::<Vec<_>>() {
        let value = values[register];
        let mask = atomic::both(e, acts, masks.as_ref().map(|masks| masks[register]));
        // All values of a narrow type may be bins.
        let all = crate::llvm::emitter::bit_width(value.get_type()) <= bins.trailing_zeros();
        let is_bin = (!all).then(|| {
            let bins = e.int_like(value, i64::from(bins));
            e.icmp(inkwell::IntPredicate::ULT, value, bins)
        });
        let mask = match (mask, is_bin) {
            (Some(mask), Some(is_bin)) => Some(e.and(mask, is_bin)),
            (one, other) => one.or(other),
        };
        let place = address(words::to_i32(e, value));
        threads::only_if(e, mask, || {
            e.atomic_update(Update::Add, place, one, Ordering::Relaxed, scope);
        });
    }
    lowering.barrier();

    let of = ValueType::Tensor(to.clone());
    let places = lowering.threads.elements(e, lowering.hooks(), &to);
    let counts: Vec<V<'ctx>> = of
        .distinct_registers()
        .map(|register| e.load(counter, address(places[register]), bytes))
        .collect();
    lowering.bind_result(operation, of.spread(&counts));
    Ok(())
}
