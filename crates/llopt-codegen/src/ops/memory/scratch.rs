//! Scratch memory of operations: where it is in shared memory.

use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_plan::element::Element;
use llopt_plan::reduction::operand_bytes;
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};

/// The offset of the op's scratch memory in the shared memory of the function.
fn offset(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered<i64> {
    integer_attribute(op, ALLOCATION_OFFSET).ok_or_else(|| {
        lowering.unsupported(op, Some("no shared memory was allocated for it".to_owned()))
    })
}

/// The address of the op's scratch memory.
pub(crate) fn base<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
) -> Lowered<V<'ctx>> {
    let offset = offset(lowering, op)?;
    Ok(lowering.e.byte_offset(lowering.hidden.shared, offset))
}

/// For each operand of an op, the address of the scratch memory for `count` of its elements.
pub(crate) fn of_operands<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    elements: &[Element],
    count: u32,
) -> Lowered<Vec<V<'ctx>>> {
    let mut at = offset(lowering, op)?;
    let bases = elements.iter().map(|element| {
        let base = lowering.e.byte_offset(lowering.hidden.shared, at);
        at += i64::from(operand_bytes(count, *element));
        base
    });
    Ok(bases.collect())
}
