//! The records of the `.td` files.
//!
//! TableGen provides records with named fields; this file reads those that the generator needs and rejects what it
//! does not understand, so that nothing in a `.td` file is ignored silently.

use crate::constraint::{attribute_kind, type_constraint};
use crate::facts;
use crate::model::{
    Argument, AttributeField, AttributeKind, Dialect, Encodes, Enumeration, Fact, KindDefinition,
    Model, ModelError, Multiplicity, Operation, Parameter, Presence, RegionField, Relation, Style,
    ValueField,
};
use std::collections::BTreeMap;
use tblgen::{Record, RecordKeeper, TypedInit};

/// Hook flags that the generator understands.
const HOOKS: &[&str] = &[
    "hasVerifier",
    "hasRegionVerifier",
    "hasFolder",
    "hasCanonicalizer",
    "hasCustomAssemblyFormat",
];

/// Traits by which all tensors of an op have one layout.
const ONE_LAYOUT: &[&str] = &[
    "Elementwise",
    "SameOperandsAndResultEncoding",
    "SameLoadStoreOperandsAndResultEncoding",
    "SameLoadStoreOperandsEncoding",
];

/// Reads everything.
///
/// # Errors
/// The first record that the generator does not understand.
pub fn read(keeper: &RecordKeeper<'_>, names: &[&str]) -> Result<Model, ModelError> {
    let mut dialects = Vec::new();
    for record in keeper.all_derived_definitions("Dialect") {
        let name = text(record, "name")?;
        if !names.contains(&name.as_str()) {
            continue;
        }
        dialects.push(Dialect {
            summary: text(record, "summary")?,
            description: dedent(&text(record, "description")?),
            dependencies: record
                .list_of_strings_value("dependentDialects")
                .map_err(|error| error.to_string())?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            materializes_constants: flag(record, "hasConstantMaterializer"),
            operations: Vec::new(),
            attributes: Vec::new(),
            types: Vec::new(),
            enumerations: Vec::new(),
            name,
        });
    }
    dialects.sort_by_key(|dialect| names.iter().position(|name| *name == dialect.name));
    let index: BTreeMap<String, usize> = dialects
        .iter()
        .enumerate()
        .map(|(index, dialect)| (dialect.name.clone(), index))
        .collect();

    for record in ordered(keeper, "EnumInfo") {
        let namespace = text(record, "cppNamespace")?;
        if let Some(dialect) = index.get(&namespace) {
            dialects[*dialect].enumerations.push(enumeration(record)?);
        }
    }
    for record in ordered(keeper, "AttrDef") {
        if let Some(dialect) = dialect_of(record, "dialect", &index)? {
            dialects[dialect].attributes.push(kind_definition(record)?);
        }
    }
    for record in ordered(keeper, "TypeDef") {
        if let Some(dialect) = dialect_of(record, "dialect", &index)? {
            dialects[dialect].types.push(kind_definition(record)?);
        }
    }
    for record in ordered(keeper, "Op") {
        if let Some(dialect) = dialect_of(record, "opDialect", &index)? {
            let operation =
                operation(record).map_err(|error| format!("{}: {error}", name(record)))?;
            dialects[dialect].operations.push(operation);
        }
    }
    Ok(Model { dialects })
}

/// Definitions of a class in the order of the source.
pub fn ordered<'k>(keeper: &'k RecordKeeper<'_>, class: &str) -> Vec<Record<'k>> {
    let mut records: Vec<_> = keeper
        .all_derived_definitions(class)
        .filter(|record| !record.anonymous())
        .collect();
    records.sort_by_key(|record| record.id());
    records
}

/// The name of a record.
pub fn name(record: Record<'_>) -> String {
    record.name().unwrap_or("?").to_owned()
}

/// A text that must be there.
///
/// # Errors
/// A field that is missing or holds no text.
pub fn text(record: Record<'_>, field: &str) -> Result<String, ModelError> {
    record
        .str_value(field)
        .map(str::to_owned)
        .map_err(|_| format!("{} has no text in `{field}`", name(record)))
}

/// A text that may be there.
pub fn optional_text(record: Record<'_>, field: &str) -> Option<String> {
    if !record.has_field(field) || record.is_value_unset(field) {
        return None;
    }
    record.str_value(field).ok().map(str::to_owned)
}

fn flag(record: Record<'_>, field: &str) -> bool {
    record.has_field(field) && record.bit_value(field).unwrap_or(false)
}

fn dialect_of(
    record: Record<'_>,
    field: &str,
    index: &BTreeMap<String, usize>,
) -> Result<Option<usize>, ModelError> {
    let dialect = record
        .def_value(field)
        .map_err(|_| format!("{} has no dialect", name(record)))?;
    Ok(index.get(&text(dialect, "name")?).copied())
}

/// The name of an enumeration as (dialect, Rust name).
///
/// # Errors
/// A record that is not an enumeration.
pub fn enumeration_name(record: Record<'_>) -> Result<(String, String), ModelError> {
    Ok((text(record, "cppNamespace")?, text(record, "className")?))
}

fn enumeration(record: Record<'_>) -> Result<Enumeration, ModelError> {
    let cases = record
        .list_of_defs_value("enumerants")
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|case| {
            let value = case.int_value("value").map_err(|error| error.to_string())?;
            Ok((text(case, "symbol")?, text(case, "str")?, value))
        })
        .collect::<Result<_, ModelError>>()?;
    Ok(Enumeration {
        name: text(record, "className")?,
        summary: text(record, "summary")?,
        cases,
    })
}

fn kind_definition(record: Record<'_>) -> Result<KindDefinition, ModelError> {
    let style = match optional_text(record, "assemblyFormat") {
        _ if flag(record, "hasCustomAssemblyFormat") => Style::Custom,
        None => Style::Bare,
        Some(format) => match format.split_whitespace().collect::<String>().as_str() {
            "`<`struct(params)`>`" => Style::Named,
            "`<``{`struct(params)`}``>`" => Style::Braced,
            "`<`params`>`" => Style::Positional,
            _ => {
                return Err(format!(
                    "{} has an assembly format that is not understood: {format}",
                    name(record)
                ));
            }
        },
    };
    let mut parameters = Vec::new();
    let dag = record
        .dag_value("parameters")
        .map_err(|error| error.to_string())?;
    for (parameter_name, value) in dag.args() {
        let parameter: Record<'_> = value
            .try_into()
            .map_err(|_| format!("{} has a parameter that is no record", name(record)))?;
        let default = optional_text(parameter, "defaultValue").filter(|text| !text.is_empty());
        let always_printed = parameter.bit_value("alwaysPrinted").unwrap_or(false);
        let kind = text(parameter, "kind")?;
        let enumeration = if kind == "enum" {
            let cases = parameter
                .def_value("enumeration")
                .map_err(|error| error.to_string())?;
            Some(enumeration_name(cases)?)
        } else {
            None
        };
        parameters.push(Parameter {
            name: parameter_name.unwrap_or_default().to_owned(),
            kind,
            enumeration,
            default,
            always_printed,
            summary: text(parameter, "summary")?,
        });
    }
    Ok(KindDefinition {
        record: name(record),
        mnemonic: text(record, "mnemonic")?,
        summary: text(record, "summary")?,
        description: dedent(&text(record, "description")?),
        alias: optional_text(record, "alias").unwrap_or_default(),
        parameters,
        style,
        encodes: match optional_text(record, "encodes").as_deref() {
            None => None,
            Some("threads") => Some(Encodes::Threads),
            Some("memory") => Some(Encodes::Memory),
            Some(other) => return Err(format!("{} encodes {other}", name(record))),
        },
    })
}

fn operation(record: Record<'_>) -> Result<Operation, ModelError> {
    let mut operation = Operation {
        record: name(record),
        class: name(record)
            .split_once('_')
            .map_or_else(|| name(record), |(_, class)| class.to_owned()),
        mnemonic: text(record, "opName")?,
        summary: text(record, "summary")?,
        description: dedent(&text(record, "description")?),
        family: record
            .optional_def_value("opDocGroup")
            .map(|group| text(group, "summary"))
            .transpose()?
            .unwrap_or_default(),
        operands: Vec::new(),
        attributes: Vec::new(),
        arguments: Vec::new(),
        results: Vec::new(),
        regions: Vec::new(),
        traits: Vec::new(),
        parents: Vec::new(),
        facts: Vec::new(),
        relations: Vec::new(),
        effects: None,
        format: optional_text(record, "assemblyFormat"),
        hooks: HOOKS
            .iter()
            .copied()
            .filter(|hook| flag(record, hook))
            .collect(),
    };
    if flag(record, "hasCanonicalizeMethod") {
        return Err("use hasCanonicalizer instead of hasCanonicalizeMethod".into());
    }

    for (argument, value) in fields(record, "arguments")? {
        let (constraint, effects) = variable(value)?;
        if constraint.subclass_of("TypeConstraint") {
            operation
                .arguments
                .push(Argument::Operand(operation.operands.len()));
            operation
                .operands
                .push(value_field(argument, constraint, effects)?);
        } else {
            operation
                .arguments
                .push(Argument::Attribute(operation.attributes.len()));
            operation
                .attributes
                .push(attribute_field(argument, constraint)?);
        }
    }
    for (result, value) in fields(record, "results")? {
        let (constraint, effects) = variable(value)?;
        operation
            .results
            .push(value_field(result, constraint, effects)?);
    }
    for (region, value) in fields(record, "regions")? {
        operation.regions.push(region_field(region, value)?);
    }
    if fields(record, "successors")?.next().is_some() {
        return Err("successors are not supported: no operation of ours has any yet".into());
    }
    let traits = record
        .list_of_defs_value("traits")
        .map_err(|error| error.to_string())?;
    for entry in traits {
        read_trait(entry, &mut operation)?;
    }
    if operation
        .traits
        .iter()
        .any(|known| ONE_LAYOUT.contains(&known.as_str()))
    {
        operation.facts.insert(0, Fact::one_layout());
    }
    for field in operation.operands.iter().chain(&operation.results) {
        if !field.effects.is_empty() {
            operation.effects.get_or_insert_default();
        }
    }
    Ok(operation)
}

/// The (name, record) pairs of a dag.
///
/// # Errors
/// An entry that is not a record or has no name.
pub fn fields<'r>(
    record: Record<'r>,
    field: &str,
) -> Result<impl Iterator<Item = (String, Record<'r>)> + use<'r>, ModelError> {
    let dag = record.dag_value(field).map_err(|error| error.to_string())?;
    let mut pairs = Vec::new();
    for (argument, value) in dag.args() {
        let TypedInit::Def(definition) = value else {
            return Err(format!("`{field}` holds something that is no record"));
        };
        let argument = argument
            .filter(|argument| !argument.is_empty())
            .ok_or_else(|| format!("`{field}` holds an entry without a name"))?;
        pairs.push((argument.to_owned(), Record::from(definition)));
    }
    Ok(pairs.into_iter())
}

/// A constraint with the effects on what it constrains.
pub type Variable<'r> = (Record<'r>, Vec<(String, String)>);

/// Splits an `Arg` or `Res` into its constraint and its effects.
///
/// # Errors
/// A record without them.
pub fn variable(record: Record<'_>) -> Result<Variable<'_>, ModelError> {
    if !record.subclass_of("OpVariable") {
        return Ok((record, Vec::new()));
    }
    let constraint = record
        .def_value("constraint")
        .map_err(|error| error.to_string())?;
    let effects = record
        .list_of_defs_value("decorators")
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(effect)
        .collect::<Result<_, _>>()?;
    Ok((constraint, effects))
}

fn effect(record: Record<'_>) -> Result<(String, String), ModelError> {
    let effect = text(record, "effect")?;
    let effect = effect.rsplit("::").next().unwrap_or_default().to_owned();
    Ok((effect, text(record, "resource")?))
}

fn value_field(
    name: String,
    record: Record<'_>,
    effects: Vec<(String, String)>,
) -> Result<ValueField, ModelError> {
    let (multiplicity, base) = if record.subclass_of("Variadic") {
        (Multiplicity::Variadic, base_type(record)?)
    } else if record.subclass_of("Optional") {
        (Multiplicity::Optional, base_type(record)?)
    } else {
        (Multiplicity::One, record)
    };
    Ok(ValueField {
        constraint: type_constraint(base).map_err(|error| format!("`{name}`: {error}"))?,
        name,
        multiplicity,
        effects,
    })
}

fn base_type(record: Record<'_>) -> Result<Record<'_>, ModelError> {
    record
        .def_value("baseType")
        .map_err(|error| error.to_string())
}

/// The records of a list.
///
/// # Errors
/// A field that holds anything else.
pub fn list<'r>(record: Record<'r>, field: &str) -> Result<Vec<Record<'r>>, ModelError> {
    record
        .list_of_defs_value(field)
        .map_err(|error| error.to_string())
}

fn attribute_field(name: String, record: Record<'_>) -> Result<AttributeField, ModelError> {
    let mut presence = Presence::Required;
    let mut range = None;
    let mut base = record;
    loop {
        if base.subclass_of("OptionalAttr") {
            presence = Presence::Optional;
        } else if base.subclass_of("DefaultValuedAttr") {
            presence = Presence::Default(text(base, "defaultValue")?);
        } else if base.subclass_of("ConfinedAttr") {
            for constraint in list(base, "attrConstraints")? {
                if !constraint.subclass_of("InRange") {
                    return Err(format!("`{name}`: only InRange is understood"));
                }
                let bound = |field| {
                    constraint
                        .int_value(field)
                        .map_err(|error| error.to_string())
                };
                range = Some((bound("minimum")?, bound("maximum")?));
            }
        } else {
            break;
        }
        base = base
            .def_value("baseAttr")
            .map_err(|error| error.to_string())?;
    }
    let kind = attribute_kind(base).map_err(|error| format!("`{name}`: {error}"))?;
    if kind == AttributeKind::Unit {
        presence = Presence::Optional;
    }
    Ok(AttributeField {
        name,
        kind,
        presence,
        range,
    })
}

fn region_field(name: String, record: Record<'_>) -> Result<RegionField, ModelError> {
    let summary = optional_text(record, "summary").unwrap_or_default();
    let count = || {
        summary
            .split_whitespace()
            .find_map(|word| word.parse::<u32>().ok())
    };
    Ok(RegionField {
        name,
        blocks: record.subclass_of("SizedRegion").then(count).flatten(),
        at_least_one: record.subclass_of("MinSizedRegion"),
        variadic: record.subclass_of("VariadicRegion"),
    })
}

fn read_trait(record: Record<'_>, operation: &mut Operation) -> Result<(), ModelError> {
    if name(record) == "ReturnLike" {
        // ODS has a list here; the bridge has one trait for it.
        operation.traits.push("ReturnLike".to_owned());
    } else if record.subclass_of("TraitList") {
        for entry in list(record, "traits")? {
            read_trait(entry, operation)?;
        }
    } else if record.subclass_of("TypesMatchWith") {
        operation.relations.push(Relation {
            summary: text(record, "summary")?,
            from: text(record, "lhs")?,
            to: text(record, "rhs")?,
            transform: text(record, "transformer")?,
        });
    } else if record.subclass_of("AllTypesMatch") {
        let names = record
            .list_of_strings_value("values")
            .map_err(|error| error.to_string())?;
        if let Some((first, rest)) = names.split_first() {
            operation.relations.extend(rest.iter().map(|to| Relation {
                summary: format!("{first} and {to} have one type"),
                from: (*first).to_owned(),
                to: (*to).to_owned(),
                transform: "same".to_owned(),
            }));
        }
    } else if record.subclass_of("MemoryEffects") {
        let effects = list(record, "effects")?
            .into_iter()
            .map(effect)
            .collect::<Result<Vec<_>, _>>()?;
        operation.effects.get_or_insert_default().extend(effects);
    } else if record.subclass_of("Fact") {
        operation.facts.push(facts::fact(record)?);
    } else if record.subclass_of("ParentOp") {
        operation.parents.push(text(record, "parent")?);
    } else if record.anonymous() {
        return Err(format!(
            "an anonymous trait is not understood: {}",
            optional_text(record, "trait").unwrap_or_default()
        ));
    } else {
        operation.traits.push(name(record));
    }
    Ok(())
}

/// Removes the common indentation of a text.
fn dedent(text: &str) -> String {
    let indentation = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    text.lines()
        .map(|line| line.get(indentation..).unwrap_or("").trim_end())
        .collect::<Vec<_>>()
        .join("\n")
        .trim()
        .to_owned()
}
