//! `llopt explain`: what a kernel's layouts cost, and why.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use llopt::{Options, Source, Target};

use crate::input;
use crate::output::Output;
use crate::plans::Plans;

/// What `llopt explain` is told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Kernel in tile IR, as text or bytecode; `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// GPU that code is made for, such as cuda:90 or hip:gfx942
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,

    /// Warps of a block, for input without layouts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    num_warps: Option<u32>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    plans: Plans,
}

/// Explains as told.
///
/// # Errors
/// The input cannot be read or compiled.
pub fn run(arguments: Arguments) -> Result<()> {
    let (name, contents) = input::read(&arguments.input)?;
    let mut options = Options::new(arguments.target);
    options.num_warps = arguments.num_warps;
    arguments.plans.ask(&mut options);
    let source = Source::new(name, contents);
    let explanation = match llopt::explain(&source, &options) {
        Ok(explanation) => explanation,
        Err(error) => {
            eprintln!("{}", error.with_source(&source));
            return Err(crate::Reported.into());
        }
    };
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(&explanation);
        json.context("cannot serialise the explanation")? + "\n"
    } else {
        explanation.to_string()
    };
    Output::Standard.write(text.as_bytes())
}
