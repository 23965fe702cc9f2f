//! Attributes and types of a kind defined from Rust, where the text must have that kind.

use super::{AsmParser, NULL_ATTRIBUTE, NULL_TYPE, SourceLoc, parsed};
use crate::{
    asm::Parsed,
    dialect::{AttributeSpec, TypeSpec},
    ffi,
};
use melior::ir::{Attribute, Type, TypeLike};

impl<'c> AsmParser<'c, '_> {
    /// Makes an attribute of a kind after verifying the parameters; complaints are reported at a place. Cheaper than
    /// `spec.get_checked(parser.encode(place), …)`, which looks up line and column even without an error.
    pub fn checked_attribute(
        &mut self,
        spec: &'static AttributeSpec,
        location: SourceLoc,
        parameters: &[Option<Attribute<'c>>],
    ) -> Parsed<Attribute<'c>> {
        spec.try_get(self.context(), parameters)
            .map_err(|complaint| self.complain(location, complaint))
    }

    /// Makes a type of a kind, as [`AsmParser::checked_attribute`].
    pub fn checked_type(
        &mut self,
        spec: &'static TypeSpec,
        location: SourceLoc,
        parameters: &[Option<Attribute<'c>>],
    ) -> Parsed<Type<'c>> {
        spec.try_get(self.context(), parameters)
            .map_err(|complaint| self.complain(location, complaint))
    }

    /// An attribute of one kind, in its full form, as an alias, or as what follows the mnemonic.
    pub fn attribute_of(
        &mut self,
        spec: &'static AttributeSpec,
        r#type: Option<Type<'c>>,
    ) -> Parsed<Attribute<'c>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; success fills in an attribute.
        unsafe {
            parsed(ffi::llopt_parser_attribute_of(
                self.raw,
                std::ptr::from_ref(spec).cast(),
                r#type.map_or(NULL_TYPE, |r#type| r#type.to_raw()),
                &mut raw,
            ))?;
            Ok(Attribute::from_raw(raw))
        }
    }

    /// A type of one kind, in its full form, as an alias, or as what follows the mnemonic.
    pub fn type_of(&mut self, spec: &'static TypeSpec) -> Parsed<Type<'c>> {
        let mut raw = NULL_TYPE;
        // SAFETY: the parser is live; success fills in a type.
        unsafe {
            parsed(ffi::llopt_parser_type_of(
                self.raw,
                std::ptr::from_ref(spec).cast(),
                &mut raw,
            ))?;
            Ok(Type::from_raw(raw))
        }
    }
}
