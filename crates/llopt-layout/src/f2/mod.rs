//! Vectors, bases and subspaces over the field of two elements, each vector in one machine word.
//!
//! A vector of up to 32 components is a `u32`, component `i` in bit `i`; addition is xor. Row
//! operations on whole matrices are then a handful of machine instructions, so that nothing here
//! allocates and elimination of a 16-bit map takes tens of nanoseconds.

mod echelon;

pub use echelon::Echelon;
pub(crate) use echelon::{WORD, low_mask, ones};
