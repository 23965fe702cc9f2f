//! Attributes and types of the dialects: parsing, printing and checking their parameters.
//!
//! Nearly all of them are lists of named values, `<{vec = 8, order = [1, 0]}>`, and follow from
//! the `.td` file alone: any order is read, the order of the file is printed, defaults are left
//! out. Those with a syntax of their own share the pieces here.

use crate::{
    tables::access,
    tables::definition::{KindDefinition, Parameter, ParameterDefault, ParameterKind, Style},
    tables::make,
};
use llopt_mlir::{
    asm::{AsmParser, AsmPrinter, Parsed, SourceLoc, Token},
    diagnostic::Complaint,
    dialect::{AttributeSpec, Parameters, SpecData, TypeSpec},
    ir::AttributeExt,
};
use melior::{
    Context,
    ir::{Attribute, AttributeLike, Type},
};

fn definition_of(data: Option<SpecData>) -> Option<&'static KindDefinition> {
    data?.downcast_ref()
}

/// The definition of an attribute kind of these dialects.
pub fn attribute_definition(spec: &'static AttributeSpec) -> Option<&'static KindDefinition> {
    definition_of(spec.data)
}

/// The definition of a type kind of these dialects.
pub fn type_definition(spec: &'static TypeSpec) -> Option<&'static KindDefinition> {
    definition_of(spec.data)
}

/// The parse hook of attribute kinds without a syntax of their own.
///
/// # Errors
/// When the text does not match or the parameters do not verify.
pub fn parse_attribute<'c>(
    spec: &'static AttributeSpec,
    parser: &mut AsmParser<'c, '_>,
    _type: Option<Type<'c>>,
) -> Parsed<Attribute<'c>> {
    let location = parser.location();
    let parameters = match attribute_definition(spec) {
        Some(definition) => parse_parameters(definition, parser)?,
        None => Vec::new(),
    };
    parser.checked_attribute(spec, location, &parameters)
}

/// The parse hook of type kinds without a syntax of their own.
///
/// # Errors
/// When the text does not match or the parameters do not verify.
pub fn parse_type<'c>(spec: &'static TypeSpec, parser: &mut AsmParser<'c, '_>) -> Parsed<Type<'c>> {
    let location = parser.location();
    let parameters = match type_definition(spec) {
        Some(definition) => parse_parameters(definition, parser)?,
        None => Vec::new(),
    };
    parser.checked_type(spec, location, &parameters)
}

/// Everything from `<` to `>` in the style of the definition.
fn parse_parameters<'c>(
    definition: &'static KindDefinition,
    parser: &mut AsmParser<'c, '_>,
) -> Parsed<Vec<Option<Attribute<'c>>>> {
    match definition.style {
        Style::Bare | Style::Custom => Ok(vec![None; definition.parameters.len()]),
        Style::Positional => {
            parser.token(Token::Less)?;
            let mut values = Vec::new();
            for (index, parameter) in definition.parameters.iter().enumerate() {
                if index > 0 {
                    parser.token(Token::Comma)?;
                }
                values.push(Some(parse_value(parameter, parser)?));
            }
            parser.token(Token::Greater)?;
            Ok(values)
        }
        Style::Named => {
            parser.token(Token::Less)?;
            let values = parse_named(definition, parser)?;
            parser.token(Token::Greater)?;
            Ok(values)
        }
        Style::Braced => {
            parser.token(Token::Less)?;
            parser.token(Token::LBrace)?;
            let values = parse_named(definition, parser)?;
            parser.token(Token::RBrace)?;
            parser.token(Token::Greater)?;
            Ok(values)
        }
    }
}

/// `name = value, …` in any order; absent parameters get their default.
///
/// # Errors
/// Unknown, repeated, malformed and missing parameters.
pub fn parse_named<'c>(
    definition: &'static KindDefinition,
    parser: &mut AsmParser<'c, '_>,
) -> Parsed<Vec<Option<Attribute<'c>>>> {
    let begin = parser.location();
    let given = parse_given(definition, parser)?;
    complete(definition, parser, begin, given)
}

/// As [`parse_named`], without defaults.
///
/// # Errors
/// Unknown, repeated and malformed parameters.
pub fn parse_given<'c>(
    definition: &'static KindDefinition,
    parser: &mut AsmParser<'c, '_>,
) -> Parsed<Vec<Option<Attribute<'c>>>> {
    let mut values: Vec<Option<Attribute<'c>>> = vec![None; definition.parameters.len()];
    loop {
        let location = parser.location();
        let Some(name) = parser.optional_any_keyword() else {
            if values.iter().all(Option::is_none) {
                return Ok(values);
            }
            return Err(parser.error(location, "expected the name of a parameter"));
        };
        let Some(index) = definition
            .parameters
            .iter()
            .position(|parameter| parameter.name == name)
        else {
            let known: Vec<_> = definition
                .parameters
                .iter()
                .map(|parameter| parameter.name)
                .collect();
            return Err(parser.error(
                location,
                format!(
                    "`{}` has no parameter `{name}`; it has: {}",
                    definition.name,
                    known.join(", ")
                ),
            ));
        };
        if values[index].is_some() {
            return Err(parser.error(location, format!("parameter `{name}` is given twice")));
        }
        parser.token(Token::Equal)?;
        values[index] = Some(parse_value(&definition.parameters[index], parser)?);
        if !parser.optional_token(Token::Comma) {
            return Ok(values);
        }
    }
}

/// Adds defaults, and reports missing parameters.
///
/// # Errors
/// A parameter that has no default is absent.
pub fn complete<'c>(
    definition: &'static KindDefinition,
    parser: &mut AsmParser<'c, '_>,
    location: SourceLoc,
    mut values: Vec<Option<Attribute<'c>>>,
) -> Parsed<Vec<Option<Attribute<'c>>>> {
    for (parameter, value) in definition.parameters.iter().zip(&mut values) {
        match (parameter.default, &value) {
            (Some(ParameterDefault::Ones), Some(given)) => {
                // One spelling for equal values: a list of ones is the default.
                if access::i32_values(*given).is_some_and(|list| list.iter().all(|one| *one == 1)) {
                    *value = None;
                }
            }
            (Some(default), None) => *value = default_value(parser.context(), default),
            (None, None) => {
                return Err(parser.error(
                    location,
                    format!("`{}` lacks parameter `{}`", definition.name, parameter.name),
                ));
            }
            (_, Some(_)) => {}
        }
    }
    Ok(values)
}

/// The attribute for a default; `None` if absence stands for it.
pub fn default_value<'c>(context: &'c Context, default: ParameterDefault) -> Option<Attribute<'c>> {
    match default {
        ParameterDefault::UInt(value) => Some(make::integer(context, 32, i64::from(value))),
        ParameterDefault::Bool(value) => Some(make::bool(context, value)),
        ParameterDefault::UInts(values) => Some(make::i32_array(context, values)),
        ParameterDefault::Ones => None,
        ParameterDefault::NoBases => Some(make::bases(context, &[])),
    }
}

/// One value of the kind that a parameter has.
///
/// # Errors
/// When the text does not match.
pub fn parse_value<'c>(
    parameter: &Parameter,
    parser: &mut AsmParser<'c, '_>,
) -> Parsed<Attribute<'c>> {
    let context = parser.context();
    let location = parser.location();
    match parameter.kind {
        ParameterKind::UInt => {
            let value = parser.integer()?;
            optional_integer_type(parser)?;
            if i32::try_from(value).is_err() || value < 0 {
                return Err(parser.error(
                    location,
                    format!(
                        "`{}` must be between 0 and 2^31 - 1, not {value}",
                        parameter.name
                    ),
                ));
            }
            Ok(make::integer(context, 32, value))
        }
        ParameterKind::Bool => Ok(make::bool(context, parser.boolean()?)),
        ParameterKind::UInts => {
            let values = parse_uints(parameter, parser)?;
            Ok(make::i32_array(context, &values))
        }
        ParameterKind::Shape => {
            let values = parser.integer_list::<i64>()?;
            Ok(make::i64_array(context, &values))
        }
        ParameterKind::Bases => {
            let mut vectors = Vec::new();
            parser.comma_separated(Token::LSquare, Token::RSquare, |parser| {
                vectors.push(parse_uints(parameter, parser)?);
                Ok(())
            })?;
            Ok(make::bases(context, &vectors))
        }
        ParameterKind::Attribute => parser.attribute(),
        ParameterKind::Type => Ok(make::r#type(parser.r#type()?)),
        ParameterKind::Enum(cases) => {
            let index = parser.keyword_of(cases.keywords, parameter.name)?;
            Ok(make::integer(context, 32, cases.cases[index].1))
        }
    }
}

/// `[1, 2]` of unsigned integers.
fn parse_uints(parameter: &Parameter, parser: &mut AsmParser<'_, '_>) -> Parsed<Vec<i32>> {
    let mut values = Vec::new();
    parser.comma_separated(Token::LSquare, Token::RSquare, |parser| {
        let location = parser.location();
        let value = parser.integer()?;
        optional_integer_type(parser)?;
        match i32::try_from(value) {
            Ok(value) if value >= 0 => {
                values.push(value);
                Ok(())
            }
            _ => Err(parser.error(
                location,
                format!(
                    "elements of `{}` must be between 0 and 2^31 - 1, not {value}",
                    parameter.name
                ),
            )),
        }
    })?;
    Ok(values)
}

/// `: i32`, which generic dictionaries would allow.
fn optional_integer_type(parser: &mut AsmParser<'_, '_>) -> Parsed<()> {
    if parser.optional_token(Token::Colon) {
        parser.r#type()?;
    }
    Ok(())
}

/// The print hook of attribute kinds without a syntax of their own.
pub fn print_attribute<'c>(
    spec: &'static AttributeSpec,
    attribute: Attribute<'c>,
    printer: &mut AsmPrinter<'c, '_>,
) {
    if let Some(definition) = attribute_definition(spec) {
        print_parameters(definition, AttributeSpec::parameters_of(attribute), printer);
    }
}

/// The print hook of type kinds without a syntax of their own.
pub fn print_type<'c>(spec: &'static TypeSpec, r#type: Type<'c>, printer: &mut AsmPrinter<'c, '_>) {
    if let Some(definition) = type_definition(spec) {
        print_parameters(definition, TypeSpec::parameters_of(r#type), printer);
    }
}

fn print_parameters<'c>(
    definition: &'static KindDefinition,
    parameters: Parameters<'c>,
    printer: &mut AsmPrinter<'c, '_>,
) {
    let (open, close) = match definition.style {
        Style::Bare | Style::Custom => return,
        Style::Named | Style::Positional => ("<", ">"),
        Style::Braced => ("<{", "}>"),
    };
    printer.text(open);
    let mut first = true;
    for (parameter, value) in definition.parameters.iter().zip(parameters.iter()) {
        let shown =
            |value: &Attribute<'c>| parameter.always_printed || !is_default(parameter, *value);
        let Some(value) = value.filter(shown) else {
            continue;
        };
        if !first {
            printer.text(", ");
        }
        first = false;
        if definition.style != Style::Positional {
            printer.text(parameter.name);
            printer.text(" = ");
        }
        print_value(parameter, value, printer);
    }
    printer.text(close);
}

/// Whether a value equals the default and is left out.
pub fn is_default(parameter: &Parameter, value: Attribute<'_>) -> bool {
    match parameter.default {
        None | Some(ParameterDefault::Ones) => false,
        Some(ParameterDefault::UInt(default)) => {
            access::integer_value(value) == Some(i64::from(default))
        }
        Some(ParameterDefault::Bool(default)) => access::bool_value(value) == Some(default),
        Some(ParameterDefault::UInts(default)) => {
            access::i32_values(value).as_deref() == Some(default)
        }
        Some(ParameterDefault::NoBases) => {
            access::array_elements(value).is_some_and(|elements| elements.is_empty())
        }
    }
}

/// One value of the kind that a parameter has.
pub fn print_value<'c>(
    parameter: &Parameter,
    value: Attribute<'c>,
    printer: &mut AsmPrinter<'c, '_>,
) {
    match parameter.kind {
        ParameterKind::UInt => printer.display(access::integer_value(value).unwrap_or_default()),
        ParameterKind::Bool => printer.display(access::bool_value(value).unwrap_or_default()),
        ParameterKind::UInts => printer.list(&access::i32_values(value).unwrap_or_default()),
        ParameterKind::Shape => printer.list(&access::i64_values(value).unwrap_or_default()),
        ParameterKind::Bases => print_bases(&access::bases_of(value).unwrap_or_default(), printer),
        ParameterKind::Attribute => printer.attribute(value),
        ParameterKind::Type => match value.as_type() {
            Some(r#type) => printer.r#type(r#type),
            None => printer.attribute(value),
        },
        ParameterKind::Enum(cases) => {
            let keyword = access::integer_value(value).and_then(|value| cases.keyword(value));
            printer.text(keyword.unwrap_or_default());
        }
    }
}

/// `[[1, 0], [0, 1]]`
pub fn print_bases(bases: &[Vec<i32>], printer: &mut AsmPrinter<'_, '_>) {
    printer.text("[");
    for (index, vector) in bases.iter().enumerate() {
        if index > 0 {
            printer.text(", ");
        }
        printer.list(vector);
    }
    printer.text("]");
}

/// The parameter verifier of attribute kinds.
///
/// # Errors
/// The first parameter that does not match the `.td` file, or that the kind itself rejects.
pub fn verify_attribute<'c>(
    spec: &'static AttributeSpec,
    parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    match attribute_definition(spec) {
        Some(definition) => {
            verify_parameters(definition, parameters)?;
            crate::check::encoding_verifier::parameters(spec, parameters)
        }
        None => Ok(()),
    }
}

/// The parameter verifier of type kinds.
///
/// # Errors
/// The first parameter that does not match the `.td` file, or that the kind itself rejects.
pub fn verify_type<'c>(
    spec: &'static TypeSpec,
    parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    match type_definition(spec) {
        Some(definition) => {
            verify_parameters(definition, parameters)?;
            crate::check::type_verifier::parameters(spec, parameters)
        }
        None => Ok(()),
    }
}

/// Verifies an attribute as the encoding of a tensor of a shape and an element type.
type VerifyEncoding =
    for<'c> fn(&'static AttributeSpec, Attribute<'c>, &[i64], Type<'c>) -> Result<(), Complaint>;

/// The hook that verifies an attribute as the encoding of a tensor.
pub const ENCODING_VERIFIER: Option<VerifyEncoding> = Some(crate::check::encoding_verifier::tensor);

/// Checks the storage of each parameter. Parsed text always passes; bytecode may not.
fn verify_parameters(
    definition: &'static KindDefinition,
    parameters: Parameters<'_>,
) -> Result<(), Complaint> {
    if parameters.len() != definition.parameters.len() {
        return Err(Complaint::new(format!(
            "`{}` has {} parameters, not {}",
            definition.name,
            definition.parameters.len(),
            parameters.len()
        )));
    }
    for (parameter, value) in definition.parameters.iter().zip(parameters.iter()) {
        let valid = match (value, parameter.kind) {
            (None, _) => parameter.default == Some(ParameterDefault::Ones),
            (Some(value), ParameterKind::UInt | ParameterKind::Enum(_)) => {
                value.is_integer() && access::integer_value(value).is_some_and(|value| value >= 0)
            }
            (Some(value), ParameterKind::Bool) => value.is_bool(),
            (Some(value), ParameterKind::UInts) => access::i32_values(value)
                .is_some_and(|list| list.iter().all(|element| *element >= 0)),
            (Some(value), ParameterKind::Shape) => access::i64_values(value).is_some(),
            (Some(value), ParameterKind::Bases) => access::bases_of(value)
                .is_some_and(|bases| bases.iter().flatten().all(|element| *element >= 0)),
            (Some(_), ParameterKind::Attribute) => true,
            (Some(value), ParameterKind::Type) => value.as_type().is_some(),
        };
        if !valid {
            return Err(Complaint::new(format!(
                "parameter `{}` of `{}` is not of its kind",
                parameter.name, definition.name
            )));
        }
    }
    Ok(())
}
