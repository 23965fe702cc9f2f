//! Reads files of the dialects, prints them, reads that again and compares; also through bytecode. It checks a whole
//! folder of dumps at once.
//!
//! ```text
//! cargo run -p llopt-dialects --example roundtrip -- [--exact] FILE…
//! ```
//! `--exact` also compares with the text of the file, up to the names of values.

use melior::{Context, dialect::DialectRegistry, ir::operation::OperationLike};
use std::{collections::HashMap, env, fs, process::ExitCode, time::Instant};

fn main() -> ExitCode {
    let mut exact = false;
    let mut failures = 0;
    let mut count = 0;
    let start = Instant::now();
    for argument in env::args().skip(1) {
        if argument == "--exact" {
            exact = true;
            continue;
        }
        count += 1;
        if let Err(message) = check(&argument, exact) {
            failures += 1;
            println!("{argument}: {message}");
        }
    }
    println!(
        "{count} files, {failures} failures, {:.1?}",
        start.elapsed()
    );
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn check(path: &str, exact: bool) -> Result<(), String> {
    let source = fs::read(path).map_err(|error| error.to_string())?;
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).map_err(|error| error.to_string())?;
    let context = Context::new();
    context.append_dialect_registry(&registry);
    let parse = |source: &[u8], name: &str| {
        llopt_mlir::parse_module(&context, source, name).map_err(|diagnostics| {
            diagnostics
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        })
    };
    let first = parse(&source, path)?;
    let printed = first.as_operation().to_string();
    let second = parse(printed.as_bytes(), "printed")?;
    let again = second.as_operation().to_string();
    if printed != again {
        return Err(format!("not stable: {}", difference(&printed, &again)));
    }
    let bytecode = first.as_operation().write_bytecode();
    let third = parse(&bytecode, "bytecode")?;
    let from_bytecode = third.as_operation().to_string();
    if printed != from_bytecode {
        return Err(format!(
            "bytecode differs: {}",
            difference(&printed, &from_bytecode)
        ));
    }
    if exact {
        let text = String::from_utf8_lossy(&source);
        let (text, printed) = (numbered(&text), numbered(&printed));
        if text.trim_end() != printed.trim_end() {
            return Err(format!("not exact: {}", difference(&text, &printed)));
        }
    }
    Ok(())
}

/// The first lines that differ.
fn difference(left: &str, right: &str) -> String {
    left.lines()
        .zip(right.lines())
        .find(|(left, right)| left != right)
        .map_or("one is longer".to_owned(), |(left, right)| {
            format!("\n  - {left}\n  + {right}")
        })
}

/// The text with values numbered by the order of their definitions.
fn numbered(text: &str) -> String {
    let mut out = String::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut next = 0;
    for line in text.lines() {
        let code = line.trim_start();
        let all_define =
            code.starts_with("^bb") || code.starts_with("tt.func") || code.starts_with("partition");
        let left = if code.starts_with('%') {
            code.find(" = ")
                .map_or(0, |end| line.len() - code.len() + end)
        } else {
            0
        };
        let mut at = 0;
        while let Some(position) = line[at..].find('%') {
            out.push_str(&line[at..=at + position]);
            let start = at + position + 1;
            let end = line[start..]
                .find(|character: char| {
                    !(character.is_ascii_alphanumeric() || "_.$-".contains(character))
                })
                .map_or(line.len(), |end| start + end);
            let name = &line[start..end];
            let defines = all_define || start <= left || line[end..].starts_with(" = ");
            let number = match names.get(name) {
                Some(number) if !defines => *number,
                _ => {
                    next += 1;
                    names.insert(name.to_owned(), next);
                    next
                }
            };
            out.push_str(&number.to_string());
            at = end;
        }
        out.push_str(&line[at..]);
        out.push('\n');
    }
    out
}
