//! What the canonicalisation patterns of all dialects share.

use llopt_mlir::{ir::OperationExt, rewrite::Rewriter};
use melior::ir::{Operation, OperationRef, operation::OperationLike};

/// Replaces an operation by another that does the same, which inherits the discardable
/// attributes: they say something about the results.
pub fn supersede<'c, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    with: Operation<'c>,
) {
    let kept = operation.discardable_attrs();
    // SAFETY: `with` lives until it is handed over below.
    let detached = unsafe { OperationRef::from_raw(with.to_raw()) };
    for (name, value) in kept {
        detached.set_discardable_attr(name, value);
    }
    rewriter.replace_with(operation, with);
}
