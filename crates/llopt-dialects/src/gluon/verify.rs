//! Checks of gluon operations beyond their tables.

use super::{SetAutoLayoutOp, attribute, is_open};
use crate::tables::types::RankedTensor;
use llopt_mlir::diagnostic::Complaint;
use melior::ir::{Attribute, Value, ValueLike};

/// The operand's layout is unresolved; the result's is known, or unresolved in another way.
pub fn set_auto_layout(operation: SetAutoLayoutOp<'_, '_>) -> Result<(), Complaint> {
    fn encoding<'c>(value: Value<'c, '_>) -> Option<Attribute<'c>> {
        RankedTensor::of(value.r#type()).and_then(RankedTensor::encoding)
    }
    if !encoding(operation.src()).is_some_and(is_open) {
        return Err(Complaint::new("the layout of the operand must be open"));
    }
    if encoding(operation.result()).is_some_and(|result| attribute::AUTO_ENCODING.is(result)) {
        return Err(Complaint::new(
            "the layout of the result must not be `#gluon.auto_encoding`",
        ));
    }
    Ok(())
}
