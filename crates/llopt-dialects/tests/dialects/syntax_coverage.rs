//! Every operation, attribute and type of the tables, and every choice that their syntax offers, is
//! in a lit test that reads and prints it.
//!
//! The tests are `lit-tests/dialects/*/syntax*.mlir`; lit compares what is printed with what was
//! read. Here the same files are parsed and compared with the generated tables:
//!
//! - an operation occurs, its optional operands, results and attributes once absent and once
//!   present, its variadic ones with values, attributes with a default once as the default and once
//!   as something else, unit and boolean attributes with both values;
//! - a case of an enumeration occurs in an attribute of an operation, or as a keyword of an
//!   attribute's parameter;
//! - a parameter of an attribute or type occurs, and if it has a default also something else.
//!
//! Missing cases are listed, so a new record in `dialects/` says which line to write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use llopt_dialects::tables::access;
use llopt_dialects::tables::definition::{
    AttributeField, AttributeKind, DefaultValue, EnumDefinition, KindDefinition, Multiplicity,
    OpDefinition, ParameterKind, Presence, Style,
};
use llopt_mlir::dialect::OpSpec;
use llopt_mlir::ir::{OperationExt, Walk};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{
        Attribute, OperationRef,
        attribute::IntegerAttribute,
        operation::{OperationLike, OperationPrintingFlags},
    },
};

fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context
}

/// The lit tests of the syntax.
fn syntax_tests() -> io::Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lit-tests/dialects");
    let mut files = Vec::new();
    for folder in fs::read_dir(root)? {
        for file in fs::read_dir(folder?.path())? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("syntax") && name.ends_with(".mlir") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What occurs in the tests, by the names under which missing cases are reported.
#[derive(Default)]
struct Seen {
    facts: BTreeSet<String>,
    /// All modules without aliases.
    text: String,
}

impl Seen {
    fn note(&mut self, fact: String) {
        self.facts.insert(fact);
    }

    fn operation(&mut self, operation: OperationRef<'_, '_>) {
        let Some(definition) = OpDefinition::of(operation) else {
            return;
        };
        let name = definition.name;
        self.note(name.to_owned());
        for (index, field) in definition.operands.iter().enumerate() {
            let count = access::operand_list(operation, definition, index).len();
            self.note(format!("{name}: {}", group(field.name, count > 0)));
        }
        for (index, field) in definition.results.iter().enumerate() {
            let count = access::result_list(operation, definition, index).len();
            self.note(format!("{name}: {}", group(field.name, count > 0)));
        }
        for (index, field) in definition.attributes.iter().enumerate() {
            let value = OpSpec::slot(operation, index);
            self.note(format!("{name}: {}", choice(field, value)));
            if let (AttributeKind::Enum(cases), Some(value)) = (field.kind, value) {
                let keyword = IntegerAttribute::try_from(value)
                    .ok()
                    .and_then(|value| cases.keyword(value.value()));
                self.note(case(cases, keyword.unwrap_or("?")));
            }
        }
    }
}

fn group(name: &str, present: bool) -> String {
    format!("`{name}` {}", if present { "present" } else { "absent" })
}

fn case(cases: &EnumDefinition, keyword: &str) -> String {
    format!("{} = {keyword}", cases.name)
}

/// The choice of a field in an operation.
fn choice(field: &AttributeField, value: Option<Attribute<'_>>) -> String {
    let name = field.name;
    match (field.presence, field.kind, value) {
        (_, AttributeKind::Unit, value) => group(name, value.is_some()),
        (_, AttributeKind::Bool, Some(value)) => format!("`{name}` {value}"),
        (Presence::Default(default), _, value) => {
            let is_default = match (default, value) {
                (_, None) => true,
                (DefaultValue::Integer(default), Some(value)) => IntegerAttribute::try_from(value)
                    .is_ok_and(|attribute| attribute.value() == default),
                (DefaultValue::Bool(default), Some(value)) => {
                    value.to_string() == default.to_string()
                }
                (DefaultValue::EmptyArray, Some(value)) => {
                    access::i32_values(value).is_some_and(|list| list.is_empty())
                }
            };
            format!(
                "`{name}` {}",
                if is_default { "as default" } else { "given" }
            )
        }
        (_, _, value) => group(name, value.is_some()),
    }
}

/// The choices that a field offers.
fn choices(field: &AttributeField) -> Vec<String> {
    let name = field.name;
    match (field.presence, field.kind) {
        (_, AttributeKind::Unit) | (Presence::Optional, _) => {
            vec![group(name, true), group(name, false)]
        }
        (_, AttributeKind::Bool) => vec![format!("`{name}` true"), format!("`{name}` false")],
        (Presence::Default(_), _) => {
            vec![format!("`{name}` as default"), format!("`{name}` given")]
        }
        (Presence::Required, _) => vec![group(name, true)],
    }
}

/// Everything that has to occur because of an operation.
fn demands(definition: &OpDefinition) -> Vec<String> {
    let name = definition.name;
    let mut all = vec![name.to_owned()];
    let mut demand = |what: String| all.push(format!("{name}: {what}"));
    for field in definition.operands.iter().chain(definition.results) {
        demand(group(field.name, true));
        if field.multiplicity == Multiplicity::Optional {
            demand(group(field.name, false));
        }
    }
    for field in definition.attributes {
        // Sizes of operand groups are not written.
        if !field.name.ends_with("SegmentSizes") {
            choices(field).into_iter().for_each(&mut demand);
        }
    }
    all
}

/// What an attribute or type lacks in the text.
fn missing_of_kind(definition: &KindDefinition, prefix: char, text: &str) -> Vec<String> {
    let full = format!("{prefix}{}", definition.name);
    let short = definition.name.split_once('.').map_or("", |(_, name)| name);
    let uses: Vec<&str> = text
        .match_indices(&full)
        .map(|(at, _)| &text[at + full.len()..])
        .chain(
            // Types lose their dialect where the operation expects one of it.
            text.match_indices(&format!("<{short}<"))
                .map(|(at, found)| &text[at + found.len() - 1..]),
        )
        .filter(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        .map(parameters)
        .collect();
    if uses.is_empty() {
        return vec![full];
    }
    let mut missing = Vec::new();
    if matches!(definition.style, Style::Named | Style::Braced) {
        for parameter in definition.parameters {
            let written = format!("{} = ", parameter.name);
            if !uses.iter().any(|text| text.contains(&written)) {
                missing.push(format!("{full}: `{}`", parameter.name));
            }
        }
    }
    missing
}

/// The text from `<` to the `>` that closes it; nothing where there is none.
fn parameters(text: &str) -> &str {
    if !text.starts_with('<') {
        return "";
    }
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..=at];
        }
    }
    text
}

#[test]
fn every_choice_of_the_syntax_is_tested() {
    let context = context();
    let mut seen = Seen::default();
    let files = syntax_tests().unwrap();
    assert!(files.len() > 10, "{} files", files.len());
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        for (number, part) in source.split("\n// -----\n").enumerate() {
            let name = format!("{}, part {number}", path.display());
            let module = llopt_mlir::parse_module(&context, part.as_bytes(), &name)
                .unwrap_or_else(|errors| panic!("{}", errors[0]));
            let flags = OperationPrintingFlags::new().use_local_scope();
            let printed = module.as_operation().to_string_with_flags(flags).unwrap();
            seen.text.push_str(&printed);
            module
                .as_operation()
                .for_each_op(Walk::PreOrder, |operation| seen.operation(operation));
        }
    }
    let mut missing = Vec::new();
    for dialect in llopt_dialects::dialects() {
        for definition in dialect.operations {
            let demands = demands(definition).into_iter();
            missing.extend(demands.filter(|demand| !seen.facts.contains(demand)));
        }
        let mut keywords: Vec<&EnumDefinition> = Vec::new();
        for definition in dialect.attributes {
            missing.extend(missing_of_kind(definition, '#', &seen.text));
            keywords.extend(definition.parameters.iter().filter_map(
                |parameter| match parameter.kind {
                    ParameterKind::Enum(cases) => Some(cases),
                    _ => None,
                },
            ));
        }
        for definition in dialect.types {
            missing.extend(missing_of_kind(definition, '!', &seen.text));
        }
        for cases in dialect.enumerations {
            let of_parameter = keywords.iter().any(|other| other.name == cases.name);
            for keyword in cases.keywords {
                let found = seen.facts.contains(&case(cases, keyword))
                    || (of_parameter && seen.text.contains(&format!("<{keyword}>")));
                if !found {
                    missing.push(case(cases, keyword));
                }
            }
        }
    }
    assert!(missing.is_empty(), "untested:\n{}", missing.join("\n"));
}
