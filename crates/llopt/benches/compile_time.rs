//! Times compilations in one process: the llopt side of `tools/bench/compile_time.py`.
//!
//! Reads lines `target<TAB>file` from standard input. For each it compiles the file to the
//! target's assembly a few times and prints one JSON object: the file, the target, and either the
//! phases in milliseconds of every measured run, or the error. The text is read from disk before
//! the clock starts; parsing it is the first phase.

use std::io::{self, BufRead};
use std::time::Instant;

use llopt::{ArtifactKind, Compiler, Options, Source, Target};
use serde_json::{Value, json};

/// Runs that are not measured: the first touches code and tables for the first time.
const WARM_UP: usize = 1;
/// Runs that are measured.
const MEASURED: usize = 5;

fn main() -> anyhow::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((target, file)) = line.split_once('\t') else {
            anyhow::bail!("expected target and file with a tab between them, found `{line}`");
        };
        let outcome =
            measure(target, file).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!(
            "{}",
            json!({ "target": target, "file": file, "outcome": outcome })
        );
    }
    Ok(())
}

fn measure(target: &str, file: &str) -> anyhow::Result<Value> {
    let target = Target::parse(target)?;
    let source = Source::new(file, std::fs::read(file)?);
    let compiler = Compiler::new(Options::new(target));
    let kind = ArtifactKind::assembly_of(target);
    let mut runs = Vec::with_capacity(MEASURED);
    for run in 0..WARM_UP + MEASURED {
        let begin = Instant::now();
        let compilation = compiler.compile(&source, kind)?;
        let total = begin.elapsed().as_secs_f64() * 1e3;
        if run >= WARM_UP {
            runs.push(json!({ "total": total, "phases": compilation.timings }));
        }
    }
    Ok(json!({ "runs": runs }))
}
