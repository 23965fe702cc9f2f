//! The dimensions that an op names, for code that knows the op's declared facts only.
//!
//! Ops of one kind name their dimensions alike: what reduces, scans, gathers or inserts a dimension has an `axis`, and
//! a transposition has an `order`, in which the entry of a dimension of the result is the dimension of the operand.

use llopt_mlir::ir::{AttributeExt, OperationExt};
use melior::ir::OperationRef;

/// The dimension along which an op works, or which it inserts.
#[must_use]
pub fn axis(operation: OperationRef<'_, '_>) -> Option<usize> {
    operation.attr("axis")?.as_int()
}

/// The dimension of the operand for each dimension of the result of a transposition.
#[must_use]
pub fn order(operation: OperationRef<'_, '_>) -> Option<Vec<usize>> {
    let order = operation.attr("order")?.as_integers()?;
    let dims = order.into_iter().map(usize::try_from);
    dims.collect::<Result<_, _>>().ok()
}
