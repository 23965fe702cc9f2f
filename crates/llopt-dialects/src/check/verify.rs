//! The verifier: first the rules of the tables, then those of the operation itself.
//!
//! Invariants checked here, in this order:
//! 1. every operand and result satisfies its type constraint;
//! 2. groups that must have the same size have it;
//! 3. required attributes are present and every inherent attribute is of its kind and range;
//! 4. the traits of `OpTrait` hold;
//! 5. the relations between types hold;
//! 6. the operation's own verifier, if any, succeeds.
//!
//! MLIR has already checked the number of operands, results, regions and successors, and its own traits.

use crate::{
    check::infer,
    tables::access,
    tables::definition::{
        AttributeField, AttributeKind, Groups, Multiplicity, OpDefinition, OpTrait, Presence,
        Relation, ValueField, ValueRef,
    },
    tables::types::{MemDesc, Pointer, RankedTensor},
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::OpSpec,
    ir::{AttributeExt, OperationExt, Signedness, TypeExt},
};
use melior::ir::{
    Attribute, AttributeLike, BlockLike, OperationRef, RegionLike, RegionRef, Type, TypeLike,
    ValueLike, operation::OperationLike,
};
use std::{fmt, ops::Range};

/// The largest tensor, in elements.
pub const MAX_TENSOR_ELEMENTS: i64 = 1 << 20;

/// The verify hook of every operation.
///
/// # Errors
/// The first violation.
pub fn operation<'c, 'a>(
    spec: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
) -> Result<(), Complaint> {
    let Some(definition) = OpDefinition::of_spec(spec) else {
        return Ok(());
    };
    for (index, field) in definition.operands.iter().enumerate() {
        let positions = access::operand_positions(operation, definition, index);
        values(field, Side::Operand, positions, |position| {
            operation
                .operand_value(position)
                .map(|value| value.r#type())
        })?;
    }
    for (index, field) in definition.results.iter().enumerate() {
        let positions = access::result_positions(operation, definition, index);
        values(field, Side::Result, positions, |position| {
            operation.result_value(position).map(|value| value.r#type())
        })?;
    }
    equal_groups(operation, definition)?;
    for (index, field) in definition.attributes.iter().enumerate() {
        attribute(OpSpec::slot(operation, index), field)?;
    }
    for name in definition.traits {
        check_trait(*name, operation)?;
    }
    for entry in definition.relations {
        relation(operation, definition, entry)?;
    }
    match definition.verify {
        Some(verify) => verify(operation),
        None => Ok(()),
    }
}

/// Checks the number of blocks in each region.
///
/// # Errors
/// The first violation.
pub fn regions<'c, 'a>(
    spec: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
) -> Result<(), Complaint> {
    let Some(definition) = OpDefinition::of_spec(spec) else {
        return Ok(());
    };
    for (index, field) in definition.regions.iter().enumerate() {
        let last = if field.variadic {
            operation.region_count()
        } else {
            index + 1
        };
        for number in index..last {
            let Ok(region) = operation.region(number) else {
                continue;
            };
            let blocks = count_blocks(region);
            if let Some(expected) = field.blocks
                && blocks != expected as usize
            {
                return Err(Complaint::new(format!(
                    "region #{number} (`{}`) must have {expected} block{}, but has {blocks}",
                    field.name,
                    if expected == 1 { "" } else { "s" }
                )));
            }
            if field.at_least_one && blocks == 0 {
                return Err(Complaint::new(format!(
                    "region #{number} (`{}`) must have at least one block",
                    field.name
                )));
            }
        }
    }
    Ok(())
}

fn count_blocks(region: RegionRef<'_, '_>) -> usize {
    let mut count = 0;
    let mut block = region.first_block();
    while let Some(current) = block {
        count += 1;
        block = current.next_in_region();
    }
    count
}

/// The two lists of values of an operation.
#[derive(Clone, Copy)]
enum Side {
    Operand,
    Result,
}

/// A value as messages name it: `operand #0`.
#[derive(Clone, Copy)]
struct Place(Side, usize);

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.0 {
            Side::Operand => "operand",
            Side::Result => "result",
        };
        write!(formatter, "{side} #{}", self.1)
    }
}

/// Checks the types of one group.
fn values<'c>(
    field: &'static ValueField,
    side: Side,
    positions: Range<usize>,
    type_at: impl Fn(usize) -> Option<Type<'c>>,
) -> Result<(), Complaint> {
    for position in positions {
        if let Some(r#type) = type_at(position)
            && !field.constraint.accepts(r#type)
        {
            return Err(Complaint::new(format!(
                "{} (`{}`) must be {}, but got '{type}'",
                Place(side, position),
                field.name,
                field.summary
            )));
        }
    }
    Ok(())
}

fn equal_groups(
    operation: OperationRef<'_, '_>,
    definition: &'static OpDefinition,
) -> Result<(), Complaint> {
    let variable = definition
        .operands
        .iter()
        .filter(|field| field.multiplicity == Multiplicity::Variadic)
        .count();
    let fixed = definition.operands.len() - variable;
    if definition.operand_groups == Groups::Equal
        && variable > 0
        && !(operation.operand_count() - fixed).is_multiple_of(variable)
    {
        let names: Vec<_> = definition
            .operands
            .iter()
            .filter(|field| field.multiplicity == Multiplicity::Variadic)
            .map(|field| format!("`{}`", field.name))
            .collect();
        return Err(Complaint::new(format!(
            "{} must have the same number of operands; together they have {}",
            names.join(", "),
            operation.operand_count() - fixed
        )));
    }
    Ok(())
}

/// Checks one inherent attribute.
fn attribute(
    value: Option<Attribute<'_>>,
    field: &'static AttributeField,
) -> Result<(), Complaint> {
    let Some(value) = value else {
        return match field.presence {
            Presence::Required => Err(Complaint::new(format!(
                "requires attribute '{}'",
                field.name
            ))),
            Presence::Optional | Presence::Default(_) => Ok(()),
        };
    };
    let wrong = |what: &str| {
        Err(Complaint::new(format!(
            "attribute '{}' must be {what}, but is {value}",
            field.name
        )))
    };
    match field.kind {
        AttributeKind::Bool if !value.is_bool() => wrong("a boolean"),
        AttributeKind::Unit if !value.is_unit() => wrong("a unit attribute"),
        AttributeKind::Integer(width) => {
            if !is_signless(value, width) {
                return wrong(&format!("a signless integer of {width} bits"));
            }
            match (field.range, access::integer_value(value)) {
                (Some((minimum, maximum)), Some(number))
                    if number < minimum || number > maximum =>
                {
                    wrong(&format!("between {minimum} and {maximum}"))
                }
                _ => Ok(()),
            }
        }
        // MLIR's strings are bytes; these are for people and for names in object files.
        AttributeKind::String | AttributeKind::SymbolName if value.as_str().is_none() => {
            wrong("a string of UTF-8")
        }
        AttributeKind::FlatSymbolRef if !value.is_flat_symbol_ref() => wrong("a symbol reference"),
        AttributeKind::DenseI32Array if access::i32_values(value).is_none() => {
            wrong("an array of i32")
        }
        AttributeKind::DenseI64Array if access::i64_values(value).is_none() => {
            wrong("an array of i64")
        }
        AttributeKind::Enum(cases) => match access::integer_value(value) {
            Some(number) if is_signless(value, 32) && cases.keyword(number).is_some() => Ok(()),
            _ => wrong(&format!("one of: {}", cases.keywords.join(", "))),
        },
        AttributeKind::FunctionType
            if !value.as_type().is_some_and(|r#type| r#type.is_function()) =>
        {
            wrong("a function type")
        }
        AttributeKind::DictionaryArray
            if !access::array_elements(value)
                .is_some_and(|elements| elements.iter().all(AttributeLike::is_dictionary)) =>
        {
            wrong("an array of dictionaries")
        }
        AttributeKind::Kind(spec) if !spec.is(value) => {
            wrong(&format!("a {} attribute", spec.mnemonic))
        }
        _ => Ok(()),
    }
}

/// Whether an attribute is an integer of this many bits without a sign.
fn is_signless(value: Attribute<'_>, width: u32) -> bool {
    value.is_integer() && value.value_type().integer() == Some((width, Signedness::Signless))
}

fn check_trait<'c, 'a>(name: OpTrait, operation: OperationRef<'c, 'a>) -> Result<(), Complaint> {
    match name {
        OpTrait::TensorSize => tensor_sizes(operation),
        OpTrait::VerifyTensorLayouts => crate::check::encoding_verifier::operation(operation),
        OpTrait::SameOperandsEncoding => same_encoding(operation, false, false),
        OpTrait::SameOperandsAndResultEncoding => same_encoding(operation, true, false),
        OpTrait::SameLoadStoreOperandsEncoding => same_encoding(operation, false, true),
        OpTrait::SameLoadStoreOperandsAndResultEncoding => same_encoding(operation, true, true),
        OpTrait::SameLoadStoreOperandsShape => same_pointee_shape(operation, false),
        OpTrait::SameLoadStoreOperandsAndResultShape => same_pointee_shape(operation, true),
        OpTrait::SameMemDescElementType => same_descriptor_element(operation),
        // Statements about the operation on which passes rely; nothing to check.
        OpTrait::AsyncRegions | OpTrait::InferUpToLayoutEquality => Ok(()),
    }
}

/// The types of all operands and, if requested, results, each with its place.
fn named_types<'c>(
    operation: OperationRef<'c, '_>,
    results: bool,
) -> impl Iterator<Item = (Place, Type<'c>)> {
    let side = |side: Side| move |(index, r#type)| (Place(side, index), r#type);
    let operands = operation.operand_types().enumerate();
    let count = if results { usize::MAX } else { 0 };
    let results = operation.result_types().enumerate().take(count);
    operands
        .map(side(Side::Operand))
        .chain(results.map(side(Side::Result)))
}

fn tensor_sizes(operation: OperationRef<'_, '_>) -> Result<(), Complaint> {
    for (name, r#type) in named_types(operation, true) {
        let Some(tensor) = RankedTensor::of(r#type) else {
            continue;
        };
        let mut elements: i64 = 1;
        for &extent in tensor.extents() {
            if extent < 0 {
                return Err(Complaint::new(format!(
                    "{name} has a dynamic extent: '{type}'"
                )));
            }
            elements = elements.saturating_mul(extent);
        }
        if elements > MAX_TENSOR_ELEMENTS {
            return Err(Complaint::new(format!(
                "{name} has {elements} elements, more than the {MAX_TENSOR_ELEMENTS} that a tensor may have"
            )));
        }
        if elements & (elements - 1) != 0 || elements == 0 {
            return Err(Complaint::new(format!(
                "{name} has {elements} elements, which is not a power of two"
            )));
        }
    }
    Ok(())
}

/// The tensor a type stands for: itself, or the block that a pointer points to.
fn tensor_of<'c>(r#type: Type<'c>, through_pointers: bool) -> Option<RankedTensor<'c>> {
    RankedTensor::of(r#type).or_else(|| {
        through_pointers
            .then(|| Pointer::of(r#type))
            .flatten()
            .and_then(|pointer| RankedTensor::of(pointer.pointee()))
    })
}

fn same_encoding(
    operation: OperationRef<'_, '_>,
    results: bool,
    through_pointers: bool,
) -> Result<(), Complaint> {
    let mut first: Option<(Place, Attribute<'_>)> = None;
    for (name, r#type) in named_types(operation, results) {
        let Some(tensor) = tensor_of(r#type, through_pointers) else {
            continue;
        };
        let Some(encoding) = tensor.encoding() else {
            continue;
        };
        match &first {
            None => first = Some((name, encoding)),
            // Two spellings of one map are one layout.
            Some((first_name, known))
                if !infer::same_encoding(Some(*known), Some(encoding), tensor.extents()) =>
            {
                let what = if results {
                    "all operands and results"
                } else {
                    "all operands"
                };
                return Err(Complaint::new(format!(
                    "requires the same encoding for {what}; {name} has {encoding}, {first_name} has {known}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn same_pointee_shape(operation: OperationRef<'_, '_>, results: bool) -> Result<(), Complaint> {
    let mut first: Option<(Place, &[i64])> = None;
    for (name, r#type) in named_types(operation, results) {
        let shape = tensor_of(r#type, true).map_or_else(Default::default, RankedTensor::extents);
        match &first {
            None => first = Some((name, shape)),
            Some((first_name, known)) if *known != shape => {
                let what = if results {
                    "all operands and results"
                } else {
                    "all operands"
                };
                return Err(Complaint::new(format!(
                    "requires the same shape for {what}; {name} has {shape:?}, {first_name} has {known:?}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn same_descriptor_element(operation: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let mut first: Option<(Place, Type<'_>)> = None;
    for (name, r#type) in named_types(operation, true) {
        let Some(element) = MemDesc::of(r#type).map(MemDesc::element) else {
            continue;
        };
        match &first {
            None => first = Some((name, element)),
            Some((first_name, known)) if *known != element => {
                return Err(Complaint::new(format!(
                    "requires one element type for all memory descriptors; {name} has {element}, {first_name} has {known}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn relation(
    operation: OperationRef<'_, '_>,
    definition: &'static OpDefinition,
    entry: &'static Relation,
) -> Result<(), Complaint> {
    let positions = |reference: ValueRef| match reference {
        ValueRef::Operand(index) => access::operand_positions(operation, definition, index),
        ValueRef::Result(index) => access::result_positions(operation, definition, index),
    };
    let r#type = |reference: ValueRef, position: usize| {
        let value = match reference {
            ValueRef::Operand(_) => operation.operand_value(position),
            ValueRef::Result(_) => operation.result_value(position),
        };
        value.map(|value| value.r#type())
    };
    let (from, to) = (positions(entry.from), positions(entry.to));
    for (known, given) in from.clone().zip(to.clone()) {
        let (Some(known), Some(given)) = (r#type(entry.from, known), r#type(entry.to, given))
        else {
            continue;
        };
        let expected = (entry.transform)(known);
        if expected != Some(given) {
            let complaint = Complaint::new(format!("failed to verify that {}", entry.summary));
            return Err(match expected {
                Some(expected) => complaint.note(format!("expected '{expected}', got '{given}'")),
                None => complaint.note(format!("nothing follows from '{known}'")),
            });
        }
    }
    let both_variadic = |reference: ValueRef| match reference {
        ValueRef::Operand(index) => {
            definition.operands[index].multiplicity == Multiplicity::Variadic
        }
        ValueRef::Result(index) => definition.results[index].multiplicity == Multiplicity::Variadic,
    };
    if both_variadic(entry.from) && both_variadic(entry.to) && from.len() != to.len() {
        return Err(Complaint::new(format!(
            "failed to verify that {}: {} against {} values",
            entry.summary,
            from.len(),
            to.len()
        )));
    }
    Ok(())
}
