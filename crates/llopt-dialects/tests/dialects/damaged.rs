//! The readers of text and bytecode on damaged files; a short run of what `cargo xtask fuzz` does
//! for longer. `LLOPT_MUTATIONS` sets how many files of each form, `LLOPT_SEED` the first.

use crate::damage;
use crate::damage::{Corpus, Form, Verdict};
use std::{env, fs, path::Path};

/// Reads damaged examples and counts the outcomes: rejected, crashed, accepted.
fn answers(form: Form, otherwise: u64) -> [u64; 3] {
    let number = |variable, otherwise| match env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files: Vec<_> = damage::files_below(&examples)
        .into_iter()
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() < 12_000))
        .collect();
    assert!(files.len() > 50, "{} examples", files.len());
    let corpus = Corpus::new(&files, form);
    let first = number("LLOPT_SEED", 1);
    let mut counts = [0; 3];
    let mut context = damage::context();
    for number in first..first + number("LLOPT_MUTATIONS", otherwise) {
        // Contexts keep all types and attributes that they have seen.
        if number % 250 == 0 {
            context = damage::context();
        }
        match damage::check(&context, &corpus.damaged(form, number)) {
            Ok(verdict) => counts[verdict as usize] += 1,
            Err(message) => panic!("{form:?} {number}: {message}"),
        }
    }
    counts
}

/// Some damage is none: text is still accepted now and then, and most often refused.
#[test]
fn damaged_text_is_refused_or_read_whole() {
    let counts = answers(Form::Text, 600);
    assert!(counts[Verdict::Accepted as usize] > 0, "{counts:?}");
    assert!(counts[Verdict::Refused as usize] > 0, "{counts:?}");
    assert_eq!(counts[Verdict::Deadly as usize], 0, "{counts:?}");
}

/// Damaged bytecode is mostly refused; what MLIR's reader would not survive is refused as well.
#[test]
fn damaged_bytecode_is_refused_or_read_whole() {
    let counts = answers(Form::Bytecode, 200);
    assert!(counts[Verdict::Refused as usize] > 0, "{counts:?}");
}
