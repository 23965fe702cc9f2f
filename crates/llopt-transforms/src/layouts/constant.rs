//! Constants whose types change: the attribute with their elements has the type of the result.

use llopt_dialects::arith::ConstantOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, attr};
use melior::ir::{OperationRef, ValueLike};

/// Gives the attribute of a constant the type of its result; other ops stay as they are.
pub(super) fn retype_constant(operation: OperationRef<'_, '_>) {
    if ConstantOp::of(operation).is_none() {
        return;
    }
    let (Some(result), Some(value)) = (operation.result_value(0), operation.attr("value")) else {
        return;
    };
    let retyped = match value.splat_bits() {
        Some(bits) => attr::splat(result.r#type(), bits),
        None => value
            .dense_bits()
            .and_then(|bits| attr::dense(result.r#type(), &bits)),
    };
    if let Some(retyped) = retyped {
        operation.set_attr("value", retyped);
    }
}
