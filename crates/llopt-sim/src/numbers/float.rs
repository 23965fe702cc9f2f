//! Floating-point formats of GPUs in software: exact decoding to `f64`, correctly rounded encoding from it.
//!
//! Every value of every format here up to 32 bits is a `f64` exactly, so an operation on such values is done in three
//! steps: decode, compute in `f64`, encode. Encoding rounds once, which is correct provided that the `f64` result is
//! exact, or is *rounded to odd*: truncated, with its last bit set whenever something was cut off. A value rounded to
//! odd at 53 bits rounds further to any format of at most 51 bits as the exact value would (it stays on the same side
//! of every midpoint as the exact value), in every rounding mode. [`add_odd`], [`fma_odd`], [`div_odd`] and
//! [`sqrt_odd`] give such results through the usual error-free transformations.

/// Direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even (`rn`).
    NearestEven,
    /// To nearest, ties away from zero (`rna`).
    NearestAway,
    /// Towards zero (`rz`).
    Zero,
    /// Towards plus infinity (`rp`).
    Up,
    /// Towards minus infinity (`rm`).
    Down,
}

/// The meaning of the all-ones exponent (or another reserved code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// Infinities and NaNs as in IEEE 754.
    Ieee,
    /// No infinity; only the code with all bits set (either sign) is NaN.
    NanOnly,
    /// No infinity, no negative zero: the code of negative zero is the NaN.
    Fnuz,
    /// Every code is a finite number.
    Finite,
}

/// A sign-exponent-mantissa format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    special: Special,
}

const fn format(exponent: u32, mantissa: u32, bias: i32, special: Special) -> Format {
    Format {
        exponent,
        mantissa,
        bias,
        special,
    }
}

/// IEEE half precision.
pub(crate) const F16: Format = format(5, 10, 15, Special::Ieee);
/// The upper half of a single.
pub(crate) const BF16: Format = format(8, 7, 127, Special::Ieee);
/// IEEE single precision.
pub(crate) const F32: Format = format(8, 23, 127, Special::Ieee);
/// Single precision with a mantissa of 10 bits, in 19 bits (the matrix unit's `tf32`).
pub(crate) const TF32: Format = format(8, 10, 127, Special::Ieee);
/// OCP FP8 with 3 bits of mantissa.
pub(crate) const E4M3: Format = format(4, 3, 7, Special::NanOnly);
/// OCP FP8 with 2 bits of mantissa.
pub(crate) const E5M2: Format = format(5, 2, 15, Special::Ieee);
/// AMD's first FP8 with 3 bits of mantissa (`fp8` of CDNA3).
pub(crate) const E4M3_FNUZ: Format = format(4, 3, 8, Special::Fnuz);
/// OCP MX FP6 with 3 bits of mantissa.
pub(crate) const E2M3: Format = format(2, 3, 1, Special::Finite);
/// OCP MX FP6 with 2 bits of mantissa.
pub(crate) const E3M2: Format = format(3, 2, 3, Special::Finite);
/// OCP MX FP4.
pub(crate) const E2M1: Format = format(2, 1, 1, Special::Finite);
/// AMD's first FP8 with 2 bits of mantissa (`bf8` of CDNA3).
pub(crate) const E5M2_FNUZ: Format = format(5, 2, 16, Special::Fnuz);

impl Format {
    /// Bits of one value.
    pub(crate) const fn bits(self) -> u32 {
        1 + self.exponent + self.mantissa
    }

    /// The exponent of the least normal value.
    pub(crate) const fn least_exponent(self) -> i32 {
        1 - self.bias
    }

    fn max_code(self) -> u64 {
        let all = (1u64 << (self.exponent + self.mantissa)) - 1;
        match self.special {
            Special::Ieee => all - (1 << self.mantissa),
            Special::NanOnly => all - 1,
            Special::Fnuz | Special::Finite => all,
        }
    }

    fn nan(self) -> u64 {
        let sign_bit = 1u64 << (self.exponent + self.mantissa);
        match self.special {
            // Without an infinity, the largest number.
            Special::Ieee | Special::NanOnly | Special::Finite => sign_bit - 1,
            Special::Fnuz => sign_bit,
        }
    }

    /// The exact value of a code.
    pub(crate) fn decode(self, code: u64) -> f64 {
        let magnitude_bits = self.exponent + self.mantissa;
        let negative = code >> magnitude_bits & 1 == 1;
        let magnitude = code & ((1u64 << magnitude_bits) - 1);
        let e = (magnitude >> self.mantissa) as i32;
        let m = magnitude & ((1u64 << self.mantissa) - 1);
        let top = (1i32 << self.exponent) - 1;
        let special = match self.special {
            Special::Ieee => e == top,
            Special::NanOnly => magnitude == (1u64 << magnitude_bits) - 1,
            Special::Fnuz => negative && magnitude == 0,
            Special::Finite => false,
        };
        let value = if special {
            if self.special == Special::Ieee && m == 0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        } else if e == 0 {
            scale(m as f64, 1 - self.bias - self.mantissa as i32)
        } else {
            scale(
                (m | 1 << self.mantissa) as f64,
                e - self.bias - self.mantissa as i32,
            )
        };
        if negative { -value } else { value }
    }

    /// The code nearest to `value` in the given direction. Values beyond the largest finite one become infinity (NaN
    /// where there is no infinity), or the largest with `saturate`.
    pub(crate) fn encode(self, value: f64, rounding: Rounding, saturate: bool) -> u64 {
        let bits = value.to_bits();
        let sign = bits >> 63;
        let sign_bit = sign << (self.exponent + self.mantissa);
        if value.is_nan() {
            return self.nan();
        }
        let overflow = |up: bool| {
            if saturate || !up {
                return sign_bit | self.max_code();
            }
            match self.special {
                Special::Ieee => sign_bit | ((1u64 << self.exponent) - 1) << self.mantissa,
                Special::NanOnly | Special::Finite => sign_bit | self.nan(),
                Special::Fnuz => self.nan(),
            }
        };
        if value.is_infinite() {
            return overflow(true);
        }
        let raw_exponent = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        if raw_exponent == 0 && fraction == 0 {
            return if self.special == Special::Fnuz {
                0
            } else {
                sign_bit
            };
        }
        // value = significand * 2^(exponent - 52), significand in [2^52, 2^53) unless subnormal.
        let (significand, exponent) = if raw_exponent == 0 {
            (fraction, -1022)
        } else {
            (fraction | 1 << 52, raw_exponent - 1023)
        };
        let min_exponent = self.least_exponent();
        let below = (min_exponent - exponent).max(0);
        let shift = (52 - self.mantissa as i32 + below).min(63) as u32;
        let kept = significand >> shift;
        let rest = significand & ((1u64 << shift) - 1);
        let half = if shift == 0 { 0 } else { 1u64 << (shift - 1) };
        let up = rest != 0
            && match rounding {
                Rounding::NearestEven => rest > half || rest == half && kept & 1 == 1,
                Rounding::NearestAway => rest >= half,
                Rounding::Zero => false,
                Rounding::Up => sign == 0,
                Rounding::Down => sign == 1,
            };
        let rounded = kept + u64::from(up);
        // For a normal value `rounded` carries the implicit bit, which adds one to the biased exponent below it.
        let biased = i64::from(exponent.max(min_exponent) + self.bias) - 1;
        let magnitude = (biased << self.mantissa) + rounded as i64;
        if magnitude > self.max_code() as i64 {
            let away = match rounding {
                Rounding::NearestEven | Rounding::NearestAway => true,
                Rounding::Zero => false,
                Rounding::Up => sign == 0,
                Rounding::Down => sign == 1,
            };
            return overflow(away);
        }
        if magnitude == 0 && self.special == Special::Fnuz {
            return 0;
        }
        sign_bit | magnitude as u64
    }

    /// `encode` to nearest even without saturation.
    pub(crate) fn nearest(self, value: f64) -> u64 {
        self.encode(value, Rounding::NearestEven, false)
    }
}

/// `value * 2^exponent`, exact for the small mantissas used here.
fn scale(value: f64, exponent: i32) -> f64 {
    // Two factors, since 2^exponent itself may be outside f64's normal range.
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

/// 2^exponent for exponents of normal doubles.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

/// Sets the last bit when `error` (exact minus `rounded`) is not zero, truncating towards it.
fn to_odd(rounded: f64, error: f64) -> f64 {
    if error == 0.0 || !error.is_finite() || !rounded.is_finite() || rounded.to_bits() & 1 == 1 {
        return rounded;
    }
    if rounded == 0.0 {
        return f64::from_bits(1).copysign(error);
    }
    let away = (error > 0.0) == (rounded > 0.0);
    let bits = rounded.to_bits();
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// `a + b` rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let virtual_b = sum - a;
    let error = (a - (sum - virtual_b)) + (b - virtual_b);
    to_odd(sum, error)
}

/// `a * b + c` rounded to odd, for `a` and `b` whose product is exact in `f64` (24 bits of mantissa each).
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// `a / b` rounded to odd.
pub(crate) fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || b.is_infinite() {
        return quotient;
    }
    let remainder = (-quotient).mul_add(b, a);
    to_odd(quotient, remainder * b.signum())
}

/// Square root rounded to odd.
pub(crate) fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, a))
}

/// Widens a half to a single, exactly. NaNs keep their payload.
#[inline]
pub(crate) fn half_to_f32(code: u64) -> f32 {
    let sign = (code as u32 & 0x8000) << 16;
    let magnitude = code as u32 & 0x7fff;
    if magnitude >= 0x7c00 {
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13);
    }
    // A half's bits shifted into a single's position are off by 2^(127-15).
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((254 - 15) << 23);
    f32::from_bits(scaled.to_bits() | sign)
}

/// Rounds a single to the nearest half.
#[inline]
pub(crate) fn f32_to_half(value: f32) -> u64 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return F16.nan();
    }
    let sign = bits >> 16 & 0x8000;
    let code = if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        // Subnormal halves: adding 0.5 in a single makes the hardware round at 2^-24.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    } else {
        let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
        (rounded - ((127 - 15) << 23)) >> 13
    };
    u64::from(sign | code.min(0x7fff))
}

/// Widens a bfloat to a single, exactly.
#[inline]
pub(crate) fn bf16_to_f32(code: u64) -> f32 {
    f32::from_bits((code as u32) << 16)
}

/// Rounds a single to the nearest bfloat.
#[inline]
pub(crate) fn f32_to_bf16(value: f32) -> u64 {
    let bits = value.to_bits();
    if value.is_nan() {
        return BF16.nan();
    }
    u64::from((bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of every small format decodes and encodes back to itself.
    #[test]
    fn codes_survive_a_round_trip() {
        for format in [
            F16, BF16, E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ, E2M3, E3M2, E2M1,
        ] {
            for code in 0..1u64 << format.bits() {
                let value = format.decode(code);
                if value.is_nan() {
                    continue;
                }
                assert_eq!(format.nearest(value), code, "{format:?} {code:#x} {value}");
            }
        }
    }

    #[test]
    fn halves_agree_with_the_general_encoder() {
        for code in 0..1u64 << 16 {
            let fast = half_to_f32(code);
            let slow = F16.decode(code);
            assert!(fast.is_nan() && slow.is_nan() || f64::from(fast) == slow);
        }
        let mut state = 1u32;
        for _ in 0..200_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(state);
            if value.is_nan() {
                continue;
            }
            assert_eq!(
                f32_to_half(value),
                F16.nearest(f64::from(value)),
                "{value:e}"
            );
            assert_eq!(
                f32_to_bf16(value),
                BF16.nearest(f64::from(value)),
                "{value:e}"
            );
        }
    }

    #[test]
    fn single_precision_is_what_the_processor_computes() {
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            f32::from_bits((state >> 32) as u32)
        };
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let check = |exact: f64, expected: f32| {
                if !expected.is_nan() {
                    assert_eq!(
                        F32.nearest(exact) as u32,
                        expected.to_bits(),
                        "{a:e} {b:e} {c:e}"
                    );
                }
            };
            let (x, y, z) = (f64::from(a), f64::from(b), f64::from(c));
            check(add_odd(x, y), a + b);
            check(fma_odd(x, y, z), a.mul_add(b, c));
            check(div_odd(x, y), a / b);
            check(sqrt_odd(x.abs()), a.abs().sqrt());
        }
    }

    #[test]
    fn saturation_and_directions() {
        assert_eq!(E4M3.encode(1000.0, Rounding::NearestEven, true), 0x7e);
        assert_eq!(E4M3.encode(1000.0, Rounding::NearestEven, false), 0x7f);
        assert_eq!(E5M2.encode(1e6, Rounding::NearestEven, false), 0x7c);
        assert_eq!(E5M2.encode(-1e6, Rounding::Zero, false), 0xfb);
        assert_eq!(F16.encode(1.0 + 1e-9, Rounding::Up, false), 0x3c01);
        assert_eq!(F16.encode(1.0 + 1e-9, Rounding::Down, false), 0x3c00);
        assert_eq!(F16.encode(-1.0 - 1e-9, Rounding::Down, false), 0xbc01);
        assert_eq!(E4M3_FNUZ.nearest(-1e-9), 0);
    }
}
