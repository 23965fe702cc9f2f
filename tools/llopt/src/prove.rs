//! `llopt prove`: whether every movement of data in a kernel is right, for all data.

use anyhow::{Context, Result};
use clap::Args;
use llopt::Verdict;

use crate::kernel::{self, Kernel};
use crate::output::Output;

/// What `llopt prove` is told.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    kernel: Kernel,

    /// Print every op with its verdict as JSON
    #[arg(long)]
    json: bool,
}

/// Proves as told.
///
/// # Errors
/// The input cannot be read or compiled, an op is wrong, or an op has no proof.
pub fn run(arguments: Arguments) -> Result<()> {
    let (source, options) = arguments.kernel.read()?;
    let proof = llopt::prove(&source, &options).map_err(|error| kernel::report(error, &source))?;
    let mut text = String::new();
    if arguments.json {
        text = serde_json::to_string_pretty(&proof).context("cannot serialise the proof")?;
        text.push('\n');
    } else {
        let widest = |of: fn(&llopt::Obligation) -> usize| {
            proof.obligations.iter().map(of).max().unwrap_or(0)
        };
        let (places, ops) = (widest(|one| one.location.len()), widest(|one| one.op.len()));
        for one in &proof.obligations {
            let verdict = match &one.verdict {
                Verdict::Proven { runs: 1 } => "proven by 1 run".to_owned(),
                Verdict::Proven { runs } => format!("proven by {runs} runs"),
                Verdict::Wrong { .. } => "wrong".to_owned(),
                Verdict::Unsupported { .. } => "no proof".to_owned(),
            };
            text.push_str(&format!(
                "{:<places$}  {:<ops$}  {verdict}\n",
                one.location, one.op
            ));
        }
        let all = proof.obligations.len();
        text.push_str(&format!("proven: {} of {all}\n", proof.proven()));
    }
    Output::Standard.write(text.as_bytes())?;
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
