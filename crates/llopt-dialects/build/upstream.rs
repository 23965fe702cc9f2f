//! The ops that tile IR uses from MLIR's own dialects: `dialects/upstream.td` lists them, and MLIR's `.td` files
//! define them.
//!
//! Each op gets a wrapper and each dialect an enumeration, like the dialects defined here. MLIR parses, prints and
//! verifies these ops itself, so types and constraints are not read here, only the names of operands, results,
//! attributes and regions, and their positions.

use crate::{
    emit::identifier,
    facts,
    model::{Fact, ModelError, Multiplicity},
    read::{fields, list, name, ordered, text, variable},
};
use std::{collections::BTreeMap, fmt::Write};
use tblgen::{Record, RecordKeeper};

/// An op that tile IR uses.
struct Taken<'k> {
    record: Record<'k>,
    facts: Vec<Fact>,
}

/// A group of operands or results.
struct Group {
    name: String,
    multiplicity: Multiplicity,
}

/// The Rust source: one module for each dialect, and the list of them.
///
/// # Errors
/// The first record that the generator does not understand.
pub fn upstream(keeper: &RecordKeeper<'_>) -> Result<String, ModelError> {
    let mut dialects: BTreeMap<String, BTreeMap<String, Taken<'_>>> = BTreeMap::new();
    let mut take = |record, facts: Vec<Fact>| -> Result<(), ModelError> {
        let ops = dialects.entry(dialect(record, "opDialect")?).or_default();
        let mut facts = facts;
        if is_elementwise(record)? {
            facts.insert(0, Fact::one_layout());
        }
        ops.insert(text(record, "opName")?, Taken { record, facts });
        Ok(())
    };
    let whole: Vec<String> = keeper
        .all_derived_definitions("TakesAll")
        .map(|taken| dialect(taken, "dialect"))
        .collect::<Result<_, _>>()?;
    for record in ordered(keeper, "Op") {
        if whole.contains(&dialect(record, "opDialect")?) {
            take(record, Vec::new())?;
        }
    }
    for taken in keeper.all_derived_definitions("Takes") {
        let operation = taken
            .def_value("operation")
            .map_err(|error| error.to_string())?;
        take(operation, facts::read(list(taken, "facts")?)?)?;
    }

    let mut code = String::from("// Generated from dialects/upstream.td by build/main.rs.\n");
    for (dialect, ops) in &dialects {
        code.push_str(&module(dialect, ops)?);
    }
    Ok(code)
}

fn dialect(record: Record<'_>, field: &str) -> Result<String, ModelError> {
    let dialect = record.def_value(field).map_err(|error| error.to_string())?;
    text(dialect, "name")
}

/// Whether an op is elementwise.
fn is_elementwise(record: Record<'_>) -> Result<bool, ModelError> {
    let mut pending = list(record, "traits")?;
    while let Some(entry) = pending.pop() {
        if name(entry) == "Elementwise" {
            return Ok(true);
        }
        if entry.subclass_of("TraitList") {
            pending.extend(list(entry, "traits")?);
        }
    }
    Ok(false)
}

/// The name of the wrapper, e.g. `AddIOp`.
fn class(record: Record<'_>) -> String {
    let name = name(record);
    let name = name.split_once('_').map_or(&name[..], |(_, class)| class);
    format!("{}Op", name.strip_suffix("Op").unwrap_or(name))
}

fn module(dialect: &str, ops: &BTreeMap<String, Taken<'_>>) -> Result<String, ModelError> {
    let mut wrappers = String::new();
    let mut variants = String::new();
    let mut make = String::new();
    let mut back = String::new();
    let mut positions = String::new();
    let mut declared = String::new();
    let mut enumerations: BTreeMap<String, String> = BTreeMap::new();
    // Sorted by name, by which an op is found.
    for (index, (mnemonic, taken)) in ops.iter().enumerate() {
        let class = class(taken.record);
        let variant = class.strip_suffix("Op").unwrap_or(&class).to_owned();
        wrappers.push_str(&wrapper(
            dialect,
            mnemonic,
            &class,
            taken.record,
            &mut enumerations,
        )?);
        let _ = writeln!(
            variants,
            "/// `{dialect}.{mnemonic}`\n{variant}({class}<'c, 'a>),"
        );
        let _ = writeln!(
            make,
            "{index} => Some(Self::{variant}({class}(operation))),"
        );
        let _ = writeln!(back, "Self::{variant}(operation) => operation.0,");
        let _ = write!(positions, "{mnemonic:?} => {index}, ");
        let _ = writeln!(declared, "{},", facts::expression(&taken.facts));
    }
    let enumerations: String = enumerations.into_values().collect();
    let count = ops.len();
    Ok(format!(
        "/// What tile IR takes from MLIR's dialect `{dialect}`.\n\
         pub mod {dialect} {{\n\
         use super::*;\n\
         /// What is declared of them.\n\
         pub(crate) static FACTS: [OpFacts; {count}] = [\n{declared}];\n\
         /// The position of an op in the tables.\n\
         pub(crate) fn position(mnemonic: &str) -> Option<usize> {{\n\
         Some(match mnemonic {{ {positions}_ => return None }})\n}}\n\
         /// Every op of the dialect that tile IR has. Match it without a wildcard.\n\
         #[derive(Clone, Copy, Debug, PartialEq)]\n\
         pub enum Op<'c, 'a> {{\n{variants}}}\n\
         impl<'c, 'a> Op<'c, 'a> {{\n\
         /// The op, `None` when it is another one.\n\
         pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {{\n\
         Self::at(position(mnemonic(operation, \"{dialect}\")?)?, operation)\n}}\n\
         pub(crate) fn at(index: usize, operation: OperationRef<'c, 'a>) -> Option<Self> {{\n\
         match index {{\n{make}_ => None,\n}}\n}}\n\
         /// The operation itself.\n\
         pub fn operation(self) -> OperationRef<'c, 'a> {{ match self {{\n{back}}} }}\n\
         }}\n{enumerations}{wrappers}}}\n"
    ))
}

fn groups(record: Record<'_>, field: &str) -> Result<Vec<Group>, ModelError> {
    let mut groups = Vec::new();
    for (name, value) in fields(record, field)? {
        let (constraint, _) = variable(value)?;
        if !constraint.subclass_of("TypeConstraint") {
            continue;
        }
        let multiplicity = if constraint.subclass_of("Variadic") {
            Multiplicity::Variadic
        } else if constraint.subclass_of("Optional") {
            Multiplicity::Optional
        } else {
            Multiplicity::One
        };
        groups.push(Group { name, multiplicity });
    }
    Ok(groups)
}

fn wrapper(
    dialect: &str,
    mnemonic: &str,
    class: &str,
    record: Record<'_>,
    enumerations: &mut BTreeMap<String, String>,
) -> Result<String, ModelError> {
    let mut accessors = String::new();
    let operands = groups(record, "arguments")?;
    for (index, operand) in operands.iter().enumerate() {
        accessors.push_str(&operand_accessor(&operands, index, operand));
    }
    for (field, value) in fields(record, "arguments")? {
        let (constraint, _) = variable(value)?;
        if !constraint.subclass_of("TypeConstraint") {
            accessors.push_str(&attribute_accessor(&field, constraint, enumerations)?);
        }
    }
    for (offset, (field, value)) in fields(record, "regions")?.enumerate() {
        let method = identifier(&field);
        let (r#type, call) = match value.subclass_of("VariadicRegion") {
            true => ("Vec<RegionRef<'c, 'a>>", "regions"),
            false => ("RegionRef<'c, 'a>", "region"),
        };
        let _ = writeln!(
            accessors,
            "/// `{field}`.\npub fn {method}(self) -> {type} {{ access::{call}(self.0, {offset}) }}"
        );
    }
    Ok(format!(
        "/// `{dialect}.{mnemonic}`.\n\
         #[derive(Clone, Copy, Debug, PartialEq)]\n\
         pub struct {class}<'c, 'a>(pub(super) OperationRef<'c, 'a>);\n\
         impl<'c, 'a> {class}<'c, 'a> {{\n\
         /// The full name.\npub const NAME: &'static str = \"{dialect}.{mnemonic}\";\n\
         /// The op, `None` when it is another one.\n\
         pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {{ operation.is_named(Self::NAME).then_some(Self(operation)) }}\n\
         /// The op that defines a value, `None` when it is another one.\n\
         pub fn defining(value: Value<'c, 'a>) -> Option<Self> {{ access::defining(value).and_then(Self::of) }}\n\
         /// The operation itself.\npub fn operation(self) -> OperationRef<'c, 'a> {{ self.0 }}\n\
         {accessors}}}\n"
    ))
}

fn operand_accessor(groups: &[Group], index: usize, group: &Group) -> String {
    let method = identifier(&group.name);
    let varies = |group: &&Group| group.multiplicity != Multiplicity::One;
    let variable = groups.iter().filter(varies).count();
    let before = groups[..index].iter().filter(varies).count();
    let after = groups.len() - index - 1;
    let body = match (variable, group.multiplicity) {
        (_, Multiplicity::One) if before == 0 => {
            return format!(
                "/// `{}`.\npub fn {method}(self) -> Value<'c, 'a> {{ access::operand_at(self.0, {index}) }}\n",
                group.name
            );
        }
        (1, Multiplicity::One) => {
            return format!(
                "/// `{}`.\npub fn {method}(self) -> Value<'c, 'a> {{ access::operand_from_end(self.0, {after}) }}\n",
                group.name
            );
        }
        (1, _) => format!("access::operands_between(self.0, {index}, {after})"),
        _ => format!("access::operand_segment(self.0, {index})"),
    };
    format!(
        "/// `{}`.\npub fn {method}(self) -> Vec<Value<'c, 'a>> {{ {body} }}\n",
        group.name
    )
}

fn attribute_accessor(
    field: &str,
    constraint: Record<'_>,
    enumerations: &mut BTreeMap<String, String>,
) -> Result<String, ModelError> {
    let method = identifier(field);
    if !constraint.subclass_of("IntEnumAttr") || constraint.subclass_of("BitEnumAttr") {
        return Ok(format!(
            "/// `{field}`, if it is there.\npub fn {method}(self) -> Option<Attribute<'c>> {{ self.0.attr({field:?}) }}\n"
        ));
    }
    let name = text(constraint, "className")?;
    if !enumerations.contains_key(&name) {
        let code = enumeration(&name, constraint)?;
        enumerations.insert(name.clone(), code);
    }
    Ok(format!(
        "/// `{field}`.\n\
         pub fn {method}(self) -> Option<{name}> {{ {name}::from_value(self.0.attr({field:?})?.as_i64()?) }}\n"
    ))
}

/// A Rust enumeration of the cases of an attribute.
fn enumeration(name: &str, constraint: Record<'_>) -> Result<String, ModelError> {
    let mut variants = String::new();
    let mut from = String::new();
    for case in list(constraint, "enumerants")? {
        let keyword = text(case, "str")?;
        let value = case.int_value("value").map_err(|error| error.to_string())?;
        let mut characters = keyword.chars();
        let variant: String = characters
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .chain(characters)
            .collect();
        let _ = writeln!(variants, "/// `{keyword}`\n{variant} = {value},");
        let _ = writeln!(from, "{value} => Some(Self::{variant}),");
    }
    Ok(format!(
        "/// The cases of an attribute.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n\
         pub enum {name} {{\n{variants}}}\n\
         impl {name} {{\n\
         /// The case of a value.\n\
         pub const fn from_value(value: i64) -> Option<Self> {{ match value {{\n{from}_ => None,\n}} }}\n}}\n"
    ))
}
