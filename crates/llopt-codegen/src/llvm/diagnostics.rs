//! LLVM's diagnostics of a context, as values.
//!
//! LLVM reports through its context. Without a handler it prints errors and ends the process, which a library must
//! not do. Nearly all such errors are about inline assembly, whose text and constraints are the user's: a register
//! that does not exist, an instruction that the assembler does not know.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;

/// Collects the errors and warnings that LLVM reports on a context, for as long as it lives.
pub struct Diagnostics<'ctx> {
    context: &'ctx Context,
    said: Box<RefCell<Said>>,
}

/// The reports, in order.
#[derive(Default)]
struct Said {
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl<'ctx> Diagnostics<'ctx> {
    /// Installs a handler. It replaces the context's earlier one.
    #[must_use]
    pub fn of(context: &'ctx Context) -> Self {
        let said: Box<RefCell<Said>> = Box::default();
        let address = std::ptr::from_ref(&*said).cast_mut().cast::<c_void>();
        // SAFETY: the list lives on the heap until `drop`, which detaches the handler first.
        unsafe {
            LLVMContextSetDiagnosticHandler(context.as_ctx_ref(), Some(listen), address);
        }
        Self { context, said }
    }

    /// The errors so far; they are removed from the list.
    #[must_use]
    pub fn take_errors(&self) -> Vec<String> {
        std::mem::take(&mut self.said.borrow_mut().errors)
    }

    /// The warnings so far; they are removed from the list.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.said.borrow_mut().warnings)
    }
}

impl Drop for Diagnostics<'_> {
    fn drop(&mut self) {
        // SAFETY: the context outlives `self`.
        unsafe {
            LLVMContextSetDiagnosticHandler(self.context.as_ctx_ref(), None, std::ptr::null_mut());
        }
    }
}

extern "C" fn listen(info: LLVMDiagnosticInfoRef, said: *mut c_void) {
    // SAFETY: LLVM passes a live diagnostic and the address given above; the description is a
    // string of ours to free. Nothing here panics: the lists are borrowed for the push alone.
    unsafe {
        let is_error = match LLVMGetDiagInfoSeverity(info) {
            LLVMDiagnosticSeverity::LLVMDSError => true,
            LLVMDiagnosticSeverity::LLVMDSWarning => false,
            LLVMDiagnosticSeverity::LLVMDSRemark | LLVMDiagnosticSeverity::LLVMDSNote => return,
        };
        let description = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(description).to_string_lossy().into_owned();
        LLVMDisposeMessage(description);
        if let Ok(mut said) = (*said.cast::<RefCell<Said>>()).try_borrow_mut() {
            let list = match is_error {
                true => &mut said.errors,
                false => &mut said.warnings,
            };
            list.push(text);
        }
    }
}
