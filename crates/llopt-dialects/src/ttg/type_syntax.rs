//! Syntax of the types of ttg.

/// `!ttg.memdesc<2x64xf16, #shared, #smem, mutable, 4x64>`
pub mod memdesc {
    use crate::tables::types::{MemDesc, MemDescParts};
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
        let shape = parser.dimension_list(false, true)?;
        let element = parser.r#type()?;
        parser.token(Token::Comma)?;
        let encoding = parser.attribute()?;
        parser.token(Token::Comma)?;
        let memory_space = parser.attribute()?;
        let mut mutable = false;
        let mut alloc_shape = Vec::new();
        if parser.optional_token(Token::Comma) {
            mutable = parser.optional_keyword("mutable");
            if !mutable || parser.optional_token(Token::Comma) {
                alloc_shape = parser.dimension_list(false, false)?;
            }
        }
        parser.token(Token::Greater)?;
        if alloc_shape.is_empty() {
            alloc_shape.clone_from(&shape);
        }
        let parts = MemDescParts {
            shape,
            element,
            encoding,
            memory_space,
            mutable,
            alloc_shape,
        };
        parser.checked_type(spec, location, &parts.parameters())
    }

    /// Prints from `<`.
    pub fn print<'c>(_spec: &'static TypeSpec, r#type: Type<'c>, printer: &mut AsmPrinter<'c, '_>) {
        let Some(parts) = MemDesc::of(r#type).and_then(MemDesc::parts) else {
            return;
        };
        printer.text("<");
        for extent in &parts.shape {
            printer.display(extent);
            printer.text("x");
        }
        printer.r#type(parts.element);
        printer.text(", ");
        printer.attribute(parts.encoding);
        printer.text(", ");
        printer.attribute(parts.memory_space);
        if parts.mutable {
            printer.text(", mutable");
        }
        if parts.alloc_shape != parts.shape {
            printer.text(", ");
            printer.dimension_list(&parts.alloc_shape);
        }
        printer.text(">");
    }
}
