//! Runs the tests under `lit-tests/` with LLVM's lit and the current build of `llopt`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tally::Tally;
use crate::{device, process, workspace};

/// Runs lit over the whole suite, or over the tests whose path contains `filter`.
///
/// Fails only if lit itself fails; failed tests are counted.
pub fn run(filter: Option<&str>) -> Result<Tally> {
    let target = workspace::target_directory()?;
    let llopt = target.join("debug/llopt");
    if !llopt.is_file() {
        bail!("`{}` is missing: build it first", llopt.display());
    }
    let results = target.join("lit-results.json");
    match fs::remove_file(&results) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut command = Command::new(workspace::llvm_prefix().join("bin/lit"));
    command
        .current_dir(workspace::root())
        .envs(device::variables()?)
        .args(["--verbose", "--order=lexical", "--output"])
        .arg(&results)
        .arg(format!("--param=llopt={}", llopt.display()))
        .arg(format!(
            "--param=llvm_prefix={}",
            workspace::llvm_prefix().display()
        ))
        .arg(format!(
            "--param=scratch={}",
            target.join("lit-tests").display()
        ));
    if let Some(filter) = filter {
        command.arg(format!("--filter={filter}"));
    }
    command.arg("lit-tests");
    process::run_watched(&mut command, |_| {})?;
    let text = fs::read_to_string(&results).context("lit wrote no results")?;
    tally(&serde_json::from_str(&text).context("lit wrote results that are not JSON")?)
}

/// Counts lit's results. A test whose feature is missing here is neither passed nor failed; it was printed.
fn tally(results: &Value) -> Result<Tally> {
    let tests = results["tests"]
        .as_array()
        .context("lit's results list no tests")?;
    let mut tally = Tally::default();
    for test in tests {
        match test["code"].as_str() {
            Some("PASS" | "XFAIL") => tally.passed += 1,
            Some("UNSUPPORTED" | "EXCLUDED" | "SKIPPED") => {}
            _ => tally.failed += 1,
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::tally;

    #[test]
    fn unknown_result_codes_count_as_failures() {
        let results = serde_json::json!({"tests": [
            {"code": "PASS"}, {"code": "XFAIL"}, {"code": "UNSUPPORTED"},
            {"code": "FAIL"}, {"code": "UNRESOLVED"}, {"code": "TIMEOUT"}, {},
        ]});
        let tally = tally(&results).expect("the list is there");
        assert_eq!((tally.passed, tally.failed), (2, 4));
    }
}
