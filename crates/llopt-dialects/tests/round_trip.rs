//! Whole modules through the readers and writers of text and bytecode, and damaged ones into them.

use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Module, operation::OperationLike},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context
}

fn parse<'c>(context: &'c Context, source: &[u8], name: &str) -> Result<Module<'c>, String> {
    llopt_mlir::parse_module(context, source, name).map_err(|diagnostics| {
        let lines: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

/// The modules under `examples/`, of all targets.
fn examples() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "ttir" || extension == "ttgir")
            {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"),
        &mut files,
    );
    files.sort();
    assert!(files.len() > 50, "{} examples", files.len());
    files
}

#[test]
fn examples_survive_text_and_bytecode() {
    let context = context();
    for path in examples() {
        let name = path.to_string_lossy();
        let source = fs::read(&path).unwrap();
        let first = parse(&context, &source, &name).unwrap_or_else(|error| panic!("{error}"));
        let printed = first.as_operation().to_string();
        let second = parse(&context, printed.as_bytes(), &name).unwrap();
        assert_eq!(second.as_operation().to_string(), printed, "{name}");
        let third = parse(&context, &first.as_operation().write_bytecode(), &name).unwrap();
        assert_eq!(third.as_operation().to_string(), printed, "{name}");
    }
}

/// A reproducible source of numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        start..(start + self.below(40)).min(length)
    }

    /// One to three changes.
    fn damage(&mut self, source: &[u8], words: &[&str]) -> Vec<u8> {
        let mut damaged = source.to_vec();
        for _ in 0..=self.below(3) {
            match self.below(6) {
                0 => {
                    if let Some(last) = damaged.len().checked_sub(1) {
                        let position = self.below(last);
                        damaged[position] ^= 1 << self.below(8);
                    }
                }
                1 => {
                    let range = self.range(damaged.len());
                    damaged.drain(range);
                }
                2 => {
                    let range = self.range(damaged.len());
                    let copy = damaged[range].to_vec();
                    let position = self.below(damaged.len());
                    damaged.splice(position..position, copy);
                }
                3 => damaged.truncate(self.below(damaged.len())),
                _ => {
                    let word = words[self.below(words.len())].as_bytes();
                    let range = self.range(damaged.len());
                    damaged.splice(range, word.iter().copied());
                }
            }
        }
        damaged
    }
}

/// What the syntax of the dialects is made of, and numbers at the edges.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "4294967296",
    "9223372036854775807",
    "1.0e400",
    "0xFFFFFFFFFFFFFFFFF",
    "<",
    ">",
    "<>",
    "[",
    "]",
    "[]",
    "{",
    "}",
    "(",
    ")",
    "->",
    ":",
    ",",
    "=",
    "%0",
    "%arg0",
    "@f",
    "#ttg",
    "#ttg.blocked<{}>",
    "#ttg.shared_memory",
    "!tt.ptr<i32>",
    "!ttg.memdesc<",
    "tensor<4x",
    "tensor<?xf32>",
    "tensor<*xf32>",
    "i0",
    "i1",
    "f8E5M2",
    "none",
    "tt.load",
    "tt.trans",
    "ttg.convert_layout",
    "ttng.warp_group_dot",
    "amdg.concat",
    "tt.reduce",
    "attributes",
    "true",
    "\"tt.dot\"(",
    "array<i32: 1, 0>",
    "dense<",
    "loc(unknown)",
    "mutable",
    "CGALayout = [[0]]",
    "order = [1, 0]",
    "sizePerThread = [0]",
    "^bb0:",
    "default",
    "partition0(",
    "\0",
    "\u{fffd}",
];

/// Whatever comes in, the reader of text accepts it or says why not; what it accepts can be
/// printed. `LLOPT_MUTATIONS` sets how many inputs are tried, `LLOPT_SEED` which; the input in work
/// lies in a file.
#[test]
fn damaged_text_does_no_harm() {
    let accepted = try_damaged("text", |source, dice, _| dice.damage(source, WORDS));
    assert!(accepted > 0, "nothing was accepted");
}

/// The same for bytecode that ends early. MLIR's own reader believes the counts in bytecode, so
/// other damage is no test of ours.
#[test]
fn truncated_bytecode_does_no_harm() {
    let accepted = try_damaged("bytecode", |source, dice, context| {
        let module = parse(context, source, "example").unwrap();
        let mut bytecode = module.as_operation().write_bytecode();
        bytecode.truncate(dice.below(bytecode.len()));
        bytecode
    });
    assert_eq!(accepted, 0, "a part was taken for the whole");
}

/// Tries damaged examples; how many were accepted.
fn try_damaged(name: &str, damage: impl Fn(&[u8], &mut Dice, &Context) -> Vec<u8>) -> usize {
    let number = |variable, otherwise| match env::var(variable) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => otherwise,
    };
    let seed = number("LLOPT_SEED", 0x9E37_79B9_7F4A_7C15);
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{name}-{seed}"));
    let examples: Vec<_> = examples()
        .into_iter()
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() < 12_000))
        .map(|path| fs::read(path).unwrap())
        .collect();
    let mut dice = Dice(seed);
    let mut context = self::context();
    let mut accepted = 0;
    for round in 1..=number("LLOPT_MUTATIONS", 400) {
        // Contexts keep all types and attributes that they have seen.
        if round % 500 == 0 {
            context = self::context();
        }
        let source = &examples[dice.below(examples.len())];
        let damaged = damage(source, &mut dice, &context);
        fs::write(&work, &damaged).unwrap();
        if let Ok(module) = parse(&context, &damaged, "damaged") {
            let _ = module.as_operation().to_string();
            accepted += 1;
        }
    }
    fs::remove_file(&work).unwrap();
    accepted
}
