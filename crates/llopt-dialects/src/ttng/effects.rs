//! Memory effects of ttng operations that depend on the instance.

use super::{TCGen5MMAOp, TCGen5MMAScaledOp, TMEMAllocOp, WarpGroupDotOp};
use crate::{
    meaning::resource::{PRODUCT_SHARED_MEMORY, SHARED_MEMORY, TENSOR_MEMORY},
    tables::access,
    tables::definition::OpDefinition,
    tables::types::MemDesc,
};
use llopt_mlir::dialect::{EffectKind, EffectSink, EffectTarget, Resource};
use melior::ir::{OperationRef, Value, ValueLike, operation::OperationLike};

/// The attribute with the column, once tensor memory has been assigned.
pub const COLUMN_OFFSET: &str = "tensor_memory_col_offset";

/// Reads the operands that are in shared memory, asynchronously.
pub fn warp_group_dot<'c, 'a>(operation: WarpGroupDotOp<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    for (position, operand) in [operation.a(), operation.b()].into_iter().enumerate() {
        if MemDesc::of(operand.r#type()).is_some() {
            effects.add(
                EffectKind::Read,
                EffectTarget::Operand(position),
                Some(&PRODUCT_SHARED_MEMORY),
            );
        }
    }
}

/// Reads the operands, writes the accumulator, and reads it unless it is known to be overwritten.
pub fn tc_gen5_mma<'c, 'a>(operation: TCGen5MMAOp<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    product(operation.a(), operation.use_d(), effects);
}

/// As `tc_gen5_mma`, and reads the scales.
pub fn tc_gen5_mma_scaled<'c, 'a>(
    operation: TCGen5MMAScaledOp<'c, 'a>,
    effects: &mut EffectSink<'c, 'a>,
) {
    product(operation.a(), operation.use_d(), effects);
    let operation: OperationRef<'c, 'a> = operation.operation();
    let Some(definition) = OpDefinition::of(operation) else {
        return;
    };
    for scale in [4, 5] {
        for position in access::operand_positions(operation, definition, scale) {
            effects.add(
                EffectKind::Read,
                EffectTarget::Operand(position),
                Some(&TENSOR_MEMORY),
            );
        }
    }
}

fn product<'c, 'a>(a: Value<'c, 'a>, use_d: Value<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    if crate::check::infer::constant_bool(use_d) != Some(false) {
        effects.add(
            EffectKind::Read,
            EffectTarget::Operand(2),
            Some(&TENSOR_MEMORY),
        );
    }
    effects.add(
        EffectKind::Write,
        EffectTarget::Operand(2),
        Some(&TENSOR_MEMORY),
    );
    let shared = MemDesc::of(a.r#type()).is_some_and(MemDesc::is_shared);
    let memory: &'static Resource = if shared {
        &SHARED_MEMORY
    } else {
        &TENSOR_MEMORY
    };
    effects.add(EffectKind::Read, EffectTarget::Operand(0), Some(memory));
    effects.add(
        EffectKind::Read,
        EffectTarget::Operand(1),
        Some(&SHARED_MEMORY),
    );
}

/// As `ttg.local_alloc`, in tensor memory.
pub fn tmem_alloc<'c, 'a>(operation: TMEMAllocOp<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    let mutable = MemDesc::of(operation.result().r#type()).is_some_and(MemDesc::is_mutable);
    if !mutable && !operation.operation().has_attribute(COLUMN_OFFSET) {
        return;
    }
    effects.add(
        EffectKind::Allocate,
        EffectTarget::Result(0),
        Some(&TENSOR_MEMORY),
    );
    if operation.src().is_some() {
        effects.add(
            EffectKind::Write,
            EffectTarget::Result(0),
            Some(&TENSOR_MEMORY),
        );
    }
}
