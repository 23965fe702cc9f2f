//! Sums, differences and products of `bf16` where the target computes them as `f32`.
//!
//! LLVM's rounding of an arbitrary `f32` tests for NaN and selects another value. The result of one operation on two
//! `bf16`s is never a NaN with bits in its lower half, so rounding it cannot carry beyond the NaN's bits and needs no
//! test. And a product is often exact: an element of four bits has two bits of mantissa, a scale that is a power of
//! two has one, and a `bf16` has eight.

use llopt_dialects::meaning::kinds::ShapeOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{Op, arith, tt};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_plan::element::Element;
use llopt_plan::types;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::in_words;
use crate::ops::elementwise::partwise::Partwise;
use crate::values::element::LlvmType;
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// Bits of the mantissa of a `bf16`, with the leading one.
const MANTISSA: u32 = 8;
/// The exponent of the smallest `bf16`.
const LEAST: i32 = -133;
/// How many definitions are followed backwards.
const FAR: u32 = 16;

/// What is known of the numbers in a tensor: the distance from the highest to the lowest set bit is at most so many
/// bits, and no set bit stands for less than a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digits {
    count: u32,
    least: i32,
}

/// What is known of the numbers in a value.
fn digits(value: Value<'_, '_>, far: u32) -> Option<Digits> {
    let op = value.defining_op().filter(|_| far > 0)?;
    if let Some(bitcast) = tt::BitcastOp::of(op) {
        return power_of_two(bitcast.src());
    }
    if let Some(select) = arith::SelectOp::of(op) {
        // The rounding of a NaN depends on its bits alone, and it has none in its lower half.
        return match [select.true_value(), select.false_value()] {
            [other, value] | [value, other] if is_not_a_number(other) => digits(value, far - 1),
            _ => None,
        };
    }
    match ShapeOp::of(Op::of(op)?)? {
        ShapeOp::TtgFp4ToFp(_) => Some(Digits {
            count: 2,
            least: -1,
        }),
        ShapeOp::TtgConvertLayout(_)
        | ShapeOp::AmdgInThreadTranspose(_)
        | ShapeOp::AmdgExtractSlice(_)
        | ShapeOp::TtBroadcast(_)
        | ShapeOp::TtExpandDims(_)
        | ShapeOp::TtReshape(_)
        | ShapeOp::TtTrans(_)
        | ShapeOp::TtSplit(_)
        | ShapeOp::TtSplat(_)
        | ShapeOp::TtUnsplat(_) => digits(op.operand_value(0)?, far - 1),
        ShapeOp::TtJoin(_)
        | ShapeOp::TtCat(_)
        | ShapeOp::TtGather(_)
        | ShapeOp::TtMakeRange(_)
        | ShapeOp::TtGetProgramId(_)
        | ShapeOp::TtGetNumPrograms(_)
        | ShapeOp::TtHistogram(_)
        | ShapeOp::TtAssert(_)
        | ShapeOp::TtngWarpGroupDotWait(_)
        | ShapeOp::AmdgConcat(_) => None,
    }
}

/// The bits of all elements of a constant, if they are the same.
fn constant_bits(value: Value<'_, '_>) -> Option<u64> {
    arith::ConstantOp::defining(value)?.value()?.splat_bits()
}

/// Whether all elements of a tensor of `bf16` are the same NaN.
fn is_not_a_number(value: Value<'_, '_>) -> bool {
    let infinite = 0x7f80;
    constant_bits(value).is_some_and(|bits| bits & 0x7fff > infinite)
}

/// The digits of a byte that is used as the exponent: a power of two, zero or infinity. Where the smallest byte stands for a
/// number below those that have an exponent, the larger of its bits and the others' is taken.
fn power_of_two(bits: Value<'_, '_>) -> Option<Digits> {
    let (bits, least) = match arith::MaxUIOp::defining(bits) {
        Some(larger) => {
            let smallest = constant_bits(larger.rhs())?;
            if !smallest.is_power_of_two() || smallest >> (MANTISSA - 1) != 0 {
                return None;
            }
            (
                larger.lhs(),
                LEAST + smallest.trailing_zeros().cast_signed(),
            )
        }
        None => (bits, -126),
    };
    let shift = arith::ShLIOp::defining(bits)?;
    let by = constant_bits(shift.rhs())?;
    let byte = arith::ExtUIOp::defining(shift.lhs())?;
    let is_byte = RankedTensor::of(byte.r#in().r#type())
        .is_some_and(|tensor| types::element(tensor.element()) == Some(Element::Int(8)));
    (by == u64::from(MANTISSA - 1) && is_byte).then_some(Digits { count: 1, least })
}

/// Whether products of the operands' elements are always exact.
fn is_exact(op: OperationRef<'_, '_>) -> bool {
    let known = |i| op.operand_value(i).and_then(|value| digits(value, FAR));
    let (Some(a), Some(b)) = (known(0), known(1)) else {
        return false;
    };
    a.count + b.count <= MANTISSA && a.least + b.least >= LEAST
}

/// A sum, a difference or a product of floats.
pub(crate) fn float_operation<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    function: fn(&Emitter<'ctx>, V<'ctx>, V<'ctx>) -> V<'ctx>,
) -> Lowered {
    let in_words = arith::Op::of(op).and_then(Partwise::of);
    if in_words.is_some_and(|what| in_words::partwise(lowering, op, what).is_some()) {
        return Ok(());
    }
    let element = lowering.type_of(operand(op, 0))?.element();
    let hooks = lowering.hooks();
    let is_exact = arith::MulFOp::of(op).is_some() && is_exact(op);
    let single = Element::F32.llvm(lowering.e.context);
    lowering.each(op, |e, v| {
        if element == Element::Bf16 && hooks.computes_bf16_as_singles() {
            let wide = [v[0], v[1]].map(|value| e.fpext(value, single));
            return hooks.narrowed_to_bf16(e, function(e, wide[0], wide[1]), is_exact);
        }
        function(e, v[0], v[1])
    })
}
