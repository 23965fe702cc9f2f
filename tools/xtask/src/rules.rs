//! The page of rules: the messages of the verifiers, from the tests that pin them.
//!
//! A rule is a line `expected-error {{…}}` of a file `lit-tests/dialects/*/*invalid*.mlir`. Each is listed once,
//! under the operation that breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace;

const HEAD: &str = "\
# Rules

What operations, attributes and types have to obey, in the words of the verifiers; made by
`cargo xtask docs` from the tests that pin each message whole. A message names what is at fault and,
where there is one, the layout that would be right.

llopt accepts what Triton 3.6 accepts wherever it means something. Where Triton has no rule and llopt
has, the text has no meaning: an axis beyond the rank, an index too few for the block of a
descriptor, an atomic update that its element type does not have, a part outside of its buffer.
`python tools/oracle/compare_dialects.py --llopt llopt lit-tests/dialects` lists these rules.
";

/// The text of the page.
pub fn page() -> Result<String> {
    let root = workspace::root().join("lit-tests/dialects");
    let mut subjects: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for folder in entries(&root)? {
        for file in entries(&root.join(&folder))? {
            if !(file.contains("invalid") && file.ends_with(".mlir")) {
                continue;
            }
            let name = format!("{folder}/{file}");
            for message in messages(&fs::read_to_string(root.join(&name))?) {
                let (subject, rule) = split(&message, &folder);
                let rules = subjects.entry(subject).or_default();
                rules.insert((rule, name.clone()));
            }
        }
    }
    let mut text = HEAD.to_owned();
    for (subject, rules) in subjects {
        text.push_str(&format!(
            "\n## {subject}\n\n| message | test |\n|---|---|\n"
        ));
        for (rule, file) in rules {
            let rule = rule.replace('|', "\\|");
            text.push_str(&format!(
                "| `` {rule} `` | [{file}](../../lit-tests/dialects/{file}) |\n"
            ));
        }
    }
    Ok(text)
}

/// The names in a folder, sorted; none for a file.
fn entries(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = fs::read_dir(folder)
        .with_context(|| format!("cannot list `{}`", folder.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// The messages that a test expects.
fn messages(test: &str) -> impl Iterator<Item = String> + '_ {
    test.lines().filter_map(|line| {
        let (_, rest) = line.split_once("// expected-error")?;
        let (_, rest) = rest.split_once("{{")?;
        let (message, _) = rest.rsplit_once("}}")?;
        // It follows another message, which has the cause.
        (!message.ends_with("failed to infer returned types")).then(|| message.to_owned())
    })
}

/// The operation that breaks a rule, and the message: `'tt.load' op …` and `custom op 'tt.load' …` name the
/// operation.
fn split(message: &str, dialect: &str) -> (String, String) {
    let quoted = message.strip_prefix("custom op ").unwrap_or(message);
    let named = quoted
        .strip_prefix('\'')
        .and_then(|rest| rest.split_once('\''))
        .map(|(name, rule)| (name, rule.trim_start()));
    match named {
        Some((name, rule)) => {
            let rule = rule.strip_prefix("op ").unwrap_or(rule);
            (format!("`{name}`"), rule.to_owned())
        }
        None => (
            format!("Attributes and types of {dialect}"),
            message.to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_filed_under_their_operation() {
        let test = "  // expected-error @+1 {{'tt.cat' op the result has 16}}\n  tt.cat\n\
                    // expected-error@+1 {{`order` is [0]}}\n";
        let found: Vec<_> = messages(test).map(|text| split(&text, "tt")).collect();
        let expected = [
            ("`tt.cat`", "the result has 16"),
            ("Attributes and types of tt", "`order` is [0]"),
        ];
        assert_eq!(
            found,
            expected.map(|(subject, rule)| (subject.to_owned(), rule.to_owned()))
        );
        assert_eq!(
            split("custom op 'tt.load' no such type", "tt").0,
            "`tt.load`"
        );
    }
}
