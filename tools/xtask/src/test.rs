//! `cargo xtask test`: set-up, unit tests, doc tests, lit tests, the examples on the simulator, and
//! one closing line.
//!
//! Everything is built once, in one profile and with one choice of features, so that the compiler under test in the
//! lit tests consists of the same objects as the unit tests.

use std::env;

use anyhow::{Result, bail};

use crate::tally::Tally;
use crate::{device, lit, process, setup, simulate, workspace};

/// The environment variable with the seed of property tests.
const SEED: &str = "PROPTEST_RNG_SEED";
/// The seed if it is not set, so that a change has the same result on every machine. Another number gives other
/// inputs, as does `cargo test`, which uses a new seed each time.
const SAME_SEED: &str = "2026";

/// The tests to run.
#[derive(clap::Args)]
pub struct Options {
    /// Only the lit tests whose path contains this; no cargo tests
    #[arg(long, value_name = "TEXT")]
    lit: Option<String>,
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
                    .env(SEED, env::var_os(SEED).unwrap_or_else(|| SAME_SEED.into()))
                    .envs(device::variables()?),
                |line| tally.add_cargo_line(line),
            )
        })?;
    }
    if !all_well && tally.failed == 0 {
        // A test binary that crashes prints no result, and neither does one that does not build.
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
