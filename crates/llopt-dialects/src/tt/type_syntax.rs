//! Syntax of the types of tt.

/// `!tt.ptr<f32>`, `!tt.ptr<f32, 3>`
pub mod ptr {
    use crate::{tables::make, tables::types::Pointer};
    use llopt_mlir::{
        asm::{AsmParser, AsmPrinter, Parsed, Token},
        dialect::TypeSpec,
    };
    use melior::ir::Type;

    /// Parses from `<`.
    ///
    /// # Errors
    /// When the text does not match.
    pub fn parse<'c>(spec: &'static TypeSpec, parser: &mut AsmParser<'c, '_>) -> Parsed<Type<'c>> {
        let location = parser.location();
        parser.token(Token::Less)?;
        let pointee = parser.r#type()?;
        let address_space = if parser.optional_token(Token::Comma) {
            i64::from(parser.integer_as::<i32>()?)
        } else {
            1
        };
        parser.token(Token::Greater)?;
        let parameters = [
            Some(make::r#type(pointee)),
            Some(make::integer(parser.context(), 32, address_space)),
        ];
        parser.checked_type(spec, location, &parameters)
    }

    /// Prints from `<`.
    pub fn print<'c>(_spec: &'static TypeSpec, r#type: Type<'c>, printer: &mut AsmPrinter<'c, '_>) {
        let Some(pointer) = Pointer::of(r#type) else {
            return;
        };
        printer.text("<");
        printer.r#type(pointer.pointee());
        if pointer.address_space() != 1 {
            printer.text(", ");
            printer.display(pointer.address_space());
        }
        printer.text(">");
    }
}

/// `!tt.tensordesc<tensor<64x64xf16>>`; `!tt.tensordesc<64x64xf16>` is read too.
pub mod tensordesc {
    use crate::{
        tables::make,
        tables::types::{RankedTensor, TensorDesc},
    };
    use llopt_mlir::{
        asm::{AsmParser, AsmPrinter, Parsed, Token},
        dialect::TypeSpec,
    };
    use melior::ir::Type;

    /// Parses from `<`.
    ///
    /// # Errors
    /// When the text does not match.
    pub fn parse<'c>(spec: &'static TypeSpec, parser: &mut AsmParser<'c, '_>) -> Parsed<Type<'c>> {
        let location = parser.location();
        parser.token(Token::Less)?;
        let block = match parser.optional_type()? {
            Some(block) => block,
            None => {
                // The spelling of Triton 3.9: what `tensor<…>` would hold.
                let shape = parser.dimension_list(false, true)?;
                let element = parser.r#type()?;
                let encoding = if parser.optional_token(Token::Comma) {
                    Some(parser.attribute()?)
                } else {
                    None
                };
                RankedTensor::checked(parser.encode(location), &shape, element, encoding)
                    .ok_or_else(|| parser.error(location, "invalid block of a tensor descriptor"))?
            }
        };
        parser.token(Token::Greater)?;
        parser.checked_type(spec, location, &[Some(make::r#type(block))])
    }

    /// Prints from `<`.
    pub fn print<'c>(_spec: &'static TypeSpec, r#type: Type<'c>, printer: &mut AsmPrinter<'c, '_>) {
        if let Some(block) = TensorDesc::of(r#type).and_then(TensorDesc::block) {
            printer.text("<");
            printer.r#type(block.r#type());
            printer.text(">");
        }
    }
}
