//! `cargo xtask bench`: the cost of the build and of the start of the command on this machine.
//!
//! The scripts in `tools/bench` measure the speed and the quality of compilation, compared with Triton.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{process, setup, workspace};

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// Also time `cargo build` of everything from scratch, in a separate directory
    #[arg(long)]
    cold_build: bool,
}

/// The number of timed starts of the command.
const STARTS: usize = 41;

/// Measures and prints a line for each figure.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let mut lines = Vec::new();
    if options.cold_build {
        lines.push(format!("cold build: {:.0} s", cold_build()?.as_secs_f64()));
    }
    process::run(workspace::cargo().args([
        "build",
        "--locked",
        "--release",
        "--package=llopt-cli",
    ]))?;
    let llopt = workspace::target_directory()?.join("release/llopt");
    let size = fs::metadata(&llopt)?.len();
    lines.push(format!("release binary: {:.1} MB", size as f64 / 1e6));
    let mut start = Command::new(&llopt);
    start.arg("--version").stdout(Stdio::null());
    lines.push(format!(
        "`llopt --version`: {:.1} ms, median of {STARTS}",
        median_time(&mut start)?.as_secs_f64() * 1e3
    ));
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// `cargo build` from scratch; crates are downloaded first, so that the network is not measured.
fn cold_build() -> Result<Duration> {
    let directory = workspace::target_directory()?.join("cold-build");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    process::run(workspace::cargo().args(["fetch", "--locked"]))?;
    let begin = Instant::now();
    process::run(
        workspace::cargo()
            .args(["build", "--locked", "--target-dir"])
            .arg(&directory),
    )?;
    let time = begin.elapsed();
    fs::remove_dir_all(&directory)?;
    Ok(time)
}

fn median_time(command: &mut Command) -> Result<Duration> {
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let begin = Instant::now();
        let status = command
            .status()
            .with_context(|| format!("cannot start `{}`", process::shown(command)))?;
        times.push(begin.elapsed());
        if !status.success() {
            bail!("`{}` failed: {status}", process::shown(command));
        }
    }
    times.sort();
    Ok(times[STARTS / 2])
}
