//! What gluon operations check beyond their tables.

use super::{SetAutoLayoutOp, attribute};
use crate::types::RankedTensor;
use llopt_mlir::diagnostic::Complaint;
use melior::ir::ValueLike;

/// The operand's layout is open, the result's is not.
pub fn set_auto_layout(operation: SetAutoLayoutOp<'_, '_>) -> Result<(), Complaint> {
    let open = |value: melior::ir::Value<'_, '_>| {
        RankedTensor::of(value.r#type())
            .and_then(RankedTensor::encoding)
            .is_some_and(|encoding| {
                attribute::AUTO_ENCODING.is(encoding) || attribute::COALESCED_ENCODING.is(encoding)
            })
    };
    if !open(operation.src()) {
        return Err(Complaint::new("the layout of the operand must be open"));
    }
    if open(operation.result()) {
        return Err(Complaint::new("the layout of the result must not be open"));
    }
    Ok(())
}
