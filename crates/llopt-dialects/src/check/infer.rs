//! Parts of type inference that several dialects share.

use crate::{
    gluon,
    layout::encoding::{Encoding, EncodingError},
    layout::transfer::{self, TransferError},
    tables::access,
    tables::types::{MemDesc, RankedTensor, context_of},
};
use llopt_mlir::{diagnostic::Complaint, dialect::InferInput};
use melior::ir::{Attribute, Type, Value, operation::OperationLike};

/// Whether types are the same up to the spelling of their layouts.
pub fn equal_up_to_layout(inferred: &[Type<'_>], given: &[Type<'_>]) -> bool {
    inferred.len() == given.len()
        && inferred
            .iter()
            .zip(given)
            .all(|(inferred, given)| same_up_to_layout(*inferred, *given))
}

/// Whether two types are the same up to the spelling of their layouts.
pub fn same_up_to_layout(left: Type<'_>, right: Type<'_>) -> bool {
    if left == right {
        return true;
    }
    if let (Some(left), Some(right)) = (RankedTensor::of(left), RankedTensor::of(right)) {
        let shape = left.shape();
        return shape == right.shape()
            && left.element() == right.element()
            && same_encoding(left.encoding(), right.encoding(), &shape);
    }
    if let (Some(left), Some(right)) = (MemDesc::of(left), MemDesc::of(right)) {
        let shape = left.shape();
        return shape == right.shape()
            && left.alloc_shape() == right.alloc_shape()
            && left.element() == right.element()
            && left.memory_space() == right.memory_space()
            && left.is_mutable() == right.is_mutable()
            && same_encoding(left.encoding(), right.encoding(), &shape);
    }
    false
}

/// Whether two encodings, or their absence, mean the same on a shape. A leading dimension that the
/// encoding does not have counts buffers.
pub fn same_encoding(
    left: Option<Attribute<'_>>,
    right: Option<Attribute<'_>>,
    shape: &[i64],
) -> bool {
    match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) if left == right => true,
        (Some(left), Some(right)) => {
            match (
                Encoding::from_attribute(left),
                Encoding::from_attribute(right),
            ) {
                (Ok(left), Ok(right)) => {
                    let skip = shape.len().saturating_sub(left.rank());
                    transfer::are_equal(&left, &right, &shape[skip..])
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// The encoding of a result by a rule for layouts. A tensor without a layout, or with an unresolved one, has a result
/// like that.
///
/// # Errors
/// A layout that is none, or that the rule cannot transfer.
pub fn carried<'c>(
    tensor: RankedTensor<'c>,
    rule: impl FnOnce(&Encoding) -> Result<Encoding, TransferError>,
) -> Result<Option<Attribute<'c>>, Complaint> {
    let Some(attribute) = tensor.encoding() else {
        return Ok(None);
    };
    if gluon::is_open(attribute) {
        return Ok(Some(attribute));
    }
    let encoding = Encoding::from_attribute(attribute).map_err(complaint)?;
    let result = rule(&encoding).map_err(complaint)?;
    Ok(Some(result.to_attribute(context_of(tensor.r#type()))))
}

/// The encoding of a tensor, if it has one; also `None` for an unresolved layout.
///
/// # Errors
/// When the attribute is not an encoding.
pub fn encoding_of(tensor: RankedTensor<'_>) -> Result<Option<Encoding>, EncodingError> {
    tensor
        .encoding()
        .filter(|encoding| !gluon::is_open(*encoding))
        .map(Encoding::from_attribute)
        .transpose()
}

/// An error about a layout, as a complaint.
pub fn complaint(error: impl std::error::Error) -> Complaint {
    Complaint::new(error.to_string())
}

/// An operand that has to be a tensor.
///
/// # Errors
/// When it is none.
pub fn operand_tensor<'c>(
    input: &InferInput<'c, '_>,
    index: usize,
) -> Result<RankedTensor<'c>, Complaint> {
    input
        .operand_type(index)
        .and_then(RankedTensor::of)
        .ok_or_else(|| Complaint::new(format!("operand #{index} must be a ranked tensor")))
}

/// An inherent attribute that has to be an integer.
///
/// # Errors
/// When it is absent or none.
pub fn integer_slot(input: &InferInput<'_, '_>, slot: usize, name: &str) -> Result<i64, Complaint> {
    input
        .slot(slot)
        .and_then(access::integer_value)
        .ok_or_else(|| Complaint::new(format!("requires attribute '{name}'")))
}

/// An inherent attribute that has to be an `array<i32: …>`.
///
/// # Errors
/// When it is absent or none.
pub fn i32_array_slot(
    input: &InferInput<'_, '_>,
    slot: usize,
    name: &str,
) -> Result<Vec<i32>, Complaint> {
    input
        .slot(slot)
        .and_then(access::i32_values)
        .ok_or_else(|| Complaint::new(format!("requires attribute '{name}'")))
}

/// The value of a boolean `arith.constant`.
pub fn constant_bool(value: Value<'_, '_>) -> Option<bool> {
    access::bool_value(constant_value(value)?)
}

/// The value of an `arith.constant`.
pub fn constant_value<'c>(value: Value<'c, '_>) -> Option<Attribute<'c>> {
    let operation = access::defining(value)?;
    if operation.name().as_string_ref().as_str() != Ok("arith.constant") {
        return None;
    }
    operation.attribute("value").ok()
}
