//! The live ranges of buffers of shared memory, and of the scratch memory of operations: told to a simulator, which
//! detects accesses to released memory, and reads of data that an earlier buffer left at the same offset.

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg;
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::buffer::room;
use llopt_plan::scratch::scratch;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::walk::function::{FunctionLowering, integer_attribute};

/// The scratch memory of an operation begins; it ends where the next buffer at its offset begins.
pub(crate) fn scratch_begins(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) {
    if lowering.program.mark_buffers
        && let Some(offset) = integer_attribute(op, ALLOCATION_OFFSET)
        && let Some(scratch) = scratch(op, lowering.program.plans)
        && let Ok(bytes) = u32::try_from(scratch.bytes)
    {
        let base = lowering.e.byte_offset(lowering.hidden.shared, offset);
        lowering.e.buffer_life(true, base, bytes);
    }
}

/// The buffer of an allocation begins.
pub(crate) fn buffer_begins(lowering: &FunctionLowering<'_, '_>, op: ttg::LocalAllocOp<'_, '_>) {
    mark_buffer(lowering, op.result(), true);
}

/// A buffer is released as a whole, through any view of it.
pub(crate) fn buffer_ends(lowering: &FunctionLowering<'_, '_>, op: ttg::LocalDeallocOp<'_, '_>) {
    let mut buffer = op.src();
    while let Some(view) = buffer.defining_op()
        && ttg::LocalAllocOp::of(view).is_none()
        && let Some(of) = view.operand_value(0)
        && MemDesc::of(of.r#type()).is_some()
    {
        buffer = of;
    }
    mark_buffer(lowering, buffer, false);
}

fn mark_buffer(lowering: &FunctionLowering<'_, '_>, buffer: Value<'_, '_>, begins: bool) {
    // A view that is a block argument does not say where the whole buffer begins.
    if lowering.program.mark_buffers
        && let Some(memory) = MemDesc::of(buffer.r#type())
        && memory.is_shared()
        && memory.shape() == memory.alloc_shape()
        && let Ok(room) = room(memory)
        && let Ok(bytes) = u32::try_from(room.bytes)
    {
        lowering
            .e
            .buffer_life(begins, lowering.scalar(buffer), bytes);
    }
}
