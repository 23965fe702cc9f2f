//! Helpers of the canonicalisation patterns of all dialects.

use llopt_mlir::{
    ir::{OperationExt, detached},
    rewrite::Rewriter,
};
use melior::ir::{Operation, OperationRef};

/// Replaces an operation by an equivalent one, which inherits the discardable attributes, since these describe the
/// results.
pub fn supersede<'c, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    with: Operation<'c>,
) {
    let kept = operation.discardable_attrs();
    let made = detached(&with);
    for (name, value) in kept {
        made.set_discardable_attr(name, value);
    }
    rewriter.replace_with(operation, with);
}
