//! What all blocks of a cluster may execute: reads of memory, and nothing else that shows.

use llopt_dialects::llvm::AssumeOp;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::OperationExt;
use melior::ir::OperationRef;

/// Whether an operation may do more to memory than read it. A promise does nothing, though it must not be moved.
pub(crate) fn does_more_than_read(operation: OperationRef<'_, '_>) -> bool {
    if AssumeOp::of(operation).is_some() {
        return false;
    }
    match operation.effects() {
        None => true,
        Some(effects) => effects.iter().any(|effect| effect.kind != EffectKind::Read),
    }
}
