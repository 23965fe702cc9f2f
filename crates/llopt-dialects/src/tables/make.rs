//! Attributes from Rust values, for builders and parsers.

use melior::ir::Type;
use melior::{
    Context,
    ir::{
        Attribute,
        attribute::{
            ArrayAttribute, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
            FlatSymbolRefAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
        },
        r#type::IntegerType,
    },
};

/// `unit`
pub fn unit(context: &Context) -> Attribute<'_> {
    Attribute::unit(context)
}

/// `true` or `false`
pub fn bool(context: &Context, value: bool) -> Attribute<'_> {
    BoolAttribute::new(context, value).into()
}

/// A signless integer of `width` bits; a width of 1 makes a `BoolAttr`.
pub fn integer(context: &Context, width: u32, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, width).into(), value).into()
}

/// A string.
pub fn string<'c>(context: &'c Context, value: &str) -> Attribute<'c> {
    StringAttribute::new(context, value).into()
}

/// `@name`
pub fn symbol<'c>(context: &'c Context, value: &str) -> Attribute<'c> {
    FlatSymbolRefAttribute::new(context, value).into()
}

/// `array<i32: …>`
pub fn i32_array<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
    DenseI32ArrayAttribute::new(context, values).into()
}

/// `array<i64: …>`
pub fn i64_array<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// A type as an attribute.
pub fn r#type<'c>(value: Type<'c>) -> Attribute<'c> {
    TypeAttribute::new(value).into()
}

/// Basis vectors as an array of `array<i32: …>`.
pub fn bases<'c>(context: &'c Context, vectors: &[Vec<i32>]) -> Attribute<'c> {
    let vectors: Vec<_> = vectors
        .iter()
        .map(|vector| i32_array(context, vector))
        .collect();
    ArrayAttribute::new(context, &vectors).into()
}
