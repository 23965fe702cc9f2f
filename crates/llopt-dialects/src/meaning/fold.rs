//! Constants known at compile time, for the folds of all dialects.

pub use crate::tables::constant::{bits, is_poison};

use crate::{
    tables::type_set::TypeSet,
    tables::types::{class_of, element_or_self},
    upstream::arith,
};
use llopt_mlir::{
    dialect::Fold,
    ir::{AttributeExt, attr},
};
use melior::ir::{Attribute, Type, Value, ValueLike};

/// The classes of integers.
const INTEGERS: TypeSet = TypeSet::I1
    .union(TypeSet::I4)
    .union(TypeSet::I8)
    .union(TypeSet::I16)
    .union(TypeSet::I32)
    .union(TypeSet::I64)
    .union(TypeSet::OTHER_INTEGER)
    .union(TypeSet::INDEX);

/// The constant operands of a fold hook.
pub type Constants<'x, 'c> = &'x [Option<Attribute<'c>>];

/// The constant operand at a position.
pub fn at<'c>(constants: Constants<'_, 'c>, index: usize) -> Option<Attribute<'c>> {
    constants.get(index).copied().flatten()
}

/// Whether a constant stands for zero, in every element. Negative zero is not zero here.
pub fn is_zero(constant: Option<Attribute<'_>>) -> bool {
    constant.and_then(bits) == Some(0)
}

/// Whether a value is defined as such a constant.
pub fn is_zero_constant(value: Value<'_, '_>) -> bool {
    arith::ConstantOp::defining(value).is_some_and(|constant| is_zero(constant.value()))
}

/// A scalar or a splat of a type; `None` for types without constants.
pub fn uniform<'c>(r#type: Type<'c>, bits: u64) -> Option<Attribute<'c>> {
    if element_or_self(r#type) != r#type {
        return attr::splat(r#type, bits);
    }
    if class_of(r#type).intersects(INTEGERS) {
        return Some(attr::integer(r#type, bits.cast_signed()));
    }
    attr::float_bits(r#type, bits)
}

/// The elements of a constant, in the same order, as a constant of another type whose elements
/// have as many bits.
pub fn retyped<'c>(constant: Attribute<'c>, r#type: Type<'c>) -> Option<Attribute<'c>> {
    match bits(constant) {
        Some(bits) => uniform(r#type, bits),
        None => attr::dense(r#type, &constant.dense_bits()?),
    }
}

/// A poison among the constants; whatever is computed from it is poison, too.
pub fn poison<'c, 'a>(constants: Constants<'_, 'c>) -> Option<Fold<'c, 'a>> {
    constants
        .iter()
        .flatten()
        .find(|constant| is_poison(**constant))
        .map(|poison| Fold::attribute(*poison))
}

/// The elements of a constant that are all the same, as a constant of another shape.
pub fn resized<'c>(constant: Attribute<'c>, r#type: Type<'c>) -> Option<Attribute<'c>> {
    uniform(r#type, bits(constant)?)
}

/// An operation of one operand that does nothing if the type does not change: a poison stays a poison, and `constant`
/// converts any other constant to the result's type.
pub fn changed_type<'c, 'a>(
    source: Value<'c, 'a>,
    result: Value<'c, 'a>,
    constants: Constants<'_, 'c>,
    constant: impl FnOnce(Attribute<'c>, Type<'c>) -> Option<Attribute<'c>>,
) -> Fold<'c, 'a> {
    if source.r#type() == result.r#type() {
        return Fold::value(source);
    }
    if let Some(poison) = poison(constants) {
        return poison;
    }
    at(constants, 0)
        .and_then(|value| constant(value, result.r#type()))
        .map_or(Fold::None, Fold::attribute)
}
