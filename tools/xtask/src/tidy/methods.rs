//! The number of methods of a type.
//!
//! The parameters of a function show what it uses; a method of a large type may use all of it. So a method that can
//! be a function of its module must be one. Methods are counted over all files of a crate, in `impl` blocks of the
//! type itself: those of a trait belong to the trait. Types of one crate that share a name count as one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Finding;
use super::rust;

/// The most methods that a type may have.
const MOST: usize = 90;

/// Finds types with too many methods.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    check_against(files, MOST)
}

/// The methods of a type, and the file that has most of them.
#[derive(Default)]
struct Methods {
    all: usize,
    most: usize,
    file: PathBuf,
}

fn check_against(files: &[(&Path, &str)], most: usize) -> Vec<Finding> {
    let mut types: BTreeMap<(&str, String), Methods> = BTreeMap::new();
    for (path, text) in files {
        let Some((folder, _)) = path.to_str().and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        let mut of_file: BTreeMap<String, usize> = BTreeMap::new();
        for (name, methods) in inherent(&rust::code(text)) {
            *of_file.entry(name.to_owned()).or_default() += methods;
        }
        for (name, methods) in of_file {
            let of = types.entry((folder, name)).or_default();
            of.all += methods;
            if methods >= of.most {
                of.most = methods;
                of.file = path.to_path_buf();
            }
        }
    }
    let large = types.into_iter().filter(|(_, of)| of.all > most);
    large
        .map(|((_, name), of)| {
            let text = format!(
                "`{name}` has {} methods, more than {most}: make functions of their modules of what can be",
                of.all
            );
            Finding::of_file(&of.file, text)
        })
        .collect()
}

/// The inherent `impl` blocks of some code: the name of the type, and the number of methods of the block.
fn inherent(code: &str) -> impl Iterator<Item = (&str, usize)> {
    let items = code.match_indices("impl").filter(|(at, word)| {
        let before = code[..*at].trim_end();
        // Elsewhere it is a type, `impl Fn()`.
        let is_item = before.is_empty() || before.ends_with(['}', ';', '{', ']']);
        is_item && code[at + word.len()..].starts_with([' ', '<', '\n'])
    });
    items.filter_map(|(at, word)| {
        let (head, body) = code[at + word.len()..].split_once('{')?;
        let of = without_parameters(head);
        let is_trait = rust::words(of).any(|word| word == "for");
        let path = of.split(['<', '\n']).next().unwrap_or_default();
        let name = rust::words(path).next_back()?;
        (!is_trait).then(|| (name, functions(body)))
    })
}

/// The header of an `impl` block without its leading parameters.
fn without_parameters(head: &str) -> &str {
    let head = head.trim_start();
    let mut depth = 0_usize;
    for (at, c) in head.char_indices() {
        match c {
            '<' => depth += 1,
            // The bracket of an arrow closes nothing.
            '>' if !head[..at].ends_with('-') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &head[at..];
        }
    }
    head
}

/// The functions of a block, given what follows its brace.
fn functions(body: &str) -> usize {
    let mut depth = 1_usize;
    let mut own = String::new();
    for c in body.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            c if depth == 1 => own.push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    rust::words(&own).filter(|word| *word == "fn").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|&(path, text)| (Path::new(path), text))
            .collect();
        let findings = check_against(&files, 2);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn methods_are_counted_over_the_files_of_a_crate() {
        let one = "impl<'a, F: Fn(u32) -> u32> A<'a, F> { fn a(&self) {} }";
        let two =
            "impl super::A<'_, F> { pub fn b(self) { fn inner() {} } const C: u8 = 0; fn d() {} }";
        let text = "c/src/b.rs: `A` has 3 methods, more than 2: make functions of their modules of what can be";
        assert_eq!(found(&[("c/src/a.rs", one), ("c/src/b.rs", two)]), [text]);
        // Each crate has a type of that name.
        assert!(found(&[("c/src/a.rs", one), ("d/src/b.rs", two)]).is_empty());
    }

    #[test]
    fn methods_of_traits_and_tests_do_not_count() {
        let of_trait = "impl<T> Trait<T> for A { fn a() {} fn b() {} fn c() {} }";
        let of_test = "#[cfg(test)]\nmod tests { impl A { fn a() {} fn b() {} fn c() {} } }";
        let of_type =
            "fn f(x: impl Fn()) -> impl Fn() { move || { fn a() {} fn b() {} fn c() {} } }";
        for text in [of_trait, of_test, of_type] {
            assert!(found(&[("c/src/a.rs", text)]).is_empty());
        }
    }
}
