//! Result types of tt operations.
//!
//! Layouts follow by [`transfer`]; an operand without a layout has results without one.

use super::{ExpandDimsOp, ReduceOp, TransOp};
use crate::{
    check::infer::{carried, i32_array_slot, integer_slot, operand_tensor},
    check::relation,
    layout::transfer,
    tables::types::RankedTensor,
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{InferInput, OpSpec},
};
use melior::ir::Type;

type Inferred<'c> = Result<Vec<Type<'c>>, Complaint>;

/// The pointee.
///
/// # Errors
/// When the operand is not a pointer.
pub fn load<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let pointee = input.operand_type(0).and_then(relation::pointee);
    match pointee {
        Some(pointee) => Ok(vec![pointee]),
        None => Err(Complaint::new("operand #0 must be a pointer")),
    }
}

/// The element type of the operand.
///
/// # Errors
/// When the operand is not a tensor.
pub fn unsplat<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    Ok(vec![operand_tensor(input, 0)?.element()])
}

/// The operand with an extent of 1 inserted.
///
/// # Errors
/// An axis beyond the rank, or a layout that cannot be transferred.
pub fn expand_dims<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let source = operand_tensor(input, 0)?;
    let axis = integer_slot(input, ExpandDimsOp::AXIS, "axis")?;
    let mut shape = source.shape();
    let Some(position) = usize::try_from(axis)
        .ok()
        .filter(|position| *position <= shape.len())
    else {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for a result of rank {}",
            shape.len() + 1
        )));
    };
    let encoding = carried(source, |encoding| {
        transfer::expand_dims(encoding, &shape, axis)
    })?;
    shape.insert(position, 1);
    Ok(vec![RankedTensor::get(&shape, source.element(), encoding)])
}

/// Both halves of the operand.
///
/// # Errors
/// A last extent other than 2, or a layout that has the halves in different threads.
pub fn split<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let source = operand_tensor(input, 0)?;
    let shape = source.shape();
    let Some((2, half)) = shape.split_last() else {
        return Err(Complaint::new(format!(
            "the last dimension must have extent 2, but the shape is {shape:?}"
        )));
    };
    let encoding = carried(source, |encoding| transfer::split(encoding, &shape))?;
    let r#type = RankedTensor::get(half, source.element(), encoding);
    Ok(vec![r#type, r#type])
}

/// The operand with its dimensions permuted.
///
/// # Errors
/// An order that is not a permutation.
pub fn trans<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let source = operand_tensor(input, 0)?;
    let order = i32_array_slot(input, TransOp::ORDER, "order")?;
    let shape = source.shape();
    let permuted = permuted_shape(&shape, &order)?;
    let encoding = carried(source, |encoding| transfer::trans(encoding, &shape, &order))?;
    Ok(vec![RankedTensor::get(
        &permuted,
        source.element(),
        encoding,
    )])
}

/// A shape after a permutation of its dimensions.
///
/// # Errors
/// An order that is not a permutation.
pub fn permuted_shape(shape: &[i64], order: &[i32]) -> Result<Vec<i64>, Complaint> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let rank = i32::try_from(shape.len()).unwrap_or(i32::MAX);
    if sorted.into_iter().ne(0..rank) {
        return Err(Complaint::new(format!(
            "order {order:?} must be a permutation of 0 to {}",
            rank - 1
        )));
    }
    Ok(order
        .iter()
        .filter_map(|axis| shape.get(*axis as usize).copied())
        .collect())
}

/// The type of the accumulator.
///
/// # Errors
/// When there is none.
pub fn dot<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    match input.operand_type(2) {
        Some(accumulator) => Ok(vec![accumulator]),
        None => Err(Complaint::new("requires an accumulator")),
    }
}

/// Each operand without the reduced dimension; a scalar when none is left.
///
/// # Errors
/// An axis beyond the rank.
pub fn reduce<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let axis = integer_slot(input, ReduceOp::AXIS, "axis")?;
    (0..input.operand_count())
        .map(|index| {
            let source = operand_tensor(input, index)?;
            let mut shape = source.shape();
            let Some(position) = usize::try_from(axis)
                .ok()
                .filter(|position| *position < shape.len())
            else {
                return Err(Complaint::new(format!(
                    "axis {axis} is out of range for an operand of rank {}",
                    shape.len()
                )));
            };
            shape.remove(position);
            if shape.is_empty() {
                return Ok(source.element());
            }
            let encoding = carried(source, |encoding| transfer::slice(encoding, axis))?;
            Ok(RankedTensor::get(&shape, source.element(), encoding))
        })
        .collect()
}

/// The types of the operands.
///
/// # Errors
/// None.
pub fn scan<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    Ok((0..input.operand_count())
        .filter_map(|index| input.operand_type(index))
        .collect())
}

/// Elements of the source in the shape and layout of the indices.
///
/// # Errors
/// When an operand is not a tensor.
pub fn gather<'c>(_spec: &'static OpSpec, input: &InferInput<'c, '_>) -> Inferred<'c> {
    let source = operand_tensor(input, 0)?;
    let indices = operand_tensor(input, 1)?;
    Ok(vec![indices.with_element(source.element())])
}
