//! `tt.reduce`: follows the plan of [`llopt_plan::reduction`].
//!
//! | plan | code |
//! |---|---|
//! | registers of a key | combinations as a tree |
//! | steps between lanes | shuffles and selects, or the hardware's own instruction ([`super::warp`]) |
//! | partial results, and results that warps would not agree on | a trip through shared memory ([`super::partial_results`]) |

use llopt_dialects::tt;
use llopt_mlir::ir::ValueExt;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::reduction::warp::WarpReduction;
use llopt_plan::reduction::{ReductionPlan, operand_bytes};
use llopt_plan::tensor::ValueType;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::llvm::emitter::V;
use crate::ops::memory::cluster;
use crate::ops::reduction::combination::{self, Tuple};
use crate::ops::reduction::operands::Operands;
use crate::ops::reduction::{partial_results, warp};
use crate::values::registers::Registers;
use crate::walk::decision::{self, Choice};
use crate::walk::function::{FunctionLowering, Lowered, result};

/// `tt.reduce`.
pub(crate) fn reduce<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::ReduceOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let Operands {
        tensor,
        elements,
        registers: operands,
    } = Operands::of(lowering, operation, &op.srcs())?;
    let axis = usize::try_from(op.axis()).unwrap_or(0);
    let region = op.combine_op();
    let plan = lowering.program.plans.reduction(&tensor, axis);
    let announced = cluster::announce(lowering, operation, &plan.exchanges)?;

    let keys: Vec<u32> = plan.keys.iter().map(|(key, _)| *key).collect();
    let combination = Combination::of(region);
    let lane_bits = lowering.program.threads_per_warp.trailing_zeros();
    let in_warp = WarpReduction::new(
        &plan.lanes(&combination),
        &elements,
        &combination,
        lane_bits,
        lowering.hooks().target(),
    );
    lowering.record(operation, || {
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
                .map(|element| operand_bytes(plan.scratch_elements(&combination), *element))
                .sum(),
        })
    });

    let values = in_thread(lowering, op, &plan, &operands)?;
    let kept = in_warp.kept(&keys, lane_bits);
    let values = warp::reduce(
        lowering,
        operation,
        region,
        &in_warp,
        (&keys, &kept.keys),
        values,
        &elements,
    )?;
    let results: Vec<ValueType> = (0..operation.result_count())
        .map(|i| lowering.type_of(result(operation, i)))
        .collect::<Lowered<_>>()?;
    let Some(shape) = results.first() else {
        return Ok(());
    };

    let distinct: Vec<Tuple<'ctx>> = if !plan.goes_through_memory(&combination) {
        pick_keys(lowering, operation, &plan, &values, shape)?
    } else {
        partial_results::reduce_in_memory(
            lowering,
            op,
            &plan,
            &announced,
            (&kept, &values),
            &elements,
            shape,
        )?
    };
    bind_results(lowering, operation, &results, &distinct);
    Ok(())
}

/// What each thread has of each key: its registers of the key, combined as a tree.
fn in_thread<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::ReduceOp<'_, '_>,
    plan: &ReductionPlan,
    operands: &[Registers<'ctx>],
) -> Lowered<Vec<Tuple<'ctx>>> {
    let keys = plan.keys.iter().map(|(_, registers)| {
        let mut level: Vec<Tuple<'ctx>> = registers
            .iter()
            .map(|register| operands.iter().map(|operand| operand[*register]).collect())
            .collect();
        combination::combine_all(lowering, op.operation(), op.combine_op(), &mut level)
    });
    keys.collect()
}

/// Gives the results the values of their distinct registers.
fn bind_results<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    operation: OperationRef<'_, '_>,
    results: &[ValueType],
    distinct: &[Tuple<'ctx>],
) {
    for (i, of) in results.iter().enumerate() {
        let mut column: Vec<V<'ctx>> = distinct.iter().map(|tuple| tuple[i]).collect();
        // A store takes it from the registers of a lane.
        let mut users = result(operation, i).users();
        let is_computed_with = users.any(|user| tt::StoreOp::of(user).is_none());
        if matches!(of, ValueType::Scalar(_)) && is_computed_with {
            let (e, hooks) = (lowering.e, lowering.hooks());
            let of_warp = |one| hooks.of_all_lanes(e, one);
            column = column.into_iter().map(of_warp).collect();
        }
        let registers = of.spread(&column);
        lowering.bind_result_at(operation, i, registers);
    }
}

/// The keys of the distinct registers of the result.
fn pick_keys<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    plan: &ReductionPlan,
    values: &[Tuple<'ctx>],
    shape: &ValueType,
) -> Lowered<Vec<Tuple<'ctx>>> {
    let ValueType::Tensor(to) = shape else {
        return Ok(vec![values[0].clone()]);
    };
    let moves = || {
        lowering.unsupported(
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
    shape
        .distinct_registers()
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
