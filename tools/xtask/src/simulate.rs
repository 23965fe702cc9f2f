//! Runs the examples, and the programs of the oracle, on llopt's simulated machine and compares the
//! results with NumPy.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::tally::Tally;
use crate::{device, process, workspace};

/// Debian's own Python, whose NumPy set-up installs; another Python may come first on the path.
const DEBIAN_PYTHON: &str = "/usr/bin/python3";

/// The examples to run, and the `llopt` to run them with.
pub struct Cases<'a> {
    /// The command under test.
    pub llopt: &'a Path,
    /// Only these targets; every one that has an example, if empty.
    pub targets: &'a [&'a str],
    /// Only the cases whose name matches this regular expression.
    pub only: &'a str,
}

/// Runs the cases on every target that has an example for them.
pub fn run(cases: &Cases<'_>) -> Result<Tally> {
    let targets = match cases.targets {
        [] => Vec::new(),
        some => vec!["--targets".to_owned(), some.join(",")],
    };
    script(
        Command::new(python())
            .args(["-B", "tools/gpu/simulate.py", "--llopt"])
            .arg(cases.llopt)
            .args(["--only", cases.only])
            .args(targets),
    )
}

/// Runs the stored programs of the oracle on the machine, optimised and not, and on the reference.
pub fn programs(llopt: &Path) -> Result<Tally> {
    script(
        Command::new(python())
            .args(["-B", "tools/oracle/programs.py", "--stored", "--llopt"])
            .arg(llopt),
    )
}

fn python() -> &'static str {
    if Path::new(DEBIAN_PYTHON).exists() {
        DEBIAN_PYTHON
    } else {
        "python3"
    }
}

/// Runs a script that ends with a closing line. `-B` writes no compiled Python into the source tree.
fn script(command: &mut Command) -> Result<Tally> {
    let mut tally = None;
    process::run_watched(
        command
            .current_dir(workspace::root())
            .envs(device::variables()?),
        |line| tally = closing_line(line).or(tally),
    )?;
    tally.context("the simulation ended without its closing line")
}

/// `N passed, M failed, …`, which the script prints last.
fn closing_line(line: &str) -> Option<Tally> {
    let (passed, rest) = line.split_once(" passed, ")?;
    let (failed, _) = rest.split_once(" failed")?;
    Some(Tally {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::closing_line;

    #[test]
    fn only_the_closing_line_counts() {
        let tally = closing_line("135 passed, 16 failed, 1 not simulated").expect("it closes");
        assert_eq!((tally.passed, tally.failed), (135, 16));
        assert!(closing_line("cuda:90 libm: agrees (0.5 s)").is_none());
    }
}
