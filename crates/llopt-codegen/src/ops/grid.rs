//! The program in its grid: its number, the number of programs, and the kernels before and after it.

use llopt_dialects::tt;
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
    let value =
        lowering
            .hooks()
            .program_id(lowering.e, op.axis() as u32, lowering.program.num_ctas);
    lowering.bind_result(op.operation(), vec![value]);
    Ok(())
}

/// `tt.get_num_programs`.
pub(crate) fn num_programs(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::GetNumProgramsOp<'_, '_>,
) -> Lowered {
    let value =
        lowering
            .hooks()
            .num_programs(lowering.e, op.axis() as u32, lowering.program.num_ctas);
    lowering.bind_result(op.operation(), vec![value]);
    Ok(())
}
