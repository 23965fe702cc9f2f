//! `llopt explain`: the cost of a kernel's layouts, with reasons.

use anyhow::Result;
use clap::Args;

use crate::budget::Bounds;
use crate::kernel::{self, Kernel};
use crate::output::Output;

/// The arguments of `llopt explain`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    kernel: Kernel,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// Also compile the kernel with one stage more and less, and with twice and half as many warps, and print what each
    /// loop's schedule would be
    #[arg(long)]
    what_if: bool,
}

/// Explains according to the arguments.
///
/// # Errors
/// The input cannot be read or compiled.
pub fn run(arguments: Arguments, bounds: Bounds) -> Result<()> {
    let (source, options) = arguments.kernel.read(bounds)?;
    let explain = match arguments.what_if {
        true => llopt::explain_with_alternatives,
        false => llopt::explain,
    };
    let explanation = explain(&source, &options).map_err(|error| kernel::report(error, &source))?;
    if arguments.json {
        return Output::Standard.write_json(&explanation);
    }
    Output::Standard.write(explanation.to_string().as_bytes())
}
