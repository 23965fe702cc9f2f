//! Running a kernel in tile IR with the reference interpreter, without compiling it.

use llopt_sim::Launch;
use llopt_sim::reference::{Bounds, Limits};

use crate::own_thread::in_own_thread;
use crate::{Error, Source, input, isolation, session};

/// Why a kernel could not be run on the reference interpreter.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The source is not a valid module.
    #[error(transparent)]
    Source(#[from] Error),
    /// The interpreter stopped.
    #[error(transparent)]
    Run(#[from] llopt_sim::Error),
}

/// Runs the kernel of a module on whole tensors ([`llopt_sim::reference`]). Buffers among the arguments have the
/// contents that the kernel left, with bounds on the difference to compiled code.
///
/// # Errors
/// The source does not parse or verify; the launch does not fit; the interpreter does not know an operation; the
/// kernel makes an error.
pub fn run_reference(
    source: &Source,
    launch: &mut Launch,
    limits: Limits,
) -> Result<Bounds, ReferenceError> {
    let (source, mut run) = (source.clone(), launch.clone());
    // In a thread with enough stack for nested calls.
    let (run, ended) = in_own_thread(move || {
        let context = session::context()?;
        let module = input::read_to_interpret(&context, &source)?;
        isolation::lift_limits();
        let ended = llopt_sim::reference::run_within(&module, &mut run, limits);
        Ok((run, ended))
    })?;
    *launch = run;
    Ok(ended?)
}
