//! The validity of operations, and the inference of types.

pub(crate) mod encoding_verifier;
pub mod infer;
pub mod relation;
pub(crate) mod type_verifier;
pub mod verify;
