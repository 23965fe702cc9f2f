//! Unusual kernels: a valid one with a few changes to its text.
//!
//! A change respects the structure, since a text with a random byte rarely passes the parser: it replaces an element
//! type or an extent everywhere, changes a number in an attribute, renames a function, changes the calls between
//! functions, inserts inline assembly, replaces an operation by one of the same form, removes or repeats a line, or
//! expands aliases.
//!
//! The result may have any meaning. The property under test is that every input has an answer within the budget: a
//! result, or an error that blames the input or this release ([`answer`]). The programs of
//! [`generate`](crate::generate) test whether answers are correct.

use fastrand::Rng;
use llopt::{ArtifactKind, Compiler, ErrorClass, Options, Source, Target};

/// Element types that may replace one another.
const TYPES: [&str; 17] = [
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f8E5M2",
    "f8E4M3FN",
    "f8E5M2FNUZ",
    "f8E4M3FNUZ",
    "index",
    "i7",
    "i128",
    "!tt.ptr<f32>",
];

/// Numbers at the limits of programs.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "31",
    "32",
    "64",
    "127",
    "1024",
    "65536",
    "1048576",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-1",
];

/// Names with a special meaning.
const NAMES: [&str; 14] = [
    "llvm.memcpy",
    "llvm.used",
    "llvm.global_ctors",
    "memcpy",
    "__nv_expf",
    "__ocml_exp_f32",
    "global_smem",
    "vprintf",
    "k ret;",
    "\u{e9}\u{65e5}",
    "k(",
    "@x",
    "0",
    "k\\0A.visible",
];

/// Texts of inline assembly, and constraints.
const ASSEMBLY: [&str; 14] = [
    "",
    "mov.b32 $0, $1;",
    "v_mov_b32 $0, $1",
    ".include \\22/etc/passwd\\22",
    ".fill 4000000000, 8, 0",
    ".p2align 63",
    ".rept 100000000\\0As_nop 0\\0A.endr",
    "} .entry evil() { ret; } {",
    "garbage",
    "$9",
    "${0:z} ${:uid}",
    "$(",
    "{ .reg .b32 t; mov.b32 t, $1; mov.b32 $0, t; }",
    "/* \\22",
];
const CONSTRAINTS: [&str; 16] = [
    "=r,r",
    "=v,v",
    "=m,m",
    "=r,0",
    "=r,r,r",
    "={r1},r",
    "=&r,r",
    "=r|m,r",
    "=^ab,r",
    "=f,f",
    "",
    "=r,~{memory}",
    "r,=r",
    "=a,i",
    "=h,h",
    "=X,X",
];

/// Operations of the same form.
const FORMS: [&[&str]; 4] = [
    &[
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.remf",
        "arith.maximumf",
        "arith.minnumf",
    ],
    &[
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divsi",
        "arith.remui",
        "arith.shli",
        "arith.maxsi",
        "arith.ceildivsi",
        "arith.floordivsi",
        "arith.xori",
    ],
    &[
        "math.exp",
        "math.sin",
        "math.erf",
        "math.absf",
        "math.rsqrt",
        "math.tanh",
        "math.ceil",
    ],
    &["fadd", "add", "max", "umin", "exch", "xor"],
];

/// A kernel with one to three changes; the same for the same seed.
pub fn mutate(text: &str, seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let mut text = text.to_owned();
    for _ in 0..rng.usize(1..=3) {
        let change = match rng.u32(0..20) {
            0..4 => element_type,
            4..8 => extent,
            8..12 => number,
            12 => name,
            13 => calls,
            14 => assembly,
            15..17 => operation,
            17 => line,
            18 => aliases,
            _ => warps,
        };
        if let Some(changed) = change(&text, &mut rng) {
            text = changed;
        }
    }
    text
}

fn pick<'a>(rng: &mut Rng, list: &[&'a str]) -> &'a str {
    list[rng.usize(..list.len())]
}

/// The positions of a word that is not part of a longer one.
fn places(text: &str, word: &str) -> Vec<usize> {
    let part =
        |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| {
            let before = text[..at].chars().next_back();
            // In `4xf32` the type begins after the `x`.
            let joins =
                before == Some('x') && text[..at - 1].ends_with(|c: char| c.is_ascii_digit());
            (joins || !part(before)) && !part(text[at + word.len()..].chars().next())
        })
        .collect()
}

fn replaced(text: &str, places: &[usize], length: usize, by: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut from = 0;
    for &at in places {
        changed.push_str(&text[from..at]);
        changed.push_str(by);
        from = at + length;
    }
    changed.push_str(&text[from..]);
    changed
}

/// Another element type, everywhere or, sometimes, in one place.
fn element_type(text: &str, rng: &mut Rng) -> Option<String> {
    let there: Vec<&str> = TYPES
        .iter()
        .copied()
        .filter(|word| !places(text, word).is_empty())
        .collect();
    if there.is_empty() {
        return None;
    }
    let word = pick(rng, &there);
    let mut places = places(text, word);
    if rng.u32(0..4) == 0 {
        places = vec![places[rng.usize(..places.len())]];
    }
    Some(replaced(text, &places, word.len(), pick(rng, &TYPES)))
}

/// The ranges of numbers that `is_one` accepts, by the text before and after them.
fn numbers(text: &str, is_one: impl Fn(&str, &str) -> bool) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = text[at..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(text.len(), |length| at + length);
        if is_one(&text[..at], &text[end..]) {
            found.push((at, end));
        }
        at = end;
    }
    found
}

/// Another extent of tensors, everywhere.
fn extent(text: &str, rng: &mut Rng) -> Option<String> {
    let found = numbers(text, |before, after| {
        (before.ends_with(['<', 'x'])) && after.starts_with('x')
    });
    let &(begin, end) = found.get(rng.usize(..found.len().max(1)))?;
    let old = &text[begin..end];
    let same: Vec<usize> = found
        .iter()
        .filter(|(b, e)| &text[*b..*e] == old)
        .map(|(b, _)| *b)
        .collect();
    let by = pick(rng, &NUMBERS).trim_start_matches('-');
    Some(replaced(text, &same, old.len(), by))
}

/// Another number in an attribute.
fn number(text: &str, rng: &mut Rng) -> Option<String> {
    let found = numbers(text, |before, after| {
        let lists = before.ends_with(['[', ' ']) && after.starts_with([',', ']', ' ', '}']);
        lists && !before.ends_with('%')
    });
    let &(begin, end) = found.get(rng.usize(..found.len().max(1)))?;
    Some(replaced(text, &[begin], end - begin, pick(rng, &NUMBERS)))
}

/// Another name of a function, in its definition and calls, or one of a library.
fn name(text: &str, rng: &mut Rng) -> Option<String> {
    let at = text.find("tt.func")?;
    let begin = at + text[at..].find('@')? + 1;
    let end = begin + text[begin..].find('(')?;
    let old = format!("@{}", &text[begin..end]);
    Some(text.replace(&old, &format!("@\"{}\"", pick(rng, &NAMES))))
}

/// Functions that call each other, and a call of the first.
fn calls(text: &str, rng: &mut Rng) -> Option<String> {
    let count = [1, 2, 3, 30, 300][rng.usize(..5)];
    let fan = rng.usize(0..=3);
    let form = rng.u32(0..5);
    let mut functions = String::new();
    for i in 0..count {
        let callee = match form {
            // A cycle, or a function that calls itself.
            0 => format!("@c{}", (i + 1) % count),
            // A declared function, or an unknown one.
            1 if i + 1 == count => "@declared".to_owned(),
            2 if i + 1 == count => "@nowhere".to_owned(),
            _ if i + 1 == count => String::new(),
            _ => format!("@c{}", i + 1),
        };
        functions.push_str(&format!(
            "tt.func private @c{i}(%a: f32) -> f32 attributes {{noinline = {}}} {{\n",
            form == 3
        ));
        let fan = if callee.is_empty() { 0 } else { fan };
        for call in 0..fan {
            functions.push_str(&format!(
                "  %r{call} = tt.call {callee}(%a) : (f32) -> f32\n"
            ));
        }
        let result = fan
            .checked_sub(1)
            .map_or("%a".to_owned(), |last| format!("%r{last}"));
        functions.push_str(&format!("  tt.return {result} : f32\n}}\n"));
    }
    if form == 1 {
        functions.push_str("tt.func private @declared(f32) -> f32\n");
    }
    let begin = text.find("tt.func")?;
    let end = text.rfind("tt.return")?;
    let call =
        "%zero_f = arith.constant 0.0 : f32\n %called = tt.call @c0(%zero_f) : (f32) -> f32\n ";
    Some(format!(
        "{}{functions}{}{call}{}",
        &text[..begin],
        &text[begin..end],
        &text[end..]
    ))
}

/// Inline assembly on the result of an operation, or other assembly where there already is some.
fn assembly(text: &str, rng: &mut Rng) -> Option<String> {
    let (template, constraints) = (pick(rng, &ASSEMBLY), pick(rng, &CONSTRAINTS));
    let lines: Vec<&str> = text.lines().collect();
    let fits = |line: &&str| {
        line.trim_start().starts_with('%') && line.contains(" = arith.") && !line.contains('(')
    };
    let candidates: Vec<usize> = (0..lines.len()).filter(|&i| fits(&lines[i])).collect();
    let &at = candidates.get(rng.usize(..candidates.len().max(1)))?;
    let (value, rest) = lines[at].trim_start().split_once(' ')?;
    let of = rest.rsplit(" : ").next()?.rsplit(" to ").next()?;
    let added = format!(
        "%assembly = tt.elementwise_inline_asm \"{template}\" {{constraints = \"{constraints}\", packed_element = {} : \
         i32, pure = {}}} {value} : {of} -> {of}",
        rng.u32(1..=4),
        rng.bool()
    );
    let mut changed: Vec<&str> = lines;
    changed.insert(at + 1, &added);
    Some(changed.join("\n"))
}

/// An operation of the same form.
fn operation(text: &str, rng: &mut Rng) -> Option<String> {
    let form = FORMS[rng.usize(..FORMS.len())];
    let there: Vec<(usize, usize)> = form
        .iter()
        .flat_map(|word| places(text, word).into_iter().map(|at| (at, word.len())))
        .collect();
    let &(at, length) = there.get(rng.usize(..there.len().max(1)))?;
    Some(replaced(text, &[at], length, pick(rng, form)))
}

/// Removes or repeats a line.
fn line(text: &str, rng: &mut Rng) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = rng.usize(..lines.len().max(1));
    let line = *lines.get(at)?;
    if rng.bool() {
        lines.remove(at);
    } else {
        lines.insert(at, line);
    }
    Some(lines.join("\n"))
}

/// Aliases that expand exponentially.
fn aliases(text: &str, rng: &mut Rng) -> Option<String> {
    let count = rng.usize(2..60);
    let mut chain = String::from("#z0 = [1 : i32]\n");
    for i in 1..count {
        chain.push_str(&format!("#z{i} = [#z{}, #z{}]\n", i - 1, i - 1));
    }
    let at = text.find("module")?;
    let module = text[at..].replacen(
        "attributes {",
        &format!("attributes {{ttg.z = #z{}, ", count - 1),
        1,
    );
    Some(format!("{}{chain}{module}", &text[..at]))
}

/// Another number of warps, threads or blocks.
fn warps(text: &str, rng: &mut Rng) -> Option<String> {
    let attributes = [
        "\"ttg.num-warps\" = ",
        "\"ttg.num-ctas\" = ",
        "\"ttg.threads-per-warp\" = ",
    ];
    let attribute = pick(rng, &attributes);
    let begin = text.find(attribute)? + attribute.len();
    let end = begin + text[begin..].find(' ')?;
    Some(format!(
        "{}{}{}",
        &text[..begin],
        pick(rng, &NUMBERS),
        &text[end..]
    ))
}

/// The outcome of compiling a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An artefact.
    Result,
    /// An error that blames the text or this release.
    Refused(ErrorClass),
    /// A bug of llopt, with its message.
    Bug(String),
}

/// Compiles a text to assembly.
pub fn answer(text: &str, target: Target) -> Answer {
    let mut options = Options::new(target);
    options.reproducer_directory = None;
    let source = Source::new("mutated.mlir", text);
    match Compiler::new(options).compile(&source, ArtifactKind::assembly_of(target)) {
        Ok(_) => Answer::Result,
        Err(error) if error.class() == ErrorClass::Bug => Answer::Bug(error.to_string()),
        Err(error) => Answer::Refused(error.class()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "#b = #ttg.blocked<{sizePerThread = [4], order = [0]}>
module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32} {
  tt.func public @k(%x: !tt.ptr<f32>, %n: f32) {
    %a = arith.addf %n, %n : f32
    %s = tt.splat %a : f32 -> tensor<512xf32, #b>
    tt.return
  }
}
";

    #[test]
    fn a_seed_is_a_text_and_most_texts_change() {
        let all: Vec<String> = (0..200).map(|seed| mutate(KERNEL, seed)).collect();
        assert_eq!(all[7], mutate(KERNEL, 7));
        assert!(all.iter().filter(|text| *text == KERNEL).count() < 40);
    }

    #[test]
    fn every_change_finds_its_place() {
        let mut rng = Rng::with_seed(1);
        for change in [
            element_type,
            extent,
            number,
            name,
            calls,
            assembly,
            operation,
            line,
            aliases,
            warps,
        ] {
            let changed = (0..20).filter_map(|_| change(KERNEL, &mut rng));
            assert!(changed.filter(|text| text != KERNEL).count() > 0);
        }
        assert_eq!(places("4xf32, f32x, xf32 f32", "f32"), [2, 18]);
    }
}
