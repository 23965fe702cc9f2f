//! MLIR with llopt's dialects and passes.

use llopt_mlir::context_pool::{ContextPool, Taken};
use llopt_mlir::dialect::RegisterError;
use melior::Context;
use melior::dialect::DialectRegistry;

use crate::Error;

/// A context with all dialects. It runs in the thread that uses it and starts no threads.
pub(crate) fn context() -> Result<Context, Error> {
    let registry = registry().map_err(|error| Error::bug(error.to_string()))?;
    let context = Context::new();
    context.enable_multi_threading(false);
    context.append_dialect_registry(&registry);
    Ok(context)
}

/// The contexts of compilations. A context grows with each compilation by the size of its kernel's locations and
/// constants, mostly less than a megabyte.
static COMPILATIONS: ContextPool = ContextPool::new(32);

/// A context like [`context`]'s, new or from the pool, for one compilation.
pub(crate) fn shared_context() -> Result<Taken<'static>, Error> {
    COMPILATIONS.take(context)
}

/// Calls `work` with a context with all dialects, in its own thread: a failure there does not end the process.
///
/// # Errors
/// A bug in llopt, or no thread could be started.
pub fn with_context<T: Send + 'static>(
    work: impl FnOnce(&Context) -> T + Send + 'static,
) -> Result<T, Error> {
    crate::own_thread::in_own_thread(move || Ok(work(&context()?)))
}

fn registry() -> Result<DialectRegistry, RegisterError> {
    llopt_mlir::pass::register_upstream_passes();
    llopt_transforms::register();
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry)?;
    Ok(registry)
}

/// The optimiser: MLIR's `mlir-opt` with llopt's dialects and passes. `arguments[0]` is the name of the program.
/// Returns the exit status, zero on success; diagnostics go to standard error. A request for help, and a malformed
/// option, end the process.
///
/// # Errors
/// A bug in llopt, which MLIR could not report.
pub fn optimizer_main(arguments: Vec<String>) -> Result<i32, Error> {
    crate::own_thread::in_own_thread(move || {
        let registry = registry().map_err(|error| Error::bug(error.to_string()))?;
        let title = "llopt, an optimiser of tile kernels";
        Ok(llopt_mlir::opt_main(&arguments, &registry, title))
    })
}

/// The language server: MLIR's own with llopt's dialects, on the standard streams, until the client ends it.
/// `arguments[0]` is the name of the program. Returns the exit status, zero after an orderly end; a request for help,
/// and a malformed option, end the process.
///
/// # Errors
/// A bug in llopt, which MLIR could not report.
pub fn language_server_main(arguments: Vec<String>) -> Result<i32, Error> {
    crate::own_thread::in_own_thread(move || {
        let registry = registry().map_err(|error| Error::bug(error.to_string()))?;
        Ok(llopt_mlir::lsp_main(&arguments, &registry))
    })
}
