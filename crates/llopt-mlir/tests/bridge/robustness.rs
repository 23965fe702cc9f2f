//! Panics in hooks become diagnostics; malformed input gives an error and nothing worse.

use crate::{
    dialect::{SAMPLE, errors, parse},
    toy,
};
use llopt_mlir::{diagnostic, parse_module, pass};
use melior::ir::operation::OperationLike;

/// Runs a closure without its panic message in the test's output.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let value = run();
    std::panic::set_hook(hook);
    value
}

#[test]
fn panics_become_errors_on_the_operation() {
    let text = quietly(|| errors("\n  \"toy.panic\"() : () -> ()"));
    assert!(
        text.starts_with("test.mlir:2:3: error: 'toy.panic' op bug in llopt: verifier of a test\n"),
        "{text}"
    );
    let text = quietly(|| errors("toy.panic_in_parse"));
    assert_eq!(
        text,
        "test.mlir:1:1: error: custom op 'toy.panic_in_parse' bug in llopt: parser of a test\n"
    );
    let context = toy::context();
    pass::register_upstream_passes();
    let module = parse(
        &context,
        "%0 = \"toy.panic_in_fold\"() : () -> i32\n\"toy.panic_in_pattern\"(%0) : (i32) -> ()\n\"toy.panic_in_parse\"() : () -> ()",
    );
    let ((), diagnostics) = quietly(|| {
        diagnostic::capture(&context, || {
            let _ = pass::run_pipeline(module.as_operation(), "canonicalize", true);
            let _ = module.as_operation().to_string();
        })
    });
    let text = diagnostic::render(&diagnostics);
    assert!(text.contains("bug in llopt: folder of a test"), "{text}");
    assert!(text.contains("bug in llopt: pattern of a test"), "{text}");
}

#[test]
fn truncated_text_and_bytecode_are_errors() {
    let context = toy::context();
    let check = |source: &[u8]| {
        if let Err(diagnostics) = parse_module(&context, source, "t") {
            assert!(!diagnostics.is_empty());
        }
    };
    for end in (0..SAMPLE.len()).step_by(7) {
        check(&SAMPLE.as_bytes()[..end]);
    }
    let bytecode = parse(&context, SAMPLE).as_operation().write_bytecode();
    for end in (0..bytecode.len()).step_by(3) {
        check(&bytecode[..end]);
    }
    // One byte changed at a time. A crash of the reader makes its context unusable, so each attempt has its own.
    for position in (0..bytecode.len()).step_by(5) {
        let mut changed = bytecode.clone();
        changed[position] ^= 0x15;
        let context = toy::context();
        if let Err(diagnostics) = parse_module(&context, &changed, "t") {
            assert!(!diagnostics.is_empty());
        }
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    let deep = |open: &str, count: usize| format!("\"toy.x\"() {{a = {}", open.repeat(count));
    for open in ["[", "{a = ", "tuple<", "!toy.ptr<", "("] {
        let text = errors(&deep(open, 100_000));
        assert!(
            text.contains("error: brackets are nested deeper than 256 levels"),
            "{text}"
        );
        // Just below the limit the parser itself reports the error.
        let text = errors(&deep(open, 250));
        assert!(!text.contains("deeper"), "{text}");
    }
    // Brackets in strings and comments, and arrows, are not counted.
    let context = toy::context();
    let brackets = "(".repeat(1000);
    let source = format!("// {brackets}\nmodule attributes {{toy.a = \"{brackets}\"}} {{}}");
    assert!(parse(&context, &source).as_operation().verify());
}

#[test]
fn missing_properties_do_not_crash_printers() {
    // The generic form may omit what the custom form needs; the verifier reports it, and printing the operation with
    // the error must not crash.
    let text = errors("\"toy.func\"() ({}) : () -> ()");
    assert!(text.contains("'toy.func' op"), "{text}");
    let text = errors("%0 = \"toy.constant\"() : () -> i32");
    assert!(text.contains("'toy.constant' op"), "{text}");
    let text = errors("\"toy.call\"() : () -> ()");
    assert!(
        text.contains("requires a 'callee' symbol reference attribute"),
        "{text}"
    );
}
