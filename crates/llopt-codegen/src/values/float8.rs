//! Eight-bit floats in software: conversions for targets (or formats) without an instruction.
//!
//! Widening is exact, so it is a shift of the exponent and mantissa bits into place and one
//! multiplication by a power of two, which corrects the bias *and* renormalises subnormals: the code
//! `0.eeee.mmm`, read as the bits of a wider float with fewer exponent bits filled, is too small by
//! exactly `2^(wide bias - narrow bias)`.
//!
//! Narrowing rounds to nearest, ties to even, and saturates: numbers beyond the largest finite value become that
//! value. On the bits of a positive `f32` with mantissa cut at bit `shift`:
//! - *normal* results: adding `2^(shift-1) - 1 + (bit at shift)` rounds to even by carry, and
//!   subtracting the difference of biases gives the code after the shift;
//! - *subnormal* results: adding the float `2^(e + 23)`, where `2^e` is the spacing of the subnormals,
//!   makes the hardware round at that spacing; the code is the difference of the two bit patterns;
//! - clamping the magnitude first reduces overflow and infinities to one minimum.
//!
//! The alternative, a table of halfway points compared one by one, needs eight comparisons and
//! selections per element where the addition needs one.

use inkwell::{FloatPredicate, IntPredicate};
use llopt_plan::element::{Element, Float8};

use crate::llvm::emitter::{Emitter, V};
use crate::values::element::LlvmType;

/// Converts the code `value` (an `i8`) to `to`, which is `f16`, `bf16` or `f32`. Exact.
pub fn widen<'ctx>(e: &Emitter<'ctx>, format: Float8, value: V<'ctx>, to: Element) -> V<'ctx> {
    match (format, to) {
        (Float8::E5M2 | Float8::E4M3FN | Float8::E4M3FNUZ, Element::F16) => {
            widen_to_half(e, format, value)
        }
        (Float8::E5M2 | Float8::E4M3FN, Element::F32) => e.fpext(
            widen_to_half(e, format, value),
            Element::F32.llvm(e.context),
        ),
        (_, Element::F16) => e.fptrunc(
            widen_to_single(e, format, value),
            Element::F16.llvm(e.context),
        ),
        (Float8::E5M2, Element::Bf16) => {
            let single = e.fpext(
                widen_to_half(e, format, value),
                Element::F32.llvm(e.context),
            );
            high_half(e, single)
        }
        (_, Element::Bf16) => high_half(e, widen_to_single(e, format, value)),
        _ => widen_to_single(e, format, value),
    }
}

/// The upper 16 bits of an `f32` that is exactly a `bf16`.
fn high_half<'ctx>(e: &Emitter<'ctx>, single: V<'ctx>) -> V<'ctx> {
    let bits = e.bitcast(single, e.int(32).into());
    let high = e.trunc(e.lshr(bits, e.i32(16)), e.int(16).into());
    e.bitcast(high, Element::Bf16.llvm(e.context))
}

fn widen_to_half<'ctx>(e: &Emitter<'ctx>, format: Float8, value: V<'ctx>) -> V<'ctx> {
    let i16 = e.int(16).into();
    let half = Element::F16.llvm(e.context);
    let wide = e.zext(value, i16);
    let c = |value| e.int_like(wide, value);
    if format == Float8::E5M2 {
        return e.bitcast(e.shl(wide, c(8)), half);
    }
    let sign = e.and(e.shl(wide, c(8)), c(0x8000));
    let magnitude = e.and(wide, c(0x7f));
    let placed = e.shl(magnitude, c(7));
    let scaled = e.fmul(
        e.bitcast(e.or(placed, sign), half),
        e.float(half, f64::from(1u32 << (15 - format.bias()))),
    );
    let is_nan = if format.is_unsigned_zero() {
        e.icmp(IntPredicate::EQ, wide, c(0x80))
    } else {
        e.icmp(IntPredicate::EQ, magnitude, c(0x7f))
    };
    e.select(is_nan, e.bitcast(c(0x7e00), half), scaled)
}

fn widen_to_single<'ctx>(e: &Emitter<'ctx>, format: Float8, value: V<'ctx>) -> V<'ctx> {
    let f32 = Element::F32.llvm(e.context);
    let wide = e.zext(value, e.int(32).into());
    let sign = e.shl(e.and(wide, e.i32(0x80)), e.i32(24));
    let magnitude = e.and(wide, e.i32(0x7f));
    let placed = e.or(
        e.shl(magnitude, e.i32(i64::from(23 - format.mantissa_bits()))),
        sign,
    );
    let scale = f64::from(127 - format.bias()).exp2();
    let scaled = e.fmul(e.bitcast(placed, f32), e.float(f32, scale));
    let is_nan = if format.is_unsigned_zero() {
        e.icmp(IntPredicate::EQ, wide, e.i32(0x80))
    } else {
        e.icmp(IntPredicate::EQ, magnitude, e.i32(0x7f))
    };
    e.select(is_nan, e.bitcast(e.i32(0x7fc0_0000), f32), scaled)
}

/// Converts `value` of type `from` (`f16`, `bf16` or `f32`) to a code of `format`: nearest, ties to even,
/// saturating. NaN stays NaN; infinities become the largest finite value, or NaN in the FNUZ formats.
pub fn narrow<'ctx>(e: &Emitter<'ctx>, format: Float8, value: V<'ctx>, from: Element) -> V<'ctx> {
    if format == Float8::E5M2 && from == Element::F16 {
        return narrow_half_to_e5m2(e, value);
    }
    let i32 = e.int(32).into();
    let f32 = Element::F32.llvm(e.context);
    let single = if from == Element::F32 {
        value
    } else {
        e.fpext(value, f32)
    };
    let bits = e.bitcast(single, i32);
    let sign = e.and(e.lshr(bits, e.i32(24)), e.i32(0x80));
    let magnitude = e.and(bits, e.i32(0x7fff_ffff));

    let largest = e.i32(i64::from(format.largest().to_bits()));
    let clamped = e.intrinsic("llvm.umin", &[i32], &[magnitude, largest]);
    let shift = 23 - format.mantissa_bits();
    let odd = e.and(e.lshr(clamped, e.i32(i64::from(shift))), e.i32(1));
    let rounding = (1i64 << (shift - 1)) - 1 - (i64::from(127 - format.bias()) << 23);
    let normal = e.lshr(
        e.add(e.add(clamped, odd), e.i32(rounding)),
        e.i32(i64::from(shift)),
    );

    let smallest_normal_exponent = 1 - format.bias() as i32;
    let spacing = smallest_normal_exponent - format.mantissa_bits() as i32;
    let magic = ((spacing + 23) as f32).exp2();
    let sum = e.fadd(e.bitcast(clamped, f32), e.f32(f64::from(magic)));
    let subnormal = e.sub(e.bitcast(sum, i32), e.i32(i64::from(magic.to_bits())));
    let threshold = (smallest_normal_exponent as f32).exp2().to_bits();
    let is_small = e.icmp(IntPredicate::ULT, clamped, e.i32(i64::from(threshold)));
    let code = e.select(is_small, subnormal, normal);

    let result = if format.is_unsigned_zero() {
        let is_zero = e.icmp(IntPredicate::EQ, code, e.i32(0));
        let signed = e.select(is_zero, e.i32(0), e.or(code, sign));
        let not_finite = e.icmp(IntPredicate::UGE, magnitude, e.i32(0x7f80_0000));
        e.select(not_finite, e.i32(i64::from(format.nan_code())), signed)
    } else {
        let is_nan = e.fcmp(FloatPredicate::UNO, single, single);
        e.or(
            e.select(is_nan, e.i32(i64::from(format.nan_code())), code),
            sign,
        )
    };
    e.trunc(result, e.int(8).into())
}

/// E5M2 is the upper half of an `f16`: rounding is an addition, and subnormals need no special case.
fn narrow_half_to_e5m2<'ctx>(e: &Emitter<'ctx>, value: V<'ctx>) -> V<'ctx> {
    let i16 = e.int(16).into();
    let bits = e.bitcast(value, i16);
    let c = |value| e.int_like(bits, value);
    let magnitude = e.and(bits, c(0x7fff));
    let clamped = e.intrinsic("llvm.umin", &[i16], &[magnitude, c(0x7b00)]);
    let odd = e.and(e.lshr(clamped, c(8)), c(1));
    let rounded = e.add(e.add(clamped, odd), c(0x7f));
    let is_nan = e.icmp(IntPredicate::UGT, magnitude, c(0x7c00));
    let code = e.select(is_nan, c(0x7f00), rounded);
    let signed = e.or(e.and(code, c(0x7f00)), e.and(bits, c(-0x8000)));
    e.trunc(e.lshr(signed, c(8)), e.int(8).into())
}

/// Converts `value` of type `from` (`f16` or `f32`) to E5M2 by dropping bits: towards zero.
pub fn truncate_to_e5m2<'ctx>(e: &Emitter<'ctx>, half: V<'ctx>) -> V<'ctx> {
    let bits = e.bitcast(half, e.int(16).into());
    e.trunc(e.lshr(bits, e.int_like(bits, 8)), e.int(8).into())
}

/// The code of a number: nearest, ties to even, saturating; for constants.
#[must_use]
pub fn encode(format: Float8, value: f64) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() || (value.is_infinite() && format.is_unsigned_zero()) {
        return format.nan_code() as u8;
    }
    if value.is_infinite() && format == Float8::E5M2 {
        return sign | 0x7c;
    }
    let magnitude = value.abs().min(f64::from(format.largest()));
    let mantissa = format.mantissa_bits() as i32;
    let lowest = 1 - format.bias() as i32;
    let exponent = if magnitude == 0.0 {
        lowest
    } else {
        (magnitude.log2().floor() as i32).max(lowest)
    };
    let spacing = f64::from(exponent - mantissa).exp2();
    let steps = (magnitude / spacing).round_ties_even() as i32;
    // `steps` counts from zero at this spacing; a normal number's hidden one is `1 << mantissa` of them.
    let code = ((exponent - lowest) << mantissa) + steps;
    if code == 0 && format.is_unsigned_zero() {
        0
    } else {
        sign | code as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_the_formats_say() {
        assert_eq!(encode(Float8::E4M3FN, 1.0), 0x38);
        assert_eq!(encode(Float8::E4M3FN, 448.0), 0x7e);
        assert_eq!(encode(Float8::E4M3FN, 1e9), 0x7e);
        assert_eq!(encode(Float8::E4M3FN, -0.0), 0x80);
        assert_eq!(encode(Float8::E4M3FN, f64::from(-9).exp2()), 0x01);
        assert_eq!(encode(Float8::E5M2, 1.0), 0x3c);
        assert_eq!(encode(Float8::E5M2, f64::NEG_INFINITY), 0xfc);
        assert_eq!(encode(Float8::E5M2, 1.9375), 0x40);
        assert_eq!(encode(Float8::E4M3FNUZ, 1.0), 0x40);
        assert_eq!(encode(Float8::E4M3FNUZ, -0.0), 0);
        assert_eq!(encode(Float8::E5M2FNUZ, f64::NAN), 0x80);
    }
}
