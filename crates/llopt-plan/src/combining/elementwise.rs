//! How many instructions an op takes that computes each element of a tensor by itself.
//!
//! Most take one for each element. Quotients and functions of a real variable are sequences. So is what a target lacks:
//! `bf16` is the upper half of `f32`, so without instructions for it both operands are shifted, the result is computed
//! in `f32`, and the nearest `bf16` is found with integer arithmetic. The numbers are estimates: layouts only differ
//! in how many elements a thread computes.

use llopt_dialects::meaning::facts::{ElementFunction, Meaning, OpFacts, Transfer};
use llopt_dialects::{Op, arith, math};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt};
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Type, ValueLike};

use crate::element::Element;
use crate::reduction::kind::Kind;
use crate::types;

/// Rounding to the nearest `bf16` with integer arithmetic: the lowest bit that stays, a sum of three numbers, a test
/// for NaN, a select, a shift.
const ROUNDED_BY_HAND: f32 = 5.0;
/// Two numbers of four bits in one byte, as wider floats: two selections from a table, and their signs.
const UNPACKED: f32 = 4.0;

/// The approximate number of instructions for one element of an op's label ([`OpFacts::layouts`]).
#[must_use]
pub fn instructions_on(op: OperationRef<'_, '_>, target: Target) -> f32 {
    if OpFacts::of(op).layouts == Transfer::Unpack {
        return UNPACKED;
    }
    let Some(Op::Arith(kind)) = Op::of(op) else {
        return instructions(op);
    };
    if let Some(divisor) = known_divisor(op) {
        return by_known(kind, divisor, target);
    }
    let is_bf16 =
        |r#type: Type<'_>| types::element(r#type.element_or_self()) == Some(Element::Bf16);
    let has_bf16 = op
        .result_value(0)
        .is_some_and(|value| is_bf16(value.r#type()));
    let rounded = match target.has(Feature::Bf16Round) || target.has(Feature::PackedBf16Convert) {
        true => 1.0,
        false => ROUNDED_BY_HAND,
    };
    match kind {
        arith::Op::TruncF(_) if has_bf16 => rounded,
        arith::Op::AddF(_) | arith::Op::SubF(_) | arith::Op::MulF(_) | arith::Op::DivF(_)
            if has_bf16 && !target.has(Feature::Bf16Arithmetic) =>
        {
            let widened = op.operand_values().len() as f32;
            widened + instructions(op) + rounded
        }
        _ => instructions(op),
    }
}

/// The approximate number of instructions for one element of an op: a quotient and a function of a real variable take
/// several.
pub(crate) fn instructions(op: OperationRef<'_, '_>) -> f32 {
    const SEVERAL: f32 = 10.0;
    // No GPU divides 64-bit integers. The quotient's high half, its low half and the corrections of both are some 165
    // instructions on AMD and 100 on NVIDIA, beside those for numbers that fit into 32 bits, which LLVM asks for first. It is
    // counted for each word.
    const WIDE_QUOTIENT: f32 = 40.0;
    if is_wide_quotient(op) {
        return WIDE_QUOTIENT;
    }
    let takes_several = match Op::of(op) {
        Some(Op::Arith(op)) => Kind::of(op) == Kind::Quotient,
        Some(Op::Math(op)) => !matches!(op, math::Op::Fma(_) | math::Op::AbsF(_)),
        Some(Op::Tt(_) | Op::Ttg(_) | Op::Ttng(_) | Op::Amdg(_) | Op::Gluon(_)) => {
            match OpFacts::of(op).meaning {
                Meaning::Elementwise(function) => is_long(function),
                Meaning::Unknown
                | Meaning::Nothing
                | Meaning::Control
                | Meaning::Shape
                | Meaning::Assembly
                | Meaning::Product
                | Meaning::Memory
                | Meaning::Descriptor => false,
            }
        }
        Some(
            Op::Scf(_)
            | Op::Cf(_)
            | Op::Ub(_)
            | Op::Gpu(_)
            | Op::Llvm(_)
            | Op::Rocdl(_)
            | Op::Builtin(_),
        )
        | None => false,
    };
    if takes_several { SEVERAL } else { 1.0 }
}

/// Whether an op divides integers by a number that is not known, or gives what remains.
#[must_use]
pub fn is_integer_quotient(op: OperationRef<'_, '_>) -> bool {
    let of = |kind| Kind::of(kind) == Kind::Quotient;
    arith::Op::of(op).is_some_and(of)
        && known_divisor(op).is_none()
        && op.result_value(0).is_some_and(|value| {
            let element = types::element(value.r#type().element_or_self());
            matches!(element, Some(Element::Int(_)))
        })
}

/// Whether these integers have 64 bits.
#[must_use]
pub fn is_wide_quotient(op: OperationRef<'_, '_>) -> bool {
    is_integer_quotient(op)
        && op.result_value(0).is_some_and(|value| {
            let element = types::element(value.r#type().element_or_self());
            element == Some(Element::Int(64))
        })
}

/// The approximate number of instructions of a division of integers by a known number: a product with its inverse and a shift
/// (T. Granlund, P. L. Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994).
fn by_known(kind: arith::Op<'_, '_>, divisor: u64, target: Target) -> f32 {
    // The bits below, a sum if the dividend is negative, a shift or a mask.
    const BY_POWER_OF_TWO: f32 = 3.0;
    // The shift behind the high half of the product, and one more for the sign.
    const SHIFTS: f32 = 2.0;
    if divisor.is_power_of_two() {
        return BY_POWER_OF_TWO;
    }
    let multiply = target.integer_multiply();
    let quotient = multiply + SHIFTS;
    match kind {
        // What the quotient leaves is a product and a difference more.
        arith::Op::RemSI(_) | arith::Op::RemUI(_) => quotient + multiply + 1.0,
        _ => quotient,
    }
}

/// The number that an op divides integers by, if it is known.
fn known_divisor(op: OperationRef<'_, '_>) -> Option<u64> {
    use arith::Op;
    match arith::Op::of(op)? {
        Op::DivSI(_)
        | Op::DivUI(_)
        | Op::CeilDivSI(_)
        | Op::CeilDivUI(_)
        | Op::FloorDivSI(_)
        | Op::RemSI(_)
        | Op::RemUI(_) => {
            let made = op.operand_value(1)?.defining_op()?;
            let value = arith::ConstantOp::of(made)?.value()?;
            value.as_bits().or_else(|| value.splat_bits())
        }
        _ => None,
    }
}

/// Whether a function of elements takes several instructions.
fn is_long(function: ElementFunction) -> bool {
    match function {
        ElementFunction::Quotient | ElementFunction::Root | ElementFunction::Library => true,
        ElementFunction::HighHalf
        | ElementFunction::Clamp
        | ElementFunction::Conversion
        | ElementFunction::Bits
        | ElementFunction::Offset => false,
    }
}
