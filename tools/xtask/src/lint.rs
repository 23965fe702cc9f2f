//! `cargo xtask lint`: formatting, and clippy and rustdoc with warnings denied.

use anyhow::Result;

use crate::{process, setup, workspace};

/// Whether to fix what can be fixed.
#[derive(clap::Args)]
pub struct Options {
    /// Format instead of checking the format
    #[arg(long)]
    fix: bool,
}

/// Runs rustfmt, clippy and rustdoc over the whole workspace.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let mut format = workspace::cargo();
    format.args(["fmt", "--all"]);
    if !options.fix {
        format.arg("--check");
    }
    process::run(&mut format)?;
    process::run(workspace::cargo().args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "--deny=warnings",
    ]))?;
    // Without the binaries: the command and its library have the same name. With an example among the targets the features of
    // packages are those that clippy has checked them with.
    process::run(
        workspace::cargo()
            .args(["doc", "--locked", "--workspace", "--no-deps"])
            .args(["--lib", "--examples"])
            .env("RUSTDOCFLAGS", "--deny=warnings"),
    )
}
