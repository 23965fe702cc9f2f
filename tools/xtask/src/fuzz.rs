//! `cargo xtask fuzz`: damaged files for the readers, in any number.
//!
//! The tests read a few hundred. This builds the example `fuzz` of the crate `llopt-dialects` in release, which runs
//! worker processes, and passes it all arguments.

use anyhow::Result;

use crate::{process, setup, workspace};

/// The files to damage, the number of changes, and the folder for failures.
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
