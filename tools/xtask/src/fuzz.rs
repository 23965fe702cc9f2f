//! `cargo xtask fuzz`: damaged files for the readers, as many as one likes.
//!
//! The tests read a few hundred. This builds the example `fuzz` of the crate `llopt-dialects` in
//! release, which keeps worker processes at it, and hands it all arguments.

use anyhow::Result;

use crate::{process, setup, workspace};

/// What to damage, how often, and where to keep what was found.
#[derive(clap::Args)]
pub struct Options {
    /// Arguments of the fuzzer, for instance `--count 100000 --corpus FOLDER`; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds and runs the fuzzer; fails if it found anything.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let example = ["--package=llopt-dialects", "--example=fuzz"];
    process::run(
        workspace::cargo()
            .args(["run", "--locked", "--release"])
            .args(example)
            .arg("--")
            .args(&options.arguments),
    )
}
