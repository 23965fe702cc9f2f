//! Arithmetic and conversions on AMD.
//!
//! Fast forms are used where the language allows them: `exp2`, `sqrt` and `rsqrt` of `f32` are the bare hardware
//! instructions, which flush denormals; `exp` keeps them. Functions without an instruction come from the device
//! library `ocml`.

use inkwell::types::BasicTypeEnum;
use llopt_plan::element::{Element, Float8};
use llopt_target::{Feature, Target};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{Math, Rounding, SmallFloat};
use crate::targets::pairs::in_pairs;
use crate::values::element::LlvmType;

/// A function of floats of 32 or 64 bits.
pub fn math<'ctx>(
    e: &Emitter<'ctx>,
    function: Math,
    element: Element,
    arguments: &[V<'ctx>],
) -> Option<V<'ctx>> {
    let of = element.llvm(e.context);
    let single = element == Element::F32;
    let llvm = |name| Some(e.intrinsic(name, &[of], arguments));
    let name = match function {
        Math::Exp if single => {
            let scaled = e.fmul(arguments[0], e.f32(std::f64::consts::LOG2_E));
            return Some(e.intrinsic("llvm.exp2", &[of], &[scaled]));
        }
        Math::Exp2 if single => return llvm("llvm.amdgcn.exp2"),
        Math::Log if single => return llvm("llvm.log"),
        Math::Log2 if single => return llvm("llvm.log2"),
        Math::Sqrt if single => return llvm("llvm.amdgcn.sqrt"),
        Math::Rsqrt if single => return llvm("llvm.amdgcn.rsq"),
        Math::Sqrt | Math::PreciseSqrt => return llvm("llvm.sqrt"),
        Math::Floor => return llvm("llvm.floor"),
        Math::Ceil => return llvm("llvm.ceil"),
        Math::Exp => "exp",
        Math::Exp2 => "exp2",
        Math::Log => "log",
        Math::Log2 => "log2",
        Math::Sin => "sin",
        Math::Cos => "cos",
        Math::Rsqrt => "rsqrt",
        Math::Erf => "erf",
        Math::Other(name) => name,
    };
    Some(e.library_call(&format!("__ocml_{name}_f{}", element.bits()), of, arguments))
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
        (Element::F32, Element::F16) if rounding == Rounding::TowardZero => {
            let pair =
                |low, high| e.unpack(e.intrinsic("llvm.amdgcn.cvt.pkrtz", &[], &[low, high]));
            Some(in_pairs(values, pair))
        }
        (Element::F32, Element::Bf16) if rounding == Rounding::TowardZero => {
            Some(values.iter().map(|value| upper_half(e, *value)).collect())
        }
        (Element::F32, Element::F16 | Element::Bf16) if target.has(Feature::PackedBf16Convert) => {
            let of = e.vector(to.llvm(e.context), 2).into();
            Some(in_pairs(values, |low, high| {
                e.unpack(e.fptrunc(e.pack(&[low, high]), of))
            }))
        }
        (_, Element::Float8(format)) if rounding == Rounding::NearestEven => {
            narrow(e, target, format, values)
        }
        (Element::Float8(format), _) => widen(e, target, format, to, values),
        _ => None,
    }
}

/// The eight 4-bit floats (e2m1) of a word, by an instruction for each byte where there is one.
///
/// Elsewhere, each magnitude has three bits, which select one of eight bytes in two registers: `v_perm_b32` looks up
/// four at once, those of the lower halves of the bytes or of the upper ones. The 16-bit formats take two lookups,
/// one for each byte, except `f16`, whose lower byte is always zero.
pub fn widen_fp4<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    word: V<'ctx>,
    to: Element,
) -> Option<Vec<V<'ctx>>> {
    if target.has(Feature::Fp8ScaledConvert) {
        let name = match to {
            Element::F16 => "llvm.amdgcn.cvt.scalef32.pk.f16.fp4",
            Element::Bf16 => "llvm.amdgcn.cvt.scalef32.pk.bf16.fp4",
            Element::F32 => "llvm.amdgcn.cvt.scalef32.pk.f32.fp4",
            _ => return None,
        };
        let of_byte = |byte: i64| {
            let arguments = [word, e.f32(1.0), e.i32(byte)];
            e.unpack(e.intrinsic(name, &[], &arguments))
        };
        return Some((0..4).flat_map(of_byte).collect());
    }
    if to == Element::F32 {
        return fp4_by_fp8(e, target, word);
    }
    // The bytes for the codes 0 to 3 and 4 to 7.
    let (upper, lower) = match to {
        Element::F16 => ([0x3e3c_3800, 0x4644_4240], None),
        Element::Bf16 => (
            [0x3f3f_3f00, 0x4040_4040],
            Some([0xc080_0000_u32, 0xc080_4000]),
        ),
        _ => return None,
    };
    let constant = |value: u32| e.i32(i64::from(value as i32));
    let perm = |high: V<'ctx>, low: V<'ctx>, selector: V<'ctx>| {
        e.intrinsic("llvm.amdgcn.perm", &[], &[high, low, selector])
    };
    let half = e.vector(to.llvm(e.context), 2).into();
    let mut of_halves = Vec::with_capacity(2);
    for is_upper in [false, true] {
        let (codes, signs) = if is_upper {
            let signs = e.and(word, constant(0x8080_8080));
            (e.lshr(word, e.i32(4)), signs)
        } else {
            let signs = e.and(word, constant(0x0808_0808));
            (word, e.shl(signs, e.i32(4)))
        };
        let selector = e.and(codes, constant(0x0707_0707));
        let look_up = |[low, high]: [u32; 2]| perm(constant(high), constant(low), selector);
        let upper = e.or(look_up(upper), signs);
        let lower = lower.map_or(e.i32(0), look_up);
        // Alternating bytes of both: two elements to a word.
        let pairs = [0x0501_0400, 0x0703_0602].map(|order| {
            let pair = perm(upper, lower, constant(order));
            e.unpack(e.bitcast(pair, half))
        });
        of_halves.push(pairs.concat());
    }
    let [even, odd] = [&of_halves[0], &of_halves[1]];
    Some(even.iter().zip(odd).flat_map(|(a, b)| [*a, *b]).collect())
}

/// The eight 4-bit floats of a word as `f32`, where the target converts eight-bit floats: each is an eight-bit float,
/// and one `v_perm_b32` looks up the seven lower bits of four of them.
///
/// In formats where the code of negative zero is NaN, negative zero becomes positive zero.
fn fp4_by_fp8<'ctx>(e: &Emitter<'ctx>, target: Target, word: V<'ctx>) -> Option<Vec<V<'ctx>>> {
    let has_zeros = target.has(Feature::Fp8OcpConvert);
    // The bytes of 0, 0.5, 1, 1.5 and of 2, 3, 4, 6.
    let [low, high] = if has_zeros {
        [0x3c38_3000, 0x4c48_4440]
    } else if target.has(Feature::Fp8FnuzConvert) {
        // With the sign, which is masked below.
        [0xc4c0_b800_u32, 0xd4d0_ccc8]
    } else {
        return None;
    };
    let constant = |value: u32| e.i32(i64::from(value as i32));
    // The even codes of the word, and the odd ones.
    let of_codes = |codes: V<'ctx>, signs: V<'ctx>| {
        let selector = e.and(codes, constant(0x0707_0707));
        let arguments = [constant(high), constant(low), selector];
        let magnitudes = e.intrinsic("llvm.amdgcn.perm", &[], &arguments);
        let bytes = if has_zeros {
            e.or(magnitudes, e.and(signs, constant(0x8080_8080)))
        } else {
            e.and(magnitudes, e.or(signs, constant(0x7f7f_7f7f)))
        };
        [false, true].map(|upper| {
            let pair = e.intrinsic("llvm.amdgcn.cvt.pk.f32.fp8", &[], &[bytes, e.bool(upper)]);
            e.unpack(pair)
        })
    };
    let even = of_codes(word, e.shl(word, e.i32(4))).concat();
    let odd = of_codes(e.lshr(word, e.i32(4)), word).concat();
    Some(even.iter().zip(odd).flat_map(|(a, b)| [*a, b]).collect())
}

/// Two small floats of a word times a scale, by `v_cvt_scalef32_pk_*`.
pub fn widen_scaled_pair<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    from: SmallFloat,
    word: V<'ctx>,
    place: u32,
    scale: V<'ctx>,
    to: Element,
) -> Option<V<'ctx>> {
    if !target.has(Feature::Fp8ScaledConvert) {
        return None;
    }
    let place = match from {
        SmallFloat::E2m1 => e.i32(i64::from(place)),
        SmallFloat::Eight(_) => e.bool(place == 1),
    };
    let names = match from {
        SmallFloat::E2m1 => [
            "llvm.amdgcn.cvt.scalef32.pk.f16.fp4",
            "llvm.amdgcn.cvt.scalef32.pk.bf16.fp4",
            "llvm.amdgcn.cvt.scalef32.pk.f32.fp4",
        ],
        SmallFloat::Eight(Float8::E4M3FN) => [
            "llvm.amdgcn.cvt.scalef32.pk.f16.fp8",
            "llvm.amdgcn.cvt.scalef32.pk.bf16.fp8",
            "llvm.amdgcn.cvt.scalef32.pk.f32.fp8",
        ],
        SmallFloat::Eight(Float8::E5M2) => [
            "llvm.amdgcn.cvt.scalef32.pk.f16.bf8",
            "llvm.amdgcn.cvt.scalef32.pk.bf16.bf8",
            "llvm.amdgcn.cvt.scalef32.pk.f32.bf8",
        ],
        SmallFloat::Eight(_) => return None,
    };
    let name = match to {
        Element::F16 => names[0],
        Element::Bf16 => names[1],
        Element::F32 => names[2],
        _ => return None,
    };
    Some(e.intrinsic(name, &[], &[word, scale, place]))
}

/// Whether the hardware converts this format.
fn converts(target: Target, format: Float8) -> bool {
    match format {
        Float8::E4M3FN | Float8::E5M2 => target.has(Feature::Fp8OcpConvert),
        Float8::E4M3FNUZ | Float8::E5M2FNUZ => target.has(Feature::Fp8FnuzConvert),
    }
}

/// Four codes in one word from four floats. The instructions saturate only when the mode register's `FP16_OVFL` bit
/// is set, but that bit would also clamp the overflow of every `f16` operation of the kernel; so the magnitude is
/// clamped here, and [`super::overflow`] leaves that to the mode where the kernel has no such operation.
fn narrow<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    format: Float8,
    values: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    if !converts(target, format) {
        return None;
    }
    let name = if format.mantissa_bits() == 3 {
        "llvm.amdgcn.cvt.pk.fp8.f32"
    } else {
        "llvm.amdgcn.cvt.pk.bf8.f32"
    };
    let f32: BasicTypeEnum = Element::F32.llvm(e.context);
    let limit = f64::from(format.largest());
    let clamped = |value: V<'ctx>| {
        let single = e.fpext(value, f32);
        // The median of three does not keep NaN, so NaN goes around it.
        let bounded = e.intrinsic(
            "llvm.amdgcn.fmed3",
            &[f32],
            &[single, e.f32(limit), e.f32(-limit)],
        );
        let is_nan = e.fcmp(inkwell::FloatPredicate::UNO, single, single);
        e.select(is_nan, single, bounded)
    };
    let mut results = Vec::with_capacity(values.len() + 3);
    for four in values.chunks(4) {
        let at = |i: usize| clamped(*four.get(i).unwrap_or(&four[0]));
        let mut word = e.intrinsic(
            name,
            &[],
            &[
                at(0),
                if four.len() > 1 { at(1) } else { e.f32(0.0) },
                e.i32(0),
                e.bool(false),
            ],
        );
        if four.len() > 2 {
            word = e.intrinsic(
                name,
                &[],
                &[
                    at(2),
                    if four.len() > 3 { at(3) } else { e.f32(0.0) },
                    word,
                    e.bool(true),
                ],
            );
        }
        results.extend(e.unpack(e.bitcast(word, e.vector(e.int(8).into(), 4).into())));
    }
    results.truncate(values.len());
    Some(results)
}

/// Four floats from the four codes of a word.
fn widen<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    format: Float8,
    to: Element,
    values: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    if !converts(target, format) {
        return None;
    }
    let of_three = format.mantissa_bits() == 3;
    let of = to.llvm(e.context);
    let scaled = target.has(Feature::Fp8ScaledConvert) && !format.is_unsigned_zero();
    let mut results = Vec::with_capacity(values.len() + 3);
    for four in values.chunks(4) {
        let mut codes = four.to_vec();
        codes.resize(4, e.context.i8_type().const_zero().into());
        let word = e.bitcast(e.pack(&codes), e.int(32).into());
        for half in 0..four.len().div_ceil(2) {
            let upper = e.bool(half == 1);
            let pair = if scaled && to != Element::F32 {
                let name = match (to, of_three) {
                    (Element::F16, true) => "llvm.amdgcn.cvt.scalef32.pk.f16.fp8",
                    (Element::F16, false) => "llvm.amdgcn.cvt.scalef32.pk.f16.bf8",
                    (_, true) => "llvm.amdgcn.cvt.scalef32.pk.bf16.fp8",
                    (_, false) => "llvm.amdgcn.cvt.scalef32.pk.bf16.bf8",
                };
                e.unpack(e.intrinsic(name, &[], &[word, e.f32(1.0), upper]))
            } else {
                let name = if of_three {
                    "llvm.amdgcn.cvt.pk.f32.fp8"
                } else {
                    "llvm.amdgcn.cvt.pk.f32.bf8"
                };
                let singles = e.unpack(e.intrinsic(name, &[], &[word, upper]));
                match to {
                    // Every code is exactly representable as a bf16.
                    Element::Bf16 => singles
                        .into_iter()
                        .map(|single| upper_half(e, single))
                        .collect(),
                    _ => singles
                        .into_iter()
                        .map(|single| e.fptrunc(single, of))
                        .collect(),
                }
            };
            results.extend(pair);
        }
    }
    results.truncate(values.len());
    Some(results)
}

/// An `f32` rounded to the nearest `bf16`, ties to even; a NaN must have zeros in its lower half.
pub fn narrowed_to_bf16<'ctx>(e: &Emitter<'ctx>, single: V<'ctx>, is_exact: bool) -> V<'ctx> {
    if is_exact {
        return upper_half(e, single);
    }
    let bits = e.bitcast(single, e.int(32).into());
    let odd = e.and(e.lshr(bits, e.i32(16)), e.i32(1));
    let rounded = e.add(e.add(odd, bits), e.i32(0x7fff));
    upper_half(e, e.bitcast(rounded, single.get_type()))
}

/// The upper 16 bits of an `f32` as a `bf16`.
fn upper_half<'ctx>(e: &Emitter<'ctx>, single: V<'ctx>) -> V<'ctx> {
    let bits = e.bitcast(single, e.int(32).into());
    e.bitcast(
        e.trunc(e.lshr(bits, e.i32(16)), e.int(16).into()),
        Element::Bf16.llvm(e.context),
    )
}

/// The frontend's own names of functions that are instructions.
pub fn library_function<'ctx>(
    e: &Emitter<'ctx>,
    symbol: &str,
    result: Element,
    arguments: &[V<'ctx>],
) -> Option<V<'ctx>> {
    let of = result.llvm(e.context);
    let f32 = Element::F32.llvm(e.context);
    let fast_exp = |x: V<'ctx>| {
        let scaled = e.fmul(x, e.f32(std::f64::consts::LOG2_E));
        e.intrinsic("llvm.amdgcn.exp2", &[f32], &[scaled])
    };
    Some(match symbol {
        "__triton_hip_iabs" => e.intrinsic("llvm.abs", &[of], &[arguments[0], e.bool(false)]),
        "__triton_hip_fabs" => e.intrinsic("llvm.fabs", &[of], arguments),
        "__triton_hip_llrint" => {
            let rounded = e.intrinsic("llvm.rint", &[arguments[0].get_type()], arguments);
            e.cast(inkwell::values::InstructionOpcode::FPToSI, rounded, of)
        }
        "__triton_hip_fast_fdividef" => e.fmul(
            arguments[0],
            e.intrinsic("llvm.amdgcn.rcp", &[of], &[arguments[1]]),
        ),
        "__triton_hip_fast_expf" => fast_exp(arguments[0]),
        // 1 - 2 / (e^(2|x|) + 1), with the sign of x: overflow does no harm.
        "__triton_hip_fast_tanhf" => {
            let magnitude = e.intrinsic("llvm.fabs", &[of], arguments);
            let power = fast_exp(e.fmul(magnitude, e.f32(2.0)));
            let ratio = e.fdiv(e.f32(2.0), e.fadd(power, e.f32(1.0)));
            let positive = e.fsub(e.f32(1.0), ratio);
            e.intrinsic("llvm.copysign", &[of], &[positive, arguments[0]])
        }
        _ => return None,
    })
}
