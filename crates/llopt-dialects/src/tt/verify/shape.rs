//! Operations that create or rearrange tensors.

use super::{Verified, elements, tensor};
use crate::{
    check::infer::complaint,
    check::infer::encoding_of,
    check::infer::same_encoding,
    layout::encoding::Encoding,
    layout::transfer,
    tables::access,
    tables::type_set::TypeSet,
    tables::types::RankedTensor,
    tables::types::class_of,
    tt::{
        BroadcastOp, CatOp, GatherOp, JoinOp, MakeRangeOp, ReshapeOp, SplatOp, SplitOp, TransOp,
        UnsplatOp,
    },
};
use llopt_mlir::diagnostic::Complaint;
use melior::ir::{OperationRef, ValueLike};

/// The result is a 1-D tensor of i32 with `end - start` elements.
pub fn make_range(operation: MakeRangeOp<'_, '_>) -> Verified {
    let (start, end) = (operation.start(), operation.end());
    if start >= end {
        return Err(Complaint::new(format!(
            "start, {start}, must be less than end, {end}"
        )));
    }
    let result = tensor(operation.result())?;
    let shape = result.shape();
    let [extent] = shape[..] else {
        return Err(Complaint::new(format!(
            "the result must have one dimension, but has shape {shape:?}"
        )));
    };
    if end - start != extent {
        return Err(Complaint::new(format!(
            "the range from {start} to {end} has {} elements, the result has {extent}",
            end - start
        )));
    }
    if class_of(result.element()) != TypeSet::I32 {
        return Err(Complaint::new(format!(
            "the elements of the result must be i32, not '{}'",
            result.element()
        )));
    }
    Ok(())
}

/// The operand is a scalar: a tensor operand would have more elements.
pub fn splat(operation: SplatOp<'_, '_>) -> Verified {
    match RankedTensor::of(operation.src().r#type()) {
        Some(source) if elements(&source.shape()) != 1 => Err(Complaint::new(format!(
            "the operand must be a scalar, not '{}'",
            source.r#type()
        ))),
        _ => Ok(()),
    }
}

/// The operand has one element.
pub fn unsplat(operation: UnsplatOp<'_, '_>) -> Verified {
    let shape = tensor(operation.src())?.shape();
    if elements(&shape) != 1 {
        return Err(Complaint::new(format!(
            "the operand must have exactly one element, but has shape {shape:?}"
        )));
    }
    Ok(())
}

/// Equal number of elements; both sides have a layout or neither; unless elements may be
/// reordered, the layouts hold every element in the same threads.
pub fn reshape(operation: ReshapeOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let result = tensor(operation.result())?;
    let (from, to) = (source.shape(), result.shape());
    if elements(&from) != elements(&to) {
        return Err(Complaint::new(format!(
            "the operand has {} elements, the result {}",
            elements(&from),
            elements(&to)
        )));
    }
    if source.encoding().is_some() != result.encoding().is_some() {
        return Err(Complaint::new(
            "operand and result must both have a layout, or neither",
        ));
    }
    if operation.allow_reorder() {
        return Ok(());
    }
    let (Some(before), Some(after)) = (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) else {
        return Ok(());
    };
    let expected = transfer::reshape(&before, &from, &to).map_err(complaint)?;
    if transfer::stays_in_threads(&expected, &to, &after, &to) {
        return Ok(());
    }
    expect_layout(&expected, &after, &to, operation.operation())
}

/// Reports the correct layout.
fn expect_layout(
    expected: &Encoding,
    found: &Encoding,
    shape: &[i64],
    operation: OperationRef<'_, '_>,
) -> Verified {
    if transfer::are_equal(expected, found, shape) {
        return Ok(());
    }
    let context = access::context(operation);
    Err(Complaint::new(format!(
        "the layout of the result moves elements; expected {}, got {}",
        expected.to_attribute(context),
        found.to_attribute(context)
    )))
}

/// Equal ranks; extents differ only where the operand has 1; the layouts hold every element in the same threads.
pub fn broadcast(operation: BroadcastOp<'_, '_>) -> Verified {
    let (source, result) = (tensor(operation.src())?, tensor(operation.result())?);
    let (from, to) = (source.shape(), result.shape());
    if from.len() != to.len() {
        return Err(Complaint::new(format!(
            "the operand has rank {}, the result {}",
            from.len(),
            to.len()
        )));
    }
    for (dimension, (before, after)) in from.iter().zip(&to).enumerate() {
        if *before != 1 && before != after {
            return Err(Complaint::new(format!(
                "dimension {dimension} has extent {before} and cannot become {after}; only 1 can be repeated"
            )));
        }
    }
    if source.encoding() == result.encoding() {
        return Ok(());
    }
    let (Some(before), Some(after)) = (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) else {
        return Ok(());
    };
    if transfer::stays_in_threads(&before, &from, &after, &to) {
        return Ok(());
    }
    let context = access::context(operation.operation());
    Err(Complaint::new(format!(
        "the layout of the result, {}, moves elements between threads; the operand has {}",
        after.to_attribute(context),
        before.to_attribute(context)
    )))
}

/// The result has the elements of both operands.
pub fn cat(operation: CatOp<'_, '_>) -> Verified {
    let from = elements(&tensor(operation.lhs())?.shape());
    let to = elements(&tensor(operation.result())?.shape());
    if to != 2 * from {
        return Err(Complaint::new(format!(
            "the result has {to} elements, the operands have {from} each"
        )));
    }
    Ok(())
}

/// The result has the operands' shape with a 2 appended; its halves have their layout.
pub fn join(operation: JoinOp<'_, '_>) -> Verified {
    let source = tensor(operation.lhs())?;
    let result = tensor(operation.result())?;
    let shape = source.shape();
    let mut expected = shape.clone();
    expected.push(2);
    if result.shape() != expected {
        return Err(Complaint::new(format!(
            "the result must have shape {expected:?}, but has {:?}",
            result.shape()
        )));
    }
    if result.element() != source.element() {
        return Err(Complaint::new(format!(
            "the result must have elements of type '{}', but has '{}'",
            source.element(),
            result.element()
        )));
    }
    match (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) {
        (None, None) => Ok(()),
        (Some(before), Some(after)) => {
            let half = transfer::split(&after, &expected).map_err(complaint)?;
            if transfer::are_equal(&half, &before, &shape) {
                Ok(())
            } else {
                let context = access::context(operation.operation());
                Err(Complaint::new(format!(
                    "the halves of the result have the layout {}, the operands have {}",
                    half.to_attribute(context),
                    before.to_attribute(context)
                )))
            }
        }
        _ => Err(Complaint::new(
            "operands and result must all have a layout, or none",
        )),
    }
}

/// The last dimension has extent 2.
pub fn split(operation: SplitOp<'_, '_>) -> Verified {
    let shape = tensor(operation.src())?.shape();
    match shape.last() {
        Some(2) => Ok(()),
        _ => Err(Complaint::new(format!(
            "the last dimension must have extent 2, but the shape is {shape:?}"
        ))),
    }
}

/// The order is a permutation and gives the shape of the result.
pub fn trans(operation: TransOp<'_, '_>) -> Verified {
    let from = tensor(operation.src())?.shape();
    let to = tensor(operation.result())?.shape();
    let permuted = crate::tt::infer::permuted_shape(&from, &operation.order())?;
    if permuted != to {
        return Err(Complaint::new(format!(
            "the result must have shape {permuted:?}, but has {to:?}"
        )));
    }
    Ok(())
}

/// Ranks agree; extents of the indices equal those of the source except along the axis; the
/// result has the shape and layout of the indices and the elements of the source.
pub fn gather(operation: GatherOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let indices = tensor(operation.indices())?;
    let result = tensor(operation.result())?;
    let (from, picked) = (source.shape(), indices.shape());
    if picked != result.shape() {
        return Err(Complaint::new(format!(
            "the indices have shape {picked:?}, the result {:?}",
            result.shape()
        )));
    }
    if !same_encoding(indices.encoding(), result.encoding(), &picked) {
        return Err(Complaint::new(
            "the result must have the layout of the indices",
        ));
    }
    if source.element() != result.element() {
        return Err(Complaint::new(format!(
            "the result must have elements of type '{}', but has '{}'",
            source.element(),
            result.element()
        )));
    }
    if from.len() != picked.len() {
        return Err(Complaint::new(format!(
            "the source has rank {}, the indices {}",
            from.len(),
            picked.len()
        )));
    }
    let axis = operation.axis();
    if axis < 0 || axis as usize >= from.len() {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for rank {}",
            from.len()
        )));
    }
    for (dimension, (source, picked)) in from.iter().zip(&picked).enumerate() {
        if dimension as i64 != axis && source != picked {
            return Err(Complaint::new(format!(
                "dimension {dimension} has extent {source} in the source and {picked} in the indices"
            )));
        }
    }
    Ok(())
}
