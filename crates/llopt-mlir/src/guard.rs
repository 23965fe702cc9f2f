//! No panic crosses into C++: [`guard`] catches it, reports `bug in llopt: …` at the hook's location, and returns the
//! hook's result for an error.

use crate::diagnostic;
use melior::ir::{Location, OperationRef};
use mlir_sys::{MlirLocation, MlirOperation};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "panic without a message"
    }
}

/// Runs a hook; a panic is passed to `report` as a message, and the result is `fallback`.
pub(crate) fn guard<T>(fallback: T, report: impl FnOnce(String), hook: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(value) => value,
        Err(payload) => {
            let message = format!("bug in llopt: {}", panic_text(&*payload));
            // A diagnostic handler is Rust code too and may panic as well.
            let _ = catch_unwind(AssertUnwindSafe(|| report(message)));
            // Dropping a foreign payload may panic as well; leaking it cannot.
            std::mem::forget(payload);
            fallback
        }
    }
}

/// Reports on an operation that is known to be live.
pub(crate) fn on_operation(raw: MlirOperation) -> impl FnOnce(String) {
    move |message| {
        // SAFETY: hooks run while their operation is live.
        let operation = unsafe { OperationRef::from_raw(raw) };
        let _ = diagnostic::Complaint::new(message).report_on(operation);
    }
}

/// Reports at a location.
pub(crate) fn at_location(raw: MlirLocation) -> impl FnOnce(String) {
    move |message| {
        // SAFETY: hooks run while the context of their location is live.
        let location = unsafe { Location::from_raw(raw) };
        let _ = diagnostic::error(location, message).emit();
    }
}
