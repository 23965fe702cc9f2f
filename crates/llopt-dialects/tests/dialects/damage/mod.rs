//! Damaged files, and the requirements on a reader of them.
//!
//! The tests, the open-ended fuzzer (`examples/fuzz.rs`) and the targets of libFuzzer (`fuzz/`) share this. A damaged
//! file is one to four changes to a good one, each either blind (bits and ranges of bytes) or aware of the structure:
//! tokens, bracketed groups and elements of lists in text ([`text`]); sections and variable-length integers in
//! bytecode ([`bytecode`]). The blind ones find unchecked assumptions of a lexer or a table; the others get past
//! these, to the verifiers.
//!
//! A file follows from the corpus and one number, so a finding is reproduced by that number.
//!
//! The requirement ([`check`]) is an answer. Either diagnostics, at least one of them an error and none of them a bug
//! in llopt; or a module, and then its text and its bytecode are read again and print the same.

// Each user of this module needs a part of it.
#![allow(dead_code, reason = "shared by binaries that each use a part")]

pub mod bytecode;
pub mod text;

use llopt_mlir::diagnostic::{Diagnostic, render};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Module, operation::OperationLike},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A reproducible source of numbers (splitmix64: any seed is as good as any other).
pub struct Dice(u64);

impl Dice {
    /// The source of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound; zero when the bound is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    /// One of some items.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A short range within a length.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..(start + self.below(40)).min(length)
    }
}

/// A change that knows nothing of the format.
pub fn change_blindly(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    if bytes.is_empty() {
        return;
    }
    match dice.below(7) {
        0 => {
            let position = dice.below(bytes.len());
            bytes[position] ^= 1 << dice.below(8);
        }
        1 => {
            let position = dice.below(bytes.len());
            bytes[position] = *dice.pick(&[0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff]);
        }
        2 => {
            let range = dice.range(bytes.len());
            bytes.drain(range);
        }
        3 => {
            let range = dice.range(bytes.len());
            let copy = bytes[range].to_vec();
            let position = dice.below(bytes.len());
            bytes.splice(position..position, copy);
        }
        4 => bytes.truncate(dice.below(bytes.len())),
        _ => {
            let piece = other[dice.range(other.len())].to_vec();
            let range = dice.range(bytes.len());
            bytes.splice(range, piece);
        }
    }
}

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Assembly text.
    Text,
    /// Bytecode.
    Bytecode,
}

/// Good files in both forms.
pub struct Corpus {
    texts: Vec<Vec<u8>>,
    bytecodes: Vec<Vec<u8>>,
}

impl Corpus {
    /// The files of one form that can be read.
    ///
    /// # Panics
    /// When there are none, or one cannot be read from disk.
    pub fn new(files: &[PathBuf], form: Form) -> Self {
        let mut corpus = Self {
            texts: Vec::new(),
            bytecodes: Vec::new(),
        };
        let context = context();
        for path in files {
            let source =
                fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            match form {
                Form::Text => corpus.texts.push(source),
                Form::Bytecode => {
                    if let Ok(module) = parse(&context, &source, "corpus") {
                        corpus
                            .bytecodes
                            .push(module.as_operation().write_bytecode());
                    }
                }
            }
        }
        assert!(
            corpus.texts.len() + corpus.bytecodes.len() > 0,
            "none of {} files can be read",
            files.len()
        );
        corpus
    }

    /// The damaged file with a number.
    pub fn damaged(&self, form: Form, number: u64) -> Vec<u8> {
        let mut dice = Dice::new(number);
        let files = match form {
            Form::Text => &self.texts,
            Form::Bytecode => &self.bytecodes,
        };
        let (file, other): (&Vec<u8>, &Vec<u8>) = (dice.pick(files), dice.pick(files));
        damage(form, file, other, &mut dice)
    }
}

/// One to four changes to a file; pieces come from another.
pub fn damage(form: Form, file: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=dice.below(4) {
        match form {
            _ if dice.below(4) == 0 => change_blindly(&mut bytes, other, dice),
            Form::Text => bytes = text::change(&bytes, other, dice),
            Form::Bytecode => bytes = bytecode::change(&bytes, other, dice),
        }
    }
    bytes
}

/// The files of the dialects in a folder and below, sorted.
///
/// # Panics
/// When a folder cannot be listed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|extension| {
            ["ttir", "ttgir", "mlir"]
                .iter()
                .any(|name| extension == *name)
        }) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A context with all dialects.
///
/// # Panics
/// When the tables of the dialects are wrong.
pub fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).expect("the tables are right");
    let context = Context::new();
    context.enable_multi_threading(false);
    context.append_dialect_registry(&registry);
    context
}

/// Reads and verifies.
///
/// # Errors
/// What the reader said.
pub fn parse<'c>(
    context: &'c Context,
    source: &[u8],
    name: &str,
) -> Result<Module<'c>, Vec<Diagnostic>> {
    llopt_mlir::parse_module(context, source, name)
}

/// A reader's answer to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was refused with an error.
    Refused,
    /// It is bytecode on which MLIR's reader would have crashed; the error says only that.
    Deadly,
    /// It was taken for a module.
    Accepted,
}

/// Reads a damaged file and checks the answer.
///
/// # Errors
/// What is wrong with the answer.
pub fn check(context: &Context, source: &[u8]) -> Result<Verdict, String> {
    let module = match parse(context, source, "damaged") {
        Ok(module) => module,
        Err(diagnostics) => {
            let said = render(&diagnostics);
            return if said.contains("bug in llopt") || !said.contains("error: ") {
                Err(format!("a bad answer: {said}"))
            } else if said.ends_with("malformed bytecode\n") {
                Ok(Verdict::Deadly)
            } else {
                Ok(Verdict::Refused)
            };
        }
    };
    let printed = module.as_operation().to_string();
    let again = |source: &[u8], what: &str| -> Result<(), String> {
        let second = parse(context, source, "printed")
            .map_err(|said| format!("its own {what} is refused: {}", render(&said)))?;
        if second.as_operation().to_string() == printed {
            Ok(())
        } else {
            Err(format!("its own {what} is read as another module"))
        }
    };
    again(printed.as_bytes(), "text")?;
    again(&module.as_operation().write_bytecode(), "bytecode")?;
    Ok(Verdict::Accepted)
}
