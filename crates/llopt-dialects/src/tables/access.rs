//! Access to the parts of an operation, for the accessors of the generated wrappers.
//!
//! The functions rely on what MLIR verifies before any hook of these dialects runs: the number of operands, results
//! and regions fits the definition. Where that does not hold (an operation built wrongly and not verified yet) the
//! list forms return an empty list; the single forms and [`expect`] panic, which is a bug in the code that built the
//! operation.

use crate::tables::definition::{
    DefaultValue, Groups, Multiplicity, OpDefinition, Presence, ValueField,
};
use llopt_mlir::{
    dialect::OpSpec,
    ir::{AttributeExt, OperationExt, ValueExt},
};
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, Location, OperationRef, RegionRef, Type, Value, ValueLike,
        operation::{OperationLike, OperationResult},
    },
};
use std::ops::Range;

/// The context of an operation.
pub fn context<'c>(operation: OperationRef<'c, '_>) -> &'c Context {
    context_of(operation.location())
}

/// The context of a location.
pub fn context_of<'c>(location: Location<'c>) -> &'c Context {
    llopt_mlir::ir::context(location.context())
}

/// The positions of a group in the flat list of `total` values.
fn group(
    operation: OperationRef<'_, '_>,
    fields: &[ValueField],
    groups: Groups,
    total: usize,
    index: usize,
) -> Range<usize> {
    let varies = |field: &&ValueField| field.multiplicity != Multiplicity::One;
    let range = match groups {
        Groups::Fixed => index..index + 1,
        Groups::OneVariable | Groups::Equal => {
            let variable = fields.iter().filter(varies).count().max(1);
            let size = total.saturating_sub(fields.len() - variable) / variable;
            let before = fields[..index].iter().filter(varies).count();
            let start = (index - before) + before * size;
            let own = if varies(&&fields[index]) { size } else { 1 };
            start..start + own
        }
        Groups::Sized(slot) => {
            let sizes = OpSpec::slot(operation, slot)
                .and_then(i32_values)
                .unwrap_or_default();
            let size = |position: usize| {
                sizes
                    .get(position)
                    .and_then(|size| usize::try_from(*size).ok())
                    .unwrap_or(0)
            };
            let start: usize = (0..index).map(size).sum();
            start..start + size(index)
        }
    };
    range.start.min(total)..range.end.min(total)
}

/// The operands of a group.
pub fn operand_list<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Vec<Value<'c, 'a>> {
    group(
        operation,
        definition.operands,
        definition.operand_groups,
        operation.operand_count(),
        index,
    )
    .filter_map(|position| operation.operand(position).ok())
    .collect()
}

/// The positions of a group of operands in the flat list.
pub fn operand_positions(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Range<usize> {
    group(
        operation,
        definition.operands,
        definition.operand_groups,
        operation.operand_count(),
        index,
    )
}

/// The positions of a group of results in the flat list.
pub fn result_positions(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Range<usize> {
    group(
        operation,
        definition.results,
        definition.result_groups,
        operation.result_count(),
        index,
    )
}

/// The results of a group.
pub fn result_list<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Vec<Value<'c, 'a>> {
    result_positions(operation, definition, index)
        .filter_map(|position| operation.result(position).ok().map(Into::into))
        .collect()
}

/// The operand of a group that has none or one.
pub fn operand_optional<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Value<'c, 'a>> {
    let position = operand_positions(operation, definition, index).next()?;
    operation.operand(position).ok()
}

/// The result of a group that has none or one.
pub fn result_optional<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Value<'c, 'a>> {
    let position = result_positions(operation, definition, index).next()?;
    operation.result(position).ok().map(Into::into)
}

/// The operand of a group of one.
///
/// # Panics
/// When the operation has too few operands, which MLIR's verifier excludes.
pub fn operand<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Value<'c, 'a> {
    operand_optional(operation, definition, index)
        .unwrap_or_else(|| panic!("{} has too few operands", definition.name))
}

/// The operand at a position of the flat list.
///
/// # Panics
/// When the operation has too few operands, which MLIR's verifier excludes.
pub fn operand_at<'c, 'a>(operation: OperationRef<'c, 'a>, position: usize) -> Value<'c, 'a> {
    operation
        .operand(position)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The result of a group of one.
///
/// # Panics
/// When the operation has too few results, which MLIR's verifier excludes.
pub fn result<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    definition: &OpDefinition,
    index: usize,
) -> Value<'c, 'a> {
    result_optional(operation, definition, index)
        .unwrap_or_else(|| panic!("{} has too few results", definition.name))
}

/// The operand this many before the last one.
///
/// # Panics
/// When the operation has too few operands, which MLIR's verifier excludes.
pub fn operand_from_end<'c, 'a>(operation: OperationRef<'c, 'a>, position: usize) -> Value<'c, 'a> {
    operand_at(operation, operation.operand_count() - 1 - position)
}

/// The operands between the first `before` and the last `after`.
pub fn operands_between<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    before: usize,
    after: usize,
) -> Vec<Value<'c, 'a>> {
    (before..operation.operand_count().saturating_sub(after))
        .filter_map(|position| operation.operand(position).ok())
        .collect()
}

/// The operands of a group of an MLIR op that counts its groups.
pub fn operand_segment<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    index: usize,
) -> Vec<Value<'c, 'a>> {
    let sizes = operation
        .attr("operandSegmentSizes")
        .and_then(i32_values)
        .unwrap_or_default();
    let size = |index: usize| sizes.get(index).map_or(0, |&size| size.max(0) as usize);
    let before: usize = (0..index).map(size).sum();
    let after = operation
        .operand_count()
        .saturating_sub(before + size(index));
    operands_between(operation, before, after)
}

/// The result at a position of the flat list.
///
/// # Panics
/// When the operation has too few results, which MLIR's verifier excludes.
pub fn result_at<'c, 'a>(operation: OperationRef<'c, 'a>, position: usize) -> Value<'c, 'a> {
    operation
        .result(position)
        .unwrap_or_else(|error| panic!("{error}"))
        .into()
}

/// The region at a position.
///
/// # Panics
/// When the operation has too few regions, which MLIR's verifier excludes.
pub fn region<'c, 'a>(operation: OperationRef<'c, 'a>, position: usize) -> RegionRef<'c, 'a> {
    operation
        .region(position)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The regions from a position on.
pub fn regions<'c, 'a>(operation: OperationRef<'c, 'a>, position: usize) -> Vec<RegionRef<'c, 'a>> {
    operation.regions().skip(position).collect()
}

/// The operation that a value is a result of.
pub fn defining<'c, 'a>(value: Value<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    value.defining_op()
}

/// An attribute or its default.
fn slot<'c>(
    operation: OperationRef<'c, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Attribute<'c>> {
    let field = definition.attributes.get(index)?;
    OpSpec::slot(operation, index).or_else(|| match field.presence {
        Presence::Default(value) => Some(value.attribute(context(operation), &field.kind)),
        Presence::Required | Presence::Optional => None,
    })
}

/// A value that the verifier guarantees.
///
/// # Panics
/// When it is absent: the operation was built without a required attribute and not verified.
pub fn expect<T>(value: Option<T>, definition: &OpDefinition, index: usize) -> T {
    value.unwrap_or_else(|| {
        panic!(
            "{} lacks a valid attribute `{}`",
            definition.name, definition.attributes[index].name
        )
    })
}

/// An integer attribute, sign-extended, or the value of an enumeration.
pub fn integer(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<i64> {
    let field = definition.attributes.get(index)?;
    match (OpSpec::slot(operation, index), field.presence) {
        (Some(attribute), _) => integer_value(attribute),
        (None, Presence::Default(DefaultValue::Integer(value))) => Some(value),
        (None, _) => None,
    }
}

/// A boolean attribute.
pub fn bool(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<bool> {
    let field = definition.attributes.get(index)?;
    match (OpSpec::slot(operation, index), field.presence) {
        (Some(attribute), _) => bool_value(attribute),
        (None, Presence::Default(DefaultValue::Bool(value))) => Some(value),
        (None, _) => None,
    }
}

/// Whether a unit attribute is present.
pub fn unit(operation: OperationRef<'_, '_>, _definition: &OpDefinition, index: usize) -> bool {
    OpSpec::slot(operation, index).is_some()
}

/// A string attribute.
pub fn string<'c>(
    operation: OperationRef<'c, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<&'c str> {
    slot(operation, definition, index).and_then(string_value)
}

/// The name in a symbol reference.
pub fn symbol<'c>(
    operation: OperationRef<'c, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<&'c str> {
    slot(operation, definition, index).and_then(|attribute| attribute.as_symbol())
}

/// An `array<i32: …>`.
pub fn i32_array(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Vec<i32>> {
    slot(operation, definition, index).and_then(i32_values)
}

/// An `array<i64: …>`.
pub fn i64_array(
    operation: OperationRef<'_, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Vec<i64>> {
    slot(operation, definition, index).and_then(i64_values)
}

/// Any attribute.
pub fn attribute<'c>(
    operation: OperationRef<'c, '_>,
    definition: &OpDefinition,
    index: usize,
) -> Option<Attribute<'c>> {
    slot(operation, definition, index)
}

/// The value of an integer attribute, sign-extended; `None` for other attributes.
pub fn integer_value(attribute: Attribute<'_>) -> Option<i64> {
    attribute.as_i64()
}

/// The value of a boolean attribute.
pub fn bool_value(attribute: Attribute<'_>) -> Option<bool> {
    attribute.as_bool()
}

/// The text of a string attribute.
pub fn string_value<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    attribute.as_str()
}

/// The elements of an `array<i32: …>`.
pub fn i32_values(attribute: Attribute<'_>) -> Option<Vec<i32>> {
    attribute.as_i32_array()
}

/// The elements of an `array<i64: …>`.
pub fn i64_values(attribute: Attribute<'_>) -> Option<Vec<i64>> {
    attribute.as_i64_array()
}

/// The elements of an array attribute.
pub fn array_elements<'c>(attribute: Attribute<'c>) -> Option<Vec<Attribute<'c>>> {
    attribute.as_array()
}

/// The type of an attribute that has one.
pub fn attribute_type<'c>(attribute: impl AttributeLike<'c>) -> Type<'c> {
    attribute.r#type()
}

/// A result as a value.
pub fn value<'c, 'a>(result: OperationResult<'c, 'a>) -> Value<'c, 'a> {
    result.into()
}

/// The type of a value.
pub fn type_of<'c>(value: impl ValueLike<'c>) -> Type<'c> {
    value.r#type()
}

/// Basis vectors stored in an attribute.
pub fn bases_of(attribute: Attribute<'_>) -> Option<Vec<Vec<i32>>> {
    array_elements(attribute)?
        .into_iter()
        .map(i32_values)
        .collect()
}
