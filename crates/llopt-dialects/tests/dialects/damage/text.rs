//! Changes to text that keep most of it a text: by token, by bracketed group, by list element.

use super::Dice;
use std::ops::Range;

/// What the syntax of the dialects is made of, where its readers choose between two ways.
const WORDS: &[&str] = &[
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
    "?",
    "*",
    "\"",
    "@f",
    "%0",
    "%arg0",
    "#ttg",
    "!tt",
    "^bb0:",
    "-",
    "//",
    "loc(unknown)",
    "{-#",
    "true",
    "false",
    "unit",
    "none",
    "index",
    "i0",
    "i1",
    "i32",
    "si8",
    "f8E5M2",
    "f64",
    "bf16",
    "\"tt.dot\"(",
    "dense<",
    "array<i32: 1, 0>",
    "array<i64>",
    "tensor<4x",
    "tensor<?xf32>",
    "tensor<*xf32>",
    "tensor<0xi1>",
    "vector<4xi32>",
    "memref<4xi32>",
    "tuple<>",
    "!tt.ptr<i32>",
    "!tt.ptr<tensor<4xi32>>",
    "!ttg.memdesc<",
    "!ttg.async.token",
    "!tt.tensordesc<tensor<4x4xf16>>",
    "#ttg.shared_memory",
    "#ttg.blocked<{}>",
    "#ttg.slice<{dim = 0, parent = #blocked}>",
    "#ttng.tensor_memory",
    "mutable",
    "#ttg.dot_op<{opIdx = 0, parent = #blocked, kWidth = 2}>",
    "CGALayout = [[0]]",
    "order = [1, 0]",
    "sizePerThread = [0]",
    "versionMajor = 9",
    "register = []",
    "evictionPolicy = evict_first",
    "operandSegmentSizes = array<i32: 1, 1, 0>",
    "attributes",
    "default",
    "partition0(",
    "tt.load",
    "tt.trans",
    "tt.reduce",
    "tt.return",
    "tt.func",
    "scf.yield",
    "scf.for",
    "arith.constant",
    "ttg.convert_layout",
    "ttg.warp_specialize",
    "ttng.warp_group_dot",
    "amdg.concat",
    "\0",
    "\u{fffd}",
];

/// Numbers at the edges of what anything may be stored in, and just past the edges of layouts.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "31",
    "32",
    "64",
    "65",
    "127",
    "128",
    "255",
    "1024",
    "4096",
    "65536",
    "1048576",
    "1048577",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "0x0",
    "0x7FC00000",
    "0xFFFFFFFFFFFFFFFFF",
    "1.0e400",
    "-0.0",
    "1e-9999",
];

/// What a token is, as far as changes care: tokens of one class can stand in for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Value,
    Alias,
    Symbol,
    Number,
    Name,
    Text,
    Sign,
}

/// The tokens of a text, whatever it is; together they are the text.
fn tokens(text: &[u8]) -> Vec<(Class, Range<usize>)> {
    let wordy = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte);
    let mut tokens = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let run = |from: usize, keep: &dyn Fn(u8) -> bool| {
            from + rest[from..].iter().take_while(|byte| keep(**byte)).count()
        };
        let (class, length) = match rest[0] {
            byte if byte.is_ascii_whitespace() => {
                (Class::Blank, run(1, &|b| b.is_ascii_whitespace()))
            }
            b'%' => (Class::Value, run(1, &wordy)),
            b'#' | b'!' => (Class::Alias, run(1, &wordy)),
            b'@' | b'^' => (Class::Symbol, run(1, &wordy)),
            byte if byte.is_ascii_digit() => (Class::Number, run(1, &wordy)),
            byte if wordy(byte) => (Class::Name, run(1, &wordy)),
            b'"' => {
                let end = run(1, &|byte| byte != b'"' && byte != b'\n');
                (Class::Text, (end + 1).min(rest.len()))
            }
            _ => (Class::Sign, 1),
        };
        tokens.push((class, start..start + length));
        start += length;
    }
    tokens
}

/// Where the group that opens at a token ends (with its closing bracket), if it does.
fn group(text: &[u8], tokens: &[(Class, Range<usize>)], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, (_, range)) in tokens.iter().enumerate().skip(open) {
        match &text[range.clone()] {
            b"(" | b"[" | b"{" | b"<" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            b">" if index == 0 || &text[tokens[index - 1].1.clone()] != b"-" => {
                depth = depth.saturating_sub(1);
            }
            _ => continue,
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// The brackets of a text as ranges of bytes, each with its opening sign.
fn groups(text: &[u8]) -> Vec<(u8, Range<usize>)> {
    let tokens = tokens(text);
    // Text that is all brackets must not take quadratic time.
    let opening = (0..tokens.len())
        .filter(|index| b"([{<".contains(&text[tokens[*index].1.start]))
        .take(400);
    opening
        .filter_map(|open| {
            let start = tokens[open].1.start;
            let end = tokens[group(text, &tokens, open)?].1.end;
            Some((text[start], start..end))
        })
        .collect()
}

/// The elements of the list in a group: between its brackets and the commas that are in no other.
fn elements(text: &[u8], group: &Range<usize>) -> Vec<Range<usize>> {
    let mut elements = Vec::new();
    let (mut depth, mut start) = (0usize, group.start + 1);
    let end = group.end - 1;
    for (index, byte) in text.iter().enumerate().take(end).skip(group.start + 1) {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                elements.push(start..index);
                start = index + 1;
            }
            _ => {}
        }
    }
    elements.push(start..end.max(start));
    elements
}

fn replace(text: &[u8], range: Range<usize>, with: &[u8]) -> Vec<u8> {
    [&text[..range.start], with, &text[range.end..]].concat()
}

/// One change; pieces may come from another text.
pub fn change(text: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    match dice.below(10) {
        0..=4 => change_token(text, other, dice),
        5 | 6 => change_group(text, other, dice),
        7 | 8 => change_element(text, dice),
        _ => change_line(text, other, dice),
    }
}

fn change_token(text: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let own = tokens(text);
    let solid: Vec<_> = own
        .iter()
        .filter(|(class, _)| *class != Class::Blank)
        .collect();
    if solid.is_empty() {
        return text.to_vec();
    }
    let (class, range) = dice.pick(&solid);
    match dice.below(7) {
        0 => replace(text, range.clone(), dice.pick(WORDS).as_bytes()),
        1 => replace(text, range.start..range.start, dice.pick(WORDS).as_bytes()),
        2 => {
            let (_, second) = dice.pick(&solid);
            let (first, second) = if range.start < second.start {
                (range, second)
            } else {
                (second, range)
            };
            if first.start == second.start {
                return text.to_vec();
            }
            let swapped = replace(text, second.clone(), &text[first.clone()]);
            replace(&swapped, first.clone(), &text[second.clone()])
        }
        3 => {
            let numbers: Vec<_> = own
                .iter()
                .filter(|(class, _)| *class == Class::Number)
                .collect();
            if numbers.is_empty() {
                return text.to_vec();
            }
            let (_, range) = dice.pick(&numbers);
            replace(text, range.clone(), dice.pick(NUMBERS).as_bytes())
        }
        choice => {
            let foreign = tokens(other);
            let (source, among) = if choice == 4 {
                (other, &foreign)
            } else {
                (text, &own)
            };
            let alike: Vec<_> = among.iter().filter(|(other, _)| other == class).collect();
            if alike.is_empty() {
                return text.to_vec();
            }
            let (_, piece) = dice.pick(&alike);
            replace(text, range.clone(), &source[piece.clone()])
        }
    }
}

fn change_group(text: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let own = groups(text);
    if own.is_empty() {
        return text.to_vec();
    }
    let (sign, range) = dice.pick(&own);
    match dice.below(4) {
        0 => replace(text, range.clone(), b""),
        1 => replace(text, range.end..range.end, &text[range.clone()]),
        2 => replace(text, range.start + 1..range.end - 1, b""),
        _ => {
            let foreign: Vec<_> = groups(other)
                .into_iter()
                .filter(|(other, _)| other == sign)
                .collect();
            if foreign.is_empty() {
                return text.to_vec();
            }
            let (_, piece) = dice.pick(&foreign);
            replace(text, range.clone(), &other[piece.clone()])
        }
    }
}

fn change_element(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let own = groups(text);
    if own.is_empty() {
        return text.to_vec();
    }
    let (_, range) = dice.pick(&own);
    let list = elements(text, range);
    let element = dice.pick(&list);
    match dice.below(3) {
        // With the comma on either side, where there is one.
        0 if element.end + 1 < range.end => replace(text, element.start..element.end + 1, b""),
        0 => replace(
            text,
            element.start - usize::from(list.len() > 1)..element.end,
            b"",
        ),
        1 => {
            let twice = [&text[element.clone()], b", ", &text[element.clone()]].concat();
            replace(text, element.clone(), &twice)
        }
        _ => {
            let (_, elsewhere) = dice.pick(&own);
            let elsewhere = elements(text, elsewhere);
            let piece = dice.pick(&elsewhere).clone();
            replace(text, element.clone(), &text[piece])
        }
    }
}

fn change_line(text: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let foreign: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() || foreign.is_empty() {
        return text.to_vec();
    }
    let at = dice.below(lines.len());
    match dice.below(4) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at]),
        2 => {
            let second = dice.below(lines.len());
            lines.swap(at, second);
        }
        _ => lines.insert(at, *dice.pick(&foreign)),
    }
    lines.concat()
}
