//! Whether tt operations may be executed although the program would not have executed them.

use super::{ElementwiseInlineAsmOp, ExternElementwiseOp};
use llopt_mlir::dialect::Speculation;

/// A pure call may.
pub fn extern_elementwise(operation: ExternElementwiseOp<'_, '_>) -> Speculation {
    when(operation.pure())
}

/// Pure assembly may.
pub fn elementwise_inline_asm(operation: ElementwiseInlineAsmOp<'_, '_>) -> Speculation {
    when(operation.pure())
}

fn when(pure: bool) -> Speculation {
    if pure {
        Speculation::Always
    } else {
        Speculation::Never
    }
}
