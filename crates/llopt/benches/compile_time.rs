//! Times compilations in one process: the llopt side of `tools/bench/compile_time.py`.
//!
//! Reads lines `target<TAB>file` from standard input. For each it compiles the file to the target's assembly once to
//! warm up, then as often as the option `--runs` specifies (five times without it), and prints one JSON object: the
//! file, the target, and either the processor time of every run and of its phases, in milliseconds, or the
//! error. The text is read from disk before the clock starts; parsing it is the first phase.

use std::io::{self, BufRead};

use cpu_time::ProcessTime;
use llopt::{ArtifactKind, Compiler, Options, Source, Target};
use serde_json::{Value, json};

/// Runs that are not measured: the first executes code and reads tables for the first time.
const WARM_UP: usize = 1;
/// Runs that are measured without the option.
const MEASURED: usize = 5;

fn main() -> anyhow::Result<()> {
    // `cargo bench` adds options of its own.
    let mut arguments = std::env::args().skip_while(|argument| argument != "--runs");
    let measured = match arguments.nth(1) {
        Some(number) => number.parse()?,
        None => MEASURED,
    };
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((target, file)) = line.split_once('\t') else {
            anyhow::bail!("expected target and file with a tab between them, found `{line}`");
        };
        let outcome = measure(target, file, measured)
            .unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!(
            "{}",
            json!({ "target": target, "file": file, "outcome": outcome })
        );
    }
    Ok(())
}

fn measure(target: &str, file: &str, measured: usize) -> anyhow::Result<Value> {
    let target = Target::parse(target)?;
    let source = Source::new(file, std::fs::read(file)?);
    let compiler = Compiler::new(Options::new(target));
    let kind = ArtifactKind::assembly_of(target);
    let mut runs = Vec::with_capacity(measured);
    for run in 0..WARM_UP + measured {
        let begin = ProcessTime::now();
        let compilation = compiler.compile(&source, kind)?;
        let total = begin.elapsed().as_secs_f64() * 1e3;
        if run >= WARM_UP {
            let phases: Vec<Value> = compilation
                .timings
                .processor()
                .map(|(phase, time)| json!({ "phase": phase, "milliseconds": time.as_secs_f64() * 1e3 }))
                .collect();
            runs.push(json!({ "total": total, "phases": phases }));
        }
    }
    Ok(json!({ "runs": runs }))
}
