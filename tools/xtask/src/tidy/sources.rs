//! Rules on single files: header, length, name, marks of unfinished work, machine paths.

use std::path::Path;

use super::Finding;

/// A file longer than this must give the reason in its header.
const LONG: usize = 800;
/// A file longer than this is a finding in any case.
const TOO_LONG: usize = 1500;
/// The beginning of the reason in the header of a long file.
const LONG_REASON: &str = "Over 800 lines because ";

/// Meaningless names of files and folders.
const EMPTY_NAMES: &[&str] = &[
    "base",
    "common",
    "general",
    "helper",
    "helpers",
    "misc",
    "new",
    "old",
    "prelude",
    "shared-utils",
    "shared_utils",
    "util",
    "utilities",
    "utils",
];

/// Marks of unfinished work, which are not allowed. (Split so that they are not found here.)
const UNFINISHED: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("#[igno", "re"),
];

/// Prefixes of paths that exist only on one machine.
const MACHINE_PATHS: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
];

/// The beginning of the header comment in each language.
fn header_mark(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "rs" => Some("//!"),
        "cpp" | "h" | "td" => Some("//"),
        "py" => Some("\"\"\""),
        "sh" => Some("#"),
        _ => None,
    }
}

/// Rules on the name of a file.
pub fn check_path(path: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in path.components() {
        let part = part.as_os_str().to_string_lossy();
        let stem = part.split('.').next().unwrap_or_default().to_lowercase();
        let numbered = stem.rsplit_once(['_', '-']).is_some_and(|(_, end)| {
            end == "new"
                || end == "old"
                || end
                    .strip_prefix('v')
                    .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        });
        if EMPTY_NAMES.contains(&stem.as_str()) {
            findings.push(Finding::of_file(
                path,
                format!("the name `{part}` says nothing"),
            ));
        } else if numbered {
            findings.push(Finding::of_file(
                path,
                format!("`{part}`: a version is no part of a name"),
            ));
        }
    }
    findings
}

/// Rules on the contents of a file.
pub fn check_text(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mark = header_mark(path);
    let header = mark.map(|mark| header(text, mark));
    if let (Some(mark), Some(header)) = (mark, &header)
        && header.split_whitespace().count() < 3
    {
        findings.push(Finding::of_line(
            path,
            1,
            format!("the file does not open with a `{mark}` line that says what it is"),
        ));
    }
    let lines = text.lines().count();
    if let Some(header) = &header {
        let reason = header.contains(LONG_REASON);
        if lines > TOO_LONG {
            findings.push(Finding::of_file(path, format!("{lines} lines: split it")));
        } else if lines > LONG && !reason {
            findings.push(Finding::of_file(
                path,
                format!("{lines} lines: split it, or write `{LONG_REASON}…` in its header"),
            ));
        } else if lines <= LONG && reason {
            findings.push(Finding::of_file(
                path,
                format!("{lines} lines need no excuse: take `{LONG_REASON}…` out"),
            ));
        }
    }
    let is_source = header.is_some() || path.extension().is_some_and(|e| e == "mlir");
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        if is_source {
            for mark in UNFINISHED.iter().filter(|mark| has_word(line, mark)) {
                findings.push(Finding::of_line(path, at, format!("`{mark}`: unfinished")));
            }
            if let Some((_, rest)) = line.split_once(concat!("TO", "DO"))
                && !names_condition(rest)
            {
                findings.push(Finding::of_line(
                    path,
                    at,
                    concat!("a TO", "DO names its condition: TO", "DO(when …)"),
                ));
            }
        }
        for place in MACHINE_PATHS.iter().filter(|place| has_path(line, place)) {
            findings.push(Finding::of_line(
                path,
                at,
                format!("`{place}…` exists on one machine only"),
            ));
        }
    }
    findings
}

/// Whether the text after the mark of a later task is `(condition)`.
fn names_condition(rest: &str) -> bool {
    rest.strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .is_some_and(|(condition, _)| !condition.trim().is_empty())
}

/// The text of the comment at the top of the file, after a `#!` line if there is one.
fn header(text: &str, mark: &str) -> String {
    let mut lines = text
        .lines()
        .skip_while(|line| line.starts_with("#!"))
        .peekable();
    if mark == "\"\"\"" {
        let Some(first) = lines.next().and_then(|line| line.strip_prefix(mark)) else {
            return String::new();
        };
        if let Some((inside, _)) = first.split_once(mark) {
            return inside.to_owned();
        }
        return std::iter::once(first)
            .chain(lines.take_while(|line| !line.contains(mark)))
            .collect::<Vec<_>>()
            .join(" ");
    }
    lines
        .map_while(|line| line.strip_prefix(mark))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether `mark` is in the line with no letter before it.
fn has_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !line[at + mark.len()..]
                .starts_with(|c: char| c.is_alphanumeric() && !mark.ends_with('('))
    })
}

/// Whether an absolute path in the line begins with `place`.
fn has_path(line: &str, place: &str) -> bool {
    line.match_indices(place)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-})$".contains(c)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LONG_REASON, check_path, check_text};

    fn texts(path: &str, text: &str) -> Vec<String> {
        check_text(Path::new(path), text)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn a_source_file_opens_with_what_it_is() {
        assert!(texts("a.rs", "//! Linear maps over F2.\n").is_empty());
        assert_eq!(texts("a.rs", "use std::fmt;\n").len(), 1);
        assert_eq!(texts("a.rs", "//! Module.\n").len(), 1);
        assert!(
            texts(
                "a.py",
                "#!/usr/bin/env python3\n\"\"\"Runs kernels on a GPU.\"\"\"\n"
            )
            .is_empty()
        );
        assert_eq!(texts("a.py", "import os\n").len(), 1);
        assert!(texts("a.json", "{}\n").is_empty());
    }

    #[test]
    fn a_long_file_gives_a_reason_and_a_short_one_does_not() {
        let long = "//! One table of facts.\n".to_owned() + &"\n".repeat(900);
        let excused = format!("//! {LONG_REASON}it is one table of facts.\n");
        assert_eq!(texts("a.rs", &long).len(), 1);
        assert!(texts("a.rs", &(excused.clone() + &long)).is_empty());
        assert_eq!(
            texts("a.rs", &(excused.clone() + &"\n".repeat(1600))).len(),
            1
        );
        assert_eq!(texts("a.rs", &excused).len(), 1);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for name in [
            "a/util.rs",
            "helpers/a.rs",
            "a/planner_v2.rs",
            "a/planner_new.rs",
        ] {
            assert_eq!(check_path(Path::new(name)).len(), 1, "{name}");
        }
        for name in [
            "a/utility_of_layouts.rs",
            "a/newton.rs",
            "a/sm_90.rs",
            "rebase.rs",
        ] {
            assert!(check_path(Path::new(name)).is_empty(), "{name}");
        }
    }

    #[test]
    fn unfinished_work_is_found_and_a_condition_excuses_a_todo() {
        let head = "//! Linear maps over F2.\n";
        for line in [
            concat!("    todo", "!()"),
            concat!("// FIX", "ME later"),
            concat!("#[igno", "re]"),
            concat!("// TO", "DO: later"),
            concat!("// TO", "DO() later"),
        ] {
            assert_eq!(texts("a.rs", &format!("{head}{line}\n")).len(), 1, "{line}");
        }
        let line = concat!("// TO", "DO(when LLVM 23 is the pinned one): drop this");
        assert!(texts("a.rs", &format!("{head}{line}\n")).is_empty());
    }

    #[test]
    fn machine_paths_are_found_in_any_text() {
        assert_eq!(texts("a.md", concat!("see /", "work/x\n")).len(), 1);
        assert_eq!(texts("a.toml", concat!("p = \"/", "home/me\"\n")).len(), 1);
        assert!(
            texts(
                "a.md",
                concat!("see the frame", "work/x and $HOME/", "work/y\n")
            )
            .is_empty()
        );
    }
}
