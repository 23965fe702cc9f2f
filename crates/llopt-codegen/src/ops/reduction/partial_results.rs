//! The last step of a reduction, in shared memory: follows [`llopt_plan::reduction::memory`].

use llopt_dialects::tt;
use llopt_plan::element::Element;
use llopt_plan::reduction::ReductionPlan;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::reduction::memory::{Combining, Work};
use llopt_plan::reduction::warp::Kept;
use llopt_plan::tensor::ValueType;
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::cluster::{self, Announced};
use crate::ops::memory::scratch;
use crate::ops::reduction::combination::{self, Tuple};
use crate::ops::reduction::warp;
use crate::values::storage;
use crate::walk::function::{FunctionLowering, Lowered};

/// The elements of the result that each thread needs, from the partial results of `plan`.
pub(crate) fn reduce_in_memory<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    reduce: tt::ReduceOp<'_, '_>,
    plan: &ReductionPlan,
    announced: &Announced<'_>,
    (kept, values): (&Kept, &[Tuple<'ctx>]),
    elements: &[Element],
    shape: &ValueType,
) -> Lowered<Vec<Tuple<'ctx>>> {
    let (op, region) = (reduce.operation(), reduce.combine_op());
    let e = lowering.e;
    let combination = Combination::of(region);
    let count = plan.scratch_elements(&combination);
    let bases = scratch::of_operands(lowering, op, elements, count)?;
    let writers = plan.writers(kept);
    let own = lowering.linear(&writers.thread_places, &plan.block_places);
    let acts = lowering
        .threads
        .acts_under(e, lowering.hooks(), writers.idle);
    cluster::write_to_blocks(lowering, announced, acts, &bases, |bases| {
        for (place, tuple) in writers.key_places.iter().zip(values) {
            let index = e.xor(own, e.i32(i64::from(*place)));
            store_tuple(e, elements, bases, index, tuple);
        }
    });

    let lane_bits = lowering.program.threads_per_warp.trailing_zeros();
    // The elements of the result that the thread needs, where their partial results begin, and what each bit of the thread's
    // number changes of that.
    let (needed, places, changes): (Vec<u32>, Vec<V<'ctx>>, Vec<u32>) = match shape {
        ValueType::Scalar(_) => (vec![0], vec![e.i32(0)], vec![0; lane_bits as usize]),
        ValueType::Tensor(to) => {
            let first_place = |element| plan.first_place(element);
            let all = lowering
                .threads
                .numbers(e, lowering.hooks(), to, first_place);
            let registers = || shape.distinct_registers();
            (
                registers()
                    .map(|register| to.element_in(register))
                    .collect(),
                registers().map(|register| all[register]).collect(),
                to.thread_bases().into_iter().map(first_place).collect(),
            )
        }
    };
    let is_alike = |bit: u32| u32::from(changes[bit as usize] == 0) << bit;
    let work = Work {
        alike: (0..lane_bits).fold(0, |all, bit| all | is_alike(bit)),
        ..plan.work(lane_bits, &needed, elements, &combination)
    };
    match work.cheapest(lowering.hooks().target()) {
        Combining::Spread => {
            combine_spread(lowering, op, region, &work, &bases)?;
            lowering.barrier();
            Ok(places
                .into_iter()
                .map(|place| load_tuple(e, elements, &bases, place))
                .collect())
        }
        Combining::Warps(warps) => {
            let lane = lowering.linear(&warps.lane_places(lane_bits), &[]);
            let own = 1usize << warps.own_bits;
            let mut values = Vec::with_capacity(places.len());
            for place in places {
                let place = e.xor(place, lane);
                let columns: Vec<Vec<V<'ctx>>> = bases
                    .iter()
                    .zip(elements)
                    .map(|(base, element)| {
                        storage::load_consecutive(e, *element, *base, place, own)
                    })
                    .collect();
                let mut level: Vec<Tuple<'ctx>> = (0..own)
                    .map(|i| columns.iter().map(|column| column[i]).collect())
                    .collect();
                values.push(combination::combine_all(lowering, op, region, &mut level)?);
            }
            let mut results = Vec::with_capacity(values.len());
            for values in values.chunks(warps.keys.len()) {
                let (steps, keys) = (&warps.steps, &warps.keys);
                let values = values.to_vec();
                let keys = (&keys[..], &keys[..]);
                let combined = warp::reduce(lowering, op, region, steps, keys, values, elements)?;
                results.extend(combined);
            }
            Ok(results)
        }
    }
}

/// Combines the partial results of each element in neighbouring lanes, and writes the result to the position of each
/// of them.
fn combine_spread<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    work: &Work<'_>,
    bases: &[V<'ctx>],
) -> Lowered {
    let e = lowering.e;
    let all_bits = work.partial_bits + work.rest_bits;
    // Whole warps are active or idle: their number is in the high bits.
    let idle = (1u32 << work.thread_bits) - (1u32 << all_bits.min(work.thread_bits));
    let acts = lowering.threads.acts_under(e, lowering.hooks(), idle);
    let thread = lowering.threads.thread(e, lowering.hooks());
    let rounds = work.rounds();
    let elements = work.elements;
    let after = acts.map(|acts| {
        let function = e.function();
        let (then, after) = (e.new_block(function), e.new_block(function));
        e.branch_if(acts, then, after);
        e.enter(then);
        after
    });
    for round in 0..rounds {
        let index = e.add(thread, e.i32(i64::from(round) << work.thread_bits));
        let mut tuple = load_tuple(e, elements, bases, index);
        for step in 0..work.partial_bits {
            let received: Tuple<'ctx> = tuple
                .iter()
                .zip(elements)
                .map(|(value, element)| {
                    combination::shuffle_value(e, lowering.hooks(), *element, *value, 1 << step)
                })
                .collect();
            tuple = combination::combine(lowering, op, region, &tuple, &received)?;
        }
        store_tuple(e, elements, bases, index, &tuple);
    }
    if let Some(after) = after {
        e.branch(after);
        e.enter(after);
    }
    Ok(())
}

fn load_tuple<'ctx>(
    e: &Emitter<'ctx>,
    elements: &[Element],
    bases: &[V<'ctx>],
    index: V<'ctx>,
) -> Tuple<'ctx> {
    bases
        .iter()
        .zip(elements)
        .map(|(base, element)| {
            let memory = storage::element_type(e, *element);
            let address = e.gep(memory, *base, index);
            storage::to_register(
                e,
                *element,
                e.load(memory, address, element.memory_bits() / 8),
            )
        })
        .collect()
}

fn store_tuple<'ctx>(
    e: &Emitter<'ctx>,
    elements: &[Element],
    bases: &[V<'ctx>],
    index: V<'ctx>,
    tuple: &Tuple<'ctx>,
) {
    for ((base, value), element) in bases.iter().zip(tuple).zip(elements) {
        let memory = storage::element_type(e, *element);
        e.store(
            storage::to_memory(e, *element, *value),
            e.gep(memory, *base, index),
            element.memory_bits() / 8,
        );
    }
}
