//! For each kind of meaning that several ops share (`Means<"Shape">`), the enumeration of exactly these ops. A match
//! over it without a wildcard does not compile until a new op that declares the meaning has an arm.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::{Fact, Model};

/// The kinds that determine by themselves, or by a value, what an op does.
const WITHOUT_OPS: &[&str] = &["Unknown", "Nothing"];

/// The code of the enumerations.
pub fn meanings(model: &Model) -> String {
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for dialect in &model.dialects {
        for operation in &dialect.operations {
            let Some(kind) = declared(&operation.facts) else {
                continue;
            };
            let class = &operation.class;
            let short = class.strip_suffix("Op").unwrap_or(class);
            let name = &dialect.name;
            let of_dialect = capital(name);
            let variant = format!("{of_dialect}{short}");
            let kind = kinds.entry(kind).or_default();
            let _ = writeln!(
                kind.variants,
                "    /// `{name}.{mnemonic}`\n    {variant}(crate::{name}::{class}<'c, 'a>),",
                mnemonic = operation.mnemonic
            );
            let _ = writeln!(
                kind.of,
                "            Op::{of_dialect}(crate::{name}::Op::{short}(op)) => Some(Self::{variant}(op)),"
            );
            let _ = writeln!(
                kind.back,
                "            Self::{variant}(op) => op.operation(),"
            );
        }
    }
    let mut code = String::new();
    for (kind, Kind { variants, of, back }) in kinds {
        let _ = writeln!(
            code,
            "/// The ops that declare [`Meaning::{kind}`](super::facts::Meaning::{kind}).\n\
             #[derive(Clone, Copy, Debug)]\n\
             pub enum {kind}Op<'c, 'a> {{\n{variants}}}\n\n\
             impl<'c, 'a> {kind}Op<'c, 'a> {{\n\
             /// The op, `None` when it declares another meaning.\n\
             #[must_use]\n\
             pub fn of(op: Op<'c, 'a>) -> Option<Self> {{\n        match op {{\n{of}            _ => None,\n        }}\n    }}\n\n\
             /// The operation itself.\n\
             #[must_use]\n\
             pub fn operation(self) -> OperationRef<'c, 'a> {{\n        match self {{\n{back}        }}\n    }}\n\
             }}\n"
        );
    }
    code
}

/// The code for one kind.
#[derive(Default)]
struct Kind {
    variants: String,
    of: String,
    back: String,
}

/// The kind of meaning that an op declares, if no value of its own determines it.
fn declared(facts: &[Fact]) -> Option<&str> {
    let meaning = facts.iter().rfind(|fact| fact.question == "meaning")?;
    let kind = meaning.answer.strip_prefix("Meaning::")?;
    (!kind.contains('(') && !WITHOUT_OPS.contains(&kind)).then_some(kind)
}

/// `Ttg` for `ttg`.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
