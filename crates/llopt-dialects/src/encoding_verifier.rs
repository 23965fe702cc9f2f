//! Checks of encodings: of their parameters alone, and against the tensor that carries them.

use crate::encoding::Encoding;
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{AttributeSpec, Parameters},
};
use melior::ir::{Attribute, Type};

/// Checks the parameters of an attribute kind against each other.
///
/// # Errors
/// The first parameter of an encoding at fault.
pub fn parameters<'c>(
    spec: &'static AttributeSpec,
    parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    match Encoding::from_parameters(spec, parameters) {
        Ok(_) => Ok(()),
        Err(error) => Err(Complaint::new(error.to_string())),
    }
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
