//! `cargo xtask test`: set-up, unit tests, doc tests, lit tests, the examples on the simulator, and
//! one closing line.
//!
//! Everything is built once, in one profile and with one choice of features, so that the
//! compiler under test in the lit tests is made of the same objects as the unit tests.

use anyhow::{Result, bail};

use crate::{device, lit, process, setup, simulate, workspace};

/// Which tests to run.
#[derive(clap::Args)]
pub struct Options {
    /// Only the lit tests whose path contains this; no cargo tests
    #[arg(long, value_name = "TEXT")]
    lit: Option<String>,
}

/// How many tests passed and how many failed.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Tests that ran and succeeded.
    pub passed: u64,
    /// Tests that ran and failed, or that could not be run.
    pub failed: u64,
}

impl Tally {
    /// Adds what one closing line of a Rust test binary says; other lines count nothing.
    fn add_cargo_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let words: Vec<&str> = result.split([' ', ';']).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            match (pair[0].parse::<u64>(), pair[1]) {
                (Ok(count), "passed") => self.passed += count,
                (Ok(count), "failed") => self.failed += count,
                _ => {}
            }
        }
    }
}

/// Runs the tests; fails if any test failed or if there was none.
pub fn run(options: &Options) -> Result<()> {
    process::phase("set-up", setup::ensure)?;
    process::phase("build", || {
        process::run(workspace::cargo().args([
            "build",
            "--locked",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
        ]))
    })?;
    let mut tally = Tally::default();
    let mut all_well = true;
    if options.lit.is_none() {
        all_well &= process::phase("unit and doc tests", || {
            process::run_watched(
                workspace::cargo()
                    .args(["test", "--locked", "--workspace", "--no-fail-fast"])
                    .envs(device::variables()?),
                |line| tally.add_cargo_line(line),
            )
        })?;
    }
    if !all_well && tally.failed == 0 {
        // A test binary that dies prints no result, and neither does one that does not build.
        tally.failed = 1;
    }
    let lit = process::phase("lit tests", || lit::run(options.lit.as_deref()))?;
    tally.passed += lit.passed;
    tally.failed += lit.failed;
    if options.lit.is_none() {
        let llopt = workspace::target_directory()?.join("debug/llopt");
        let simulated = process::phase("examples against NumPy", || {
            simulate::run(&simulate::Cases {
                llopt: &llopt,
                targets: &[],
                only: "",
            })
        })?;
        tally.passed += simulated.passed;
        tally.failed += simulated.failed;
        let programs = process::phase("programs of the oracle against NumPy", || {
            simulate::programs(&llopt)
        })?;
        tally.passed += programs.passed;
        tally.failed += programs.failed;
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if !all_well || tally.failed > 0 {
        bail!("some tests failed");
    }
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn closing_lines_of_test_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            tally.add_cargo_line(line);
        }
        assert_eq!((tally.passed, tally.failed), (4, 2));
    }
}
