//! Result types of ttng operations.

use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{InferInput, OpSpec},
};
use melior::ir::Type;

/// The types of the operands.
///
/// # Errors
/// None.
pub fn warp_group_dot_wait<'c>(
    _spec: &'static OpSpec,
    input: &InferInput<'c, '_>,
) -> Result<Vec<Type<'c>>, Complaint> {
    Ok((0..input.operand_count())
        .filter_map(|index| input.operand_type(index))
        .collect())
}

/// The type of the accumulator.
///
/// # Errors
/// When there is none.
pub fn warp_group_dot<'c>(
    _spec: &'static OpSpec,
    input: &InferInput<'c, '_>,
) -> Result<Vec<Type<'c>>, Complaint> {
    match input.operand_type(2) {
        Some(accumulator) => Ok(vec![accumulator]),
        None => Err(Complaint::new("requires an accumulator")),
    }
}
