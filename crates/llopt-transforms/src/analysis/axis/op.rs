//! From ops to transfer functions: which function of [`integer`], [`shape`] or [`address`] an op
//! is, and what its attributes say.
//!
//! Ops of tile IR declare it ([`Integers`]); nothing is known of the results of an op that declares nothing, which is
//! always correct. MLIR's arithmetic is listed here, op by op.

use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::tables::module::DIVISIBILITY;
use llopt_dialects::tables::types::Pointer;
use llopt_dialects::{Op, arith, ub};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, TypeExt, ValueExt};
use melior::ir::{Attribute, BlockLike, OperationRef, Type, TypeLike, Value, ValueLike};

use super::integer::{self, Binary, Comparison};
use super::{AxisFacts, Pow2, address, shape};

/// The attributes by which ops and arguments promise contiguity, divisibility and constancy.
const PROMISES: [&str; 3] = ["tt.contiguity", DIVISIBILITY, "tt.constancy"];

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
        let sizes = |shape: &[i64]| -> Option<Vec<u64>> {
            let sizes = shape.iter().map(|size| u64::try_from(*size).ok());
            sizes.collect()
        };
        let shape = r#type.tensor_shape().and_then(sizes);
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

/// The facts of a value of this type of which nothing is known.
pub(super) fn unknown(r#type: Type<'_>) -> AxisFacts {
    Typed::of(r#type).unknown()
}

/// What is known of a value that nothing in the module determines: the promises in the attributes of a function's
/// argument.
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
    let [contiguity, divisibility, constancy] =
        PROMISES.map(|name| lookup(name).map(promised).unwrap_or_default());
    facts.with_promises(&contiguity, &divisibility, &constancy)
}

/// Whether an op promises something of its results.
pub(super) fn promises(operation: OperationRef<'_, '_>) -> bool {
    let mut names = PROMISES.iter();
    names.any(|name| operation.discardable_attr(name).is_some())
}

/// The numbers of an integer or of a dense constant of them.
fn promised(attribute: Attribute<'_>) -> Vec<u64> {
    match attribute.as_bits() {
        Some(number) => vec![number],
        None => attribute.dense_bits().unwrap_or_default(),
    }
}

/// The facts of the results of an op, from those of its operands, and from what it promises if that is true.
pub(super) fn results<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    operands: &[&AxisFacts],
    trusts: bool,
) -> impl Iterator<Item = AxisFacts> {
    let promises = move |name: &str| match trusts {
        true => operation.discardable_attr(name),
        false => None,
    };
    let types = operation.result_types().enumerate();
    types.map(move |(index, r#type)| {
        let typed = Typed::of(r#type);
        let facts = result_facts(operation, index, &typed, operands);
        // A rule that was written for other operands must not yield facts of the wrong shape.
        let fits = facts.rank() == typed.shape.len() && facts.step == typed.step();
        let facts = if fits { facts } else { typed.unknown() };
        with_promises(facts, promises)
    })
}

fn comparison_of(predicate: arith::CmpIPredicate) -> Comparison {
    use arith::CmpIPredicate;
    match predicate {
        CmpIPredicate::Eq => Comparison::Equal,
        CmpIPredicate::Ne => Comparison::NotEqual,
        CmpIPredicate::Slt => Comparison::LessSigned,
        CmpIPredicate::Sle => Comparison::LessEqualSigned,
        CmpIPredicate::Sgt => Comparison::GreaterSigned,
        CmpIPredicate::Sge => Comparison::GreaterEqualSigned,
        CmpIPredicate::Ult => Comparison::LessUnsigned,
        CmpIPredicate::Ule => Comparison::LessEqualUnsigned,
        CmpIPredicate::Ugt => Comparison::GreaterUnsigned,
        CmpIPredicate::Uge => Comparison::GreaterEqualUnsigned,
    }
}

fn result_facts(
    operation: OperationRef<'_, '_>,
    index: usize,
    result: &Typed,
    operands: &[&AxisFacts],
) -> AxisFacts {
    let rule = Rule {
        operation,
        index,
        result,
        operands,
    };
    let facts = match Op::of(operation) {
        Some(Op::Arith(op)) => rule.arithmetic(op),
        Some(Op::Tt(_) | Op::Ttg(_) | Op::Ttng(_) | Op::Amdg(_) | Op::Gluon(_)) => {
            rule.declared(OpFacts::of(operation).integers)
        }
        Some(Op::Math(_)) => rule.elementwise(),
        Some(Op::Ub(ub::Op::Poison(_))) => Some(AxisFacts::poison(&result.shape, result.step())),
        // The values come from memory, from other threads, or along edges of control flow.
        Some(Op::Scf(_) | Op::Cf(_) | Op::Gpu(_) | Op::Llvm(_) | Op::Rocdl(_) | Op::Builtin(_))
        | None => None,
    };
    facts.unwrap_or_else(|| result.unknown())
}

/// One result of an op, with what is known of its operands.
struct Rule<'r, 'c, 'a> {
    operation: OperationRef<'c, 'a>,
    index: usize,
    result: &'r Typed,
    operands: &'r [&'r AxisFacts],
}

impl<'c: 'a, 'a> Rule<'_, 'c, 'a> {
    /// The type of an operand.
    fn typed(&self, index: usize) -> Option<Typed> {
        let operand = self.operation.operand_value(index)?;
        Some(Typed::of(operand.r#type()))
    }

    fn unary(&self, rule: impl FnOnce(&AxisFacts) -> AxisFacts) -> Option<AxisFacts> {
        match self.operands {
            &[x] => Some(rule(x)),
            _ => None,
        }
    }

    /// A function of one operand and its type.
    fn of_typed(&self, rule: impl FnOnce(&AxisFacts, &Typed) -> AxisFacts) -> Option<AxisFacts> {
        let from = self.typed(0)?;
        self.unary(|x| rule(x, &from))
    }

    fn binary(&self, rule: impl FnOnce(&AxisFacts, &AxisFacts) -> AxisFacts) -> Option<AxisFacts> {
        match self.operands {
            &[x, y] => Some(rule(x, y)),
            _ => None,
        }
    }

    fn integers(&self, op: Binary) -> Option<AxisFacts> {
        self.binary(|x, y| integer::binary(op, x, y, self.result.width()))
    }

    /// Each element follows from the elements at the same position, and from nothing else.
    fn elementwise(&self) -> Option<AxisFacts> {
        let rank = self.result.shape.len();
        Some(integer::elementwise(
            self.operands,
            rank,
            self.result.step(),
        ))
    }

    fn arithmetic(&self, op: arith::Op<'c, 'a>) -> Option<AxisFacts> {
        use arith::Op;
        let result = self.result;
        match op {
            Op::AddI(_) => self.integers(Binary::Add),
            Op::SubI(_) => self.integers(Binary::Sub),
            Op::MulI(_) => self.integers(Binary::Mul),
            // Assumes that the divisor is a count: kernels divide a program's number by the number of tiles, and
            // neither is negative.
            Op::DivSI(_) => self.binary(|x, y| {
                let facts = integer::binary(Binary::DivSigned, x, y, result.width());
                let of_tiles = result.shape == [1] && y.constant.is_none();
                let non_negative = if of_tiles {
                    x.non_negative
                } else {
                    facts.non_negative
                };
                AxisFacts {
                    non_negative,
                    ..facts
                }
            }),
            Op::FloorDivSI(_) => self.integers(Binary::DivFloor),
            Op::CeilDivSI(_) => self.integers(Binary::DivCeilSigned),
            Op::DivUI(_) => self.integers(Binary::DivUnsigned),
            Op::CeilDivUI(_) => self.integers(Binary::DivCeilUnsigned),
            Op::RemSI(_) => self.integers(Binary::RemSigned),
            Op::RemUI(_) => self.integers(Binary::RemUnsigned),
            Op::AndI(_) => self.integers(Binary::And),
            Op::OrI(_) => self.integers(Binary::Or),
            Op::XOrI(_) => self.integers(Binary::Xor),
            Op::ShLI(_) => self.integers(Binary::ShiftLeft),
            Op::ShRSI(_) => self.integers(Binary::ShiftRightSigned),
            Op::ShRUI(_) => self.integers(Binary::ShiftRightUnsigned),
            Op::MinSI(_) => self.integers(Binary::MinSigned),
            Op::MinUI(_) => self.integers(Binary::MinUnsigned),
            Op::MaxSI(_) => self.integers(Binary::MaxSigned),
            Op::MaxUI(_) => self.integers(Binary::MaxUnsigned),
            Op::CmpI(op) => {
                let comparison = comparison_of(op.predicate()?);
                let width = self.typed(0)?.width();
                self.binary(|x, y| integer::comparison(comparison, x, y, width))
            }
            // The sum, beside the carry; the lower half of the product, beside the upper one.
            Op::AddUIExtended(_) if self.index == 0 => self.integers(Binary::Add),
            Op::MulUIExtended(_) | Op::MulSIExtended(_) if self.index == 0 => {
                self.integers(Binary::Mul)
            }
            Op::Select(_) => match self.operands {
                &[condition, x, y] => {
                    let of_scalar = |c: Typed| c.shape == [1] && result.shape != [1];
                    Some(match self.typed(0).is_some_and(of_scalar) {
                        true => integer::select_whole(condition, x, y),
                        false => integer::select(condition, x, y),
                    })
                }
                _ => None,
            },
            Op::ExtSI(_) => {
                self.of_typed(|x, from| integer::sign_extend(x, from.width(), result.width()))
            }
            Op::ExtUI(_) => self.of_typed(|x, from| integer::zero_extend(x, from.width())),
            Op::IndexCastUI(_) => self.of_typed(|x, from| {
                if from.width() < result.width() {
                    integer::zero_extend(x, from.width())
                } else {
                    integer::truncate(x, result.width())
                }
            }),
            Op::IndexCast(_) => self.of_typed(|x, from| {
                if from.width() < result.width() {
                    integer::sign_extend(x, from.width(), result.width())
                } else {
                    integer::truncate(x, result.width())
                }
            }),
            Op::TruncI(_) => self.unary(|x| integer::truncate(x, result.width())),
            Op::Bitcast(_) => self.unary(|x| address::with_step(x, result.step())),
            Op::Constant(op) => constant(op, result),
            Op::AddUIExtended(_)
            | Op::MulUIExtended(_)
            | Op::MulSIExtended(_)
            | Op::AddF(_)
            | Op::SubF(_)
            | Op::MulF(_)
            | Op::DivF(_)
            | Op::RemF(_)
            | Op::NegF(_)
            | Op::MaximumF(_)
            | Op::MaxNumF(_)
            | Op::MinimumF(_)
            | Op::MinNumF(_)
            | Op::CmpF(_)
            | Op::ExtF(_)
            | Op::TruncF(_)
            | Op::ScalingExtF(_)
            | Op::ScalingTruncF(_)
            | Op::SIToFP(_)
            | Op::UIToFP(_)
            | Op::FPToSI(_)
            | Op::FPToUI(_) => self.elementwise(),
        }
    }

    /// The facts by the op's declaration.
    fn declared(&self, integers: Integers) -> Option<AxisFacts> {
        let result = self.result;
        match integers {
            Integers::Unknown => None,
            Integers::Same => self.unary(AxisFacts::clone),
            Integers::Bits => self.unary(|x| address::with_step(x, result.step())),
            Integers::Elementwise => self.elementwise(),
            Integers::IfPure => {
                let pure = self.operation.attr("pure").and_then(AttributeExt::as_bool);
                self.elementwise().filter(|_| pure == Some(true))
            }
            // Equal addresses under equal masks yield equal values.
            Integers::Read => {
                let may_change = self.operation.attr("isVolatile");
                let may_change = may_change.and_then(AttributeExt::as_bool);
                self.elementwise().filter(|_| may_change != Some(true))
            }
            Integers::Range => {
                let start = self.operation.attr("start")?.as_i64()?;
                let length = result.shape.first().copied().unwrap_or(1);
                Some(shape::make_range(start as u32, length))
            }
            Integers::Program => Some(AxisFacts {
                non_negative: true,
                ..result.unknown()
            }),
            Integers::Splat => self.unary(|x| shape::splat(x, &result.shape)),
            Integers::Element => self.unary(shape::element),
            Integers::ExpandDims => {
                let axis = dimensions::axis(self.operation)?;
                self.unary(|x| shape::expand_dims(x, axis))
            }
            Integers::Broadcast => {
                self.of_typed(|x, from| shape::broadcast(x, &from.shape, &result.shape))
            }
            Integers::Transpose => {
                let order = dimensions::order(self.operation)?;
                self.unary(|x| shape::transpose(x, &order))
            }
            Integers::Reshape => self.of_typed(|x, from| {
                if self.operation.attr("allow_reorder").is_some() {
                    shape::rearranged(x, &result.shape)
                } else {
                    shape::reshape(x, &from.shape, &result.shape)
                }
            }),
            Integers::Join => self.binary(shape::join),
            Integers::Split => self.unary(shape::split),
            Integers::Concatenate => self.binary(|x, y| shape::concatenate(x, y, &result.shape)),
            Integers::Address => self.binary(address::add_offset),
        }
    }
}

fn constant(op: arith::ConstantOp<'_, '_>, result: &Typed) -> Option<AxisFacts> {
    let value = op.value()?;
    match result.element {
        Element::Integer(width) => {
            if let Some(bits) = value.as_bits().or_else(|| value.splat_bits()) {
                return Some(AxisFacts::constant(bits, width, &result.shape));
            }
            Some(shape::dense(&value.dense_bits()?, width, &result.shape))
        }
        // Of values other than integers only this is known: a splat does not vary.
        Element::Address(_) | Element::Other => value
            .splat_bits()
            .map(|_| shape::splat(&AxisFacts::unknown(1, result.step()), &result.shape)),
    }
}
