//! Runs a case with every engine and compares the results.

use std::fmt;

use llopt::sim::{self, Argument};
use llopt::{Engines, ErrorClass, Options, Outcome, Source};

use crate::case::Case;

/// Whether the machine ran optimised code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The code of lowering.
    Unoptimized,
    /// After LLVM's O3.
    Optimized,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unoptimized => "before optimisation",
            Self::Optimized => "after optimisation",
        })
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All agree, and the sanitizer found nothing.
    Agreed,
    /// The target does not support an operation; the message names it.
    Unsupported(String),
    /// A failure.
    Failed(Failure),
}

/// The kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The module was rejected, or compilation hit a bug.
    Compilation(String),
    /// The reference interpreter stopped: the program has an error.
    Reference(String),
    /// The machine stopped.
    Stopped(Level, String),
    /// The sanitizer has a finding.
    Finding(Level, String),
    /// Results differ.
    Mismatch {
        /// The machine's run that differs.
        level: Level,
        /// Buffer and element.
        place: (usize, usize),
        /// The reference's value.
        expected: u64,
        /// The machine's value.
        found: u64,
        /// Elements of that buffer that differ.
        count: usize,
    },
}

impl Failure {
    /// The common part of two failures with the same cause: the kind, and the part of the message before the first
    /// specific detail.
    #[must_use]
    pub fn kind(&self) -> String {
        let words = |text: &str| -> String {
            let line = text.lines().next().unwrap_or_default();
            let tail = line.split("error: ").last().unwrap_or(line);
            tail.split(['(', '\'', '"', '#', '%'])
                .next()
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_ascii_digit())
                .take(48)
                .collect()
        };
        match self {
            Self::Compilation(text) => format!("compilation: {}", words(text)),
            Self::Reference(text) => format!("reference: {}", words(text)),
            Self::Stopped(level, text) => format!("stopped {level}: {}", words(text)),
            Self::Finding(level, text) => format!("finding {level}: {}", words(text)),
            Self::Mismatch { level, .. } => format!("mismatch {level}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compilation(text) => write!(f, "it does not compile: {text}"),
            Self::Reference(text) => write!(f, "the reference interpreter stopped: {text}"),
            Self::Stopped(level, text) => write!(f, "the machine stopped {level}: {text}"),
            Self::Finding(level, text) => write!(f, "the sanitizer found {level}: {text}"),
            Self::Mismatch {
                level,
                place: (buffer, element),
                expected,
                found,
                count,
            } => write!(
                f,
                "{level}, element {element} of buffer {buffer} is {found:#x} and should be \
                 {expected:#x}; {count} elements differ"
            ),
        }
    }
}

/// The most values of one op per thread.
const MOST_VALUES: u64 = 1 << 14;

/// Runs a case.
#[must_use]
pub fn check(case: &Case) -> Verdict {
    let mut options = Options::new(case.target);
    // Every operation rounds once, as in the reference.
    options.fp_fusion = false;
    options.line_info = false;
    options.reproducer_directory = None;
    options.verify_layouts = true;
    // Random layouts give a thread more values than realistic ones.
    options.budget.values = MOST_VALUES;
    if let Some([warps, blocks]) = case.grid {
        options.num_warps = Some(warps);
        options.num_ctas = Some(blocks);
    }
    let arguments: Vec<Argument> = case
        .buffers
        .iter()
        .map(|buffer| Argument::Buffer(buffer.data.bytes(buffer.number, buffer.length)))
        .collect();
    let source = Source::new("case.ttgir", case.text.as_bytes());
    let launches = vec![arguments];
    let run = llopt::run_everywhere(&source, &options, [1; 3], launches, Engines::ALL);
    let outcomes = match run {
        Ok(mut all) => all.pop().unwrap_or_default(),
        Err(error) if error.class() == ErrorClass::Unsupported => {
            return Verdict::Unsupported(error.to_string());
        }
        Err(error) => return Verdict::Failed(Failure::Compilation(error.to_string())),
    };
    let reference = match outcomes.reference {
        None => return Verdict::Agreed,
        Some(Ok(outcome)) => outcome,
        Some(Err(error @ sim::Error::Unsupported { .. })) => {
            return Verdict::Unsupported(format!("reference: {error}"));
        }
        Some(Err(error)) => return Verdict::Failed(Failure::Reference(error.to_string())),
    };
    let runs = [
        (Level::Unoptimized, outcomes.unoptimized),
        (Level::Optimized, outcomes.optimized),
    ];
    for (level, run) in runs {
        let outcome = match run {
            None => continue,
            Some(Ok(outcome)) => outcome,
            Some(Err(error @ sim::Error::Unsupported { .. })) => {
                return Verdict::Unsupported(format!("machine: {error}"));
            }
            Some(Err(error)) => return Verdict::Failed(Failure::Stopped(level, error.to_string())),
        };
        if let Some(finding) = outcome.report.findings.first() {
            return Verdict::Failed(Failure::Finding(level, finding.to_string()));
        }
        if let Some(failure) = compare(case, level, &reference, &outcome) {
            return Verdict::Failed(failure);
        }
    }
    Verdict::Agreed
}

fn compare(case: &Case, level: Level, expected: &Outcome, found: &Outcome) -> Option<Failure> {
    let all = expected.arguments.iter().zip(&found.arguments);
    for (place, (buffer, pair)) in case.buffers.iter().zip(all).enumerate() {
        let (Argument::Buffer(expected), Argument::Buffer(found)) = pair else {
            continue;
        };
        if expected == found {
            continue;
        }
        let width = buffer.number.bytes();
        let word = |bytes: &[u8]| -> u64 {
            bytes
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let different: Vec<(usize, u64, u64)> = expected
            .chunks(width)
            .zip(found.chunks(width))
            .enumerate()
            .map(|(i, (a, b))| (i, word(a), word(b)))
            .filter(|&(_, a, b)| !buffer.number.same(a, b))
            .collect();
        if let Some(&(element, expected, found)) = different.first() {
            return Some(Failure::Mismatch {
                level,
                place: (place, element),
                expected,
                found,
                count: different.len(),
            });
        }
    }
    None
}
