//! MLIR's own tools and parser, with the dialects and passes that Rust registers.

use crate::{
    diagnostic::{self, Diagnostic},
    dialect::install_hooks,
    ffi,
};
use melior::{Context, dialect::DialectRegistry, ir::Module};
use std::ffi::{CString, c_char, c_int};

/// Adds the upstream dialects that Triton's IR uses to a registry: arith, cf, gpu, llvm, math,
/// nvvm, rocdl, scf, ub (builtin is always there). Registration is cheap; a dialect is set up
/// when a context loads it, which the parser does on first use.
pub fn register_upstream_dialects(registry: &DialectRegistry) {
    // SAFETY: the registry is live.
    unsafe { ffi::llopt_register_upstream_dialects(registry.to_raw()) }
}

fn with_arguments(
    arguments: &[String],
    run: impl FnOnce(c_int, *const *const c_char) -> c_int,
) -> i32 {
    // An argument with a zero byte cannot come from a command line; it ends at the zero.
    let owned: Vec<CString> = arguments
        .iter()
        .map(|argument| {
            let end = argument.find('\0').unwrap_or(argument.len());
            CString::new(&argument[..end]).unwrap_or_default()
        })
        .collect();
    let mut pointers: Vec<*const c_char> = owned.iter().map(|text| text.as_ptr()).collect();
    let count = pointers.len() as c_int;
    pointers.push(std::ptr::null());
    run(count, pointers.as_ptr())
}

/// Runs MLIR's opt driver: parses, runs passes, verifies and prints as `mlir-opt` does.
///
/// `arguments[0]` is the program's name. Returns the exit code; `--help` and malformed options
/// end the process, as LLVM's command line library does. Call it once per process.
pub fn opt_main(arguments: &[String], registry: &DialectRegistry, tool_name: &str) -> i32 {
    install_hooks();
    with_arguments(arguments, |count, pointers| {
        // SAFETY: the arguments outlive the call, the registry is live.
        unsafe {
            ffi::llopt_opt_main(
                count,
                pointers,
                registry.to_raw(),
                ffi::string_ref(tool_name),
            )
        }
    })
}

/// Runs MLIR's language server on the standard streams. Returns the exit code.
pub fn lsp_main(arguments: &[String], registry: &DialectRegistry) -> i32 {
    install_hooks();
    with_arguments(arguments, |count, pointers| {
        // SAFETY: the arguments outlive the call, the registry is live.
        unsafe { ffi::llopt_lsp_main(count, pointers, registry.to_raw()) }
    })
}

/// Parses and verifies a module from text or bytecode. `name` is the file name for locations.
///
/// Text whose brackets nest deeper than 256 levels is rejected, because MLIR's parser recurses without a limit.
/// MLIR's bytecode reader does not validate its input, so on Linux a child process reads bytecode and returns the
/// module as text, which is parsed and verified here: a crash, an endless loop or a corrupted heap in the child is an
/// error here. On other systems a crash is caught where possible, and the context must then only be dropped.
///
/// # Errors
/// The diagnostics of the parser or the verifier, at least one of them an error.
pub fn parse_module<'c>(
    context: &'c Context,
    source: &[u8],
    name: &str,
) -> Result<Module<'c>, Vec<Diagnostic>> {
    let (module, diagnostics) = diagnostic::capture(context, || {
        let source = mlir_sys::MlirStringRef {
            data: source.as_ptr().cast(),
            length: source.len(),
        };
        // SAFETY: the source outlives the call; the bridge returns a module operation or null.
        unsafe {
            let operation = ffi::llopt_parse(context.to_raw(), source, ffi::string_ref(name), true);
            (!operation.ptr.is_null())
                .then(|| Module::from_raw(mlir_sys::mlirModuleFromOperation(operation)))
        }
    });
    module.ok_or(diagnostics)
}
