//! What MLIR calls to check the options of a pass and to run it.

use super::{PassRun, PassSpec};
use crate::{
    ffi::{self, LloptSink},
    guard::{guard, on_operation},
};
use melior::ir::OperationRef;
use mlir_sys::{MlirOperation, MlirStringRef};
use std::ffi::c_void;

pub(crate) unsafe extern "C" fn check_option(
    address: *const c_void,
    option: isize,
    value: MlirStringRef,
    error: LloptSink,
) -> bool {
    // SAFETY: C++ passes the address of a registered spec and a live string.
    let (spec, value) = unsafe { (&*address.cast::<PassSpec>(), ffi::text(value)) };
    let Some(option) = spec.options.get(option as usize) else {
        return true;
    };
    if option.kind.accepts(value) {
        return true;
    }
    let message = format!(
        "option `{}` of pass `{}` takes {}, not `{value}`",
        option.name,
        spec.argument,
        option.kind.describe()
    );
    // SAFETY: the sink is live during the hook.
    unsafe { ffi::llopt_string_append(error, ffi::string_ref(&message)) };
    false
}

pub(crate) unsafe extern "C" fn run(
    address: *const c_void,
    raw: MlirOperation,
    pass: LloptSink,
) -> bool {
    // SAFETY: C++ passes the address of a registered spec.
    let spec: &'static PassSpec = unsafe { &*address.cast::<PassSpec>() };
    guard(false, on_operation(raw), || {
        // SAFETY: MLIR keeps the operation alive during the pass.
        let operation = unsafe { OperationRef::from_raw(raw) };
        match (spec.run)(operation, &mut PassRun { raw: pass, spec }) {
            Ok(()) => true,
            Err(complaint) => {
                let _ = complaint.report_on(operation);
                false
            }
        }
    })
}
