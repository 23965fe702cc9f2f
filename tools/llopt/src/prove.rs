//! `llopt prove`: whether every movement of data in a kernel is correct for all data, and what is asynchronous is ordered.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use llopt::OrderRemoval;
use llopt::sim::Change;

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

    /// Prove only the order of asynchronous work, not the movement of data
    #[arg(long)]
    order: bool,

    /// Prove the order without each single wait, arrival, fence, barrier and commit, and print which are missed
    #[arg(long, conflicts_with = "order")]
    removals: bool,
}

/// Proves according to the arguments.
///
/// # Errors
/// The input cannot be read or compiled, an op is wrong, or an op has no proof.
pub fn run(arguments: Arguments, bounds: Bounds) -> Result<()> {
    let (source, options) = arguments.kernel.read(bounds)?;
    let reported = |error| kernel::report(error, &source);
    if arguments.removals {
        let removals = llopt::prove_removals(&source, &options).map_err(reported)?;
        return print_removals(&removals, arguments.json);
    }
    let proof = match arguments.order {
        true => llopt::prove_order(&source, &options),
        false => llopt::prove(&source, &options),
    };
    let proof = proof.map_err(reported)?;
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

/// Prints removals: a line for each, then how many are missed.
fn print_removals(removals: &[OrderRemoval], json: bool) -> Result<()> {
    if json {
        return Output::Standard.write_json(&removals);
    }
    let mut text = String::new();
    for OrderRemoval {
        location,
        op,
        change,
        hazard,
    } in removals
    {
        let change = match change {
            Change::Removed => "removed",
            Change::Weakened => "weakened",
        };
        let hazard = hazard.as_deref().unwrap_or("no hazard");
        writeln!(text, "{location}  {op}  {change}: {hazard}")?;
    }
    let found = removals
        .iter()
        .filter(|removal| removal.hazard.is_some())
        .count();
    writeln!(text, "missed: {found} of {}", removals.len())?;
    Output::Standard.write(text.as_bytes())
}
