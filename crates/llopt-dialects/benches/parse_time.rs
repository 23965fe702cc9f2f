//! Reads files on request and says how long each took: the llopt side of `tools/bench/parse_time.py`, which sends the
//! requests, and measures Triton in between.
//!
//! A request is a line `context<TAB>times<TAB>file` on standard input, where `context` is `warm` (one context of the
//! process, in which such files were read before) or `fresh` (one made for each reading, within the time). The output
//! is a line on standard output: the nanoseconds of the fastest of that many readings, or `error: …`. A reading is
//! what `ir.parse_mlir_module` of Triton's Python bindings does: read the file, parse, verify, copy the module,
//! destroy the first. `all<TAB>times<TAB>` instead reads every file named so far that often, for a profiler to watch.

use llopt_dialects::register;
use melior::{Context, dialect::DialectRegistry, ir::Operation};
use std::{
    error::Error,
    fs,
    io::{self, BufRead as _, Write as _},
    time::{Duration, Instant},
};

fn main() -> Result<(), Box<dyn Error>> {
    let warm = context()?;
    let mut seen = Vec::new();
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let [mode, times, file] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("expected `context<TAB>times<TAB>file`, found `{line}`").into());
        };
        let times: u32 = times.parse()?;
        let outcome = match mode {
            "warm" => fastest(times, || in_context(&warm, file)),
            "fresh" => fastest(times, || in_fresh_context(file)),
            "all" => read_all(&warm, times, &seen),
            _ => return Err(format!("no such context: `{mode}`").into()),
        };
        match outcome {
            Ok(time) => writeln!(answers, "{}", time.as_nanos())?,
            Err(message) => {
                let message = message.to_string().replace('\n', "; ");
                writeln!(answers, "error: {message}")?;
            }
        }
        answers.flush()?;
        if mode != "all" && !seen.iter().any(|known| known == file) {
            seen.push(file.to_owned());
        }
    }
    Ok(())
}

/// A context as the library makes them: without threads.
fn context() -> Result<Context, Box<dyn Error>> {
    let registry = DialectRegistry::new();
    register(&registry)?;
    let context = Context::new();
    context.enable_multi_threading(false);
    context.append_dialect_registry(&registry);
    Ok(context)
}

fn fastest(
    times: u32,
    mut reading: impl FnMut() -> Result<Duration, Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..times {
        best = best.min(reading()?);
    }
    Ok(best)
}

fn in_context(context: &Context, file: &str) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    let copy = read(context, file)?;
    let time = begin.elapsed();
    drop(copy);
    Ok(time)
}

fn in_fresh_context(file: &str) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    let context = context()?;
    let copy = read(&context, file)?;
    let time = begin.elapsed();
    drop(copy);
    Ok(time)
}

fn read<'c>(context: &'c Context, file: &str) -> Result<Operation<'c>, Box<dyn Error>> {
    let source = fs::read(file)?;
    let module = llopt_mlir::parse_module(context, &source, file)
        .map_err(|diagnostics| llopt_mlir::diagnostic::render(&diagnostics))?;
    Ok((*module.as_operation()).clone())
}

fn read_all(context: &Context, times: u32, files: &[String]) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    for _ in 0..times {
        for file in files {
            read(context, file)?;
        }
    }
    Ok(begin.elapsed())
}
