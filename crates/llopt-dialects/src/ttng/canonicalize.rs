//! Canonicalisation of ttng operations.

use super::{TMEMStoreOp, verify};
use crate::ttg::ConvertLayoutOp;
use llopt_mlir::{
    ir::OperationExt,
    rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten},
};
use melior::ir::OperationRef;

/// Operations that take one layout as well as another.
pub const OF_CONVERT: &[PatternSpec] =
    &[PatternSpec::new("tmem-store-of-convert", store_convert).at(TMEMStoreOp::NAME)];

/// A layout that the instructions move need not be converted to another one that they move.
fn store_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let store = TMEMStoreOp::of(operation).ok_or(NoMatch)?;
    let convert = ConvertLayoutOp::defining(store.src()).ok_or(NoMatch)?;
    let (source, buffer) = (convert.src(), store.dst());
    verify::movable("value", source, buffer, operation).map_err(|_| NoMatch)?;
    let position = (0..operation.operand_values().count())
        .find(|index| operation.operand_value(*index) == Some(store.src()))
        .ok_or(NoMatch)?;
    rewriter.modify(operation, || operation.set_operand_value(position, source));
    Ok(())
}
