//! Vectors, matrices and subspaces over the field of two elements, each vector in one word.
//!
//! A vector of up to 32 components is a `u32`, component `i` in bit `i`; addition is xor. Row
//! operations on whole matrices are then a handful of machine instructions, so that nothing here
//! allocates and elimination of a 16-bit map takes tens of nanoseconds.
//!
//! ```
//! use llopt_layout::f2::{Matrix, Subspace};
//! // The columns 3 and 1: (x0, x1) -> (x0 ^ x1, x0).
//! let m = Matrix::from_columns(&[3, 1]);
//! assert_eq!(m.apply(2), 1);
//! assert_eq!(m.multiply(&m.inverse().unwrap()), Matrix::identity(2));
//! let u = Subspace::span(&[1, 2]);
//! let w = Subspace::span(&[3, 4]);
//! assert_eq!(u.intersection(&w), Subspace::span(&[3]));
//! assert_eq!(u.sum(&w).dimension(), 3);
//! ```

mod echelon;
mod matrix;
mod subspace;

pub use echelon::Echelon;
pub(crate) use echelon::{WORD, low_mask, ones};
pub use matrix::Matrix;
pub use subspace::Subspace;
