//! From ops to transfer functions: which function of [`integer`], [`shape`] or [`address`] an op
//! is, and what its attributes say.
//!
//! An op that is not named here has results of which nothing is known, which is always true; a new
//! op needs an arm only to be analysed better than that.

use llopt_dialects::tables::types::Pointer;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, TypeExt, ValueExt};
use melior::ir::{Attribute, BlockLike, OperationRef, Type, TypeLike, Value, ValueLike};

use super::integer::{self, Binary, Comparison};
use super::{AxisFacts, Pow2, address, shape};

/// The shape and the elements of a type; a scalar has the shape `[1]`.
struct Typed {
    shape: Vec<u64>,
    element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// An integer of this many bits; an index counts as 64.
    Integer(u32),
    /// An address of something of this size in bytes.
    Address(u64),
    /// Anything else.
    Other,
}

impl Typed {
    fn of(r#type: Type<'_>) -> Self {
        let sizes = |shape: Vec<i64>| -> Option<Vec<u64>> {
            let sizes = shape.into_iter().map(|size| u64::try_from(size).ok());
            sizes.collect()
        };
        let shape = r#type.tensor().and_then(|tensor| sizes(tensor.shape));
        Self {
            shape: shape.unwrap_or_else(|| vec![1]),
            element: Element::of(r#type.element_or_self()),
        }
    }

    fn step(&self) -> Pow2 {
        match self.element {
            Element::Address(bytes) => Pow2::dividing(bytes),
            Element::Integer(_) | Element::Other => Pow2::ONE,
        }
    }

    /// The number of bits of integers; 64 where the question does not arise.
    fn width(&self) -> u32 {
        match self.element {
            Element::Integer(width) => width,
            Element::Address(_) | Element::Other => 64,
        }
    }

    fn unknown(&self) -> AxisFacts {
        AxisFacts::unknown(self.shape.len(), self.step())
    }
}

impl Element {
    fn of(r#type: Type<'_>) -> Self {
        if let Some((width, _)) = r#type.integer() {
            // Wider integers than the facts are kept in are not analysed.
            return match width {
                width @ 1..=64 => Self::Integer(width),
                _ => Self::Other,
            };
        }
        if r#type.is_index() {
            return Self::Integer(64);
        }
        match Pointer::of(r#type) {
            Some(pointer) => Self::Address(bytes(pointer.pointee())),
            None => Self::Other,
        }
    }
}

/// The size of an element in memory, in bytes; at least one.
fn bytes(r#type: Type<'_>) -> u64 {
    if Pointer::of(r#type).is_some() {
        return 8;
    }
    u64::from(r#type.bit_width().unwrap_or(8) / 8).max(1)
}

/// Nothing known of a value of this type.
pub(super) fn unknown(r#type: Type<'_>) -> AxisFacts {
    Typed::of(r#type).unknown()
}

/// What is known of a value that nothing in the module determines: what the attributes of a
/// function's argument promise.
pub(super) fn from_outside(value: Value<'_, '_>) -> AxisFacts {
    let facts = unknown(value.r#type());
    let argument = value.argument_of().filter(|(block, _)| block.is_entry());
    let Some((block, index)) = argument else {
        return facts;
    };
    let attributes = block
        .parent_operation()
        .and_then(|function| function.attr("arg_attrs"))
        .and_then(AttributeExt::as_array);
    let promises = attributes.and_then(|attributes| attributes.get(index).copied());
    with_promises(facts, |name| {
        promises.and_then(|promises| promises.get(name))
    })
}

/// The facts with the promises among the attributes that `lookup` finds.
pub(super) fn with_promises<'c>(
    facts: AxisFacts,
    lookup: impl Fn(&str) -> Option<Attribute<'c>>,
) -> AxisFacts {
    let numbers = |name: &str| lookup(name).map(promised).unwrap_or_default();
    facts.with_promises(
        &numbers("tt.contiguity"),
        &numbers("tt.divisibility"),
        &numbers("tt.constancy"),
    )
}

/// The numbers of an integer or of a dense constant of them.
fn promised(attribute: Attribute<'_>) -> Vec<u64> {
    match attribute.as_bits() {
        Some(number) => vec![number],
        None => attribute.dense_bits().unwrap_or_default(),
    }
}

/// The facts of the results of an op, from those of its operands.
pub(super) fn results(operation: OperationRef<'_, '_>, operands: &[&AxisFacts]) -> Vec<AxisFacts> {
    let promises = |name: &str| operation.discardable_attr(name);
    operation
        .result_types()
        .enumerate()
        .map(|(index, r#type)| {
            let typed = Typed::of(r#type);
            let facts = result_facts(operation, index, &typed, operands);
            // A rule that was written for other operands than these must not do harm.
            let fits = facts.rank() == typed.shape.len() && facts.step == typed.step();
            let facts = if fits { facts } else { typed.unknown() };
            with_promises(facts, promises)
        })
        .collect()
}

fn binary_op(name: &str) -> Option<Binary> {
    Some(match name {
        "arith.addi" => Binary::Add,
        "arith.subi" => Binary::Sub,
        "arith.muli" => Binary::Mul,
        "arith.divsi" => Binary::DivSigned,
        "arith.floordivsi" => Binary::DivFloor,
        "arith.ceildivsi" => Binary::DivCeilSigned,
        "arith.divui" => Binary::DivUnsigned,
        "arith.ceildivui" => Binary::DivCeilUnsigned,
        "arith.remsi" => Binary::RemSigned,
        "arith.remui" => Binary::RemUnsigned,
        "arith.andi" => Binary::And,
        "arith.ori" => Binary::Or,
        "arith.xori" => Binary::Xor,
        "arith.shli" => Binary::ShiftLeft,
        "arith.shrsi" => Binary::ShiftRightSigned,
        "arith.shrui" => Binary::ShiftRightUnsigned,
        "arith.minsi" => Binary::MinSigned,
        "arith.minui" => Binary::MinUnsigned,
        "arith.maxsi" => Binary::MaxSigned,
        "arith.maxui" => Binary::MaxUnsigned,
        _ => return None,
    })
}

/// The predicate of `arith.cmpi`, by the number that stands for it in MLIR.
fn comparison_of(operation: OperationRef<'_, '_>) -> Option<Comparison> {
    Some(match integer_attribute(operation, "predicate")? {
        0 => Comparison::Equal,
        1 => Comparison::NotEqual,
        2 => Comparison::LessSigned,
        3 => Comparison::LessEqualSigned,
        4 => Comparison::GreaterSigned,
        5 => Comparison::GreaterEqualSigned,
        6 => Comparison::LessUnsigned,
        7 => Comparison::LessEqualUnsigned,
        8 => Comparison::GreaterUnsigned,
        9 => Comparison::GreaterEqualUnsigned,
        _ => return None,
    })
}

fn result_facts(
    operation: OperationRef<'_, '_>,
    index: usize,
    result: &Typed,
    operands: &[&AxisFacts],
) -> AxisFacts {
    let name = operation.name_str();
    let typed_operand = |index| {
        operation
            .operand_value(index)
            .map(|v| Typed::of(v.r#type()))
    };
    let facts = match (name, operands) {
        // A tile's number is the quotient of a program's by how many tiles there are: none is negative.
        ("arith.divsi", &[x, y]) if result.shape == [1] && y.constant.is_none() => {
            Some(AxisFacts {
                non_negative: x.non_negative,
                ..integer::binary(Binary::DivSigned, x, y, result.width())
            })
        }
        (name, &[x, y]) if binary_op(name).is_some() => {
            binary_op(name).map(|op| integer::binary(op, x, y, result.width()))
        }
        ("arith.cmpi", &[x, y]) => comparison_of(operation).and_then(|comparison| {
            let width = typed_operand(0)?.width();
            Some(integer::comparison(comparison, x, y, width))
        }),
        // The sum, beside the carry.
        ("arith.addui_extended", &[x, y]) if index == 0 => {
            Some(integer::binary(Binary::Add, x, y, result.width()))
        }
        // The lower half of the product, beside the upper one.
        ("arith.mului_extended" | "arith.mulsi_extended", &[x, y]) if index == 0 => {
            Some(integer::binary(Binary::Mul, x, y, result.width()))
        }
        ("arith.select", &[condition, x, y]) => {
            let scalar = typed_operand(0).is_some_and(|c| c.shape == [1] && result.shape != [1]);
            match scalar {
                true => Some(integer::select_whole(condition, x, y)),
                false => Some(integer::select(condition, x, y)),
            }
        }
        ("arith.extsi", &[x]) => {
            typed_operand(0).map(|from| integer::sign_extend(x, from.width(), result.width()))
        }
        ("arith.extui", &[x]) => typed_operand(0).map(|from| integer::zero_extend(x, from.width())),
        ("arith.index_castui", &[x]) => typed_operand(0).map(|from| {
            if from.width() < result.width() {
                integer::zero_extend(x, from.width())
            } else {
                integer::truncate(x, result.width())
            }
        }),
        ("arith.index_cast", &[x]) => typed_operand(0).map(|from| {
            if from.width() < result.width() {
                integer::sign_extend(x, from.width(), result.width())
            } else {
                integer::truncate(x, result.width())
            }
        }),
        ("arith.trunci", &[x]) => Some(integer::truncate(x, result.width())),
        ("arith.constant", []) => constant(operation, result),
        ("ub.poison", []) => Some(AxisFacts::poison(&result.shape, result.step())),
        ("tt.make_range", []) => integer_attribute(operation, "start").map(|start| {
            let length = result.shape.first().copied().unwrap_or(1);
            shape::make_range(start as u32, length)
        }),
        ("tt.get_program_id" | "tt.get_num_programs", []) => Some(AxisFacts {
            non_negative: true,
            ..result.unknown()
        }),
        ("tt.splat", &[x]) => Some(shape::splat(x, &result.shape)),
        ("tt.unsplat", &[x]) => Some(shape::element(x)),
        ("tt.expand_dims", &[x]) => integer_attribute(operation, "axis")
            .and_then(|axis| usize::try_from(axis).ok())
            .map(|axis| shape::expand_dims(x, axis)),
        ("tt.broadcast", &[x]) => {
            typed_operand(0).map(|from| shape::broadcast(x, &from.shape, &result.shape))
        }
        ("tt.trans", &[x]) => order_of(operation).map(|order| shape::transpose(x, &order)),
        ("tt.reshape", &[x]) => typed_operand(0).map(|from| {
            if operation.attr("allow_reorder").is_some_and(is_set) {
                shape::rearranged(x, &result.shape)
            } else {
                shape::reshape(x, &from.shape, &result.shape)
            }
        }),
        ("tt.join", &[x, y]) => Some(shape::join(x, y)),
        ("tt.split", &[x]) => Some(shape::split(x)),
        ("tt.cat", &[x, y]) => Some(shape::concatenate(x, y, &result.shape)),
        ("tt.addptr", &[pointer, offset]) => Some(address::add_offset(pointer, offset)),
        ("tt.bitcast" | "arith.bitcast" | "tt.int_to_ptr" | "tt.ptr_to_int", &[x]) => {
            Some(address::with_step(x, result.step()))
        }
        // The same elements in other registers.
        ("ttg.convert_layout" | "gluon.set_auto_layout", &[x]) => Some(x.clone()),
        // Equal addresses under equal masks yield equal values.
        ("tt.load", _) if !operation.attr("isVolatile").is_some_and(is_set) => Some(
            integer::elementwise(operands, result.shape.len(), result.step()),
        ),
        ("tt.extern_elementwise", _) if operation.attr("pure").is_some_and(is_set) => Some(
            integer::elementwise(operands, result.shape.len(), result.step()),
        ),
        (name, _) if is_elementwise(name) => Some(integer::elementwise(
            operands,
            result.shape.len(),
            result.step(),
        )),
        _ => None,
    };
    facts.unwrap_or_else(|| result.unknown())
}

/// Whether an op computes each element of its result from the elements at the same position, and
/// from nothing else: all of `math`, all of `arith` with operands, and the like in `tt`.
fn is_elementwise(name: &str) -> bool {
    name.starts_with("math.")
        || name.starts_with("arith.")
        || matches!(
            name,
            "tt.fp_to_fp" | "tt.clampf" | "tt.precise_sqrt" | "tt.precise_divf" | "tt.mulhiui"
        )
}

fn integer_attribute(operation: OperationRef<'_, '_>, name: &str) -> Option<u64> {
    operation.attr(name)?.as_bits()
}

/// Whether a flag is raised: a unit attribute by being there, a Boolean by its value.
fn is_set(flag: Attribute<'_>) -> bool {
    flag.as_bool().unwrap_or_else(|| flag.is_unit_attr())
}

fn order_of(operation: OperationRef<'_, '_>) -> Option<Vec<usize>> {
    let order = operation.attr("order")?.as_integers()?;
    order
        .into_iter()
        .map(|dim| usize::try_from(dim).ok())
        .collect()
}

fn constant(operation: OperationRef<'_, '_>, result: &Typed) -> Option<AxisFacts> {
    let value = operation.attr("value")?;
    match result.element {
        Element::Integer(width) => {
            if let Some(bits) = value.as_bits().or_else(|| value.splat_bits()) {
                return Some(AxisFacts::constant(bits, width, &result.shape));
            }
            Some(shape::dense(&value.dense_bits()?, width, &result.shape))
        }
        // Of other than integers no more is known than that a splat does not vary.
        Element::Address(_) | Element::Other => value
            .splat_bits()
            .map(|_| shape::splat(&AxisFacts::unknown(1, result.step()), &result.shape)),
    }
}
