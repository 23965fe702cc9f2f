//! Writes the tables of a dialect: its `DialectSpec` and everything that it refers to.

use crate::{
    facts, format,
    lower::{self, kind_path, screaming, snake},
    model::{
        AttributeField, AttributeKind, Dialect, KindDefinition, Model, Multiplicity, Operation,
        Parameter, Presence, RegionField, Style, TypeConstraint, ValueField,
    },
    wrapper,
};
use std::fmt::Write;

/// Native traits of MLIR that the bridge knows, by their name in ODS.
const MLIR_TRAITS: &[(&str, &str)] = &[
    ("Terminator", "IsTerminator"),
    ("IsolatedFromAbove", "IsolatedFromAbove"),
    ("Commutative", "Commutative"),
    ("ReturnLike", "ReturnLike"),
    ("RecursiveMemoryEffects", "RecursiveMemoryEffects"),
    ("AffineScope", "AffineScope"),
    ("AutomaticAllocationScope", "AutomaticAllocationScope"),
    ("SingleBlock", "SingleBlock"),
    ("NoTerminator", "NoTerminator"),
    ("Elementwise", "Elementwise"),
    ("SameTypeOperands", "SameTypeOperands"),
    ("SameOperandsAndResultType", "SameOperandsAndResultType"),
    ("SameOperandsShape", "SameOperandsShape"),
    ("SameOperandsAndResultShape", "SameOperandsAndResultShape"),
    ("SameOperandsElementType", "SameOperandsElementType"),
    (
        "SameOperandsAndResultElementType",
        "SameOperandsAndResultElementType",
    ),
    ("AttrSizedOperandSegments", "AttrSizedOperandSegments"),
    ("AttrSizedResultSegments", "AttrSizedResultSegments"),
];

/// Traits that become data elsewhere.
const CONSUMED_TRAITS: &[&str] = &[
    "SameVariadicOperandSize",
    "SameVariadicResultSize",
    "ConditionallySpeculatable",
    "AlwaysSpeculatableImplTrait",
    "RecursivelySpeculatableImplTrait",
    "NoMemoryEffect",
    "MemoryEffectsOpInterface",
    "InferTypeOpInterface",
    "CallOpInterface",
    "CallableOpInterface",
    "FunctionOpInterface",
    "SymbolUserOpInterface",
    "RegionBranchOpInterface",
    "RegionBranchTerminatorOpInterface",
];

/// The Rust source for one dialect. Mistakes are added to `mistakes`.
pub fn dialect(model: &Model, dialect: &Dialect, mistakes: &mut Vec<String>) -> String {
    let mut code = String::from("// Generated from the .td files by build/main.rs.\n");
    for enumeration in &dialect.enumerations {
        code.push_str(&wrapper::enumeration(dialect, enumeration));
    }
    let mut definitions = String::new();
    let mut specs = String::new();
    for (index, operation) in dialect.operations.iter().enumerate() {
        match operation_tables(model, dialect, index, operation) {
            Ok((definition, spec)) => {
                let _ = writeln!(definitions, "    {definition},");
                let _ = writeln!(specs, "    {spec},");
            }
            Err(error) => mistakes.push(format!("{}: {error}", operation.record)),
        }
    }
    let count = dialect.operations.len();
    let _ = writeln!(
        code,
        "/// What the `.td` files say about each operation.\n\
         pub static DEFINITIONS: [OpDefinition; {count}] = [\n{definitions}];\n\
         /// The operations as MLIR sees them, in the same order.\n\
         pub static OPERATIONS: [OpSpec; {count}] = [\n{specs}];"
    );
    code.push_str(&kinds(model, dialect, "ATTRIBUTE", &dialect.attributes));
    code.push_str(&kinds(model, dialect, "TYPE", &dialect.types));

    let enumerations: String = dialect
        .enumerations
        .iter()
        .map(|enumeration| format!("&{}::DEFINITION, ", enumeration.name))
        .collect();
    let materialize = if dialect.materializes_constants {
        "Some(crate::tables::operation_builder::constant)"
    } else {
        "None"
    };
    let _ = writeln!(
        code,
        "/// The dialect as the reference pages see it.\n\
         pub static DEFINITION: DialectDefinition = DialectDefinition {{ name: {name:?}, summary: {summary:?}, \
         description: {description:?}, operations: &DEFINITIONS, attributes: &ATTRIBUTE_DEFINITIONS, \
         types: &TYPE_DEFINITIONS, enumerations: &[{enumerations}] }};\n\
         /// The dialect as MLIR sees it.\n\
         pub static DIALECT: DialectSpec = DialectSpec {{ operations: &OPERATIONS, attributes: &ATTRIBUTES, \
         types: &TYPES, dependencies: &{dependencies:?}, materialize_constant: {materialize}, \
         ..crate::{name_path}::dialect_hooks() }};",
        name = dialect.name,
        name_path = dialect.name,
        summary = dialect.summary,
        description = dialect.description,
        dependencies = dialect.dependencies,
    );
    code.push_str(&wrapper::wrappers(model, dialect));
    code
}

fn operation_tables(
    model: &Model,
    dialect: &Dialect,
    index: usize,
    operation: &Operation,
) -> Result<(String, String), String> {
    let full_name = format!("{}.{}", dialect.name, operation.mnemonic);
    let function = function_name(&operation.mnemonic);
    let hook = |module: &str| format!("crate::{}::{module}::{function}", dialect.name);
    let has_hook = |name: &str| operation.hooks.contains(&name);

    let format = match &operation.format {
        None => None,
        Some(text) => {
            let elements = format::parse(text).map_err(|error| error.render(text))?;
            Some(
                lower::lower(model, &dialect.name, operation, &elements)
                    .map_err(|error| error.render(text))?,
            )
        }
    };
    let mut slots: Vec<&str> = operation
        .attributes
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let operand_groups = groups(
        operation,
        &operation.operands,
        "Operand",
        "operandSegmentSizes",
        &mut slots,
    )?;
    let result_groups = groups(
        operation,
        &operation.results,
        "Result",
        "resultSegmentSizes",
        &mut slots,
    )?;

    let (traits, own_traits) = traits_of(operation);
    let relations = relations_of(operation)?;
    let effects = effects_of(operation);
    let verify = if has_hook("hasVerifier") {
        format!(
            "Some(|operation| {}(crate::{}::{}(operation)))",
            hook("verify"),
            dialect.name,
            operation.class
        )
    } else {
        "None".to_owned()
    };
    let definition = format!(
        "OpDefinition {{ name: {full_name:?}, index: {index}, class: {class:?}, family: {family:?}, \
         summary: {summary:?}, description: {description:?}, operands: &[{operands}], \
         operand_groups: {operand_groups}, attributes: &[{attributes}], results: &[{results}], \
         result_groups: {result_groups}, regions: &[{regions}], traits: &[{own_traits}], \
         trait_names: &{trait_names:?}, facts: {facts}, \
         relations: &[{relations}], effects: &[{effects}], \
         format: {format}, format_text: {format_text:?}, verify: {verify} }}",
        class = operation.class,
        family = operation.family,
        summary = operation.summary,
        description = operation.description,
        operands = values(model, &operation.operands),
        attributes = operation
            .attributes
            .iter()
            .map(|field| attribute(model, field))
            .collect::<Result<String, _>>()?,
        results = values(model, &operation.results),
        regions = operation.regions.iter().map(region).collect::<String>(),
        trait_names = operation.traits,
        facts = facts::expression(&operation.facts),
        format = format
            .as_ref()
            .map_or("None".to_owned(), |code| format!("Some(&{code})")),
        format_text = operation.format.as_deref().map(squeeze).unwrap_or_default(),
    );

    let spec = spec(dialect, index, operation, &slots, &traits, format.is_some());
    Ok((definition, spec))
}

/// The traits that MLIR checks, and those of ours.
fn traits_of(operation: &Operation) -> (String, String) {
    let mut traits = String::new();
    let mut own_traits = String::new();
    for name in &operation.traits {
        if let Some((_, bridge)) = MLIR_TRAITS.iter().find(|(known, _)| known == name) {
            let _ = write!(traits, "Trait::{bridge}, ");
        } else if !CONSUMED_TRAITS.contains(&name.as_str()) {
            let _ = write!(own_traits, "OpTrait::{name}, ");
        }
    }
    (traits, own_traits)
}

/// The relations between types.
fn relations_of(operation: &Operation) -> Result<String, String> {
    let mut relations = String::new();
    for relation in &operation.relations {
        let reference = |name: &str| value_ref(operation, name);
        let _ = write!(
            relations,
            "Relation {{ summary: {:?}, from: {}, to: {}, transform: crate::check::relation::{} }}, ",
            relation.summary,
            reference(&relation.from)?,
            reference(&relation.to)?,
            relation.transform
        );
    }
    Ok(relations)
}

/// The declared effects, on the operation as a whole and on its values.
fn effects_of(operation: &Operation) -> String {
    let mut effects = String::new();
    let mut add_effect = |on: &str, (kind, resource): &(String, String)| {
        let resource = if resource == "DefaultResource" {
            "None".to_owned()
        } else {
            format!("Some(&crate::meaning::resource::{})", screaming(resource))
        };
        let _ = write!(
            effects,
            "Effect {{ kind: EffectKind::{kind}, on: {on}, resource: {resource} }}, "
        );
    };
    for effect in operation.effects.iter().flatten() {
        add_effect("None", effect);
    }
    for (fields, side) in [
        (&operation.operands, "Operand"),
        (&operation.results, "Result"),
    ] {
        for (position, field) in fields.iter().enumerate() {
            for effect in &field.effects {
                add_effect(&format!("Some(ValueRef::{side}({position}))"), effect);
            }
        }
    }
    effects
}

/// The operation as MLIR sees it.
fn spec(
    dialect: &Dialect,
    index: usize,
    operation: &Operation,
    slots: &[&str],
    traits: &str,
    has_format: bool,
) -> String {
    let function = function_name(&operation.mnemonic);
    let hook = |module: &str| format!("crate::{}::{module}::{function}", dialect.name);
    let has_hook = |name: &str| operation.hooks.contains(&name);
    let mut spec = format!(
        "OpSpec {{ data: Some(&DEFINITIONS[{index}]), attributes: &{slots:?}, traits: &[{traits}], \
         operands: {}, results: {}, regions: {}, parents: &{:?}, verify: Some(crate::check::verify::operation), ",
        arity(&operation.operands),
        arity(&operation.results),
        region_arity(&operation.regions),
        operation.parents,
    );
    if has_hook("hasCustomAssemblyFormat") {
        let _ = write!(
            spec,
            "parse: Some(|_, parser| crate::{0}::{function}::parse(parser)), \
             print: Some(|_, operation, printer| crate::{0}::{function}::print(operation, printer)), ",
            dialect.name
        );
    } else if has_format {
        spec.push_str(
            "parse: Some(crate::text::format::parse), print: Some(crate::text::format::print), ",
        );
    }
    if has_hook("hasRegionVerifier") || !operation.regions.is_empty() {
        let own = if has_hook("hasRegionVerifier") {
            format!(
                "{}(crate::{}::{}(operation))",
                hook("verify::regions"),
                dialect.name,
                operation.class
            )
        } else {
            "Ok(())".to_owned()
        };
        let _ = write!(
            spec,
            "verify_regions: Some(|spec, operation| {{ crate::check::verify::regions(spec, operation)?; {own} }}), "
        );
    }
    if has_hook("hasFolder") {
        let _ = write!(
            spec,
            "fold: Some(|_, operation, constants| {}(crate::{}::{}(operation), constants)), ",
            hook("fold"),
            dialect.name,
            operation.class
        );
    }
    if has_hook("hasCanonicalizer") {
        let _ = write!(
            spec,
            "canonicalization: crate::{}::canonicalize::{}, ",
            dialect.name,
            screaming(&function)
        );
    }
    let effects = effects_hook(&hook("effects"), dialect, operation);
    let speculation = speculation_hook(&hook("speculation"), dialect, operation);
    let _ = write!(spec, "effects: {effects}, speculation: {speculation}, ");
    interfaces(&mut spec, &function, dialect, operation);
    let _ = write!(
        spec,
        "..OpSpec::new({:?}) }}",
        format!("{}.{}", dialect.name, operation.mnemonic)
    );
    spec
}

/// The source of the operation's memory effects.
fn effects_hook(hook: &str, dialect: &Dialect, operation: &Operation) -> String {
    if operation.has_trait("MemoryEffectsOpInterface") {
        format!(
            "Effects::Computed(|_, operation, effects| {}(crate::{}::{}(operation), effects))",
            hook, dialect.name, operation.class
        )
    } else if operation.has_trait("NoMemoryEffect")
        || operation.effects.as_ref().is_some_and(|list| {
            list.is_empty()
                && operation
                    .operands
                    .iter()
                    .chain(&operation.results)
                    .all(|field| field.effects.is_empty())
        })
    {
        "Effects::None".to_owned()
    } else if operation.effects.is_some() {
        "Effects::Computed(crate::meaning::effects::listed)".to_owned()
    } else {
        "Effects::Unknown".to_owned()
    }
}

/// Whether an operation may be executed speculatively.
fn speculation_hook(hook: &str, dialect: &Dialect, operation: &Operation) -> String {
    if operation.has_trait("AlwaysSpeculatableImplTrait") {
        "Speculation::Always".to_owned()
    } else if operation.has_trait("RecursivelySpeculatableImplTrait") {
        "Speculation::Recursive".to_owned()
    } else if operation.has_trait("ConditionallySpeculatable") {
        format!(
            "Speculation::Computed(|_, operation| {}(crate::{}::{}(operation)))",
            hook, dialect.name, operation.class
        )
    } else {
        "Speculation::Unknown".to_owned()
    }
}

/// The answers of the operation's interfaces.
fn interfaces(spec: &mut String, function: &str, dialect: &Dialect, operation: &Operation) {
    if operation.has_trait("InferTypeOpInterface") {
        let _ = write!(
            spec,
            "infer: Some(|spec, input| {}(spec, input)), ",
            format_args!("crate::{}::infer::{function}", dialect.name)
        );
        if operation.has_trait("InferUpToLayoutEquality") {
            spec.push_str("compatible: Some(|_, inferred, given| crate::check::infer::equal_up_to_layout(inferred, given)), ");
        }
    }
    if operation.has_trait("FunctionOpInterface") {
        spec.push_str("function: true, symbol: true, ");
    }
    if operation.has_trait("CallOpInterface") {
        spec.push_str("callee: Some(\"callee\"), ");
    }
    if operation.has_trait("RegionBranchOpInterface") {
        let _ = write!(
            spec,
            "region_branch: Some(&crate::{}::control_flow::{}), ",
            dialect.name,
            screaming(function)
        );
    }
    if operation.has_trait("RegionBranchTerminatorOpInterface") {
        spec.push_str("region_terminator: true, ");
    }
    if operation.results.len() > 1 {
        spec.push_str("result_names: Some(crate::text::names::results), ");
    }
}

/// A mnemonic as the name of a Rust function.
pub fn function_name(mnemonic: &str) -> String {
    match mnemonic.replace('.', "_").as_str() {
        "return" => "return_".to_owned(),
        other => other.to_owned(),
    }
}

fn groups<'o>(
    operation: &Operation,
    fields: &[ValueField],
    side: &str,
    attribute: &'o str,
    slots: &mut Vec<&'o str>,
) -> Result<String, String> {
    let variable = fields
        .iter()
        .filter(|field| field.multiplicity != Multiplicity::One)
        .count();
    if operation.has_trait(&format!("AttrSized{side}Segments")) {
        slots.push(attribute);
        return Ok(format!("Groups::Sized({})", slots.len() - 1));
    }
    match variable {
        0 => Ok("Groups::Fixed".into()),
        1 => Ok("Groups::OneVariable".into()),
        _ if operation.has_trait(&format!("SameVariadic{side}Size")) => Ok("Groups::Equal".into()),
        _ => Err(format!(
            "several groups of {} vary in size and nothing tells them apart",
            side.to_lowercase()
        )),
    }
}

/// The reference to a value by name.
fn value_ref(operation: &Operation, name: &str) -> Result<String, String> {
    let position = |fields: &[ValueField]| fields.iter().position(|field| field.name == name);
    if let Some(index) = position(&operation.operands) {
        Ok(format!("ValueRef::Operand({index})"))
    } else if let Some(index) = position(&operation.results) {
        Ok(format!("ValueRef::Result({index})"))
    } else {
        Err(format!("`{name}` is neither an operand nor a result"))
    }
}

fn arity(fields: &[ValueField]) -> String {
    let minimum = fields
        .iter()
        .filter(|field| field.multiplicity == Multiplicity::One)
        .count();
    if fields
        .iter()
        .any(|field| field.multiplicity == Multiplicity::Variadic)
    {
        format!("Arity::at_least({minimum})")
    } else if minimum == fields.len() {
        format!("Arity::exactly({minimum})")
    } else {
        format!("Arity::between({minimum}, {})", fields.len())
    }
}

fn region_arity(fields: &[RegionField]) -> String {
    if fields.iter().any(|field| field.variadic) {
        format!("Arity::at_least({})", fields.len() - 1)
    } else {
        format!("Arity::exactly({})", fields.len())
    }
}

/// Fields of a `TypeConstraint`.
fn constraint(model: &Model, constraint: &TypeConstraint) -> String {
    let kinds: String = constraint
        .kinds
        .iter()
        .map(|(dialect, mnemonic)| format!("{}, ", kind_path(model, "types", dialect, mnemonic)))
        .collect();
    format!(
        "TypeConstraint {{ any: {}, scalar: TypeSet({:#x}), tensor: TypeSet({:#x}), kinds: &[{kinds}] }}",
        constraint.any, constraint.scalar.0, constraint.tensor.0
    )
}

fn values(model: &Model, fields: &[ValueField]) -> String {
    fields
        .iter()
        .map(|field| {
            let multiplicity = match field.multiplicity {
                Multiplicity::One => "One",
                Multiplicity::Optional => "Optional",
                Multiplicity::Variadic => "Variadic",
            };
            format!(
                "ValueField {{ name: {:?}, constraint: {}, summary: {:?}, multiplicity: Multiplicity::{multiplicity} }}, ",
                field.name,
                constraint(model, &field.constraint),
                field.constraint.summary,
            )
        })
        .collect()
}

fn region(field: &RegionField) -> String {
    format!(
        "RegionField {{ name: {:?}, blocks: {:?}, at_least_one: {}, variadic: {} }}, ",
        field.name, field.blocks, field.at_least_one, field.variadic
    )
}

fn attribute(model: &Model, field: &AttributeField) -> Result<String, String> {
    let kind = match &field.kind {
        AttributeKind::Bool => "Bool".to_owned(),
        AttributeKind::Unit => "Unit".to_owned(),
        AttributeKind::Integer(width) => format!("Integer({width})"),
        AttributeKind::String => "String".to_owned(),
        AttributeKind::SymbolName => "SymbolName".to_owned(),
        AttributeKind::FlatSymbolRef => "FlatSymbolRef".to_owned(),
        AttributeKind::DenseI32Array => "DenseI32Array".to_owned(),
        AttributeKind::DenseI64Array => "DenseI64Array".to_owned(),
        AttributeKind::Enum(dialect, name) => {
            format!("Enum(&crate::{dialect}::{name}::DEFINITION)")
        }
        AttributeKind::FunctionType => "FunctionType".to_owned(),
        AttributeKind::DictionaryArray => "DictionaryArray".to_owned(),
        AttributeKind::Kind(dialect, mnemonic) => {
            format!(
                "Kind({})",
                kind_path(model, "attributes", dialect, mnemonic)
            )
        }
    };
    let presence = match &field.presence {
        Presence::Required => "Required".to_owned(),
        Presence::Optional => "Optional".to_owned(),
        Presence::Default(text) => {
            let value = match &field.kind {
                AttributeKind::Bool if text == "true" || text == "false" => {
                    Some(format!("Bool({text})"))
                }
                AttributeKind::Integer(_) => text
                    .parse::<i64>()
                    .ok()
                    .map(|value| format!("Integer({value})")),
                AttributeKind::DenseI32Array if text == "[]" => Some("EmptyArray".to_owned()),
                AttributeKind::Enum(dialect, name) => {
                    wrapper::enum_value(model, dialect, name, text)
                        .map(|value| format!("Integer({value})"))
                }
                _ => None,
            };
            let value =
                value.ok_or_else(|| format!("`{text}` is no default for `{}`", field.name))?;
            format!("Default(DefaultValue::{value})")
        }
    };
    Ok(format!(
        "AttributeField {{ name: {:?}, kind: AttributeKind::{kind}, presence: Presence::{presence}, range: {:?} }}, ",
        field.name, field.range
    ))
}

fn kinds(model: &Model, dialect: &Dialect, table: &str, kinds: &[KindDefinition]) -> String {
    let mut definitions = String::new();
    let mut specs = String::new();
    let mut names = String::new();
    let (spec, lower) = if table == "TYPE" {
        ("TypeSpec", "type")
    } else {
        ("AttributeSpec", "attribute")
    };
    for (index, kind) in kinds.iter().enumerate() {
        let style = match kind.style {
            Style::Bare => "Bare",
            Style::Named => "Named",
            Style::Braced => "Braced",
            Style::Positional => "Positional",
            Style::Custom => "Custom",
        };
        let parameters: String = kind
            .parameters
            .iter()
            .map(|entry| parameter(model, kind, entry))
            .collect();
        let _ = writeln!(
            definitions,
            "    KindDefinition {{ name: \"{}.{}\", summary: {:?}, description: {:?}, parameters: &[{parameters}], style: Style::{style} }},",
            dialect.name, kind.mnemonic, kind.summary, kind.description
        );
        let parameter_names: Vec<&str> = kind
            .parameters
            .iter()
            .map(|parameter| parameter.name.as_str())
            .collect();
        let (parse, print) = if kind.style == Style::Custom {
            let module = format!("crate::{}::{lower}_syntax::{}", dialect.name, kind.mnemonic);
            (format!("{module}::parse"), format!("{module}::print"))
        } else {
            (
                format!("crate::text::kind::parse_{lower}"),
                format!("crate::text::kind::print_{lower}"),
            )
        };
        let alias = if kind.alias.is_empty() {
            "None".to_owned()
        } else {
            format!("Some({:?})", kind.alias)
        };
        let encoding = if table == "ATTRIBUTE" {
            "verify_encoding: crate::text::kind::ENCODING_VERIFIER, "
        } else {
            ""
        };
        let _ = writeln!(
            specs,
            "    {spec} {{ mnemonic: {:?}, data: Some(&{table}_DEFINITIONS[{index}]), parameters: &{parameter_names:?}, \
             parse: {parse}, print: {print}, verify: Some(crate::text::kind::verify_{lower}), {encoding}alias: {alias} }},",
            kind.mnemonic
        );
        let constant = screaming(&kind.mnemonic.replace('.', "_"));
        let _ = writeln!(
            names,
            "/// {}{}\n#[doc = {:?}]\npub static {constant}: &{spec} = &{table}S[{index}];",
            if table == "TYPE" { "`!" } else { "`#" },
            format_args!("{}.{}`.", dialect.name, kind.mnemonic),
            kind.summary,
        );
    }
    let count = kinds.len();
    format!(
        "/// What the `.td` files say about each {lower} kind.\n\
         pub static {table}_DEFINITIONS: [KindDefinition; {count}] = [\n{definitions}];\n\
         /// The {lower} kinds as MLIR sees them, in the same order.\n\
         pub static {table}S: [{spec}; {count}] = [\n{specs}];\n\
         /// The {lower} kinds by name.\n\
         pub mod r#{lower} {{\n    use super::*;\n{names}}}\n"
    )
}

fn parameter(model: &Model, kind: &KindDefinition, parameter: &Parameter) -> String {
    let (variant, default) = match (parameter.kind.as_str(), parameter.default.as_deref()) {
        ("uint", default) => (
            "UInt".to_owned(),
            default.map(|text| format!("UInt({text})")),
        ),
        ("bool", default) => (
            "Bool".to_owned(),
            default.map(|text| format!("Bool({text})")),
        ),
        ("uints", Some("ones")) => ("UInts".to_owned(), Some("Ones".to_owned())),
        ("uints", default) => (
            "UInts".to_owned(),
            default.map(|text| format!("UInts(&{text})")),
        ),
        ("shape", _) => ("Shape".to_owned(), None),
        ("bases", default) => ("Bases".to_owned(), default.map(|_| "NoBases".to_owned())),
        ("attribute", _) => ("Attribute".to_owned(), None),
        ("type", _) => ("Type".to_owned(), None),
        ("enum", _) => {
            let (dialect, name) = parameter.enumeration.clone().unwrap_or_default();
            let _ = model;
            (format!("Enum(&crate::{dialect}::{name}::DEFINITION)"), None)
        }
        (other, _) => (
            format!(
                "compile_error!(\"{}: parameter kind {other}\")",
                kind.record
            ),
            None,
        ),
    };
    let default = default.map_or("None".to_owned(), |default| {
        format!("Some(ParameterDefault::{default})")
    });
    format!(
        "Parameter {{ name: {:?}, kind: ParameterKind::{variant}, default: {default}, \
         always_printed: {}, summary: {:?} }}, ",
        parameter.name, parameter.always_printed, parameter.summary
    )
}

/// A text on one line.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A Rust identifier for a field.
pub fn identifier(name: &str) -> String {
    match snake(name).as_str() {
        word @ ("type" | "mask" | "return" | "in" | "ref" | "move" | "match" | "loop")
            if word != "mask" =>
        {
            format!("r#{word}")
        }
        word => word.to_owned(),
    }
}
