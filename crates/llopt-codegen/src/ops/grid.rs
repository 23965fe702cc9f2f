//! The program in its grid: its number, the number of programs, and the kernels before and after it.

use llopt_dialects::tables::module::REVERSED;
use llopt_dialects::{tt, ttng};
use llopt_mlir::ir::OperationExt;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::targets::hooks::GridDependency;
use crate::walk::function::{FunctionLowering, Lowered};

/// Programmatic dependent launch: waits for the kernel before, or lets the kernel after start.
pub(crate) fn grid_dependency(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    step: GridDependency,
) -> Lowered {
    lowering.require(op, Feature::DependentLaunch)?;
    lowering.hooks().grid_dependency(lowering.e, step);
    Ok(())
}

/// `tt.get_program_id`.
pub(crate) fn program_id(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::GetProgramIdOp<'_, '_>,
) -> Lowered {
    let blocks = lowering.program.blocks_per_cluster();
    let value = lowering
        .hooks()
        .program_id(lowering.e, op.axis() as u32, blocks);
    let value = match op.operation().attr(REVERSED) {
        None => value,
        Some(_) => {
            let (e, hooks) = (lowering.e, lowering.hooks());
            let count = hooks.num_programs(e, op.axis() as u32, blocks);
            e.sub(e.sub(count, value), e.i32(1))
        }
    };
    lowering.bind_result(op.operation(), vec![value]);
    Ok(())
}

/// `tt.get_num_programs`.
pub(crate) fn num_programs(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::GetNumProgramsOp<'_, '_>,
) -> Lowered {
    let blocks = lowering.program.blocks_per_cluster();
    let value = lowering
        .hooks()
        .num_programs(lowering.e, op.axis() as u32, blocks);
    lowering.bind_result(op.operation(), vec![value]);
    Ok(())
}

/// `ttng.cluster_rank`.
pub(crate) fn cluster_rank(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttng::ClusterRankOp<'_, '_>,
) -> Lowered {
    lowering.require(op.operation(), Feature::Cluster)?;
    let rank = lowering.threads.block(lowering.e, lowering.hooks());
    lowering.bind_result(op.operation(), vec![rank]);
    Ok(())
}
