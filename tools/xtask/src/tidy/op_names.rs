//! The meaning of an op is found through typed ops or declared facts, not by its name.
//!
//! A match on names has to have a default, so an op that is forgotten in it is a silent mistake; a match on typed ops
//! does not compile without it. Names of llopt's ops are read from `dialects/`; for MLIR's dialects any name with
//! their prefix counts. Names of attributes look alike and are allowed in code.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::rust;

/// The code to which the rule applies.
const ASKING: [&str; 4] = [
    "crates/llopt-transforms/src/",
    "crates/llopt-plan/src/",
    "crates/llopt-codegen/src/",
    "crates/llopt-sim/src/",
];

/// MLIR's dialects whose ops have wrappers.
const OF_MLIR: [&str; 7] = ["arith", "math", "scf", "cf", "ub", "gpu", "rocdl"];

/// Finds names of ops in texts of code.
pub fn check(definitions: &[(&Path, &str)], files: &[(&Path, &str)]) -> Vec<Finding> {
    let ours: BTreeSet<String> = definitions
        .iter()
        .flat_map(|(path, text)| defined(path, text))
        .collect();
    let is_op = |text: &str| {
        let dialect = text.split_once('.').map(|(dialect, _)| dialect);
        ours.contains(text) || dialect.is_some_and(|dialect| OF_MLIR.contains(&dialect))
    };
    let mut findings = Vec::new();
    for (path, text) in files {
        let asks = |folder: &&str| path.to_str().is_some_and(|path| path.starts_with(*folder));
        if !ASKING.iter().any(asks) {
            continue;
        }
        for (index, line) in rust::code_with_literals(text).lines().enumerate() {
            for name in names(line).filter(|name| is_op(name)) {
                let text = format!("`{name}` by its name: ask for a typed op or a fact about it");
                findings.push(Finding::of_line(path, index + 1, text));
            }
        }
    }
    findings
}

/// The ops that a file of `dialects/` defines: a class that ends in `Op` with a mnemonic as first argument.
fn defined(path: &Path, text: &str) -> Vec<String> {
    let dialect = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|folder| folder.to_str());
    let Some(dialect) = dialect else {
        return Vec::new();
    };
    text.split("Op<\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(mnemonic, _)| format!("{dialect}.{mnemonic}"))
        .collect()
}

/// The literals of a line that consist of words with dots between them.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
    let literals = line.split('"').skip(1).step_by(2);
    literals.filter(move |text| text.contains('.') && text.chars().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ops_are_found_and_those_of_attributes_are_not() {
        let definitions = [(
            Path::new("dialects/tt/memory.td"),
            "def TT_LoadOp : TT_Op<\"load\", [Pure]> {}",
        )];
        let code = "fn f() { g(\"tt.load\", \"tt.divisibility\"); h(\"arith.addi\") }\n\
                    // \"tt.load\"\n\
                    #[cfg(test)]\nmod tests { const N: &str = \"tt.load\"; }\n";
        let inside = Path::new("crates/llopt-plan/src/memory/scratch.rs");
        let outside = Path::new("crates/llopt-fuzz/src/lib.rs");
        let found = check(&definitions, &[(inside, code), (outside, code)]);
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [Some(1), Some(1)], "{found:?}");
        assert!(found.iter().all(|finding| finding.path == inside));
    }
}
