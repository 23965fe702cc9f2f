//! Pieces of type inference that several dialects share.

use crate::access;
use melior::ir::{Type, Value, operation::OperationLike};

/// Whether types are the same up to the spelling of their layouts.
pub fn equal_up_to_layout(inferred: &[Type<'_>], given: &[Type<'_>]) -> bool {
    inferred == given
}

/// The value of a boolean `arith.constant`.
pub fn constant_bool(value: Value<'_, '_>) -> Option<bool> {
    let operation = access::defining(value)?;
    if operation.name().as_string_ref().as_str() != Ok("arith.constant") {
        return None;
    }
    access::bool_value(operation.attribute("value").ok()?)
}
