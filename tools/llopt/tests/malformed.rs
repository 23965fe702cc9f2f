//! Damaged text never crashes the command: it ends by itself, with status 0 or 1, and with status 1 it has printed an
//! error that names a place in the input.
//!
//! The damage is made from the examples, by a generator with a fixed seed, so that a failure can be repeated.
//! `LLOPT_DAMAGED` sets the number of texts; the default takes seconds.

use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");
const DEFAULT_COUNT: usize = 300;
/// Far more than any of these texts needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A multiplicative congruential generator: good enough to choose places, and the same on every machine.
struct Generator(u64);

impl Generator {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The words of a text: runs of letters, digits and a few signs, and all else one by one.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let wordy = |c: u8| c.is_ascii_alphanumeric() || b"_.$".contains(&c);
    text.chunk_by(|a, b| wordy(*a) && wordy(*b)).collect()
}

/// The text with one to three errors.
fn damaged(text: &[u8], generator: &mut Generator) -> Vec<u8> {
    const FRAGMENTS: &[&str] = &[
        "%",
        "#",
        "!",
        "<",
        ">",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        "=",
        "\"",
        "@",
        "-",
        "->",
        "0",
        "-1",
        "3",
        "99999999999999999999999",
        "1.0e400",
        "tensor<",
        "tensor<0xf32>",
        "memref<*xf32>",
        "!tt.ptr<",
        "#ttg.blocked<{",
        "#blocked",
        "dense<",
        "loc(",
        "\u{e9}",
        "\0",
        "{-#",
        "^bb7:",
        "tt.return",
        "arith.constant",
        "scf.yield",
        "unit",
        "i1",
        "i0",
        "f8E4M3FN",
        "index",
        "none",
    ];
    let mut words: Vec<Vec<u8>> = words(text).into_iter().map(<[u8]>::to_vec).collect();
    for _ in 0..=generator.below(3) {
        if words.is_empty() {
            break;
        }
        let at = generator.below(words.len());
        match generator.below(7) {
            0 => drop(words.remove(at)),
            1 => words.truncate(at),
            2 => words.insert(at, generator.pick(FRAGMENTS).as_bytes().to_vec()),
            3 => words[at] = generator.pick(FRAGMENTS).as_bytes().to_vec(),
            4 => {
                let other = generator.below(words.len());
                words.swap(at, other);
            }
            5 => {
                let end = (at + generator.below(40)).min(words.len());
                drop(words.drain(at..end));
            }
            _ => {
                let end = (at + generator.below(40)).min(words.len());
                let copy = words[at..end].to_vec();
                words.splice(at..at, copy);
            }
        }
    }
    words.concat()
}

/// The fault in the command's reaction to the text, if there is one.
fn complaint(arguments: &[&str], text: &[u8]) -> Option<String> {
    // A file, because a pipe would not be read while the child runs.
    let mut errors = tempfile::tempfile().expect("a file for what it says");
    let mut child = Command::new(LLOPT)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(errors.try_clone().expect("a second handle"))
        .spawn()
        .expect("the command starts");
    let mut input = child.stdin.take().expect("standard input is piped");
    // A command that ends before it has read everything closes the pipe, which is allowed.
    let _ = input.write_all(text);
    drop(input);
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().expect("the child can be ended");
            return Some("does not end".to_owned());
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut said = Vec::new();
    errors.rewind().expect("the file can be rewound");
    errors.read_to_end(&mut said).expect("the file can be read");
    let said = String::from_utf8_lossy(&said);
    let located = said.lines().any(|line| {
        line.split_once(": error: ").is_some_and(|(place, _)| {
            let numbers = place
                .rsplit(':')
                .take(2)
                .filter(|n| n.parse::<u64>().is_ok());
            numbers.count() == 2
        })
    });
    // A kernel that is still valid may need a device library that is missing here.
    let explained = located || said.contains("LLOPT_LIBDEVICE");
    match status.code() {
        Some(0) => None,
        Some(1) if explained && !said.contains("bug in llopt") => None,
        _ => Some(format!("{status}: {said}")),
    }
}

#[test]
fn damaged_text_gives_a_located_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cuda-90");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the examples are in the repository")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ttgir"))
        .collect();
    files.sort();
    let texts: Vec<Vec<u8>> = files
        .iter()
        .map(|path| fs::read(path).expect("an example can be read"))
        .collect();
    let count = env::var("LLOPT_DAMAGED").map_or(DEFAULT_COUNT, |n| n.parse().expect("a number"));
    let compile = ["compile", "-", "--target", "cuda:90"];
    for number in 0..count {
        let mut generator = Generator(number as u64 + 1);
        let text = generator.pick(&texts).clone();
        let text = damaged(&text, &mut generator);
        let arguments: &[&str] = if number % 2 == 0 { &compile } else { &["-"] };
        if let Some(complaint) = complaint(arguments, &text) {
            let kept = env::temp_dir().join(format!("llopt-damaged-{number}.mlir"));
            fs::write(&kept, &text).expect("the text can be kept");
            panic!(
                "llopt {} < {}: {complaint}",
                arguments.join(" "),
                kept.display()
            );
        }
    }
}
