//! The enumeration of all encodings: a variant for each record that declares what it encodes.

use std::fmt::Write as _;

use crate::lower::screaming;
use crate::model::{Encodes, Model};

/// Its code.
pub fn encodings(model: &Model) -> String {
    let mut variants = String::new();
    let mut calls = String::new();
    let mut specs = String::new();
    let mut reads = String::new();
    let mut names = String::new();
    let mut distributed = String::new();
    for dialect in &model.dialects {
        for kind in &dialect.attributes {
            let Some(encodes) = kind.encodes else {
                continue;
            };
            let name = rust_name(&kind.record);
            let full = format!("{}.{}", dialect.name, kind.mnemonic);
            let spec = format!(
                "crate::{}::attribute::{}",
                dialect.name,
                screaming(&kind.mnemonic)
            );
            let _ = writeln!(variants, "    /// `#{full}`\n    {name}({name}),");
            let _ = writeln!(calls, "            Encoding::{name}($encoding) => $call,");
            let _ = writeln!(names, "            Self::{name}(_) => {full:?},");
            let _ = writeln!(specs, "            Self::{name}(_) => {spec},");
            let _ = writeln!(
                distributed,
                "            Self::{name}(_) => {},",
                encodes == Encodes::Threads
            );
            let _ = writeln!(
                reads,
                "        if fields.are_of({spec}) {{\n            return Kind::read(fields).map(Self::{name}).map(Some);\n        }}"
            );
        }
    }
    format!(
        "/// A layout attribute of any kind, as plain data.\n\
         ///\n\
         /// A value may be built with any fields; [`Encoding::verify`] and [`Encoding::linear_layout`] refuse\n\
         /// those that mean nothing.\n\
         #[derive(Clone, Debug, PartialEq, Eq, Hash)]\n\
         pub enum Encoding {{\n{variants}}}\n\n\
         /// Calls a method that every kind has.\n\
         macro_rules! each_kind {{\n    ($self:expr, $encoding:ident => $call:expr) => {{\n        match $self {{\n{calls}        }}\n    }};\n}}\n\n\
         impl Encoding {{\n\
         /// The attribute's name in the IR: `ttg.blocked`, `ttng.tensor_memory_encoding`, …\n\
         #[must_use]\n\
         pub fn name(&self) -> &'static str {{\n        match self {{\n{names}        }}\n    }}\n\n\
         /// Whether the encoding spreads a tensor over threads, as opposed to laying it out in a memory.\n\
         #[must_use]\n\
         pub fn is_distributed(&self) -> bool {{\n        match self {{\n{distributed}        }}\n    }}\n\n\
         /// The kind of the attribute.\n\
         fn spec(&self) -> &'static llopt_mlir::dialect::AttributeSpec {{\n        match self {{\n{specs}        }}\n    }}\n\n\
         /// The encoding with these fields; nothing for attributes that are not encodings.\n\
         fn read(fields: &Fields<'_>) -> Result<Option<Self>, EncodingError> {{\n{reads}        Ok(None)\n    }}\n\
         }}\n"
    )
}

/// `AmdRotatingShared` for `TTG_AMDRotatingSharedEncodingAttr`.
fn rust_name(record: &str) -> String {
    let name = record.split_once('_').map_or(record, |(_, name)| name);
    let name = name.strip_suffix("EncodingAttr").unwrap_or(name);
    let letters: Vec<char> = name.chars().collect();
    let mut rust = String::new();
    for (at, letter) in letters.iter().enumerate() {
        // Of several capitals only the first one remains, and the last one, which begins the next word.
        let follows = at > 0 && letters[at - 1].is_uppercase();
        let begins = letters.get(at + 1).is_none_or(|next| next.is_lowercase());
        if follows && !begins {
            rust.extend(letter.to_lowercase());
        } else {
            rust.push(*letter);
        }
    }
    rust
}
