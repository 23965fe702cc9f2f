//! Child processes: every command is printed before it runs, and a failure names it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The command as a user would type it, quoted where the shell needs it.
pub fn shown(command: &Command) -> String {
    let word = |word: &OsStr| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), word(value?))));
    variables
        .chain([word(command.get_program())])
        .chain(command.get_args().map(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints the command, runs it, and fails unless it exits with status 0.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Prints the command and runs it; each line of its standard output is printed and also passed to `see`. Returns
/// whether it succeeded.
pub fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> Result<bool> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let output = child.stdout.take().context("standard output was piped")?;
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    // Bytes, not `lines()`: a test may print anything.
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        see(text.trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// Standard output of a quick query, without printing the command; fails on a non-zero exit.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something other than UTF-8", shown(command)))
}

/// Prints a heading, does the work, prints the time that it took.
pub fn phase<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let start = Instant::now();
    let result = work();
    println!("== {name}: {:.1} s", start.elapsed().as_secs_f64());
    result
}
