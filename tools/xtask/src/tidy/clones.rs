//! Repeated passages of code.
//!
//! A passage of [`LENGTH`] lines of code, without empty lines and comments, that occurs twice outside of tests will
//! sooner or later be fixed in one place only. Either the two are merged, or a comment [`REASON`] in one of them, right
//! above it, or in the header of its file, gives the reason for the repetition.

use std::collections::HashMap;
use std::path::Path;

use super::Finding;
use super::rust;

/// The number of lines of a passage.
const LENGTH: usize = 10;
/// The beginning of a comment that excuses a passage; the reason follows.
const REASON: &str = "Repeated because ";
/// Lines above a passage in which the comment may be.
const ABOVE: usize = 8;

/// One line of code, with its number from zero.
struct Line {
    number: usize,
    text: String,
}

/// The lines that count.
fn lines(text: &str) -> Vec<Line> {
    let code = rust::code_with_literals(text);
    let lines = code.lines().enumerate();
    let lines = lines.map(|(number, line)| Line {
        number,
        text: line.trim().to_owned(),
    });
    lines.filter(|line| !line.text.is_empty()).collect()
}

/// Whether lines have content that must be kept equal: more than imports, names of fields and closing brackets.
fn says_something(lines: &[Line]) -> bool {
    let telling = |line: &&Line| {
        let text = &line.text;
        let name_only = text
            .trim_end_matches([',', ';', '{', '}', '(', ')', '[', ']'])
            .chars()
            .all(|c| c.is_alphanumeric() || "_:, ".contains(c));
        !name_only && !text.starts_with("use ") && !text.starts_with("#[")
    };
    lines.iter().filter(telling).count() >= LENGTH / 2
}

/// Finds repeated passages without a reason.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    let sources: Vec<(&Path, &str, Vec<Line>)> = files
        .iter()
        .filter(|(path, _)| is_product(path))
        .map(|(path, text)| (*path, *text, lines(text)))
        .collect();
    let mut first: HashMap<String, (usize, usize)> = HashMap::new();
    let mut findings = Vec::new();
    for (file, (path, text, lines)) in sources.iter().enumerate() {
        let mut at = 0;
        while at + LENGTH <= lines.len() {
            let passage = &lines[at..at + LENGTH];
            let key: Vec<&str> = passage.iter().map(|line| &*line.text).collect();
            let key = key.join("\n");
            let known = first.get(&key).copied().filter(|_| says_something(passage));
            let Some((other, begin)) = known else {
                first.entry(key).or_insert((file, at));
                at += 1;
                continue;
            };
            let (other_path, other_text, other_lines) = &sources[other];
            let length = lines[at..]
                .iter()
                .zip(&other_lines[begin..])
                .take_while(|(one, two)| one.text == two.text)
                .count();
            let excused = excuse(text, &lines[at..at + length])
                || excuse(other_text, &other_lines[begin..begin + length]);
            if !excused {
                let text = format!(
                    "{length} lines are repeated from {}:{}: merge them, or write `{REASON}…`",
                    other_path.display(),
                    other_lines[begin].number + 1,
                );
                findings.push(Finding::of_line(path, lines[at].number + 1, text));
            }
            at += length;
        }
    }
    findings
}

/// Whether a file is part of the product: no test, benchmark or example.
fn is_product(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.ends_with(".rs") && text.contains("/src/") && !text.ends_with("/tests.rs")
}

/// Whether the reason is in the lines of a passage or right above.
fn excuse(text: &str, passage: &[Line]) -> bool {
    let (Some(first), Some(last)) = (passage.first(), passage.last()) else {
        return false;
    };
    let begin = first.number.saturating_sub(ABOVE);
    let region = text.lines().skip(begin).take(last.number + 1 - begin);
    let header = text.lines().take_while(|line| line.starts_with("//!"));
    region.chain(header).any(|line| line.contains(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(count: usize) -> String {
        (0..count)
            .map(|line| format!("    call_{line}(\"{line}\");\n"))
            .collect()
    }

    fn found(one: &str, two: &str) -> Vec<String> {
        let files = [
            (Path::new("c/src/a.rs"), one),
            (Path::new("c/src/b.rs"), two),
        ];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_long_passage_in_two_files_is_found_once() {
        let one = format!("fn a() {{\n{}}}\n", passage(12));
        let two = format!(
            "//! Two.\nfn b() {{\n\n{}}}\n",
            passage(12).replace("\n    c", "\n\n  c")
        );
        let text = format!(
            "c/src/b.rs:4: 13 lines are repeated from c/src/a.rs:2: merge them, or write `{REASON}…`"
        );
        assert_eq!(found(&one, &two), [text]);
        assert!(found(&one, &format!("fn b() {{\n{}}}\n", passage(8))).is_empty());
    }

    #[test]
    fn a_reason_excuses_it_and_tests_do_not_count() {
        let one = format!("fn a() {{\n{}}}\n", passage(12));
        let excused = format!(
            "fn b() {{\n    // {REASON}it is measured.\n{}}}\n",
            passage(12)
        );
        assert!(found(&one, &excused).is_empty());
        let test = format!(
            "#[cfg(test)]\nmod tests {{\nfn b() {{\n{}}}\n}}\n",
            passage(12)
        );
        assert!(found(&one, &test).is_empty());
    }
}
