//! The rules that fields and shapes of all encodings obey.

use llopt_layout::{Dim, LayoutError, MAX_BITS, Side};

use super::EncodingError;

/// A size that [`verify_shape`] has passed, or a part of one.
pub(super) fn size_u32(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// Whether a shape has the right rank, and sizes that a layout can have each and together.
pub(super) fn verify_shape(rank: usize, shape: &[u64]) -> Result<(), EncodingError> {
    if shape.len() != rank {
        return Err(EncodingError::ShapeRank {
            expected: rank,
            found: shape.len(),
        });
    }
    let mut bits = 0;
    for (dim, &size) in shape.iter().enumerate() {
        if !size.is_power_of_two() || u32::try_from(size).is_err() {
            return Err(EncodingError::ShapeSize { dim, size });
        }
        bits += size.trailing_zeros();
        if bits as usize > MAX_BITS {
            let (side, dim) = (Side::Output, Dim::tensor(dim));
            return Err(LayoutError::TooManyBits { side, dim, bits }.into());
        }
    }
    Ok(())
}

/// The dimensions of a matrix (or a batch of them) with the columns fastest, or the rows.
pub(super) fn matrix_order(rank: usize, columns_first: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if !columns_first && rank >= 2 {
        order.swap(0, 1);
    }
    order
}

/// Whether a list has one entry per dimension, each a power of two.
pub(super) fn verify_counts(
    field: &'static str,
    counts: &[u32],
    rank: usize,
) -> Result<(), EncodingError> {
    if counts.len() != rank {
        return Err(EncodingError::FieldRank {
            field,
            expected: rank,
            found: counts.len(),
        });
    }
    match counts.iter().position(|count| !count.is_power_of_two()) {
        Some(dim) => Err(EncodingError::EntryNotPowerOfTwo {
            field,
            dim,
            value: counts[dim],
        }),
        None => Ok(()),
    }
}

/// Whether a number is a power of two.
pub(super) fn verify_power_of_two(field: &'static str, value: u32) -> Result<(), EncodingError> {
    if value.is_power_of_two() {
        Ok(())
    } else {
        Err(EncodingError::NotPowerOfTwo { field, value })
    }
}

/// An order as indices, if it names each dimension once.
pub(super) fn verify_order(order: &[u32], rank: usize) -> Result<Vec<usize>, EncodingError> {
    check_order(order, rank)?;
    Ok(order.iter().map(|&dim| dim as usize).collect())
}

/// Whether each dimension occurs once.
pub(super) fn check_order(order: &[u32], rank: usize) -> Result<(), EncodingError> {
    let each_once = (0..rank).all(|dim| order.iter().any(|&other| other as usize == dim));
    if each_once && order.len() == rank {
        Ok(())
    } else {
        Err(EncodingError::Order {
            order: order.to_vec(),
            rank,
        })
    }
}

/// Whether the rank lies in a range.
pub(super) fn verify_rank(
    encoding: &'static str,
    rank: usize,
    range: std::ops::RangeInclusive<usize>,
    allowed: &'static str,
) -> Result<(), EncodingError> {
    if range.contains(&rank) {
        Ok(())
    } else {
        Err(EncodingError::Rank {
            encoding,
            rank,
            allowed,
        })
    }
}
