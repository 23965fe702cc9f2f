//! Linear maps over F2 with named dimensions: the algebra, the questions asked of it, swizzle
//! synthesis, and the plan of a conversion.
//!
//! A *linear layout* says which element of a tensor lies at which place of the hardware. A place
//! is a tuple of coordinates, (register, lane, warp, block) or (offset, block); an element is a
//! tuple of indices (dim0, dim1, …). All sizes are powers of two, so both sides are vectors of
//! bits, and the map between them is linear over the field of two elements: addition is xor. A
//! layout is therefore known by its *bases*, the images of the places that have a single bit set,
//! and every question about it is a question about a small matrix of bits.
//!
//! The theory, with examples, is in [`book`].
//!
//! The crate knows no compiler, no vendor and no allocator-heavy container: matrices are packed in
//! machine words, layouts live inline, and nothing here panics on what a caller can write.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod banks;
mod dim;
mod error;
pub mod f2;
pub mod instruction;
mod layout;
mod limits;
mod list;
pub mod matrix_product;
mod permutation;
pub mod plan;
pub mod words;

/// The theory with worked examples.
#[doc = include_str!("../../../docs/linear-layouts.md")]
pub mod book {}

/// The examples of the read-me file.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

pub use dim::Dim;
pub use error::{LayoutError, Side};
pub use layout::{Coordinates, LinearLayout, from_flat_bases, out_bit, retain_bits};
pub use limits::{MAX_BITS, MAX_DIMS};
pub use list::InlineList;
pub use permutation::BitPermutation;
