//! Canonicalisation of amdg operations.

use super::{ConcatOp, ExtractSliceOp};
use crate::tables::types::RankedTensor;
use llopt_mlir::rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten};
use melior::ir::{OperationRef, ValueLike};

/// A slice that is one of the pieces.
pub const EXTRACT_SLICE: &[PatternSpec] = &[PatternSpec::new("slice-of-concat", slice_of_concat)];
/// A single piece.
pub const CONCAT: &[PatternSpec] = &[PatternSpec::new("concat-of-one", concat_of_one)];

fn slice_of_concat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let slice = ExtractSliceOp::of(operation).ok_or(NoMatch)?;
    let concat = ConcatOp::defining(slice.source()).ok_or(NoMatch)?;
    let whole = RankedTensor::of(concat.result().r#type()).ok_or(NoMatch)?;
    let piece = RankedTensor::of(slice.result().r#type()).ok_or(NoMatch)?;
    // Pieces lie in row-major order.
    let mut index = 0;
    let extents = whole.shape().into_iter().zip(piece.shape());
    for (offset, (whole, piece)) in slice.static_offsets().into_iter().zip(extents) {
        if piece == 0 || offset % piece != 0 {
            return Err(NoMatch);
        }
        index = index * (whole / piece) + offset / piece;
    }
    let sources = concat.sources();
    let source = usize::try_from(index)
        .ok()
        .and_then(|index| sources.get(index))
        .filter(|source| source.r#type() == piece.r#type())
        .ok_or(NoMatch)?;
    rewriter.replace(operation, &[*source]);
    Ok(())
}

fn concat_of_one<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let concat = ConcatOp::of(operation).ok_or(NoMatch)?;
    match concat.sources()[..] {
        [source] if source.r#type() == concat.result().r#type() => {
            rewriter.replace(operation, &[source]);
            Ok(())
        }
        _ => Err(NoMatch),
    }
}
