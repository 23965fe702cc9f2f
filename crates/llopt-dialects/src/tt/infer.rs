//! Result types of tt operations.

use crate::types::RankedTensor;
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{InferInput, OpSpec},
};
use melior::ir::Type;

/// The element type of the operand.
///
/// # Errors
/// When the operand is no tensor.
pub fn unsplat<'c>(
    _spec: &'static OpSpec,
    input: &InferInput<'c, '_>,
) -> Result<Vec<Type<'c>>, Complaint> {
    Ok(vec![operand_tensor(input, 0)?.element()])
}

/// An operand that has to be a tensor.
fn operand_tensor<'c>(
    input: &InferInput<'c, '_>,
    index: usize,
) -> Result<RankedTensor<'c>, Complaint> {
    input
        .operand_type(index)
        .and_then(RankedTensor::of)
        .ok_or_else(|| Complaint::new(format!("operand #{index} must be a ranked tensor")))
}
