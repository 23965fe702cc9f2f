//! Syntax of the encodings that are more than a list of named values.

use crate::{tables::access, tables::make, text::kind};
use llopt_mlir::{
    asm::{AsmParser, AsmPrinter, Parsed, Token},
    dialect::AttributeSpec,
};
use melior::ir::{Attribute, Type};

/// `<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>`, where `rank` is
/// written unless it is 2 or follows from the CGALayout.
pub mod nvmma_shared {
    use super::*;

    const TRANSPOSED: usize = 1;
    const CGA: usize = 4;
    const RANK: usize = 5;

    /// Parses from `<`.
    ///
    /// # Errors
    /// When the text does not match.
    pub fn parse<'c>(
        spec: &'static AttributeSpec,
        parser: &mut AsmParser<'c, '_>,
        _type: Option<Type<'c>>,
    ) -> Parsed<Attribute<'c>> {
        let location = parser.location();
        let definition = super::definition(spec, parser)?;
        parser.token(Token::Less)?;
        parser.token(Token::LBrace)?;
        let mut values = kind::parse_given(definition, parser)?;
        parser.token(Token::RBrace)?;
        parser.token(Token::Greater)?;
        let cga_rank = values[CGA]
            .and_then(access::bases_of)
            .and_then(|bases| bases.first().map(Vec::len));
        if let (None, Some(rank)) = (values[RANK], cga_rank) {
            let rank = i64::try_from(rank).unwrap_or(i64::MAX);
            values[RANK] = Some(make::integer(parser.context(), 32, rank));
        }
        let values = kind::complete(definition, parser, location, values)?;
        parser.checked_attribute(spec, location, &values)
    }

    /// Prints from `<`.
    pub fn print<'c>(
        spec: &'static AttributeSpec,
        attribute: Attribute<'c>,
        printer: &mut AsmPrinter<'c, '_>,
    ) {
        let Some(definition) = kind::attribute_definition(spec) else {
            return;
        };
        let parameters = AttributeSpec::parameters_of(attribute);
        let distributed = parameters
            .get(CGA)
            .and_then(access::bases_of)
            .is_some_and(|bases| !bases.is_empty());
        printer.text("<{");
        let mut first = true;
        for (index, parameter) in definition.parameters.iter().enumerate() {
            let Some(value) = parameters.get(index) else {
                continue;
            };
            let shown = match index {
                TRANSPOSED => true,
                RANK => !distributed && !kind::is_default(parameter, value),
                _ => !kind::is_default(parameter, value),
            };
            if shown {
                if !first {
                    printer.text(", ");
                }
                first = false;
                printer.text(parameter.name);
                printer.text(" = ");
                kind::print_value(parameter, value, printer);
            }
        }
        printer.text("}>");
    }
}

/// `<{offset = [[0, 1]], block = []}, alignment = 16>`, `block` left out when empty.
pub mod shared_linear {
    use super::*;

    const OFFSET: usize = 0;
    const BLOCK: usize = 1;
    const ALIGNMENT: usize = 2;

    // Repeated because it is a hook: MLIR and the dialect determine the signature and everything up to the braces.
    /// Parses from `<`.
    ///
    /// # Errors
    /// When the text does not match.
    pub fn parse<'c>(
        spec: &'static AttributeSpec,
        parser: &mut AsmParser<'c, '_>,
        _type: Option<Type<'c>>,
    ) -> Parsed<Attribute<'c>> {
        let location = parser.location();
        let definition = super::definition(spec, parser)?;
        parser.token(Token::Less)?;
        parser.token(Token::LBrace)?;
        let mut values = kind::parse_given(definition, parser)?;
        if values[ALIGNMENT].is_some() {
            return Err(parser.error(location, "`alignment` belongs after the braces"));
        }
        parser.token(Token::RBrace)?;
        parser.token(Token::Comma)?;
        parser.keyword("alignment")?;
        parser.token(Token::Equal)?;
        values[ALIGNMENT] = Some(kind::parse_value(
            &definition.parameters[ALIGNMENT],
            parser,
        )?);
        parser.token(Token::Greater)?;
        if values[BLOCK].is_none() {
            values[BLOCK] = Some(make::bases(parser.context(), &[]));
        }
        let values = kind::complete(definition, parser, location, values)?;
        parser.checked_attribute(spec, location, &values)
    }

    /// Prints from `<`.
    pub fn print<'c>(
        _spec: &'static AttributeSpec,
        attribute: Attribute<'c>,
        printer: &mut AsmPrinter<'c, '_>,
    ) {
        let parameters = AttributeSpec::parameters_of(attribute);
        let bases = |index| {
            parameters
                .get(index)
                .and_then(access::bases_of)
                .unwrap_or_default()
        };
        printer.text("<{offset = ");
        kind::print_bases(&bases(OFFSET), printer);
        if !bases(BLOCK).is_empty() {
            printer.text(", block = ");
            kind::print_bases(&bases(BLOCK), printer);
        }
        printer.text("}, alignment = ");
        printer.display(
            parameters
                .get(ALIGNMENT)
                .and_then(access::integer_value)
                .unwrap_or_default(),
        );
        printer.text(">");
    }
}

/// `<[64:+4, 256:+8] {order = [1, 0], shape = [16, 64]}>`, or basis vectors in the braces.
pub mod padded_shared {
    use super::*;

    const INTERVALS: usize = 0;
    const PADDINGS: usize = 1;
    const OFFSET: usize = 2;
    const BLOCK: usize = 3;
    const SHAPE: usize = 4;

    /// Parses from `<`.
    ///
    /// # Errors
    /// When the text does not match.
    pub fn parse<'c>(
        spec: &'static AttributeSpec,
        parser: &mut AsmParser<'c, '_>,
        _type: Option<Type<'c>>,
    ) -> Parsed<Attribute<'c>> {
        let location = parser.location();
        let definition = super::definition(spec, parser)?;
        let context = parser.context();
        parser.token(Token::Less)?;
        let mut intervals = Vec::new();
        let mut paddings = Vec::new();
        parser.comma_separated(Token::LSquare, Token::RSquare, |parser| {
            intervals.push(parser.integer_as::<i32>()?);
            parser.token(Token::Colon)?;
            parser.token(Token::Plus)?;
            paddings.push(parser.integer_as::<i32>()?);
            Ok(())
        })?;
        parser.token(Token::LBrace)?;
        let mut offset = None;
        let mut block = None;
        let mut order: Option<Vec<i32>> = None;
        let mut shape: Option<Vec<i32>> = None;
        let names = ["order", "shape", "offset", "block"];
        loop {
            let at = parser.location();
            let name = names[parser.keyword_of(&names, "the parameter")?];
            parser.token(Token::Equal)?;
            let repeated = match name {
                "order" => order.replace(parser.integer_list()?).is_some(),
                "shape" => shape.replace(parser.integer_list()?).is_some(),
                "offset" => {
                    let value = kind::parse_value(&definition.parameters[OFFSET], parser)?;
                    offset.replace(value).is_some()
                }
                _ => {
                    let value = kind::parse_value(&definition.parameters[BLOCK], parser)?;
                    block.replace(value).is_some()
                }
            };
            if repeated {
                return Err(parser.error(at, format!("parameter `{name}` is given twice")));
            }
            if !parser.optional_token(Token::Comma) {
                break;
            }
        }
        parser.token(Token::RBrace)?;
        parser.token(Token::Greater)?;
        let (offset, block, shape) = match (order, shape, offset) {
            (Some(order), Some(shape), None) if block.is_none() => {
                let bases = plain_bases(&order, &shape).ok_or_else(|| {
                    parser.error(
                        location,
                        format!(
                            "`order` {order:?} must be a permutation of the dimensions of `shape` {shape:?}, whose extents must be powers of two"
                        ),
                    )
                })?;
                (
                    make::bases(context, &bases),
                    make::bases(context, &[]),
                    shape,
                )
            }
            (None, None, Some(offset)) => {
                let Some(block) = block else {
                    return Err(parser.error(location, "`offset` needs `block` beside it"));
                };
                let mut bases = access::bases_of(offset).unwrap_or_default();
                bases.extend(access::bases_of(block).unwrap_or_default());
                (offset, block, spanned_shape(&bases))
            }
            _ => {
                return Err(parser.error(
                    location,
                    "expected either `order` and `shape` or `offset` and `block`",
                ));
            }
        };
        let values = [
            Some(make::i32_array(context, &intervals)),
            Some(make::i32_array(context, &paddings)),
            Some(offset),
            Some(block),
            Some(make::i32_array(context, &shape)),
        ];
        parser.checked_attribute(spec, location, &values)
    }

    /// Prints from `<`.
    pub fn print<'c>(
        _spec: &'static AttributeSpec,
        attribute: Attribute<'c>,
        printer: &mut AsmPrinter<'c, '_>,
    ) {
        let parameters = AttributeSpec::parameters_of(attribute);
        let list = |index| {
            parameters
                .get(index)
                .and_then(access::i32_values)
                .unwrap_or_default()
        };
        let bases = |index| {
            parameters
                .get(index)
                .and_then(access::bases_of)
                .unwrap_or_default()
        };
        let pairs: Vec<String> = list(INTERVALS)
            .iter()
            .zip(list(PADDINGS))
            .map(|(interval, padding)| format!("{interval}:+{padding}"))
            .collect();
        printer.text(&format!("<[{}] {{", pairs.join(", ")));
        let offset = bases(OFFSET);
        let block = bases(BLOCK);
        let shape = list(SHAPE);
        let order = order_of(&offset, shape.len());
        if block.is_empty() && plain_bases(&order, &shape).as_ref() == Some(&offset) {
            printer.text("order = ");
            printer.list(&order);
            printer.text(", shape = ");
            printer.list(&shape);
        } else {
            printer.text("offset = ");
            kind::print_bases(&offset, printer);
            printer.text(", block = ");
            kind::print_bases(&block, printer);
        }
        printer.text("}>");
    }

    /// The basis vectors of elements in row-major order under a permutation of the dimensions,
    /// fastest first; `None` when the permutation or an extent is none.
    pub fn plain_bases(order: &[i32], shape: &[i32]) -> Option<Vec<Vec<i32>>> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        let dimensions = i32::try_from(shape.len()).ok()?;
        if sorted.iter().copied().ne(0..dimensions) {
            return None;
        }
        let mut bases = Vec::new();
        for dimension in order {
            let dimension = usize::try_from(*dimension).ok()?;
            let extent = *shape.get(dimension)?;
            if extent <= 0 || !u32::try_from(extent).ok()?.is_power_of_two() {
                return None;
            }
            for bit in 0..extent.trailing_zeros() {
                let mut vector = vec![0; shape.len()];
                vector[dimension] = 1 << bit;
                bases.push(vector);
            }
        }
        Some(bases)
    }

    /// The dimensions in the order in which the vectors reach them, then the others from the last one on.
    fn order_of(bases: &[Vec<i32>], rank: usize) -> Vec<i32> {
        let mut order = Vec::new();
        let reached = bases
            .iter()
            .filter_map(|vector| vector.iter().position(|step| *step != 0));
        for dimension in reached.chain((0..rank).rev()) {
            let dimension = i32::try_from(dimension).unwrap_or(i32::MAX);
            if !order.contains(&dimension) {
                order.push(dimension);
            }
        }
        order
    }

    /// The smallest extents, powers of two, that hold what the vectors reach.
    fn spanned_shape(bases: &[Vec<i32>]) -> Vec<i32> {
        let rank = bases.first().map_or(0, Vec::len);
        (0..rank)
            .map(|dimension| {
                let reach = bases
                    .iter()
                    .filter_map(|vector| vector.get(dimension))
                    .fold(0, |reach, step| reach | step);
                let reach = u32::try_from(reach).unwrap_or(0).min(1 << 29);
                i32::try_from((reach + 1).next_power_of_two()).unwrap_or(i32::MAX)
            })
            .collect()
    }
}

fn definition(
    spec: &'static AttributeSpec,
    parser: &mut AsmParser<'_, '_>,
) -> Parsed<&'static crate::tables::definition::KindDefinition> {
    match kind::attribute_definition(spec) {
        Some(definition) => Ok(definition),
        None => Err(parser.error_here(format!("`{}` has no definition", spec.mnemonic))),
    }
}
