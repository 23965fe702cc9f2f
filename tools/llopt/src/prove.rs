//! `llopt prove`: whether every movement of data in a kernel is correct for all data.

use anyhow::Result;
use clap::Args;

use crate::budget::Bounds;
use crate::kernel::{self, Kernel};
use crate::output::Output;

/// The arguments of `llopt prove`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    kernel: Kernel,

    /// Print every op with its verdict as JSON
    #[arg(long)]
    json: bool,
}

/// Proves according to the arguments.
///
/// # Errors
/// The input cannot be read or compiled, an op is wrong, or an op has no proof.
pub fn run(arguments: Arguments, bounds: Bounds) -> Result<()> {
    let (source, options) = arguments.kernel.read(bounds)?;
    let proof = llopt::prove(&source, &options).map_err(|error| kernel::report(error, &source))?;
    if arguments.json {
        Output::Standard.write_json(&proof)?;
    } else {
        Output::Standard.write(proof.to_string().as_bytes())?;
    }
    let diagnostics = proof.diagnostics();
    for diagnostic in &diagnostics {
        eprintln!("{diagnostic}");
    }
    if diagnostics.is_empty() {
        Ok(())
    } else {
        Err(crate::Reported.into())
    }
}
