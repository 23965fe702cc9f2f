//! What makes an operation valid, and the types that follow from others.

pub(crate) mod encoding_verifier;
pub mod infer;
pub mod relation;
pub(crate) mod type_verifier;
pub mod verify;
