//! Errors of layouts and of operations on layouts.

use core::fmt;

use crate::{Dim, MAX_BITS, MAX_DIMS};

/// Which end of the map a dimension belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The hardware side: register, lane, warp, block, offset.
    Input,
    /// The tensor side: dim0, dim1, …
    Output,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Input => "input",
            Side::Output => "output",
        })
    }
}

/// The reason why a layout cannot be built or an operation has no result.
///
/// Every variant names the dimension at fault and, if a single basis vector is at fault, that vector: `bit` counts
/// basis vectors inside their dimension from zero, so bit `i` is the image of the coordinate `2^i`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// A dimension appears twice on one side.
    DuplicateDim {
        /// The side.
        side: Side,
        /// The dimension that is repeated.
        dim: Dim,
    },
    /// An operation names a dimension that the layout does not have.
    UnknownDim {
        /// The side on which it was looked for.
        side: Side,
        /// The dimension.
        dim: Dim,
    },
    /// A dimension that the operation needs was not given.
    MissingDim {
        /// The side on which it is missing.
        side: Side,
        /// The dimension.
        dim: Dim,
    },
    /// A size that is zero or not a power of two.
    NotPowerOfTwo {
        /// The dimension.
        dim: Dim,
        /// Its size as given.
        size: u64,
    },
    /// One side would have more bits than a machine word holds.
    TooManyBits {
        /// The side.
        side: Side,
        /// The dimension at which the limit is passed.
        dim: Dim,
        /// The bits up to and including it.
        bits: u32,
    },
    /// One side would have more dimensions than a layout holds.
    TooManyDims {
        /// The side.
        side: Side,
        /// How many were given.
        count: usize,
    },
    /// A basis vector has not one entry per output dimension.
    BasisArity {
        /// The input dimension of the basis vector.
        dim: Dim,
        /// The index of the basis vector.
        bit: u32,
        /// The number of output dimensions.
        expected: usize,
        /// The number of entries found.
        found: usize,
    },
    /// An entry of a basis vector is not below the size of its output dimension.
    BasisOutOfRange {
        /// The input dimension of the basis vector.
        dim: Dim,
        /// The index of the basis vector.
        bit: u32,
        /// The output dimension.
        out_dim: Dim,
        /// The entry.
        value: u32,
        /// The size of the output dimension.
        size: u64,
    },
    /// A coordinate is not below the size of its dimension.
    CoordinateOutOfRange {
        /// The input dimension.
        dim: Dim,
        /// The coordinate.
        value: u32,
        /// The size of the dimension.
        size: u64,
    },
    /// No input reaches this output.
    NotSurjective {
        /// The output dimension.
        dim: Dim,
        /// The first bit whose unit vector is not in the image.
        bit: u32,
    },
    /// Two inputs have the same output.
    NotInjective {
        /// The input dimension.
        dim: Dim,
        /// The first basis vector that is a sum of earlier ones.
        bit: u32,
    },
    /// A basis vector maps to an output dimension to which only one register bit, alone, may map.
    NotSeparable {
        /// The input dimension of the basis vector.
        dim: Dim,
        /// The index of the basis vector.
        bit: u32,
        /// The output dimension.
        out_dim: Dim,
    },
    /// A size differs from the one that the operation requires.
    SizeMismatch {
        /// The side.
        side: Side,
        /// The dimension.
        dim: Dim,
        /// The size required, or the largest allowed.
        expected: u64,
        /// The size found.
        found: u64,
    },
    /// The total size changes in an operation that must keep it.
    TotalSizeMismatch {
        /// The side.
        side: Side,
        /// The total size as log2 before the operation.
        expected_log2: u32,
        /// The total size as log2 that was requested.
        found_log2: u32,
    },
    /// Two lists of dimensions order the same two names differently, so that they have no common
    /// order.
    OrderConflict {
        /// The side.
        side: Side,
        /// The name that the first list has earlier.
        first: Dim,
        /// The name that the second list has earlier.
        second: Dim,
    },
    /// A basis vector of the one layout is not in the image of the other.
    OutsideImage {
        /// The input dimension of the basis vector.
        dim: Dim,
        /// The index of the basis vector.
        bit: u32,
    },
    /// The tensor dimensions are not `dim0`, `dim1`, … in this order.
    NotTensorDims {
        /// The output dimension that is out of place.
        dim: Dim,
        /// The position at which it was found.
        position: usize,
    },
    /// A list of axes is not a permutation of all axes, or an axis is beyond the rank.
    BadAxis {
        /// The axis.
        axis: usize,
        /// The rank of the tensor.
        rank: usize,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LayoutError as E;
        match self {
            E::DuplicateDim { side, dim } => write!(f, "{side} dimension `{dim}` appears twice"),
            E::UnknownDim { side, dim } => write!(f, "the layout has no {side} dimension `{dim}`"),
            E::MissingDim { side, dim } => write!(f, "{side} dimension `{dim}` is missing"),
            E::NotPowerOfTwo { dim, size } => {
                write!(
                    f,
                    "dimension `{dim}` has size {size}, which is not a power of two"
                )
            }
            E::TooManyBits { side, dim, bits } => write!(
                f,
                "{side} dimension `{dim}` brings the layout to {bits} bits; at most {MAX_BITS} fit"
            ),
            E::TooManyDims { side, count } => {
                write!(f, "{count} {side} dimensions; at most {MAX_DIMS} fit")
            }
            E::BasisArity {
                dim,
                bit,
                expected,
                found,
            } => write!(
                f,
                "basis vector {bit} of `{dim}` has {found} of {expected} entries, one per output dimension"
            ),
            E::BasisOutOfRange {
                dim,
                bit,
                out_dim,
                value,
                size,
            } => write!(
                f,
                "basis vector {bit} of `{dim}` maps to {value} in `{out_dim}`, whose size is {size}"
            ),
            E::CoordinateOutOfRange { dim, value, size } => {
                write!(
                    f,
                    "coordinate {value} is outside of `{dim}`, whose size is {size}"
                )
            }
            E::NotSurjective { dim, bit } => write!(
                f,
                "not surjective: no input maps to `{dim}` = {}",
                1u64.checked_shl(*bit).unwrap_or(0)
            ),
            E::NotInjective { dim, bit } => write!(
                f,
                "not injective: basis vector {bit} of `{dim}` is a sum of the ones before it"
            ),
            E::NotSeparable { dim, bit, out_dim } => write!(
                f,
                "basis vector {bit} of `{dim}` maps to `{out_dim}`, which one register bit alone may do"
            ),
            E::SizeMismatch {
                side,
                dim,
                expected,
                found,
            } => {
                write!(
                    f,
                    "{side} dimension `{dim}` has size {found} where {expected} is required"
                )
            }
            E::TotalSizeMismatch {
                side,
                expected_log2,
                found_log2,
            } => write!(
                f,
                "the {side} dimensions hold 2^{expected_log2} points and cannot become 2^{found_log2}"
            ),
            E::OrderConflict {
                side,
                first,
                second,
            } => write!(
                f,
                "{side} dimensions `{first}` and `{second}` appear in opposite orders in the operands"
            ),
            E::OutsideImage { dim, bit } => write!(
                f,
                "basis vector {bit} of `{dim}` is not in the image of the layout that is inverted"
            ),
            E::NotTensorDims { dim, position } => write!(
                f,
                "output dimension {position} is `{dim}` where `dim{position}` is expected"
            ),
            E::BadAxis { axis, rank } => write!(
                f,
                "axis {axis} is repeated or outside of a tensor of rank {rank}"
            ),
        }
    }
}

impl core::error::Error for LayoutError {}
