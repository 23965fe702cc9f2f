//! Only `llopt-dialects` matches on the kind of an encoding; all other code uses its linear layout.
//!
//! Creating an encoding of a kind is allowed, matching on one is not. [`ALLOWED`] lists the exceptions, with reasons;
//! an unnecessary line of it is a finding as well.

use std::path::Path;

use super::Finding;
use super::rust;

/// The crate in which kinds are known.
const HOME: &str = "crates/llopt-dialects/";

/// Folders and files that may match on kinds, with reasons.
const ALLOWED: &[(&str, &str)] = &[(
    "crates/llopt-fuzz/src/",
    "random layouts are made of all kinds, and of those before them",
)];

/// Finds matches on the kind of an encoding.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    check_against(files, ALLOWED)
}

fn check_against(files: &[(&Path, &str)], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = vec![false; allowed.len()];
    for (path, text) in files {
        let name = path.to_str().unwrap_or_default();
        let is_source = name.starts_with("crates/") || name.starts_with("tools/");
        if !is_source || name.starts_with(HOME) || name.contains("/tests/") {
            continue;
        }
        for line in looks(&rust::code(text)) {
            match allowed
                .iter()
                .position(|(place, _)| name.starts_with(place))
            {
                Some(index) => needed[index] = true,
                None => {
                    let text = "asks for the kind of an encoding: ask its linear layout, or a method of `Encoding`";
                    findings.push(Finding::of_line(path, line, text));
                }
            }
        }
    }
    for ((place, _), _) in allowed.iter().zip(&needed).filter(|(_, needed)| !**needed) {
        let text = "may ask for the kind of an encoding and does not: take it off the list";
        findings.push(Finding::of_file(Path::new(place), text));
    }
    findings
}

/// The lines of patterns with a kind.
fn looks(code: &str) -> Vec<usize> {
    const NAME: &str = "Encoding::";
    let mut lines = Vec::new();
    for (at, _) in code.match_indices(NAME) {
        let kind = &code[at + NAME.len()..];
        if !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
            continue;
        }
        let begin = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        if is_pattern(&code[begin..at], after(kind)) {
            lines.push(code[..at].matches('\n').count() + 1);
        }
    }
    lines
}

/// The text after a kind and its contents, without closing brackets.
fn after(kind: &str) -> &str {
    let name = kind.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let mut depth = 0_usize;
    let end = name.char_indices().find_map(|(at, c)| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0 && !matches!(c, ' ' | '\n')).then_some(at)
    });
    let rest = end.map_or("", |end| &name[end..]);
    rest.trim_start_matches([')', '}', ' ', '\n'])
}

/// Whether the text between the two is a pattern: of an arm, the left side of a `let`, or of `matches!`.
fn is_pattern(before: &str, after: &str) -> bool {
    let is_arm = ["=>", "| ", "if "]
        .iter()
        .any(|sign| after.starts_with(sign));
    let left_of = |word: &str| {
        before
            .rfind(word)
            .is_some_and(|at| !before[at + word.len()..].contains('='))
    };
    let in_question = before
        .rfind("matches!(")
        .is_some_and(|at| before[at..].contains(','));
    is_arm || left_of("let ") || in_question
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found_and_values_are_not() {
        let code = "fn f(e: &Encoding) -> Encoding {\n\
                    if let Encoding::Slice(slice) = e { g() }\n\
                    let made = Encoding::Linear(linear);\n\
                    match e { Encoding::Blocked(_) | Encoding::Slice(_) => h(),\n\
                    other => Encoding::Blocked(b), }\n\
                    let (Some(Encoding::Blocked(_)), x) = y else { return };\n\
                    matches!(e, Encoding::Slice(_));\n\
                    let from = Encoding::from_attribute(a);\n\
                    call(Encoding::Blocked(Blocked { a: 1 }));\n}";
        let files = [(Path::new("crates/llopt-plan/src/a.rs"), code)];
        let found = check_against(&files, &[]);
        let lines: Vec<_> = found.iter().filter_map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 4, 4, 6, 7]);
    }

    #[test]
    fn a_place_that_looks_at_nothing_is_not_on_the_list() {
        let place = ("crates/llopt-plan/src/a.rs", "it does");
        let files = [(Path::new(place.0), "fn f() {}")];
        assert_eq!(check_against(&files, &[place]).len(), 1);
        let home = [(
            Path::new("crates/llopt-dialects/src/a.rs"),
            "matches!(e, Encoding::Slice(_))",
        )];
        assert!(check_against(&home, &[]).is_empty());
    }
}
