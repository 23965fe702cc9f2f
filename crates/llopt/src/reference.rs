//! Running a kernel in tile IR by the meaning of its operations, without compiling it.

use llopt_sim::Launch;
use llopt_sim::reference::Bounds;

use crate::{Error, Source, module, session};

/// Why a kernel could not be run on the reference interpreter.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The source is no valid module.
    #[error(transparent)]
    Source(#[from] Error),
    /// The interpreter stopped.
    #[error(transparent)]
    Run(#[from] llopt_sim::Error),
}

/// Runs the kernel of a module on whole tensors ([`llopt_sim::reference`]). Buffers among the
/// arguments come back as the kernel left them, with bounds on how far compiled code may be from it.
///
/// # Errors
/// The source does not parse or verify; the launch does not fit; the interpreter does not know an
/// operation; the kernel does what it must not do.
pub fn run_reference(source: &Source, launch: &mut Launch) -> Result<Bounds, ReferenceError> {
    let context = session::context()?;
    let module = module::parse(&context, source)?;
    Ok(llopt_sim::reference::run(&module, launch)?)
}
