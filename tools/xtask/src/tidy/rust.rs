//! A minimal reader of Rust for the rules: code without comments, literals and tests, and the paths in it.

/// The code of a file without comments, the contents of string and character literals, and everything
/// that is only compiled for tests. Each blanked character becomes a space, so that lines stay lines.
pub fn code(text: &str) -> String {
    without_tests(&blanked(text, true), None)
}

/// The code of a file as [`code`] has it, but with the contents of literals.
pub fn code_with_literals(text: &str) -> String {
    without_tests(&blanked(text, true), Some(&blanked(text, false)))
}

/// Blanks comments, and the contents of literals if asked to.
fn blanked(text: &str, literals: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let blank = |code: &mut String, from: usize, to: usize| {
        code.extend(
            chars[from..to]
                .iter()
                .map(|&c| if c == '\n' { c } else { ' ' }),
        );
    };
    while at < chars.len() {
        let rest = &chars[at..];
        let end = match rest {
            ['/', '/', ..] => at + rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => at + block_comment(rest),
            ['"', ..] => at + quoted(rest),
            ['r', '"' | '#', ..] if !code.ends_with(is_word) && raw(rest).is_some() => {
                at + raw(rest).unwrap_or(1)
            }
            ['\'', '\\', ..] => {
                let close = rest.iter().skip(3).position(|&c| c == '\'');
                at + close.map_or(rest.len(), |close| close + 4)
            }
            ['\'', _, '\'', ..] => at + 3,
            _ => {
                code.push(chars[at]);
                at += 1;
                continue;
            }
        };
        let end = end.min(chars.len());
        if literals || chars[at] == '/' {
            blank(&mut code, at, end);
        } else {
            code.extend(&chars[at..end]);
        }
        at = end;
    }
    code
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a block comment, including nested ones.
fn block_comment(text: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        match &text[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// The length of a string literal.
fn quoted(text: &[char]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The length of a raw string literal such as `r#"…"#`, if it is one.
fn raw(text: &[char]) -> Option<usize> {
    let hashes = text[1..].iter().take_while(|&&c| c == '#').count();
    if text.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let mut at = 2 + hashes;
    while at < text.len() {
        let closes = text[at] == '"'
            && text[at + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes;
        if closes {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(text.len())
}

/// Blanks items under `#[cfg(test)]`, in the code or in another form of it with as many characters.
fn without_tests(code: &str, shown: Option<&str>) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut shown = shown.unwrap_or(code).chars();
    let mut take = |part: &str, blank: bool| {
        let part = shown.by_ref().take(part.chars().count());
        kept.extend(part.map(|c| if blank && c != '\n' { ' ' } else { c }));
    };
    let mut rest = code;
    while let Some((before, after)) = rest.split_once(MARK) {
        take(before, false);
        let (item, following) = after.split_at(item_length(after));
        take(MARK, true);
        take(item, true);
        rest = following;
    }
    take(rest, false);
    kept
}

/// The length of the item at the beginning of a text: up to a semicolon, or the end of its braces.
fn item_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && c == '}' {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// An import: the segments of its path, and the name under which the item is known, `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Vec<String>,
    pub name: String,
    /// Whether the item is re-exported: `pub use`.
    pub public: bool,
}

/// The imports of some code, and the code without them.
pub fn imports(code: &str) -> (Vec<Import>, String) {
    let mut found = Vec::new();
    let mut others = String::new();
    let mut rest = code;
    while let Some(at) = next_use(rest) {
        let (before, from) = rest.split_at(at);
        let end = from.find(';').map_or(from.len(), |end| end + 1);
        let head = before.rsplit([';', '}', '{']).next().unwrap_or_default();
        let public = words(head).next_back().is_some_and(|word| word == "pub")
            || head.trim_end().ends_with(')');
        others.push_str(before);
        tree(&from["use".len()..end], &[], public, &mut found);
        rest = &from[end..];
    }
    others.push_str(rest);
    (found, others)
}

/// The position of the next word `use`.
fn next_use(code: &str) -> Option<usize> {
    code.match_indices("use").map(|(at, _)| at).find(|&at| {
        !code[..at].ends_with(is_word) && code[at + 3..].starts_with(char::is_whitespace)
    })
}

/// The words of some code.
pub fn words(code: &str) -> impl DoubleEndedIterator<Item = &str> {
    code.split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
}

/// Adds the names in a tree such as `a::{b, c as d}`.
fn tree(text: &str, above: &[String], public: bool, found: &mut Vec<Import>) {
    let text = text.trim().trim_end_matches(';').trim();
    if let Some((head, tail)) = text.split_once('{') {
        let mut path = above.to_vec();
        path.extend(words(head).map(str::to_owned));
        let inside = tail.rsplit_once('}').map_or(tail, |(inside, _)| inside);
        for part in split_at_top(inside) {
            tree(part, &path, public, found);
        }
        return;
    }
    if text.is_empty() {
        return;
    }
    let (item, renamed) = match text.split_once(" as ") {
        Some((item, name)) => (item, Some(name.trim().to_owned())),
        None => (text, None),
    };
    let mut path = above.to_vec();
    path.extend(words(item).map(str::to_owned));
    if item.trim_end().ends_with('*') {
        path.push("*".to_owned());
    }
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
    found.push(Import { path, name, public });
}

/// The parts of a list between commas that are outside of braces.
fn split_at_top(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts
}

/// The paths in some code that begin with `crate`, `super` or `self`.
pub fn inner_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let head = words(&code[..at]).next_back().unwrap_or_default();
        let begins = code[..at].ends_with(head) && ["crate", "super", "self"].contains(&head);
        let before = code[..at].strip_suffix(head).unwrap_or_default();
        if begins && !before.ends_with("::") && !before.ends_with(is_word) {
            let rest = &code[at + 2..];
            let end = rest
                .find(|c: char| !is_word(c) && c != ':')
                .unwrap_or(rest.len());
            let mut path = vec![head.to_owned()];
            path.extend(
                rest[..end]
                    .split("::")
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned),
            );
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_tests_are_blank() {
        let text = "let a = 'x'; // use b\nlet c = \"use d \\\" e\"; /* f /* g */ h */ let i: &'a str;\n\
                    let j = r#\"k\"l\"#;\n#[cfg(test)]\nmod tests { use m; }\nfn n() {}\n";
        let code = code(text);
        assert_eq!(code.lines().count(), text.lines().count());
        let expected = [
            "let", "a", "let", "c", "let", "i", "a", "str", "let", "j", "fn", "n",
        ];
        assert_eq!(words(&code).collect::<Vec<_>>(), expected);
        let code = super::code_with_literals(text);
        assert!(code.contains("'x'") && code.contains("use d") && code.contains("k\"l"));
        assert!(!code.contains("use b") && !code.contains('m'));
    }

    #[test]
    fn trees_of_imports_are_unfolded() {
        let (found, rest) = imports(
            "use crate::a::{self, b::{c, d as e}, f::*};\npub(crate) use g::h;\nfn i() { use super::j; }",
        );
        let shown: Vec<_> = found
            .iter()
            .map(|import| {
                let mark = if import.public { "+" } else { "" };
                format!("{mark}{}={}", import.path.join("/"), import.name)
            })
            .collect();
        let expected = [
            "crate/a=a",
            "crate/a/b/c=c",
            "crate/a/b/d=e",
            "crate/a/f/*=*",
            "+g/h=h",
            "super/j=j",
        ];
        assert_eq!(shown, expected);
        assert!(!rest.contains("use"));
    }

    #[test]
    fn paths_in_code_begin_at_a_module_that_is_named() {
        let code = "let a = crate::b::C::d(super::super::e::f, self.g, x::crate_::y);";
        assert_eq!(
            inner_paths(code),
            [
                vec!["crate", "b", "C", "d"],
                vec!["super", "super", "e", "f"]
            ]
        );
    }
}
