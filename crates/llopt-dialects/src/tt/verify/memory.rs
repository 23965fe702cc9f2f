//! Loads, stores and atomics.

use super::Verified;
use crate::{
    tables::type_set::TypeSet,
    tables::types::Pointer,
    tables::types::RankedTensor,
    tables::types::class_of,
    tables::types::element_or_self,
    tt::{AdvanceOp, AtomicRmwOp, LoadOp, MakeTensorPtrOp, RmwOp, StoreOp},
};
use llopt_mlir::diagnostic::Complaint;
use melior::ir::{Type, TypeLike, ValueLike};

/// The extents of the block: `boundaryCheck` lists dimensions of it.
fn boundary_check(pointer: Type<'_>, dimensions: &[i32]) -> Verified {
    let block = Pointer::of(pointer).and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let Some(block) = block else {
        return match dimensions.first() {
            Some(_) => Err(Complaint::new(
                "boundaryCheck needs a pointer to a tensor as operand #0",
            )),
            None => Ok(()),
        };
    };
    match dimensions.iter().find(|dimension| {
        usize::try_from(**dimension).map_or(true, |position| position >= block.rank())
    }) {
        Some(dimension) => Err(Complaint::new(format!(
            "boundaryCheck names dimension {dimension} of a block of rank {}",
            block.rank()
        ))),
        None => Ok(()),
    }
}

/// `boundaryCheck` and `padding` require a pointer to a tensor, with which there is no mask.
pub fn load(operation: LoadOp<'_, '_>) -> Verified {
    let pointer = operation.ptr().r#type();
    boundary_check(pointer, &operation.boundary_check())?;
    let through_block = class_of(pointer) == TypeSet::TENSOR_POINTER;
    if through_block && operation.mask().is_some() {
        return Err(Complaint::new(
            "a load through a pointer to a tensor takes no mask",
        ));
    }
    if operation.other().is_some() && operation.mask().is_none() {
        return Err(Complaint::new("`other` needs a mask beside it"));
    }
    Ok(())
}

/// As for `tt.load`.
pub fn store(operation: StoreOp<'_, '_>) -> Verified {
    boundary_check(operation.ptr().r#type(), &operation.boundary_check())
}

/// The update exists for the element type.
pub fn atomic_rmw(operation: AtomicRmwOp<'_, '_>) -> Verified {
    let element = element_or_self(operation.val().r#type());
    update_exists(operation.atomic_rmw_op(), element)
}

/// An error unless there is such an update for elements of a type.
pub(crate) fn update_exists(update: RmwOp, element: Type<'_>) -> Verified {
    let float = element.is_float();
    let fits = match update {
        RmwOp::Fadd => float,
        RmwOp::Exch => true,
        RmwOp::And
        | RmwOp::Or
        | RmwOp::Xor
        | RmwOp::Add
        | RmwOp::Max
        | RmwOp::Min
        | RmwOp::Umax
        | RmwOp::Umin => !float,
    };
    if !fits {
        return Err(Complaint::new(format!(
            "there is no update `{update}` for elements of type '{element}'"
        )));
    }
    Ok(())
}

/// One extent, stride and offset per dimension of the block; the order is a permutation.
pub fn make_tensor_ptr(operation: MakeTensorPtrOp<'_, '_>) -> Verified {
    let block = Pointer::of(operation.result().r#type())
        .and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let Some(block) = block else {
        return Ok(());
    };
    let rank = block.rank();
    for (what, count) in [
        ("shape", operation.shape().len()),
        ("strides", operation.strides().len()),
        ("offsets", operation.offsets().len()),
        ("order", operation.order().len()),
    ] {
        if count != rank {
            return Err(Complaint::new(format!(
                "`{what}` has {count} entries, the block has rank {rank}"
            )));
        }
    }
    crate::tt::infer::permuted_shape(&block.shape(), &operation.order()).map(|_| ())
}

/// One offset per dimension of the block.
pub fn advance(operation: AdvanceOp<'_, '_>) -> Verified {
    let block = Pointer::of(operation.result().r#type())
        .and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let rank = block.map_or(0, RankedTensor::rank);
    let count = operation.offsets().len();
    if count != rank {
        return Err(Complaint::new(format!(
            "has {count} offsets, the block has rank {rank}"
        )));
    }
    Ok(())
}
