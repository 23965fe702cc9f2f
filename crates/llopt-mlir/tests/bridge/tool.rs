//! MLIR's opt driver and language server over the test dialect, each run in a process of its own.

use crate::{dialect::SAMPLE, toy};
use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

/// The child process of [`opt`]: does nothing unless it is started from there.
#[test]
fn opt_driver_process() {
    let Ok(arguments) = std::env::var("LLOPT_TEST_OPT") else {
        return;
    };
    let arguments: Vec<String> = arguments.split('\n').map(str::to_owned).collect();
    llopt_mlir::pass::register_upstream_passes();
    let code = llopt_mlir::opt_main(&arguments, &toy::registry(), "toy optimiser\n");
    std::process::exit(code);
}

/// Runs the opt driver on a file; returns exit code, standard error and the output file.
fn opt(name: &str, source: &[u8], flags: &[&str]) -> (Option<i32>, String, Option<Vec<u8>>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("can make a folder");
    let (input, output) = (folder.join("input.mlir"), folder.join("output"));
    fs::write(&input, source).expect("can write");
    let _ = fs::remove_file(&output);
    let mut arguments = vec!["toy-opt".to_owned(), input.display().to_string()];
    arguments.push(format!("-o={}", output.display()));
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let run = Command::new(std::env::current_exe().expect("runs"))
        .args(["--exact", "tool::opt_driver_process", "--nocapture"])
        .env("LLOPT_TEST_OPT", arguments.join("\n"))
        .output()
        .expect("starts");
    let error =
        String::from_utf8_lossy(&run.stderr).replace(&input.display().to_string(), "input.mlir");
    (run.status.code(), error, fs::read(&output).ok())
}

/// The text of an output file without the empty line that MLIR's driver adds.
fn text(output: Option<Vec<u8>>) -> String {
    let output = output.expect("was written");
    String::from_utf8(output)
        .expect("is text")
        .trim_end()
        .to_owned()
}

#[test]
fn opt_driver_behaves_like_mlir_opt() {
    let (code, error, output) = opt("identity", SAMPLE.as_bytes(), &["--verify-roundtrip"]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert_eq!(text(output), SAMPLE.trim_end());

    let (code, _, bytecode) = opt("bytecode", SAMPLE.as_bytes(), &["--emit-bytecode"]);
    assert_eq!(code, Some(0));
    let bytecode = bytecode.expect("was written");
    let (code, _, output) = opt("from-bytecode", &bytecode, &[]);
    assert_eq!((code, text(output).as_str()), (Some(0), SAMPLE.trim_end()));

    let expected =
        "// expected-error@+1 {{expects parent op 'toy.func'}}\ntoy.return\n// -----\nmodule {}\n";
    let flags = ["--split-input-file", "--verify-diagnostics"];
    assert_eq!(opt("expected", expected.as_bytes(), &flags).0, Some(0));

    let (code, error, _) = opt(
        "passes",
        SAMPLE.as_bytes(),
        &["--canonicalize", "--cse", "--mlir-print-ir-after-all"],
    );
    assert_eq!(code, Some(0));
    assert!(error.contains("IR Dump After CSE"), "{error}");
}

#[test]
fn opt_driver_fails_with_a_located_error_and_no_output_file() {
    let (code, error, output) = opt("invalid", b"toy.func @f(", &[]);
    assert_eq!((code, output), (Some(1), None));
    assert!(error.starts_with("input.mlir:1:12: error: "), "{error}");
    let (code, error, output) = opt("deep", "(".repeat(300).as_bytes(), &[]);
    assert_eq!((code, output), (Some(1), None));
    assert_eq!(
        error,
        "input.mlir:1:257: error: brackets are nested deeper than 256 levels\n"
    );
    let (code, error, output) = opt("bad-bytecode", b"ML\xefR\x0d\x01\xff\xff\xff\xff\xff", &[]);
    assert_eq!((code, output), (Some(1), None));
    assert!(error.contains("error: "), "{error}");
}

/// The child process of the language server's test.
#[test]
fn language_server_process() {
    if std::env::var_os("LLOPT_TEST_LSP").is_none() {
        return;
    }
    // The test harness prints before it runs this, so the server must not mind: it writes only.
    let arguments = ["toy-lsp", "--lit-test", "--log=error"].map(str::to_owned);
    std::process::exit(llopt_mlir::lsp_main(&arguments, &toy::registry()));
}

#[test]
fn language_server_shows_errors_of_the_dialect() {
    let open = r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"test:///a.mlir","languageId":"mlir","version":1,"text":"toy.return"}}}"#;
    let messages = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":123,"rootPath":"mlir","capabilities":{},"trace":"off"}}"#,
        open,
        r#"{"jsonrpc":"2.0","id":3,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","method":"exit"}"#,
    ];
    let mut server = Command::new(std::env::current_exe().expect("runs"))
        .args(["--exact", "tool::language_server_process", "--nocapture"])
        .env("LLOPT_TEST_LSP", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let input = messages.join("\n// -----\n") + "\n";
    server
        .stdin
        .take()
        .expect("is piped")
        .write_all(input.as_bytes())
        .expect("reads");
    let output = server.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("'toy.return' op expects parent op 'toy.func'"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0));
}
