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
use crate::targets::hooks::{Math, Rounding};
use crate::values::element::LlvmType;
use crate::values::words::{packed, word_of_halves};
use crate::walk::function::{FunctionLowering, Lowered, Registers, operand};

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
/// Not all back ends know that of `bf16`. In `f32` it is as exact: a multiple of both operands' finer spacing, and no
/// larger than either, is a `bf16` itself. LLVM knows that, too, and would go back to `bf16` if it saw how the operands
/// are widened; so their bits are put where they belong.
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

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of the `arith` dialect.
    pub(crate) fn arith(&mut self, op: arith::Op<'c, 'a>) -> Lowered {
        use arith::Op;
        let operation = op.operation();
        let moves = matches!(
            op,
            Op::Constant(_) | Op::Bitcast(_) | Op::ExtF(_) | Op::Select(_) | Op::TruncF(_)
        );
        if !moves {
            self.check_arithmetic(operation)?;
        }
        match op {
            Op::Constant(_) => self.constant(operation),
            Op::AddI(_) => self.integer_operation(operation, Partwise::Add),
            Op::SubI(_) => self.integer_operation(operation, Partwise::Subtract),
            Op::MulI(_) => self.binary(operation, |e, a, b| e.mul(a, b)),
            Op::DivSI(_) => self.binary(operation, |e, a, b| e.sdiv(a, b)),
            Op::DivUI(_) => self.binary(operation, |e, a, b| e.udiv(a, b)),
            Op::RemSI(_) => self.binary(operation, |e, a, b| e.srem(a, b)),
            Op::RemUI(_) => self.binary(operation, |e, a, b| e.urem(a, b)),
            Op::CeilDivSI(_) => self.binary(operation, |e, a, b| {
                round_quotient(e, a, b, IntPredicate::SGT)
            }),
            Op::FloorDivSI(_) => self.binary(operation, |e, a, b| {
                round_quotient(e, a, b, IntPredicate::SLT)
            }),
            Op::CeilDivUI(_) => self.binary(operation, round_up),
            Op::AndI(_) => self.integer_operation(operation, Partwise::And),
            Op::OrI(_) => self.integer_operation(operation, Partwise::Or),
            Op::XOrI(_) => self.integer_operation(operation, Partwise::Xor),
            Op::ShLI(_) => match Partwise::of(op) {
                Some(shift) => self.integer_operation(operation, shift),
                None => self.binary(operation, |e, a, b| e.shl(a, b)),
            },
            Op::ShRSI(_) => self.binary(operation, |e, a, b| e.ashr(a, b)),
            Op::ShRUI(_) => self.binary(operation, |e, a, b| e.lshr(a, b)),
            Op::AddF(_) => self.float_operation(operation, |e, a, b| e.fadd(a, b)),
            Op::SubF(_) => self.float_operation(operation, |e, a, b| e.fsub(a, b)),
            Op::MulF(_) => self.float_operation(operation, |e, a, b| e.fmul(a, b)),
            Op::RemF(_) => {
                let of = self.result_type(operation)?.element();
                self.each(operation, |e, v| remainder(e, of, v[0], v[1]))
            }
            Op::DivF(_) => {
                let of = self.result_type(operation)?.element();
                let hooks = self.hooks();
                self.each(operation, |e, v| hooks.divide(e, of, v[0], v[1]))
            }
            Op::MaxSI(_) => self.intrinsic(operation, "llvm.smax"),
            Op::MaxUI(_) => self.integer_operation(operation, Partwise::LargerUnsigned),
            Op::MinSI(_) => self.intrinsic(operation, "llvm.smin"),
            Op::MinUI(_) => self.intrinsic(operation, "llvm.umin"),
            Op::MaxNumF(_) => self.intrinsic(operation, "llvm.maxnum"),
            Op::MinNumF(_) => self.intrinsic(operation, "llvm.minnum"),
            Op::MaximumF(_) => self.intrinsic(operation, "llvm.maximum"),
            Op::MinimumF(_) => self.intrinsic(operation, "llvm.minimum"),
            Op::CmpI(op) => {
                let predicate = op.predicate().map(int_predicate);
                let predicate =
                    predicate.ok_or_else(|| self.invalid(operation, "unknown predicate"))?;
                self.each(operation, |e, v| e.icmp(predicate, v[0], v[1]))
            }
            Op::CmpF(op) => {
                let predicate = op.predicate().map(float_predicate);
                let predicate =
                    predicate.ok_or_else(|| self.invalid(operation, "unknown predicate"))?;
                self.each(operation, |e, v| e.fcmp(predicate, v[0], v[1]))
            }
            Op::Select(_) => self.select(operation),
            Op::NegF(_) => self.each(operation, |e, v| e.fneg(v[0])),
            Op::ExtSI(_) => self.cast(operation, InstructionOpcode::SExt),
            Op::ExtUI(_) => match self.extended_bytes(operation) {
                Some(()) => Ok(()),
                None => self.cast(operation, InstructionOpcode::ZExt),
            },
            Op::TruncI(_) => self.cast(operation, InstructionOpcode::Trunc),
            Op::FPToSI(_) => self.cast(operation, InstructionOpcode::FPToSI),
            Op::FPToUI(_) => self.cast(operation, InstructionOpcode::FPToUI),
            Op::SIToFP(_) => self.signed_to_float(operation),
            Op::UIToFP(_) => self.cast(operation, InstructionOpcode::UIToFP),
            Op::Bitcast(_) => self.cast(operation, InstructionOpcode::BitCast),
            Op::IndexCast(_) => self.resize(operation, InstructionOpcode::SExt),
            Op::IndexCastUI(_) => self.resize(operation, InstructionOpcode::ZExt),
            Op::ExtF(_) | Op::TruncF(_) => self.round(operation),
            Op::AddUIExtended(_) => self.add_extended(operation),
            Op::MulUIExtended(_) => self.multiply_extended(operation, InstructionOpcode::ZExt),
            Op::MulSIExtended(_) => self.multiply_extended(operation, InstructionOpcode::SExt),
            Op::ScalingExtF(_) | Op::ScalingTruncF(_) => Err(self.unsupported(operation, None)),
        }
    }

    /// The registers of all operands.
    fn all_operands(&self, op: OperationRef<'c, 'a>) -> Vec<Registers<'ctx>> {
        op.operands().map(|value| self.registers(value)).collect()
    }

    /// A function of the registers at each place.
    pub(crate) fn each(
        &mut self,
        op: OperationRef<'c, 'a>,
        function: impl FnMut(&Emitter<'ctx>, &[V<'ctx>]) -> V<'ctx>,
    ) -> Lowered {
        let operands = self.all_operands(op);
        let result = self.map(&operands, function);
        self.bind_result(op, result);
        Ok(())
    }

    /// `arith.select`. Two halves of a word that one condition chooses are chosen as a word: neither is taken out, and if
    /// both go into one word again, nothing is put together.
    fn select(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let operands = self.all_operands(op);
        let mut result = self
            .map(&operands, |e, v| e.select(v[0], v[1], v[2]))
            .to_vec();
        let e = self.e;
        let at = |operand: usize, register: usize| {
            let registers: &Registers<'ctx> = &operands[operand];
            registers[if registers.len() == 1 { 0 } else { register }]
        };
        for first in (0..result.len().saturating_sub(1)).step_by(2) {
            let condition = at(0, first);
            let of = result[first].get_type();
            let is_one =
                condition == at(0, first + 1) && condition.as_instruction_value().is_some();
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
        self.bind_result(op, result);
        Ok(())
    }

    /// An operation of two operands that is alike on every target.
    fn binary(&mut self, op: OperationRef<'c, 'a>, function: Binary) -> Lowered {
        self.each(op, |e, v| function(e, v[0], v[1]))
    }

    /// An operation that is one LLVM intrinsic for every type.
    fn intrinsic(&mut self, op: OperationRef<'c, 'a>, name: &'static str) -> Lowered {
        self.each(op, |e, v| e.intrinsic(name, &[v[0].get_type()], v))
    }

    /// A cast that is one LLVM instruction.
    fn cast(&mut self, op: OperationRef<'c, 'a>, opcode: InstructionOpcode) -> Lowered {
        let (from, to) = (
            self.type_of(operand(op, 0))?.element(),
            self.result_type(op)?.element(),
        );
        for (integer, other) in [(from, to), (to, from)] {
            if let Element::Int(bits) = integer
                && bits > 64
                && other.is_float()
            {
                let reason = format!("no conversion between integers of {bits} bits and floats");
                return Err(self.unsupported(op, Some(reason)));
            }
        }
        let of = to.llvm(self.e.context);
        self.each(op, |e, v| e.cast(opcode, v[0], of))
    }

    fn signed_to_float(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        if self.type_of(operand(op, 0))?.element() == Element::Int(8) {
            let to = self.result_type(op)?.element();
            let bytes = self.registers(operand(op, 0));
            if let Some(values) = self.widened_int8(&bytes, to) {
                self.bind_result(op, values);
                return Ok(());
            }
        }
        self.cast(op, InstructionOpcode::SIToFP)
    }

    /// An integer of another width.
    fn resize(&mut self, op: OperationRef<'c, 'a>, widen: InstructionOpcode) -> Lowered {
        let of = self.result_type(op)?.element().llvm(self.e.context);
        self.each(op, |e, v| resize(e, v[0], of, widen))
    }

    /// A float of another type.
    fn round(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let from = self.type_of(operand(op, 0))?.element();
        let to = self.result_type(op)?.element();
        let source = self.registers(operand(op, 0));
        let result = self.convert(op, from, to, Rounding::NearestEven, &source)?;
        self.bind_result(op, result);
        Ok(())
    }

    /// Whether there is arithmetic on the types of an operation. Eight-bit floats have none: they travel as
    /// integers, and are computed with in a wider type.
    pub(crate) fn check_arithmetic(&self, op: OperationRef<'c, 'a>) -> Lowered {
        for value in op.operands().chain(op.results().map(Into::into)) {
            if let Element::Float8(format) = self.type_of(value)?.element() {
                let reason = format!(
                    "there is no arithmetic on {format:?}, which can be converted to wider types"
                );
                return Err(self.unsupported(op, Some(reason)));
            }
        }
        Ok(())
    }

    /// Signed integers of eight bits as floats, four at a time, if the target has a quick way and there are several.
    fn widened_int8(&self, integers: &Registers<'ctx>, to: Element) -> Option<Registers<'ctx>> {
        let (e, hooks) = (self.e, self.hooks());
        if integers.len() < 2 {
            return None;
        }
        let mut values = Vec::with_capacity(integers.len());
        for four in integers.chunks(4) {
            let word = *packed(e, hooks, four, four.len()).first()?;
            let floats = hooks.widen_int8(e, word, to)?;
            values.extend(floats.into_iter().take(four.len()));
        }
        Some(values.into())
    }

    fn add_extended(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let operands = self.all_operands(op);
        let total = self.map(&operands, |e, v| e.add(v[0], v[1]));
        let carry = self.map(&[total.clone(), operands[0].clone()], |e, v| {
            e.icmp(IntPredicate::ULT, v[0], v[1])
        });
        self.bind_result_at(op, 0, total);
        self.bind_result_at(op, 1, carry);
        Ok(())
    }

    fn multiply_extended(&mut self, op: OperationRef<'c, 'a>, widen: InstructionOpcode) -> Lowered {
        let operands = self.all_operands(op);
        let low = self.map(&operands, |e, v| e.mul(v[0], v[1]));
        let high = self.map(&operands, |e, v| high_product(e, v[0], v[1], widen));
        self.bind_result_at(op, 0, low);
        self.bind_result_at(op, 1, high);
        Ok(())
    }

    /// An operation of the `math` dialect.
    pub(crate) fn math(&mut self, op: math::Op<'c, 'a>) -> Lowered {
        use math::Op;
        let operation = op.operation();
        if !matches!(op, Op::AbsF(_)) {
            self.check_arithmetic(operation)?;
        }
        match op {
            Op::AbsF(_) => {
                if self.result_type(operation)?.element().is_float() {
                    return self.intrinsic(operation, "llvm.fabs");
                }
                // An eight-bit float: all but the sign.
                self.each(operation, |e, v| e.and(v[0], e.int_like(v[0], 0x7f)))
            }
            Op::AbsI(_) => self.each(operation, |e, v| {
                e.intrinsic("llvm.abs", &[v[0].get_type()], &[v[0], e.bool(false)])
            }),
            Op::Fma(_) => self.intrinsic(operation, "llvm.fma"),
            Op::CopySign(_) => self.intrinsic(operation, "llvm.copysign"),
            Op::Trunc(_) => self.intrinsic(operation, "llvm.trunc"),
            Op::RoundEven(_) => self.intrinsic(operation, "llvm.roundeven"),
            Op::CtPop(_) => self.intrinsic(operation, "llvm.ctpop"),
            Op::Exp(_) => self.function(operation, Math::Exp),
            Op::Exp2(_) => self.function(operation, Math::Exp2),
            Op::Log(_) => self.function(operation, Math::Log),
            Op::Log2(_) => self.function(operation, Math::Log2),
            Op::Sin(_) => self.function(operation, Math::Sin),
            Op::Cos(_) => self.function(operation, Math::Cos),
            Op::Sqrt(_) => self.function(operation, Math::Sqrt),
            Op::Rsqrt(_) => self.function(operation, Math::Rsqrt),
            Op::Erf(_) => self.function(operation, Math::Erf),
            Op::Floor(_) => self.function(operation, Math::Floor),
            Op::Ceil(_) => self.function(operation, Math::Ceil),
            Op::Tan(_) => self.function(operation, Math::Other("tan")),
            Op::Tanh(_) => self.function(operation, Math::Other("tanh")),
            Op::Sinh(_) => self.function(operation, Math::Other("sinh")),
            Op::Cosh(_) => self.function(operation, Math::Other("cosh")),
            Op::Asin(_) => self.function(operation, Math::Other("asin")),
            Op::Acos(_) => self.function(operation, Math::Other("acos")),
            Op::Atan(_) => self.function(operation, Math::Other("atan")),
            Op::Atan2(_) => self.function(operation, Math::Other("atan2")),
            Op::Asinh(_) => self.function(operation, Math::Other("asinh")),
            Op::Acosh(_) => self.function(operation, Math::Other("acosh")),
            Op::Atanh(_) => self.function(operation, Math::Other("atanh")),
            Op::ExpM1(_) => self.function(operation, Math::Other("expm1")),
            Op::Log1p(_) => self.function(operation, Math::Other("log1p")),
            Op::Log10(_) => self.function(operation, Math::Other("log10")),
            Op::Cbrt(_) => self.function(operation, Math::Other("cbrt")),
            Op::PowF(_) => self.function(operation, Math::Other("pow")),
            Op::Round(_) => self.function(operation, Math::Other("round")),
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
            | Op::Sincos(_) => Err(self.unsupported(operation, None)),
        }
    }

    /// A function with a form of its own on each target.
    fn function(&mut self, op: OperationRef<'c, 'a>, function: Math) -> Lowered {
        let operands = self.all_operands(op);
        let element = self.result_type(op)?.element();
        let result = self.float_function(op, function, element, &operands)?;
        self.bind_result(op, result);
        Ok(())
    }

    /// A function of floats: on 16-bit floats by way of `f32`.
    pub(crate) fn float_function(
        &self,
        op: OperationRef<'c, 'a>,
        function: Math,
        element: Element,
        operands: &[Registers<'ctx>],
    ) -> Lowered<Registers<'ctx>> {
        let hooks = self.hooks();
        let of = element.llvm(self.e.context);
        let wide = match element {
            Element::F16 | Element::Bf16 => Element::F32,
            other => other,
        };
        let wide_type = wide.llvm(self.e.context);
        let mut known = true;
        let result = self.map(operands, |e, v| {
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
            Err(self.unsupported(op, Some(format!("no such function of {element:?}"))))
        }
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
