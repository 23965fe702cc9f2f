//! Floating-point formats in software.

pub(crate) mod directed;
pub(crate) mod float;
