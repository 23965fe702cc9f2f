//! Layouts for kernels that specify their own.

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding, Linear, Slice};
use llopt_layout::LinearLayout;

use crate::{Diagnostic, Error};

/// Each lane has a small block; the blocks of a warp's lanes are adjacent, and so are those of the warps. Lists have
/// one entry per dimension; `order` lists the dimensions, the fastest-varying first.
///
/// # Errors
/// Invalid input: lists of different lengths, a count that is not a power of two, an order that is not a permutation.
///
/// ```
/// let layout = llopt::build::blocked(&[1, 4], &[4, 8], &[4, 1], &[1, 0])?;
/// assert_eq!(layout.rank(), 2);
/// let error = llopt::build::blocked(&[3], &[32], &[4], &[0]).unwrap_err();
/// assert_eq!(error.class(), llopt::ErrorClass::InvalidInput);
/// # Ok::<(), llopt::Error>(())
/// ```
pub fn blocked(
    size_per_thread: &[u32],
    threads_per_warp: &[u32],
    warps_per_block: &[u32],
    order: &[u32],
) -> Result<Encoding, Error> {
    valid(Encoding::Blocked(Blocked {
        size_per_thread: size_per_thread.to_vec(),
        threads_per_warp: threads_per_warp.to_vec(),
        warps_per_cta: warps_per_block.to_vec(),
        order: order.to_vec(),
        cga_layout: CgaLayout::single(order.len()),
    }))
}

/// Any linear layout from `register`, `lane`, `warp` and `block` to `dim0`, `dim1`, ….
///
/// # Errors
/// Invalid input: a dimension is missing or out of place, the layout does not reach every element, or a basis vector
/// has two nonzero coordinates.
pub fn linear(layout: LinearLayout) -> Result<Encoding, Error> {
    valid(Encoding::Linear(Linear::new(layout).map_err(invalid)?))
}

/// The layout of the result of a reduction, along `dim`, of a tensor with layout `parent`; a tensor to be expanded
/// along `dim` has it, too.
///
/// # Errors
/// Invalid input: the parent has no such dimension, or no other one.
pub fn sliced(parent: &Encoding, dim: u32) -> Result<Encoding, Error> {
    valid(Encoding::Slice(Slice {
        dim,
        parent: Box::new(parent.clone()),
    }))
}

fn valid(encoding: Encoding) -> Result<Encoding, Error> {
    encoding.verify().map_err(invalid)?;
    Ok(encoding)
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(vec![Diagnostic::error("", error.to_string())])
}
