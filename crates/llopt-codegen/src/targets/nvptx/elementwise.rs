//! Arithmetic and conversions on NVIDIA.
//!
//! Approximations are used where the language allows them, and only there: `exp` and `exp2` are `ex2.approx`, `sqrt`
//! and `rsqrt` their `.approx` forms, division is `div.full` (2 ulp). Functions without an instruction come from
//! libdevice, whose functions take `f32` or `f64`.
//!
//! Repeated because the functions of both vendors have the signatures of the hooks.

use inkwell::FloatPredicate;
use llopt_plan::element::{Element, Float8};
use llopt_target::{Feature, Target};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{Math, Rounding};
use crate::targets::pairs::in_pairs;
use crate::values::element::LlvmType;

/// A function of floats of 32 or 64 bits. With `flush`, those of 32 bits may flush denormal numbers to zero.
pub fn math<'ctx>(
    e: &Emitter<'ctx>,
    function: Math,
    element: Element,
    arguments: &[V<'ctx>],
    flush: bool,
) -> Option<V<'ctx>> {
    let single = element == Element::F32;
    let of = element.llvm(e.context);
    if single {
        let call = |flushing, exact| {
            let name = if flush { flushing } else { exact };
            Some(e.intrinsic(name, &[], arguments))
        };
        match function {
            Math::Exp => {
                let scaled = e.fmul(arguments[0], e.f32(std::f64::consts::LOG2_E));
                return Some(e.intrinsic("llvm.nvvm.ex2.approx", &[of], &[scaled]));
            }
            Math::Exp2 if flush => {
                return Some(e.intrinsic("llvm.nvvm.ex2.approx.ftz", &[of], arguments));
            }
            Math::Exp2 => return Some(e.intrinsic("llvm.nvvm.ex2.approx", &[of], arguments)),
            Math::Sqrt => return call("llvm.nvvm.sqrt.approx.ftz.f", "llvm.nvvm.sqrt.approx.f"),
            Math::PreciseSqrt => return call("llvm.nvvm.sqrt.rn.f", "llvm.nvvm.sqrt.rn.f"),
            Math::Rsqrt => {
                return call("llvm.nvvm.rsqrt.approx.ftz.f", "llvm.nvvm.rsqrt.approx.f");
            }
            Math::Floor => return call("llvm.nvvm.floor.ftz.f", "llvm.nvvm.floor.f"),
            Math::Ceil => return call("llvm.nvvm.ceil.ftz.f", "llvm.nvvm.ceil.f"),
            Math::Log | Math::Log2 | Math::Sin | Math::Cos | Math::Erf | Math::Other(_) => {}
        }
    } else {
        match function {
            Math::Sqrt | Math::PreciseSqrt => {
                return Some(e.intrinsic("llvm.nvvm.sqrt.rn.d", &[], arguments));
            }
            Math::Floor => return Some(e.intrinsic("llvm.floor", &[of], arguments)),
            Math::Ceil => return Some(e.intrinsic("llvm.ceil", &[of], arguments)),
            _ => {}
        }
    }
    let name = match function {
        Math::Exp => "exp",
        Math::Exp2 => "exp2",
        Math::Log => "log",
        Math::Log2 => "log2",
        Math::Sin => "sin",
        Math::Cos => "cos",
        Math::Rsqrt => "rsqrt",
        Math::Erf => "erf",
        Math::Other(name) => name,
        Math::Sqrt | Math::PreciseSqrt | Math::Floor | Math::Ceil => return None,
    };
    let suffix = if single { "f" } else { "" };
    Some(e.library_call(&format!("__nv_{name}{suffix}"), of, arguments))
}

/// `min.xorsign.abs`: the magnitude is the smaller of the two, the sign the product of both.
pub fn clip<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    element: Element,
    x: V<'ctx>,
    limit: V<'ctx>,
    propagate_nan: bool,
) -> Option<V<'ctx>> {
    if !target.has(Feature::Stmatrix) {
        // The instruction is older (sm_86); it is used where Triton uses it.
        return None;
    }
    let name = match (element, propagate_nan) {
        (Element::F32, false) => "llvm.nvvm.fmin.xorsign.abs.f",
        (Element::F32, true) => "llvm.nvvm.fmin.nan.xorsign.abs.f",
        (Element::F16, false) => "llvm.nvvm.fmin.xorsign.abs.f16",
        (Element::F16, true) => "llvm.nvvm.fmin.nan.xorsign.abs.f16",
        _ => return None,
    };
    Some(e.intrinsic(name, &[], &[x, limit]))
}

/// Conversions with an instruction of their own.
pub fn convert_floats<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    from: Element,
    to: Element,
    rounding: Rounding,
    values: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    match (from, to) {
        // One instruction rounds two singles into a word, the form in which operands and memory take them.
        (Element::F32, Element::F16 | Element::Bf16)
            if rounding == Rounding::NearestEven
                && values.len() > 1
                && target.has(Feature::Bf16Round) =>
        {
            let name = match to {
                Element::F16 => "llvm.nvvm.ff2f16x2.rn",
                _ => "llvm.nvvm.ff2bf16x2.rn",
            };
            let pair = |low, high| e.unpack(e.intrinsic(name, &[], &[high, low]));
            Some(in_pairs(values, pair))
        }
        (Element::F32, Element::F16) => {
            let name = match rounding {
                Rounding::NearestEven => return None,
                Rounding::TowardZero => "llvm.nvvm.f2f16.rz",
            };
            Some(
                values
                    .iter()
                    .map(|value| e.intrinsic(name, &[], &[*value]))
                    .collect(),
            )
        }
        (Element::F32, Element::Bf16) => match rounding {
            Rounding::NearestEven => None,
            Rounding::TowardZero => Some(
                values
                    .iter()
                    .map(|value| {
                        if target.has(Feature::Bf16Round) {
                            e.intrinsic("llvm.nvvm.f2bf16.rz", &[], &[*value])
                        } else {
                            upper_half(e, *value)
                        }
                    })
                    .collect(),
            ),
        },
        (_, Element::Float8(format)) if rounding == Rounding::NearestEven => {
            narrow(e, target, from, format, values)
        }
        (Element::Float8(format), _) => widen(e, target, format, to, values),
        _ => None,
    }
}

/// The result of `cvt.rz.bf16.f32`: the upper 16 bits of an `f32`, and 0x7fff for NaN.
fn upper_half<'ctx>(e: &Emitter<'ctx>, single: V<'ctx>) -> V<'ctx> {
    let bits = e.bitcast(single, e.int(32).into());
    let upper = e.trunc(e.lshr(bits, e.i32(16)), e.int(16).into());
    let is_nan = e.fcmp(FloatPredicate::UNO, single, single);
    let code = e.select(is_nan, e.int_like(upper, 0x7fff), upper);
    e.bitcast(code, Element::Bf16.llvm(e.context))
}

/// Pairs of floats to pairs of codes with `cvt.rn.satfinite`.
fn narrow<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    from: Element,
    format: Float8,
    values: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    if !target.has(Feature::Fp8ConvertPacked) {
        return None;
    }
    let (from_pair, from_singles) = match format {
        Float8::E4M3FN => ("llvm.nvvm.f16x2.to.e4m3x2.rn", "llvm.nvvm.ff.to.e4m3x2.rn"),
        Float8::E5M2 => ("llvm.nvvm.f16x2.to.e5m2x2.rn", "llvm.nvvm.ff.to.e5m2x2.rn"),
        Float8::E4M3FNUZ | Float8::E5M2FNUZ => return None,
    };
    let f32 = Element::F32.llvm(e.context);
    let codes = |low: V<'ctx>, high: V<'ctx>| {
        let word = if from == Element::F16 {
            e.intrinsic(from_pair, &[], &[e.pack(&[low, high])])
        } else {
            e.intrinsic(from_singles, &[], &[e.fpext(high, f32), e.fpext(low, f32)])
        };
        e.unpack(e.bitcast(word, e.vector(e.int(8).into(), 2).into()))
    };
    Some(in_pairs(values, codes))
}

/// Pairs of codes to pairs of floats through `cvt.rn.f16x2`, which is exact.
fn widen<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    format: Float8,
    to: Element,
    values: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    if !target.has(Feature::Fp8ConvertPacked) {
        return None;
    }
    let name = match format {
        Float8::E4M3FN => "llvm.nvvm.e4m3x2.to.f16x2.rn",
        Float8::E5M2 => "llvm.nvvm.e5m2x2.to.f16x2.rn",
        Float8::E4M3FNUZ | Float8::E5M2FNUZ => return None,
    };
    let f32 = Element::F32.llvm(e.context);
    let floats = |low: V<'ctx>, high: V<'ctx>| {
        let pair = e.bitcast(e.pack(&[low, high]), e.int(16).into());
        let halves = e.unpack(e.intrinsic(name, &[], &[pair]));
        match to {
            Element::F16 => halves,
            Element::Bf16 => {
                let (low, high) = (e.fpext(halves[0], f32), e.fpext(halves[1], f32));
                e.unpack(e.intrinsic("llvm.nvvm.ff2bf16x2.rn", &[], &[high, low]))
            }
            _ => halves
                .into_iter()
                .map(|half| e.fpext(half, to.llvm(e.context)))
                .collect(),
        }
    };
    Some(in_pairs(values, floats))
}

/// libdevice functions that are single instructions need no libdevice.
pub fn library_function<'ctx>(
    e: &Emitter<'ctx>,
    symbol: &str,
    result: Element,
    arguments: &[V<'ctx>],
) -> Option<V<'ctx>> {
    let of = result.llvm(e.context);
    let name = match symbol {
        "__nv_fabsf" | "__nv_fabs" => "llvm.fabs",
        "__nv_fmaf" | "__nv_fma" | "__nv_fmaf_rn" | "__nv_fma_rn" => "llvm.fma",
        _ => return None,
    };
    Some(e.intrinsic(name, &[of], arguments))
}
