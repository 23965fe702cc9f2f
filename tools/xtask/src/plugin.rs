//! `cargo xtask plugin`: the Python package, built, installed next to Triton, and tested.
//!
//! It is not part of `cargo xtask test`, because it downloads Triton (about 200 MB, once).

use std::path::PathBuf;

use anyhow::Result;

use crate::python::Packages;
use crate::{process, setup, workspace};

/// The program to run.
#[derive(clap::Args)]
pub struct Options {
    /// Run this Python program, with its arguments, instead of the tests
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<PathBuf>,
}

/// Builds, installs, and runs the tests or the program.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let packages = Packages::named("plugin")?;
    packages.ensure("triton", &["triton==3.6.0", "numpy"])?;
    packages.install(&workspace::root().join("tools/triton-llopt"))?;
    let mut python = packages.python();
    if options.program.is_empty() {
        python.args([
            "-m",
            "unittest",
            "discover",
            "-s",
            "tools/triton-llopt/tests",
        ]);
    } else {
        python.args(&options.program);
    }
    process::run(&mut python)
}
