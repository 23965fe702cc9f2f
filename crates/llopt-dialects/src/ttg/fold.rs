//! Folds of ttg operations.

use super::{ConvertLayoutOp, LocalAllocOp, LocalLoadOp, MemDescReinterpretOp, MemDescTransOp};
use crate::{
    meaning::fold::{Constants, changed_type, resized},
    tables::types::MemDesc,
    tt::fold::{compose, is_identity},
};
use llopt_mlir::{dialect::Fold, ir::OperationExt};
use melior::ir::ValueLike;

/// The same layout, splats.
pub fn convert_layout<'c, 'a>(
    operation: ConvertLayoutOp<'c, 'a>,
    constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, resized)
}

/// A buffer that is never written and has the contents of another one like it, from which they were read.
pub fn local_alloc<'c, 'a>(
    operation: LocalAllocOp<'c, 'a>,
    _constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    let r#type = operation.result().r#type();
    let load = operation.src().and_then(LocalLoadOp::defining);
    match load {
        Some(load) if is_immutable(r#type) && load.src().r#type() == r#type => {
            Fold::value(load.src())
        }
        _ => Fold::None,
    }
}

/// A read of a buffer that has no other writer, in the layout in which it was written.
pub fn local_load<'c, 'a>(
    operation: LocalLoadOp<'c, 'a>,
    _constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    let source = LocalAllocOp::defining(operation.src())
        .filter(|alloc| is_immutable(alloc.result().r#type()))
        .and_then(LocalAllocOp::src);
    match source {
        Some(source)
            if operation.token().is_none() && source.r#type() == operation.result().r#type() =>
        {
            Fold::value(source)
        }
        _ => Fold::None,
    }
}

fn is_immutable(r#type: melior::ir::Type<'_>) -> bool {
    MemDesc::of(r#type).is_some_and(|buffer| !buffer.is_mutable())
}

/// The identity, a permutation of a permutation.
pub fn memdesc_trans<'c, 'a>(
    operation: MemDescTransOp<'c, 'a>,
    _constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    let (source, result) = (operation.src(), operation.result());
    let order = operation.order();
    if is_identity(&order) && source.r#type() == result.r#type() {
        return Fold::value(source);
    }
    if let Some(inner) = MemDescTransOp::defining(source)
        && let Some(both) = compose(&inner.order(), &order)
    {
        operation.set_order(&both);
        operation.operation().set_operand_value(0, inner.src());
        return Fold::InPlace;
    }
    Fold::None
}

/// The same type.
pub fn memdesc_reinterpret<'c, 'a>(
    operation: MemDescReinterpretOp<'c, 'a>,
    _constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    if operation.src().r#type() == operation.result().r#type() {
        return Fold::value(operation.src());
    }
    Fold::None
}
