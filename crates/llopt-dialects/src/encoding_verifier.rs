//! Checks of encodings: of their parameters alone, and against the tensor that carries them.

use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{AttributeSpec, Parameters},
};
use melior::ir::{Attribute, Type};

/// Checks the parameters of an attribute kind against each other.
pub fn parameters<'c>(
    _spec: &'static AttributeSpec,
    _parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    Ok(())
}

/// Checks an attribute as the encoding of a tensor.
pub fn tensor<'c>(
    _spec: &'static AttributeSpec,
    _attribute: Attribute<'c>,
    _shape: &[i64],
    _element: Type<'c>,
) -> Result<(), Complaint> {
    Ok(())
}
