//! llopt without a command: runs passes over MLIR text, as `mlir-opt` does.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::Reported;

/// The arguments of `llopt opt`, all of them MLIR's.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A file (`-` is standard input), passes and options
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub rest: Vec<OsString>,
}

/// Runs MLIR's driver with these arguments.
///
/// # Errors
/// The driver failed, and has reported the reason.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let mut all = vec!["llopt".to_owned()];
    for argument in arguments {
        let text = argument.to_str();
        all.push(text.context("an argument is not UTF-8")?.to_owned());
    }
    match llopt::optimizer_main(all) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Reported.into()),
        Err(error) => bail!("{}", error.to_string().trim_start_matches("error: ")),
    }
}
