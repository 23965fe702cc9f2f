//! The `arith` and `math` dialects, on scalars and tensors alike: one LLVM value per distinct tuple of
//! operand registers.

use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use llopt_plan::element::Element;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{Math, Rounding};
use crate::values::element::LlvmType;
use crate::values::words::packed;
use crate::walk::function::{
    FunctionLowering, Lowered, Registers, integer_attribute, name, operand,
};

/// A function of two registers.
type Binary = for<'ctx> fn(&Emitter<'ctx>, V<'ctx>, V<'ctx>) -> V<'ctx>;

/// The operations of two operands that are one LLVM instruction or intrinsic on every target.
const BINARY: &[(&str, Binary)] = &[
    ("addi", |e, a, b| e.add(a, b)),
    ("subi", |e, a, b| e.sub(a, b)),
    ("muli", |e, a, b| e.mul(a, b)),
    ("divsi", |e, a, b| e.sdiv(a, b)),
    ("divui", |e, a, b| e.udiv(a, b)),
    ("remsi", |e, a, b| e.srem(a, b)),
    ("remui", |e, a, b| e.urem(a, b)),
    ("andi", |e, a, b| e.and(a, b)),
    ("ori", |e, a, b| e.or(a, b)),
    ("xori", |e, a, b| e.xor(a, b)),
    ("shli", |e, a, b| e.shl(a, b)),
    ("shrsi", |e, a, b| e.ashr(a, b)),
    ("shrui", |e, a, b| e.lshr(a, b)),
    ("addf", |e, a, b| e.fadd(a, b)),
    ("subf", |e, a, b| e.fsub(a, b)),
    ("mulf", |e, a, b| e.fmul(a, b)),
    ("remf", |e, a, b| e.frem(a, b)),
    ("maxsi", |e, a, b| {
        e.intrinsic("llvm.smax", &[a.get_type()], &[a, b])
    }),
    ("maxui", |e, a, b| {
        e.intrinsic("llvm.umax", &[a.get_type()], &[a, b])
    }),
    ("minsi", |e, a, b| {
        e.intrinsic("llvm.smin", &[a.get_type()], &[a, b])
    }),
    ("minui", |e, a, b| {
        e.intrinsic("llvm.umin", &[a.get_type()], &[a, b])
    }),
    ("maxnumf", |e, a, b| {
        e.intrinsic("llvm.maxnum", &[a.get_type()], &[a, b])
    }),
    ("minnumf", |e, a, b| {
        e.intrinsic("llvm.minnum", &[a.get_type()], &[a, b])
    }),
    ("maximumf", |e, a, b| {
        e.intrinsic("llvm.maximum", &[a.get_type()], &[a, b])
    }),
    ("minimumf", |e, a, b| {
        e.intrinsic("llvm.minimum", &[a.get_type()], &[a, b])
    }),
    ("ceildivsi", |e, a, b| {
        round_quotient(e, a, b, IntPredicate::SGT)
    }),
    ("floordivsi", |e, a, b| {
        round_quotient(e, a, b, IntPredicate::SLT)
    }),
    ("ceildivui", |e, a, b| {
        let quotient = e.udiv(a, b);
        let remainder = e.urem(a, b);
        let inexact = e.icmp(IntPredicate::NE, remainder, e.int_like(a, 0));
        e.add(quotient, e.zext(inexact, a.get_type()))
    }),
];

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

/// Casts that are one LLVM instruction.
const CASTS: &[(&str, InstructionOpcode)] = &[
    ("extsi", InstructionOpcode::SExt),
    ("extui", InstructionOpcode::ZExt),
    ("trunci", InstructionOpcode::Trunc),
    ("fptosi", InstructionOpcode::FPToSI),
    ("fptoui", InstructionOpcode::FPToUI),
    ("sitofp", InstructionOpcode::SIToFP),
    ("uitofp", InstructionOpcode::UIToFP),
    ("bitcast", InstructionOpcode::BitCast),
];

/// Predicates of `arith.cmpi`, in the order of their numbers.
const INT_PREDICATES: [IntPredicate; 10] = [
    IntPredicate::EQ,
    IntPredicate::NE,
    IntPredicate::SLT,
    IntPredicate::SLE,
    IntPredicate::SGT,
    IntPredicate::SGE,
    IntPredicate::ULT,
    IntPredicate::ULE,
    IntPredicate::UGT,
    IntPredicate::UGE,
];

/// Predicates of `arith.cmpf`, in the order of their numbers.
const FLOAT_PREDICATES: [FloatPredicate; 16] = [
    FloatPredicate::PredicateFalse,
    FloatPredicate::OEQ,
    FloatPredicate::OGT,
    FloatPredicate::OGE,
    FloatPredicate::OLT,
    FloatPredicate::OLE,
    FloatPredicate::ONE,
    FloatPredicate::ORD,
    FloatPredicate::UEQ,
    FloatPredicate::UGT,
    FloatPredicate::UGE,
    FloatPredicate::ULT,
    FloatPredicate::ULE,
    FloatPredicate::UNE,
    FloatPredicate::UNO,
    FloatPredicate::PredicateTrue,
];

/// Functions of the `math` dialect that are one LLVM intrinsic for every float type.
const FLOAT_INTRINSICS: &[(&str, &str)] = &[
    ("absf", "llvm.fabs"),
    ("fma", "llvm.fma"),
    ("copysign", "llvm.copysign"),
    ("trunc", "llvm.trunc"),
    ("roundeven", "llvm.roundeven"),
];

/// The same for integers.
const INT_INTRINSICS: &[(&str, &str)] = &[("ctpop", "llvm.ctpop")];

/// Functions of the `math` dialect with a form of their own on each target.
const FUNCTIONS: &[(&str, Math)] = &[
    ("exp", Math::Exp),
    ("exp2", Math::Exp2),
    ("log", Math::Log),
    ("log2", Math::Log2),
    ("sin", Math::Sin),
    ("cos", Math::Cos),
    ("sqrt", Math::Sqrt),
    ("rsqrt", Math::Rsqrt),
    ("erf", Math::Erf),
    ("floor", Math::Floor),
    ("ceil", Math::Ceil),
    ("tan", Math::Other("tan")),
    ("tanh", Math::Other("tanh")),
    ("sinh", Math::Other("sinh")),
    ("cosh", Math::Other("cosh")),
    ("asin", Math::Other("asin")),
    ("acos", Math::Other("acos")),
    ("atan", Math::Other("atan")),
    ("atan2", Math::Other("atan2")),
    ("asinh", Math::Other("asinh")),
    ("acosh", Math::Other("acosh")),
    ("atanh", Math::Other("atanh")),
    ("expm1", Math::Other("expm1")),
    ("log1p", Math::Other("log1p")),
    ("log10", Math::Other("log10")),
    ("cbrt", Math::Other("cbrt")),
    ("powf", Math::Other("pow")),
    ("round", Math::Other("round")),
];

/// Operations of `arith` that have values of any type.
const MOVES: [&str; 4] = ["bitcast", "extf", "select", "truncf"];

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, entry)| *entry)
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of the `arith` dialect.
    pub(crate) fn arith(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let full = name(op);
        let mnemonic = full.strip_prefix("arith.").unwrap_or(&full);
        if mnemonic == "constant" {
            return self.constant(op);
        }
        if !MOVES.contains(&mnemonic) {
            self.check_arithmetic(op)?;
        }
        let operands: Vec<_> = op.operands().map(|value| self.registers(value)).collect();
        if let Some(function) = find(BINARY, mnemonic) {
            let result = self.map(&operands, |e, v| function(e, v[0], v[1]));
            self.bind_result(op, result);
            return Ok(());
        }
        let to = self.result_type(op)?.element();
        let of = to.llvm(self.e.context);
        if let Some(opcode) = find(CASTS, mnemonic) {
            let from = self.type_of(operand(op, 0))?.element();
            let by_words = match (opcode, from) {
                (InstructionOpcode::SIToFP, Element::Int(8)) => self.widened_int8(&operands[0], to),
                _ => None,
            };
            let result =
                by_words.unwrap_or_else(|| self.map(&operands, |e, v| e.cast(opcode, v[0], of)));
            self.bind_result(op, result);
            return Ok(());
        }
        let result = match mnemonic {
            "cmpi" => {
                let number = integer_attribute(op, "predicate").unwrap_or(0);
                let predicate = *usize::try_from(number)
                    .ok()
                    .and_then(|i| INT_PREDICATES.get(i))
                    .ok_or_else(|| self.invalid(op, "unknown predicate"))?;
                self.map(&operands, |e, v| e.icmp(predicate, v[0], v[1]))
            }
            "cmpf" => {
                let number = integer_attribute(op, "predicate").unwrap_or(0);
                let predicate = *usize::try_from(number)
                    .ok()
                    .and_then(|i| FLOAT_PREDICATES.get(i))
                    .ok_or_else(|| self.invalid(op, "unknown predicate"))?;
                self.map(&operands, |e, v| e.fcmp(predicate, v[0], v[1]))
            }
            "select" => self.map(&operands, |e, v| e.select(v[0], v[1], v[2])),
            "negf" => self.map(&operands, |e, v| e.fneg(v[0])),
            "divf" => {
                let hooks = self.hooks();
                self.map(&operands, |e, v| hooks.divide(e, to, v[0], v[1]))
            }
            "extf" | "truncf" => {
                let from = self.type_of(operand(op, 0))?.element();
                self.convert(op, from, to, Rounding::NearestEven, &operands[0])?
            }
            "index_cast" => self.map(&operands, |e, v| {
                resize(e, v[0], of, InstructionOpcode::SExt)
            }),
            "index_castui" => self.map(&operands, |e, v| {
                resize(e, v[0], of, InstructionOpcode::ZExt)
            }),
            "addui_extended" => return self.add_extended(op, &operands),
            "mului_extended" => {
                return self.multiply_extended(op, &operands, InstructionOpcode::ZExt);
            }
            "mulsi_extended" => {
                return self.multiply_extended(op, &operands, InstructionOpcode::SExt);
            }
            _ => return Err(self.unsupported(op, None)),
        };
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

    fn add_extended(&mut self, op: OperationRef<'c, 'a>, operands: &[Registers<'ctx>]) -> Lowered {
        let total = self.map(operands, |e, v| e.add(v[0], v[1]));
        let carry = self.map(&[total.clone(), operands[0].clone()], |e, v| {
            e.icmp(IntPredicate::ULT, v[0], v[1])
        });
        self.bind_result_at(op, 0, total);
        self.bind_result_at(op, 1, carry);
        Ok(())
    }

    fn multiply_extended(
        &mut self,
        op: OperationRef<'c, 'a>,
        operands: &[Registers<'ctx>],
        widen: InstructionOpcode,
    ) -> Lowered {
        let low = self.map(operands, |e, v| e.mul(v[0], v[1]));
        let high = self.map(operands, |e, v| high_product(e, v[0], v[1], widen));
        self.bind_result_at(op, 0, low);
        self.bind_result_at(op, 1, high);
        Ok(())
    }

    /// An operation of the `math` dialect.
    pub(crate) fn math(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let full = name(op);
        let mnemonic = full.strip_prefix("math.").unwrap_or(&full);
        if mnemonic != "absf" {
            self.check_arithmetic(op)?;
        }
        let operands: Vec<_> = op.operands().map(|value| self.registers(value)).collect();
        let element = self.result_type(op)?.element();
        let of = element.llvm(self.e.context);
        let result = if let Some(intrinsic) = find(FLOAT_INTRINSICS, mnemonic) {
            if mnemonic == "absf" && !element.is_float() {
                // An eight-bit float: all but the sign.
                self.map(&operands, |e, v| e.and(v[0], e.int_like(v[0], 0x7f)))
            } else {
                self.map(&operands, |e, v| e.intrinsic(intrinsic, &[of], v))
            }
        } else if let Some(intrinsic) = find(INT_INTRINSICS, mnemonic) {
            self.map(&operands, |e, v| e.intrinsic(intrinsic, &[of], v))
        } else if mnemonic == "absi" {
            self.map(&operands, |e, v| {
                e.intrinsic("llvm.abs", &[of], &[v[0], e.bool(false)])
            })
        } else if let Some(function) = find(FUNCTIONS, mnemonic) {
            self.float_function(op, function, element, &operands)?
        } else {
            return Err(self.unsupported(op, None));
        };
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
