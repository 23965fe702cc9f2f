//! `llopt prove`: whether every movement of data in a kernel is right, for all data.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use llopt::{Options, Source, Target, Verdict};

use crate::input;
use crate::output::Output;
use crate::plans::Plans;

/// What `llopt prove` is told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Kernel in tile IR, as text or bytecode; `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// GPU whose code is proven, such as cuda:90 or hip:gfx942
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,

    /// Warps of a block, for input without layouts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    num_warps: Option<u32>,

    /// Print every op with its verdict as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    plans: Plans,
}

/// Proves as told.
///
/// # Errors
/// The input cannot be read or compiled, an op is wrong, or an op has no proof.
pub fn run(arguments: Arguments) -> Result<()> {
    let (name, contents) = input::read(&arguments.input)?;
    let mut options = Options::new(arguments.target);
    options.num_warps = arguments.num_warps;
    arguments.plans.ask(&mut options);
    let source = Source::new(name, contents);
    let proof = match llopt::prove(&source, &options) {
        Ok(proof) => proof,
        Err(error) => {
            eprintln!("{}", error.with_source(&source));
            return Err(crate::Reported.into());
        }
    };
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
