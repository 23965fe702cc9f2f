//! Writes the typed side of a dialect: enumerations, one wrapper per operation with accessors
//! and a builder, and the enumeration of all operations.

use crate::{
    emit::identifier,
    lower::fixed_type,
    model::{
        Argument, AttributeField, AttributeKind, Dialect, Enumeration, Model, Multiplicity,
        Operation, Presence, ValueField,
    },
};
use std::fmt::Write;

/// The value behind a keyword.
pub fn enum_value(model: &Model, dialect: &str, name: &str, keyword: &str) -> Option<i64> {
    model
        .dialects
        .iter()
        .find(|known| known.name == dialect)?
        .enumerations
        .iter()
        .find(|enumeration| enumeration.name == name)?
        .cases
        .iter()
        .find(|(_, known, _)| known == keyword)
        .map(|(_, _, value)| *value)
}

/// A Rust enumeration with its table.
pub fn enumeration(dialect: &Dialect, enumeration: &Enumeration) -> String {
    let name = &enumeration.name;
    let mut variants = String::new();
    let mut cases = String::new();
    let mut keywords = String::new();
    let mut from = String::new();
    for (variant, keyword, value) in &enumeration.cases {
        let _ = writeln!(variants, "    /// `{keyword}`\n    {variant} = {value},");
        let _ = write!(cases, "({keyword:?}, {value}), ");
        let _ = write!(keywords, "{keyword:?}, ");
        let _ = writeln!(from, "            {value} => Some(Self::{variant}),");
    }
    format!(
        "/// {summary} (`{dialect}`).\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
         #[repr(i32)]\n\
         pub enum {name} {{\n{variants}}}\n\
         impl {name} {{\n\
         /// Keywords and values.\n\
         pub const DEFINITION: EnumDefinition = EnumDefinition {{ name: {name:?}, summary: {summary:?}, \
         cases: &[{cases}], keywords: &[{keywords}] }};\n\
         /// The case of a value.\n\
         pub const fn from_value(value: i64) -> Option<Self> {{\n        match value {{\n{from}            _ => None,\n        }}\n    }}\n\
         /// The keyword in the text.\n\
         pub fn keyword(self) -> &'static str {{ Self::DEFINITION.keyword(self as i64).unwrap_or(\"\") }}\n\
         }}\n\
         impl std::fmt::Display for {name} {{\n\
         fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{ formatter.write_str(self.keyword()) }}\n\
         }}\n",
        summary = enumeration.summary,
        dialect = dialect.name,
    )
}

/// All wrappers of a dialect and its `Op`.
pub fn wrappers(model: &Model, dialect: &Dialect) -> String {
    let mut code = String::new();
    let mut variants = String::new();
    let mut of = String::new();
    let mut back = String::new();
    for (index, operation) in dialect.operations.iter().enumerate() {
        code.push_str(&wrapper(model, dialect, index, operation));
        let class = &operation.class;
        let variant = class.strip_suffix("Op").unwrap_or(class);
        let _ = writeln!(
            variants,
            "    /// `{}.{}`\n    {variant}({class}<'c, 'a>),",
            dialect.name, operation.mnemonic
        );
        let _ = writeln!(
            of,
            "            {index} => Some(Self::{variant}({class}(operation))),"
        );
        let _ = writeln!(
            back,
            "            Self::{variant}(operation) => operation.operation(),"
        );
    }
    let _ = writeln!(
        code,
        "/// Every operation of the dialect. Match it without a wildcard: a new operation is then a\n\
         /// compile error wherever it has to be handled.\n\
         #[derive(Clone, Copy, Debug)]\n\
         pub enum Op<'c, 'a> {{\n{variants}}}\n\
         impl<'c, 'a> Op<'c, 'a> {{\n\
         /// The operation, `None` when it is of another dialect.\n\
         pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {{\n\
         let definition = OpDefinition::of(operation)?;\n\
         if !std::ptr::eq(definition, DEFINITIONS.get(definition.index)?) {{ return None; }}\n\
         match definition.index {{\n{of}            _ => None,\n        }}\n    }}\n\
         /// The operation itself.\n\
         pub fn operation(self) -> OperationRef<'c, 'a> {{\n        match self {{\n{back}        }}\n    }}\n}}"
    );
    code
}

fn wrapper(model: &Model, dialect: &Dialect, index: usize, operation: &Operation) -> String {
    let class = &operation.class;
    let mut accessors = String::new();
    let mut constants = String::new();
    for (position, field) in operation.operands.iter().enumerate() {
        let fixed = operation.operands[..=position]
            .iter()
            .all(|field| field.multiplicity == Multiplicity::One);
        accessors.push_str(&value_accessor(field, position, fixed, "operand"));
    }
    for (position, field) in operation.results.iter().enumerate() {
        let clash = operation
            .operands
            .iter()
            .any(|other| other.name == field.name);
        if clash {
            continue;
        }
        let fixed = operation.results[..=position]
            .iter()
            .all(|field| field.multiplicity == Multiplicity::One);
        accessors.push_str(&value_accessor(field, position, fixed, "result"));
    }
    for (position, field) in operation.attributes.iter().enumerate() {
        accessors.push_str(&attribute_accessor(field, position));
        let _ = writeln!(
            constants,
            "    /// Slot of the attribute `{}`.\n    pub const {}: usize = {position};",
            field.name,
            crate::lower::screaming(&field.name)
        );
    }
    for (position, field) in operation.regions.iter().enumerate() {
        let name = identifier(&field.name);
        if field.variadic {
            let _ = writeln!(
                accessors,
                "    /// The regions `{}`.\n    pub fn {name}(self) -> Vec<RegionRef<'c, 'a>> {{ access::regions(self.0, {position}) }}",
                field.name
            );
        } else {
            let _ = writeln!(
                accessors,
                "    /// The region `{}`.\n    pub fn {name}(self) -> RegionRef<'c, 'a> {{ access::region(self.0, {position}) }}",
                field.name
            );
        }
    }
    format!(
        "/// `{dialect}.{mnemonic}`: {summary}.\n\
         #[derive(Clone, Copy, Debug, PartialEq)]\n\
         pub struct {class}<'c, 'a>(pub(crate) OperationRef<'c, 'a>);\n\
         impl<'c, 'a> {class}<'c, 'a> {{\n\
         /// The full name.\n    pub const NAME: &'static str = \"{dialect}.{mnemonic}\";\n\
         {constants}\
         /// What the `.td` files say.\n    pub fn definition() -> &'static OpDefinition {{ &DEFINITIONS[{index}] }}\n\
         /// The operation, `None` when it is another one.\n\
         pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {{ OPERATIONS[{index}].is(operation).then_some(Self(operation)) }}\n\
         /// The operation that defines a value, `None` when it is another one.\n\
         pub fn defining(value: Value<'c, 'a>) -> Option<Self> {{ access::defining(value).and_then(Self::of) }}\n\
         /// The operation itself.\n    pub fn operation(self) -> OperationRef<'c, 'a> {{ self.0 }}\n\
         {accessors}{builder}}}\n",
        dialect = dialect.name,
        mnemonic = operation.mnemonic,
        summary = operation.summary,
        builder = builder(model, operation),
    )
}

fn value_accessor(field: &ValueField, position: usize, fixed: bool, side: &str) -> String {
    let name = identifier(&field.name);
    let (r#type, suffix) = match field.multiplicity {
        Multiplicity::One => ("Value<'c, 'a>", ""),
        Multiplicity::Optional => ("Option<Value<'c, 'a>>", "_optional"),
        Multiplicity::Variadic => ("Vec<Value<'c, 'a>>", "_list"),
    };
    let call = if fixed {
        format!("access::{side}_at(self.0, {position})")
    } else {
        format!("access::{side}{suffix}(self.0, Self::definition(), {position})")
    };
    format!(
        "    /// The {side} `{}`: {}.\n    pub fn {name}(self) -> {type} {{ {call} }}\n",
        field.name, field.constraint.summary
    )
}

/// The Rust type of an attribute: (when read, when given to a builder).
fn attribute_types(field: &AttributeField) -> (String, String) {
    let (read, given) = match &field.kind {
        AttributeKind::Bool => ("bool".to_owned(), "bool".to_owned()),
        AttributeKind::Unit => return ("bool".into(), "bool".into()),
        AttributeKind::Integer(_) => ("i64".to_owned(), "i64".to_owned()),
        AttributeKind::String | AttributeKind::SymbolName | AttributeKind::FlatSymbolRef => {
            ("&'c str".to_owned(), "&str".to_owned())
        }
        AttributeKind::DenseI32Array => ("Vec<i32>".to_owned(), "&[i32]".to_owned()),
        AttributeKind::DenseI64Array => ("Vec<i64>".to_owned(), "&[i64]".to_owned()),
        AttributeKind::Enum(dialect, name) => {
            let path = format!("crate::{dialect}::{name}");
            (path.clone(), path)
        }
        AttributeKind::FunctionType | AttributeKind::DictionaryArray | AttributeKind::Kind(..) => {
            ("Attribute<'c>".to_owned(), "Attribute<'c>".to_owned())
        }
    };
    if field.presence == Presence::Optional {
        (format!("Option<{read}>"), format!("Option<{given}>"))
    } else {
        (read, given)
    }
}

/// The suffix of the accessor functions in `access`.
fn attribute_suffix(kind: &AttributeKind) -> &'static str {
    match kind {
        AttributeKind::Bool => "bool",
        AttributeKind::Unit => "unit",
        AttributeKind::Integer(_) => "integer",
        AttributeKind::String | AttributeKind::SymbolName => "string",
        AttributeKind::FlatSymbolRef => "symbol",
        AttributeKind::DenseI32Array => "i32_array",
        AttributeKind::DenseI64Array => "i64_array",
        AttributeKind::Enum(..) => "integer",
        AttributeKind::FunctionType | AttributeKind::DictionaryArray | AttributeKind::Kind(..) => {
            "attribute"
        }
    }
}

fn attribute_accessor(field: &AttributeField, position: usize) -> String {
    let name = identifier(&field.name);
    let (read, given) = attribute_types(field);
    let suffix = attribute_suffix(&field.kind);
    let get = format!("access::{suffix}(self.0, Self::definition(), {position})");
    let body = match (&field.kind, &field.presence) {
        (AttributeKind::Unit, _) => get,
        (AttributeKind::Enum(dialect, enumeration), Presence::Optional) => {
            format!("{get}.and_then(crate::{dialect}::{enumeration}::from_value)")
        }
        (AttributeKind::Enum(dialect, enumeration), _) => format!(
            "access::expect({get}.and_then(crate::{dialect}::{enumeration}::from_value), Self::definition(), {position})"
        ),
        (_, Presence::Optional) => get,
        _ => format!("access::expect({get}, Self::definition(), {position})"),
    };
    let documentation = match &field.presence {
        Presence::Required => format!("The attribute `{}`.", field.name),
        Presence::Optional => format!("The attribute `{}`, if present.", field.name),
        Presence::Default(default) => {
            format!("The attribute `{}`, `{default}` when absent.", field.name)
        }
    };
    let raw = name.strip_prefix("r#").unwrap_or(&name);
    let make = make_attribute(field, "value");
    format!(
        "    /// {documentation}\n    pub fn {name}(self) -> {read} {{ {body} }}\n\
         \x20   /// Sets the attribute `{}`.\n    pub fn set_{raw}(self, value: {given}) {{ let context = access::context(self.0); let _ = context; OpSpec::set_slot(self.0, {position}, {make}); }}\n",
        field.name
    )
}

/// The expression of type `Option<Attribute>` for a Rust value; `context` is in scope.
fn make_attribute(field: &AttributeField, value: &str) -> String {
    if field.kind == AttributeKind::Unit {
        return format!("{value}.then(|| make::unit(context))");
    }
    let one = |value: &str| match &field.kind {
        AttributeKind::Bool => format!("make::bool(context, {value})"),
        AttributeKind::Unit => String::new(),
        AttributeKind::Integer(width) => format!("make::integer(context, {width}, {value})"),
        AttributeKind::String | AttributeKind::SymbolName => {
            format!("make::string(context, {value})")
        }
        AttributeKind::FlatSymbolRef => format!("make::symbol(context, {value})"),
        AttributeKind::DenseI32Array => format!("make::i32_array(context, {value})"),
        AttributeKind::DenseI64Array => format!("make::i64_array(context, {value})"),
        AttributeKind::Enum(..) => format!("make::integer(context, 32, {value} as i64)"),
        AttributeKind::FunctionType | AttributeKind::DictionaryArray | AttributeKind::Kind(..) => {
            value.to_owned()
        }
    };
    if field.presence == Presence::Optional {
        format!("{value}.map(|value| {})", one("value"))
    } else {
        format!("Some({})", one(value))
    }
}

/// How a builder gets the type of a result.
enum ResultSource {
    /// From the caller.
    Given,
    /// The constraint allows only one type.
    Fixed(String),
    /// From an operand by a transform.
    Derived(usize, String),
}

fn result_source(model: &Model, operation: &Operation, field: &ValueField) -> ResultSource {
    if field.multiplicity != Multiplicity::One {
        return ResultSource::Given;
    }
    if let Some(fixed) = fixed_type(model, &field.constraint) {
        return ResultSource::Fixed(fixed);
    }
    let operand = |name: &str| {
        operation
            .operands
            .iter()
            .position(|operand| operand.name == name && operand.multiplicity == Multiplicity::One)
    };
    for relation in &operation.relations {
        if relation.to == field.name
            && let Some(from) = operand(&relation.from)
        {
            return ResultSource::Derived(from, relation.transform.clone());
        }
        if relation.from == field.name
            && relation.transform == "same"
            && let Some(from) = operand(&relation.to)
        {
            return ResultSource::Derived(from, "same".into());
        }
    }
    if operation.has_trait("SameOperandsAndResultType")
        && let Some(first) = operation.operands.first()
        && first.multiplicity == Multiplicity::One
    {
        return ResultSource::Derived(0, "same".into());
    }
    ResultSource::Given
}

/// The functions that make an operation: `build`, and `infer` where it infers its result types.
fn builder(model: &Model, operation: &Operation) -> String {
    let mut parameters = String::from("location: Location<'c>, ");
    let mut body = String::new();
    results(model, operation, &mut parameters, &mut body);
    arguments(operation, &mut parameters, &mut body);
    let mutable = if body.is_empty() { "" } else { "mut " };
    let mut code = format!(
        "    /// Makes a detached operation; arguments in the order of the `.td` file, result types first\n\
         \x20   /// where they do not follow from the operands.\n\
         \x20   #[allow(clippy::too_many_arguments, reason = \"as many as the operation has\")]\n\
         \x20   pub fn build({parameters}) -> Operation<'c> {{\n\
         \x20       let context = access::context_of(location);\n        let _ = context;\n\
         \x20       let {mutable}building = Building::new(Self::definition(), location);\n{body}\
         \x20       building.finish()\n    }}\n"
    );
    if operation.has_trait("InferTypeOpInterface") {
        let mut parameters = String::from("location: Location<'c>, ");
        let mut body = String::new();
        arguments(operation, &mut parameters, &mut body);
        let _ = write!(
            code,
            "    /// Makes a detached operation with the result types that it infers; arguments in the order\n\
             \x20   /// of the `.td` file. `None` when the types do not follow, after the reason has been\n\
             \x20   /// reported at the location.\n\
             \x20   #[allow(clippy::too_many_arguments, reason = \"as many as the operation has\")]\n\
             \x20   pub fn infer({parameters}) -> Option<Operation<'c>> {{\n\
             \x20       let context = access::context_of(location);\n        let _ = context;\n\
             \x20       let mut building = Building::new(Self::definition(), location);\n{body}\
             \x20       building.infer()\n    }}\n"
        );
    }
    code
}

/// The parameters and the code of a builder for the result types.
fn results(model: &Model, operation: &Operation, parameters: &mut String, body: &mut String) {
    for field in &operation.results {
        let name = format!("{}_type", identifier(&field.name).trim_start_matches("r#"));
        match result_source(model, operation, field) {
            ResultSource::Given => match field.multiplicity {
                Multiplicity::One => {
                    let _ = write!(parameters, "{name}: Type<'c>, ");
                    let _ = writeln!(body, "        building.result({name});");
                }
                Multiplicity::Optional => {
                    let _ = write!(parameters, "{name}: Option<Type<'c>>, ");
                    let _ = writeln!(body, "        building.results({name}.as_slice());");
                }
                Multiplicity::Variadic => {
                    let _ = write!(parameters, "{name}: &[Type<'c>], ");
                    let _ = writeln!(body, "        building.results({name});");
                }
            },
            ResultSource::Fixed(fixed) => {
                let _ = writeln!(body, "        building.fixed_result({fixed});");
            }
            ResultSource::Derived(from, transform) => {
                let from = identifier(&operation.operands[from].name);
                let _ = writeln!(
                    body,
                    "        building.derived_result(Self::NAME, {from}, crate::check::relation::{transform});"
                );
            }
        }
    }
}

/// The parameters and the code of a builder for operands, attributes and regions.
fn arguments(operation: &Operation, parameters: &mut String, body: &mut String) {
    for argument in &operation.arguments {
        match *argument {
            Argument::Operand(index) => {
                let field = &operation.operands[index];
                let name = identifier(&field.name);
                let (r#type, call) = match field.multiplicity {
                    Multiplicity::One => ("Value<'c, '_>", format!("building.operand({name})")),
                    Multiplicity::Optional => (
                        "Option<Value<'c, '_>>",
                        format!("building.operands({name}.as_slice())"),
                    ),
                    Multiplicity::Variadic => {
                        ("&[Value<'c, '_>]", format!("building.operands({name})"))
                    }
                };
                let _ = write!(parameters, "{name}: {type}, ");
                let _ = writeln!(body, "        {call};");
            }
            Argument::Attribute(index) => {
                let field = &operation.attributes[index];
                let name = identifier(&field.name);
                let given = attribute_types(field).1;
                let _ = write!(parameters, "{name}: {given}, ");
                let make = make_attribute(field, &name);
                let _ = writeln!(
                    body,
                    "        building.attribute({:?}, {make});",
                    field.name
                );
            }
        }
    }
    if !operation.regions.is_empty() {
        parameters.push_str("regions: Vec<Region<'c>>, ");
        body.push_str("        building.regions(regions);\n");
    }
}
