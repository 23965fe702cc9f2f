//! A reader that closes its input, as `head` does: the command ends by itself, with a status and not by a signal.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// Runs the command, closes its output before it can be read, and returns its standard error.
fn with_closed_output(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(LLOPT)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    // The command may end before it has read everything.
    let _ = child
        .stdin
        .take()
        .expect("is piped")
        .write_all(input.as_bytes());
    let mut said = String::new();
    let errors = child.stderr.as_mut().expect("is piped");
    errors.read_to_string(&mut said).expect("is text");
    let status = child.wait().expect("ends");
    assert!(status.code().is_some(), "{status}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn nobody_reads_the_help() {
    assert_eq!(with_closed_output(&["opt", "--help"], ""), "");
}

#[test]
fn nobody_reads_a_module() {
    let functions: String = (0..5_000)
        .map(|number| format!("tt.func @f{number}() {{ tt.return }}\n"))
        .collect();
    with_closed_output(&["-"], &functions);
}

#[test]
fn nobody_reads_the_dialects() {
    with_closed_output(&["--show-dialects"], "");
}
