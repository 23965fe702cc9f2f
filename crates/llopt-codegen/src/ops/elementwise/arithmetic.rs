//! The `arith` and `math` dialects, on scalars and tensors alike: one LLVM value per distinct tuple of
//! operand registers.

use inkwell::values::{BasicValue, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};
use llopt_dialects::arith::{CmpFPredicate, CmpIPredicate};
use llopt_dialects::{arith, math};
use llopt_plan::element::Element;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::partwise::Partwise;
use crate::ops::elementwise::{brief_floats, casts, constants, in_words};
use crate::targets::hooks::{Hooks, Math, Rounding};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::words::{order_in_words, packed, word_of_halves};
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// A function of two registers.
type Binary = for<'ctx> fn(&Emitter<'ctx>, V<'ctx>, V<'ctx>) -> V<'ctx>;

/// The signed quotient, one more (`SGT`) or less (`SLT`) than the truncated one where the exact quotient is
/// not an integer and lies on that side of zero.
fn round_quotient<'ctx>(e: &Emitter<'ctx>, a: V<'ctx>, b: V<'ctx>, side: IntPredicate) -> V<'ctx> {
    let quotient = e.sdiv(a, b);
    let remainder = e.srem(a, b);
    let zero = e.int_like(a, 0);
    let inexact = e.icmp(IntPredicate::NE, remainder, zero);
    let same_sign = e.icmp(IntPredicate::SGE, e.xor(a, b), zero);
    if side == IntPredicate::SGT {
        e.add(quotient, e.zext(e.and(inexact, same_sign), a.get_type()))
    } else {
        let other_sign = e.xor(same_sign, e.bool(true));
        e.sub(quotient, e.zext(e.and(inexact, other_sign), a.get_type()))
    }
}

/// The unsigned quotient, rounded up.
fn round_up<'ctx>(e: &Emitter<'ctx>, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
    let quotient = e.udiv(a, b);
    let remainder = e.urem(a, b);
    let inexact = e.icmp(IntPredicate::NE, remainder, e.int_like(a, 0));
    e.add(quotient, e.zext(inexact, a.get_type()))
}

/// The remainder of floats, with the sign of the dividend.
///
/// Not all back ends support that of `bf16`. In `f32` it is equally exact: a multiple of the finer spacing of the
/// operands that is no larger than either is itself a `bf16`. LLVM knows that, too, and would return to `bf16` if it
/// recognised the widening of the operands; so they are widened by shifting their bits.
fn remainder<'ctx>(e: &Emitter<'ctx>, of: Element, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
    if of != Element::Bf16 {
        return e.frem(a, b);
    }
    let widen = |value| {
        let bits = e.zext(e.bitcast(value, e.int(16).into()), e.int(32).into());
        e.bitcast(e.shl(bits, e.i32(16)), Element::F32.llvm(e.context))
    };
    let exact = e.frem(widen(a), widen(b));
    e.fptrunc(exact, of.llvm(e.context))
}

fn int_predicate(predicate: CmpIPredicate) -> IntPredicate {
    match predicate {
        CmpIPredicate::Eq => IntPredicate::EQ,
        CmpIPredicate::Ne => IntPredicate::NE,
        CmpIPredicate::Slt => IntPredicate::SLT,
        CmpIPredicate::Sle => IntPredicate::SLE,
        CmpIPredicate::Sgt => IntPredicate::SGT,
        CmpIPredicate::Sge => IntPredicate::SGE,
        CmpIPredicate::Ult => IntPredicate::ULT,
        CmpIPredicate::Ule => IntPredicate::ULE,
        CmpIPredicate::Ugt => IntPredicate::UGT,
        CmpIPredicate::Uge => IntPredicate::UGE,
    }
}

fn float_predicate(predicate: CmpFPredicate) -> FloatPredicate {
    match predicate {
        CmpFPredicate::False => FloatPredicate::PredicateFalse,
        CmpFPredicate::Oeq => FloatPredicate::OEQ,
        CmpFPredicate::Ogt => FloatPredicate::OGT,
        CmpFPredicate::Oge => FloatPredicate::OGE,
        CmpFPredicate::Olt => FloatPredicate::OLT,
        CmpFPredicate::Ole => FloatPredicate::OLE,
        CmpFPredicate::One => FloatPredicate::ONE,
        CmpFPredicate::Ord => FloatPredicate::ORD,
        CmpFPredicate::Ueq => FloatPredicate::UEQ,
        CmpFPredicate::Ugt => FloatPredicate::UGT,
        CmpFPredicate::Uge => FloatPredicate::UGE,
        CmpFPredicate::Ult => FloatPredicate::ULT,
        CmpFPredicate::Ule => FloatPredicate::ULE,
        CmpFPredicate::Une => FloatPredicate::UNE,
        CmpFPredicate::Uno => FloatPredicate::UNO,
        CmpFPredicate::True => FloatPredicate::PredicateTrue,
    }
}

/// An operation of the `arith` dialect.
pub(crate) fn arith(lowering: &mut FunctionLowering<'_, '_>, op: arith::Op<'_, '_>) -> Lowered {
    use arith::Op;
    let operation = op.operation();
    let moves = matches!(
        op,
        Op::Constant(_) | Op::Bitcast(_) | Op::ExtF(_) | Op::Select(_) | Op::TruncF(_)
    );
    if !moves {
        check_arithmetic(lowering, operation)?;
    }
    match op {
        Op::Constant(_) => constants::constant(lowering, operation),
        Op::AddI(_) => in_words::integer_operation(lowering, operation, Partwise::Add),
        Op::SubI(_) => in_words::integer_operation(lowering, operation, Partwise::Subtract),
        Op::MulI(_) => binary(lowering, operation, |e, a, b| e.mul(a, b)),
        Op::DivSI(_) => binary(lowering, operation, |e, a, b| e.sdiv(a, b)),
        Op::DivUI(_) => binary(lowering, operation, |e, a, b| e.udiv(a, b)),
        Op::RemSI(_) => binary(lowering, operation, |e, a, b| e.srem(a, b)),
        Op::RemUI(_) => binary(lowering, operation, |e, a, b| e.urem(a, b)),
        Op::CeilDivSI(_) => binary(lowering, operation, |e, a, b| {
            round_quotient(e, a, b, IntPredicate::SGT)
        }),
        Op::FloorDivSI(_) => binary(lowering, operation, |e, a, b| {
            round_quotient(e, a, b, IntPredicate::SLT)
        }),
        Op::CeilDivUI(_) => binary(lowering, operation, round_up),
        Op::AndI(_) => in_words::integer_operation(lowering, operation, Partwise::And),
        Op::OrI(_) => in_words::integer_operation(lowering, operation, Partwise::Or),
        Op::XOrI(_) => in_words::integer_operation(lowering, operation, Partwise::Xor),
        Op::ShLI(_) => match Partwise::of(op) {
            Some(shift) => in_words::integer_operation(lowering, operation, shift),
            None => binary(lowering, operation, |e, a, b| e.shl(a, b)),
        },
        Op::ShRSI(_) => binary(lowering, operation, |e, a, b| e.ashr(a, b)),
        Op::ShRUI(_) => match Partwise::of(op) {
            Some(shift) => in_words::integer_operation(lowering, operation, shift),
            None => binary(lowering, operation, |e, a, b| e.lshr(a, b)),
        },
        Op::AddF(_) => brief_floats::float_operation(lowering, operation, |e, a, b| e.fadd(a, b)),
        Op::SubF(_) => brief_floats::float_operation(lowering, operation, |e, a, b| e.fsub(a, b)),
        Op::MulF(_) => brief_floats::float_operation(lowering, operation, |e, a, b| e.fmul(a, b)),
        Op::RemF(_) => {
            let of = lowering.result_type(operation)?.element();
            lowering.each(operation, |e, v| remainder(e, of, v[0], v[1]))
        }
        Op::DivF(_) => {
            let of = lowering.result_type(operation)?.element();
            let hooks = lowering.hooks();
            lowering.each(operation, |e, v| hooks.divide(e, of, v[0], v[1]))
        }
        Op::MaxSI(_) => intrinsic(lowering, operation, "llvm.smax"),
        Op::MaxUI(_) => in_words::integer_operation(lowering, operation, Partwise::LargerUnsigned),
        Op::MinSI(_) => intrinsic(lowering, operation, "llvm.smin"),
        Op::MinUI(_) => intrinsic(lowering, operation, "llvm.umin"),
        Op::MaxNumF(_) => intrinsic(lowering, operation, "llvm.maxnum"),
        Op::MinNumF(_) => intrinsic(lowering, operation, "llvm.minnum"),
        Op::MaximumF(_) => intrinsic(lowering, operation, "llvm.maximum"),
        Op::MinimumF(_) => intrinsic(lowering, operation, "llvm.minimum"),
        Op::CmpI(op) => {
            let predicate = op.predicate().map(int_predicate);
            let predicate =
                predicate.ok_or_else(|| lowering.invalid(operation, "unknown predicate"))?;
            lowering.each(operation, |e, v| e.icmp(predicate, v[0], v[1]))
        }
        Op::CmpF(op) => {
            let predicate = op.predicate().map(float_predicate);
            let predicate =
                predicate.ok_or_else(|| lowering.invalid(operation, "unknown predicate"))?;
            lowering.each(operation, |e, v| e.fcmp(predicate, v[0], v[1]))
        }
        Op::Select(_) => select(lowering, operation),
        Op::NegF(_) => lowering.each(operation, |e, v| e.fneg(v[0])),
        Op::ExtSI(_) => cast(lowering, operation, InstructionOpcode::SExt),
        Op::ExtUI(_) => match in_words::extended_bytes(lowering, operation) {
            Some(()) => Ok(()),
            None => cast(lowering, operation, InstructionOpcode::ZExt),
        },
        Op::TruncI(_) => cast(lowering, operation, InstructionOpcode::Trunc),
        Op::FPToSI(_) => cast(lowering, operation, InstructionOpcode::FPToSI),
        Op::FPToUI(_) => cast(lowering, operation, InstructionOpcode::FPToUI),
        Op::SIToFP(_) => integer_to_float(lowering, operation, true),
        Op::UIToFP(_) => integer_to_float(lowering, operation, false),
        Op::Bitcast(_) => cast(lowering, operation, InstructionOpcode::BitCast),
        Op::IndexCast(_) => resized(lowering, operation, InstructionOpcode::SExt),
        Op::IndexCastUI(_) => resized(lowering, operation, InstructionOpcode::ZExt),
        Op::ExtF(_) | Op::TruncF(_) => round(lowering, operation),
        Op::AddUIExtended(_) => add_extended(lowering, operation),
        Op::MulUIExtended(_) => multiply_extended(lowering, operation, InstructionOpcode::ZExt),
        Op::MulSIExtended(_) => multiply_extended(lowering, operation, InstructionOpcode::SExt),
        Op::ScalingExtF(_) | Op::ScalingTruncF(_) => Err(lowering.unsupported(operation, None)),
    }
}

/// `arith.select`. If one condition selects both halves of a word, the word is selected as a whole: neither half is
/// extracted, and if both go into one word again, nothing is packed.
fn select<'ctx>(lowering: &mut FunctionLowering<'_, 'ctx>, op: OperationRef<'_, '_>) -> Lowered {
    let operands = lowering.all_operands(op);
    let mut result = lowering
        .map(&operands, |e, v| e.select(v[0], v[1], v[2]))
        .to_vec();
    let e = lowering.e;
    let at = |operand: usize, register: usize| {
        let registers: &Registers<'ctx> = &operands[operand];
        registers[if registers.len() == 1 { 0 } else { register }]
    };
    for first in (0..result.len().saturating_sub(1)).step_by(2) {
        let condition = at(0, first);
        let of = result[first].get_type();
        let is_one = condition == at(0, first + 1) && condition.as_instruction_value().is_some();
        if !is_one || !condition.is_int_value() || !(of.is_int_type() || of.is_float_type()) {
            continue;
        }
        let [yes, no] =
            [1, 2].map(|side| word_of_halves(e, [at(side, first), at(side, first + 1)]));
        if let (Some(yes), Some(no)) = (yes, no) {
            let pair = e.bitcast(e.select(condition, yes, no), e.vector(of, 2).into());
            result.splice(first..first + 2, e.unpack(pair));
        }
    }
    lowering.bind_result(op, result);
    Ok(())
}

/// An operation of two operands that is alike on every target.
fn binary(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    function: Binary,
) -> Lowered {
    lowering.each(op, |e, v| function(e, v[0], v[1]))
}

/// An operation that is one LLVM intrinsic for every type.
fn intrinsic(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    name: &'static str,
) -> Lowered {
    lowering.each(op, |e, v| e.intrinsic(name, &[v[0].get_type()], v))
}

/// A cast that is one LLVM instruction.
fn cast(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    opcode: InstructionOpcode,
) -> Lowered {
    let (from, to) = (
        lowering.type_of(operand(op, 0))?.element(),
        lowering.result_type(op)?.element(),
    );
    for (integer, other) in [(from, to), (to, from)] {
        if let Element::Int(bits) = integer
            && bits > 64
            && other.is_float()
        {
            let reason = format!("no conversion between integers of {bits} bits and floats");
            return Err(lowering.unsupported(op, Some(reason)));
        }
    }
    let of = to.llvm(lowering.e.context);
    lowering.each(op, |e, v| e.cast(opcode, v[0], of))
}

/// Integers as floats.
fn integer_to_float(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    is_signed: bool,
) -> Lowered {
    if lowering.type_of(operand(op, 0))?.element() == Element::Int(8) {
        let to = lowering.result_type(op)?.element();
        let bytes = lowering.registers(operand(op, 0));
        if let Some(values) = widened_int8(lowering.e, lowering.hooks(), &bytes, is_signed, to) {
            lowering.bind_result(op, values);
            return Ok(());
        }
    }
    let opcode = match is_signed {
        true => InstructionOpcode::SIToFP,
        false => InstructionOpcode::UIToFP,
    };
    cast(lowering, op, opcode)
}

/// An integer of another width.
fn resized(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    widen: InstructionOpcode,
) -> Lowered {
    let of = lowering.result_type(op)?.element().llvm(lowering.e.context);
    lowering.each(op, |e, v| resize(e, v[0], of, widen))
}

/// A float of another type.
fn round(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let from = lowering.type_of(operand(op, 0))?.element();
    let to = lowering.result_type(op)?.element();
    let source = lowering.registers(operand(op, 0));
    let result = casts::convert(lowering, op, from, to, Rounding::NearestEven, &source)?;
    lowering.bind_result(op, result);
    Ok(())
}

/// Whether there is arithmetic on the types of an operation. Eight-bit floats have none: their values are integers,
/// and computations use a wider type.
pub(crate) fn check_arithmetic(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    for value in op.operands().chain(op.results().map(Into::into)) {
        if let Element::Float8(format) = lowering.type_of(value)?.element() {
            let reason = format!(
                "there is no arithmetic on {format:?}, which can be converted to wider types"
            );
            return Err(lowering.unsupported(op, Some(reason)));
        }
    }
    Ok(())
}

/// Integers of eight bits as floats, four at a time, if the target has a quick way, and there are several that
/// come in words. For a word of four bytes, that way takes one to three instructions more than conversions do, all of
/// them cheaper; bytes that come one by one would take up to seven others to be packed.
fn widened_int8<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    integers: &Registers<'ctx>,
    is_signed: bool,
    to: Element,
) -> Option<Registers<'ctx>> {
    if integers.len() < 2 || order_in_words(e, integers).is_none() {
        return None;
    }
    let mut values = Vec::with_capacity(integers.len());
    for four in integers.chunks(4) {
        let word = *packed(e, hooks, four, four.len()).first()?;
        let floats = hooks.widen_int8(e, word, is_signed, to)?;
        values.extend(floats.into_iter().take(four.len()));
    }
    Some(values.into())
}

fn add_extended(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let operands = lowering.all_operands(op);
    let total = lowering.map(&operands, |e, v| e.add(v[0], v[1]));
    let carry = lowering.map(&[total.clone(), operands[0].clone()], |e, v| {
        e.icmp(IntPredicate::ULT, v[0], v[1])
    });
    lowering.bind_result_at(op, 0, total);
    lowering.bind_result_at(op, 1, carry);
    Ok(())
}

fn multiply_extended(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    widen: InstructionOpcode,
) -> Lowered {
    let operands = lowering.all_operands(op);
    let low = lowering.map(&operands, |e, v| e.mul(v[0], v[1]));
    let high = lowering.map(&operands, |e, v| high_product(e, v[0], v[1], widen));
    lowering.bind_result_at(op, 0, low);
    lowering.bind_result_at(op, 1, high);
    Ok(())
}

/// An operation of the `math` dialect.
pub(crate) fn math(lowering: &mut FunctionLowering<'_, '_>, op: math::Op<'_, '_>) -> Lowered {
    use math::Op;
    let operation = op.operation();
    if !matches!(op, Op::AbsF(_)) {
        check_arithmetic(lowering, operation)?;
    }
    match op {
        Op::AbsF(_) => {
            if lowering.result_type(operation)?.element().is_float() {
                return intrinsic(lowering, operation, "llvm.fabs");
            }
            // An eight-bit float: all but the sign.
            lowering.each(operation, |e, v| e.and(v[0], e.int_like(v[0], 0x7f)))
        }
        Op::AbsI(_) => lowering.each(operation, |e, v| {
            e.intrinsic("llvm.abs", &[v[0].get_type()], &[v[0], e.bool(false)])
        }),
        Op::Fma(_) => intrinsic(lowering, operation, "llvm.fma"),
        Op::CopySign(_) => intrinsic(lowering, operation, "llvm.copysign"),
        Op::Trunc(_) => intrinsic(lowering, operation, "llvm.trunc"),
        Op::RoundEven(_) => intrinsic(lowering, operation, "llvm.roundeven"),
        Op::CtPop(_) => intrinsic(lowering, operation, "llvm.ctpop"),
        Op::Exp(_) => function(lowering, operation, Math::Exp),
        Op::Exp2(_) => function(lowering, operation, Math::Exp2),
        Op::Log(_) => function(lowering, operation, Math::Log),
        Op::Log2(_) => function(lowering, operation, Math::Log2),
        Op::Sin(_) => function(lowering, operation, Math::Sin),
        Op::Cos(_) => function(lowering, operation, Math::Cos),
        Op::Sqrt(_) => function(lowering, operation, Math::Sqrt),
        Op::Rsqrt(_) => function(lowering, operation, Math::Rsqrt),
        Op::Erf(_) => function(lowering, operation, Math::Erf),
        Op::Floor(_) => function(lowering, operation, Math::Floor),
        Op::Ceil(_) => function(lowering, operation, Math::Ceil),
        Op::Tan(_) => function(lowering, operation, Math::Other("tan")),
        Op::Tanh(_) => function(lowering, operation, Math::Other("tanh")),
        Op::Sinh(_) => function(lowering, operation, Math::Other("sinh")),
        Op::Cosh(_) => function(lowering, operation, Math::Other("cosh")),
        Op::Asin(_) => function(lowering, operation, Math::Other("asin")),
        Op::Acos(_) => function(lowering, operation, Math::Other("acos")),
        Op::Atan(_) => function(lowering, operation, Math::Other("atan")),
        Op::Atan2(_) => function(lowering, operation, Math::Other("atan2")),
        Op::Asinh(_) => function(lowering, operation, Math::Other("asinh")),
        Op::Acosh(_) => function(lowering, operation, Math::Other("acosh")),
        Op::Atanh(_) => function(lowering, operation, Math::Other("atanh")),
        Op::ExpM1(_) => function(lowering, operation, Math::Other("expm1")),
        Op::Log1p(_) => function(lowering, operation, Math::Other("log1p")),
        Op::Log10(_) => function(lowering, operation, Math::Other("log10")),
        Op::Cbrt(_) => function(lowering, operation, Math::Other("cbrt")),
        Op::PowF(_) => function(lowering, operation, Math::Other("pow")),
        Op::Round(_) => function(lowering, operation, Math::Other("round")),
        Op::ClampF(_)
        | Op::CountLeadingZeros(_)
        | Op::CountTrailingZeros(_)
        | Op::Erfc(_)
        | Op::FPowI(_)
        | Op::IPowI(_)
        | Op::IsFinite(_)
        | Op::IsInf(_)
        | Op::IsNaN(_)
        | Op::IsNormal(_)
        | Op::Sincos(_) => Err(lowering.unsupported(operation, None)),
    }
}

/// A function with a form of its own on each target.
fn function(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    function: Math,
) -> Lowered {
    let operands = lowering.all_operands(op);
    let element = lowering.result_type(op)?.element();
    let result = float_function(lowering, op, function, element, &operands)?;
    lowering.bind_result(op, result);
    Ok(())
}

/// A function of floats; 16-bit floats are computed in `f32`.
pub(crate) fn float_function<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    function: Math,
    element: Element,
    operands: &[Registers<'ctx>],
) -> Lowered<Registers<'ctx>> {
    let hooks = lowering.hooks();
    let of = element.llvm(lowering.e.context);
    let wide = match element {
        Element::F16 | Element::Bf16 => Element::F32,
        other => other,
    };
    let wide_type = wide.llvm(lowering.e.context);
    let mut known = true;
    let result = lowering.map(operands, |e, v| {
        let arguments: Vec<_> = v.iter().map(|value| e.fpext(*value, wide_type)).collect();
        match hooks.math(e, function, wide, &arguments) {
            Some(value) => e.fptrunc(value, of),
            None => {
                known = false;
                e.poison(of)
            }
        }
    });
    if known {
        Ok(result)
    } else {
        Err(lowering.unsupported(op, Some(format!("no such function of {element:?}"))))
    }
}

/// The upper half of the product of `a` and `b`, widened by `widen`.
pub(crate) fn high_product<'ctx>(
    e: &Emitter<'ctx>,
    a: V<'ctx>,
    b: V<'ctx>,
    widen: InstructionOpcode,
) -> V<'ctx> {
    let of = a.get_type();
    let bits = crate::llvm::emitter::bit_width(of);
    let wide = e.int(2 * bits).into();
    let product = e.mul(e.cast(widen, a, wide), e.cast(widen, b, wide));
    e.trunc(e.lshr(product, e.int_like(product, i64::from(bits))), of)
}

/// An integer of another width.
fn resize<'ctx>(
    e: &Emitter<'ctx>,
    value: V<'ctx>,
    to: inkwell::types::BasicTypeEnum<'ctx>,
    widen: InstructionOpcode,
) -> V<'ctx> {
    if crate::llvm::emitter::bit_width(value.get_type()) > crate::llvm::emitter::bit_width(to) {
        e.trunc(value, to)
    } else {
        e.cast(widen, value, to)
    }
}
