//! Checks of the parameters of type kinds.

use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{Parameters, TypeSpec},
};

/// Checks the parameters of a type kind against each other.
pub fn parameters<'c>(
    _spec: &'static TypeSpec,
    _parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    Ok(())
}
