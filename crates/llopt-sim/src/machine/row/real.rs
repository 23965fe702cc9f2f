//! Floating-point operations on rows, each rounded once to its type.
//!
//! Types of 16 bits are computed in a wider one. Where that rounds, too, and the two roundings together might differ from one,
//! it rounds to odd ([`crate::numbers::float`]).
//!
//! Conversions to integers saturate out of range, and NaN gives 0; the same on both vendors. LLVM leaves the bits of NaN open:
//! arithmetic in 16 and 32 bits gives those of an H200, all ones but the sign; in 64 bits it keeps the operand's, as the host
//! does. AMD's units give quiet NaNs with an empty payload ([`Real::F32Quiet`]).

use super::{COPY, Row1, Row2, Row3, row1, row2, row3};
use crate::numbers::float::{
    BF16, F16, Rounding, add_odd, bf16_to_f32, div_odd, f32_to_bf16, f32_to_half, fma_odd,
    half_to_f32, sqrt_odd,
};
use crate::translate::ir::RealPredicate;

/// The single of a row's element.
#[inline]
pub(crate) fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}
/// The row's element of a single.
#[inline]
pub(crate) fn of_f32(value: f32) -> u64 {
    if value.is_nan() {
        NAN_F32
    } else {
        u64::from(value.to_bits())
    }
}

/// The NaN that arithmetic in single precision gives on NVIDIA's GPUs.
pub(crate) const NAN_F32: u64 = 0x7fff_ffff;
/// As [`of_f32`], with every NaN replaced by the quiet NaN with an empty payload.
#[inline]
pub(crate) fn of_quiet_f32(value: f32) -> u64 {
    if value.is_nan() {
        0x7fc0_0000
    } else {
        u64::from(value.to_bits())
    }
}
/// Replaces a subnormal single by a zero of its sign.
#[inline]
pub(crate) fn flush(value: f32) -> f32 {
    if value.is_subnormal() {
        0f32.copysign(value)
    } else {
        value
    }
}

/// Floating-point types with arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Real {
    /// `half`.
    F16,
    /// `bfloat`.
    BF16,
    /// `float`.
    F32,
    /// `float` with subnormals flushed to zero on the way in and out.
    F32Flush,
    /// `float` whose NaN results are quiet with an empty payload, as AMD's units give them.
    F32Quiet,
    /// Both: subnormals flushed to zero, and quiet NaNs with an empty payload.
    F32FlushQuiet,
    /// `double`.
    F64,
}

impl Real {
    /// Bits of a value.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Real::F16 | Real::BF16 => 16,
            Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => 32,
            Real::F64 => 64,
        }
    }

    /// The value as a double, exactly.
    #[inline]
    pub(crate) fn decode(self, bits: u64) -> f64 {
        match self {
            Real::F16 => f64::from(half_to_f32(bits)),
            Real::BF16 => f64::from(bf16_to_f32(bits)),
            Real::F32 | Real::F32Quiet => f64::from(f32_of(bits)),
            Real::F32Flush | Real::F32FlushQuiet => f64::from(flush(f32_of(bits))),
            Real::F64 => f64::from_bits(bits),
        }
    }

    /// The nearest value; exact or rounded-to-odd arguments round correctly.
    #[inline]
    pub(crate) fn encode(self, value: f64) -> u64 {
        match self {
            Real::F16 => F16.nearest(value),
            Real::BF16 => BF16.nearest(value),
            Real::F32 => of_f32(value as f32),
            Real::F32Flush | Real::F32FlushQuiet if is_tiny(value) => {
                of_f32(0f32.copysign(value as f32))
            }
            Real::F32Flush => of_f32(value as f32),
            Real::F32Quiet | Real::F32FlushQuiet => of_quiet_f32(value as f32),
            Real::F64 => value.to_bits(),
        }
    }
}

/// Whether a result is flushed where singles are: before it is rounded, as an H200 does, so that what rounds up to the
/// least normal number is flushed too.
pub(crate) fn is_tiny(value: f64) -> bool {
    value.abs() < f64::from(f32::MIN_POSITIVE)
}

/// Floating-point operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// The operand that is a number, if one is (`minnum`).
    MinNum,
    MaxNum,
    /// NaN if either is (`minimum`).
    Minimum,
    Maximum,
    CopySign,
}

/// minnum and maxnum order zeros by sign, as both vendors' hardware does.
fn min64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else if a < b {
        a
    } else {
        b
    }
}

fn max64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else if a == b {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

/// A result in bfloat: the single's result is right unless it is below the range where double rounding is harmless.
#[inline]
fn narrow_bf16(single: f32, exact: impl FnOnce() -> f64) -> u64 {
    if single.abs() > 1e-30 || single == 0.0 || single.is_nan() {
        f32_to_bf16(single)
    } else {
        BF16.nearest(exact())
    }
}

/// A [`Row2`] for each type from the expression in singles, in doubles, and (for bfloat) in odd-rounded doubles.
macro_rules! arithmetic {
    ($real:expr, |$a:ident, $b:ident| $e:expr, odd $odd:expr) => {
        match $real {
            Real::F16 => row2!(|x, y| {
                let ($a, $b) = (half_to_f32(x), half_to_f32(y));
                f32_to_half($e)
            }),
            Real::BF16 => row2!(|x, y| {
                let ($a, $b) = (bf16_to_f32(x), bf16_to_f32(y));
                narrow_bf16($e, || {
                    let ($a, $b) = (f64::from($a), f64::from($b));
                    $odd
                })
            }),
            Real::F32 => row2!(|x, y| {
                let ($a, $b) = (f32_of(x), f32_of(y));
                of_f32($e)
            }),
            Real::F32Flush => row2!(|x, y| {
                let ($a, $b) = (Real::F32Flush.decode(x), Real::F32Flush.decode(y));
                Real::F32Flush.encode($odd)
            }),
            Real::F32FlushQuiet => row2!(|x, y| {
                let ($a, $b) = (Real::F32FlushQuiet.decode(x), Real::F32FlushQuiet.decode(y));
                Real::F32FlushQuiet.encode($odd)
            }),
            Real::F32Quiet => row2!(|x, y| {
                let ($a, $b) = (f32_of(x), f32_of(y));
                of_quiet_f32($e)
            }),
            Real::F64 => row2!(|x, y| {
                let ($a, $b) = (f64::from_bits(x), f64::from_bits(y));
                ($e).to_bits()
            }),
        }
    };
}

/// A [`Row2`] for each type from an expression in doubles whose result is one of the operands or rounds correctly.
macro_rules! selection {
    ($real:expr, |$a:ident, $b:ident| $e:expr) => {
        match $real {
            Real::F16 => row2!(|x, y| {
                let ($a, $b) = (Real::F16.decode(x), Real::F16.decode(y));
                Real::F16.encode($e)
            }),
            Real::BF16 => row2!(|x, y| {
                let ($a, $b) = (Real::BF16.decode(x), Real::BF16.decode(y));
                Real::BF16.encode($e)
            }),
            Real::F32 => row2!(|x, y| {
                let ($a, $b) = (Real::F32.decode(x), Real::F32.decode(y));
                Real::F32.encode($e)
            }),
            Real::F32Flush => row2!(|x, y| {
                let ($a, $b) = (Real::F32Flush.decode(x), Real::F32Flush.decode(y));
                Real::F32Flush.encode($e)
            }),
            Real::F32FlushQuiet => row2!(|x, y| {
                let ($a, $b) = (Real::F32FlushQuiet.decode(x), Real::F32FlushQuiet.decode(y));
                Real::F32FlushQuiet.encode($e)
            }),
            Real::F32Quiet => row2!(|x, y| {
                let ($a, $b) = (Real::F32Quiet.decode(x), Real::F32Quiet.decode(y));
                Real::F32Quiet.encode($e)
            }),
            Real::F64 => row2!(|x, y| {
                let ($a, $b) = (f64::from_bits(x), f64::from_bits(y));
                ($e).to_bits()
            }),
        }
    };
}

/// The row function of a floating-point operation.
pub(crate) fn real_binary(op: RealOp, real: Real) -> Row2 {
    match op {
        RealOp::Add => arithmetic!(real, |a, b| a + b, odd add_odd(a, b)),
        RealOp::Sub => arithmetic!(real, |a, b| a - b, odd add_odd(a, -b)),
        RealOp::Mul => arithmetic!(real, |a, b| a * b, odd a * b),
        RealOp::Div => arithmetic!(real, |a, b| a / b, odd div_odd(a, b)),
        RealOp::Rem => selection!(real, |a, b| a % b),
        RealOp::MinNum => selection!(real, |a, b| min64(a, b)),
        RealOp::MaxNum => selection!(real, |a, b| max64(a, b)),
        RealOp::Minimum => {
            selection!(real, |a, b| if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                min64(a, b)
            })
        }
        RealOp::Maximum => {
            selection!(real, |a, b| if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                max64(a, b)
            })
        }
        RealOp::CopySign => match real.bits() {
            16 => row2!(|a, b| a & 0x7fff | b & 0x8000),
            32 => row2!(|a, b| a & 0x7fff_ffff | b & 0x8000_0000),
            _ => row2!(|a, b| a & (u64::MAX >> 1) | b & (1 << 63)),
        },
    }
}

/// Fused multiply-add, rounded once.
pub(crate) fn real_fma(real: Real) -> Row3 {
    match real {
        Real::F16 => row3!(|a, b, c| {
            let (x, y, z) = (
                Real::F16.decode(a),
                Real::F16.decode(b),
                Real::F16.decode(c),
            );
            F16.nearest(fma_odd(x, y, z))
        }),
        Real::BF16 => row3!(|a, b, c| {
            let (x, y, z) = (
                Real::BF16.decode(a),
                Real::BF16.decode(b),
                Real::BF16.decode(c),
            );
            BF16.nearest(fma_odd(x, y, z))
        }),
        Real::F32 => row3!(|a, b, c| of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c)))),
        Real::F32Flush => row3!(|a, b, c| {
            let [x, y, z] = [a, b, c].map(|bits| Real::F32Flush.decode(bits));
            Real::F32Flush.encode(fma_odd(x, y, z))
        }),
        Real::F32FlushQuiet => row3!(|a, b, c| {
            let [x, y, z] = [a, b, c].map(|bits| Real::F32FlushQuiet.decode(bits));
            Real::F32FlushQuiet.encode(fma_odd(x, y, z))
        }),
        Real::F32Quiet => {
            row3!(|a, b, c| of_quiet_f32(f32_of(a).mul_add(f32_of(b), f32_of(c))))
        }
        Real::F64 => row3!(|a, b, c| {
            f64::from_bits(a)
                .mul_add(f64::from_bits(b), f64::from_bits(c))
                .to_bits()
        }),
    }
}

/// An ordered or unordered comparison.
pub(crate) fn real_compare(predicate: RealPredicate, real: Real) -> Row2 {
    macro_rules! compare {
        (|$a:ident, $b:ident| $e:expr) => {
            match real {
                Real::F16 => row2!(|x, y| {
                    let ($a, $b) = (half_to_f32(x), half_to_f32(y));
                    u64::from($e)
                }),
                Real::BF16 => row2!(|x, y| {
                    let ($a, $b) = (bf16_to_f32(x), bf16_to_f32(y));
                    u64::from($e)
                }),
                Real::F32 | Real::F32Quiet => row2!(|x, y| {
                    let ($a, $b) = (f32_of(x), f32_of(y));
                    u64::from($e)
                }),
                Real::F32Flush | Real::F32FlushQuiet => row2!(|x, y| {
                    let ($a, $b) = (flush(f32_of(x)), flush(f32_of(y)));
                    u64::from($e)
                }),
                Real::F64 => row2!(|x, y| {
                    let ($a, $b) = (f64::from_bits(x), f64::from_bits(y));
                    u64::from($e)
                }),
            }
        };
    }
    use RealPredicate as P;
    match predicate {
        P::LLVMRealPredicateFalse => row2!(|_a, _b| 0),
        P::LLVMRealPredicateTrue => row2!(|_a, _b| 1),
        P::LLVMRealOEQ => compare!(|a, b| a == b),
        P::LLVMRealOGT => compare!(|a, b| a > b),
        P::LLVMRealOGE => compare!(|a, b| a >= b),
        P::LLVMRealOLT => compare!(|a, b| a < b),
        P::LLVMRealOLE => compare!(|a, b| a <= b),
        P::LLVMRealONE => compare!(|a, b| !a.is_nan() && !b.is_nan() && a != b),
        P::LLVMRealORD => compare!(|a, b| !a.is_nan() && !b.is_nan()),
        P::LLVMRealUNO => compare!(|a, b| a.is_nan() || b.is_nan()),
        P::LLVMRealUEQ => compare!(|a, b| a.is_nan() || b.is_nan() || a == b),
        P::LLVMRealUGT => compare!(|a, b| a.is_nan() || b.is_nan() || a > b),
        P::LLVMRealUGE => compare!(|a, b| a.is_nan() || b.is_nan() || a >= b),
        P::LLVMRealULT => compare!(|a, b| a.is_nan() || b.is_nan() || a < b),
        P::LLVMRealULE => compare!(|a, b| a.is_nan() || b.is_nan() || a <= b),
        P::LLVMRealUNE => compare!(|a, b| a.is_nan() || b.is_nan() || a != b),
    }
}

/// Changes the sign.
pub(crate) fn real_negate(real: Real) -> Row1 {
    match real.bits() {
        16 => row1!(|a| a ^ 0x8000),
        32 => row1!(|a| a ^ 0x8000_0000),
        _ => row1!(|a| a ^ 1 << 63),
    }
}

/// Clears the sign.
pub(crate) fn real_abs(real: Real) -> Row1 {
    match real.bits() {
        16 => row1!(|a| a & 0x7fff),
        32 => row1!(|a| a & 0x7fff_ffff),
        _ => row1!(|a| a & (u64::MAX >> 1)),
    }
}

/// Functions of one floating-point operand, computed in double precision and rounded to the type: the error is that
/// of the double function (below one unit in its last place) before one rounding, thus a little more than 0.5 ulp for
/// types up to single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealFunction {
    Sqrt,
    Rsqrt,
    Reciprocal,
    Exp,
    Exp2,
    Log,
    Log2,
    Log10,
    Sin,
    Cos,
    /// Sine of a fraction of a turn.
    SinTurns,
    /// Cosine of a fraction of a turn.
    CosTurns,
    Tanh,
    Floor,
    Ceil,
    Trunc,
    /// To the nearest integer, ties to even.
    RoundEven,
    /// To the nearest integer, ties away from zero.
    RoundAway,
    Canonicalize,
    /// `x - floor(x)`, below one.
    Fraction,
}

/// The row function of [`RealFunction`].
pub(crate) fn real_function(function: RealFunction, real: Real) -> Row1 {
    macro_rules! function {
        (|$a:ident| $e:expr) => {
            match real {
                Real::F16 => row1!(|x| {
                    let $a = Real::F16.decode(x);
                    Real::F16.encode($e)
                }),
                Real::BF16 => row1!(|x| {
                    let $a = Real::BF16.decode(x);
                    Real::BF16.encode($e)
                }),
                Real::F32 => row1!(|x| {
                    let $a = Real::F32.decode(x);
                    Real::F32.encode($e)
                }),
                Real::F32Flush => row1!(|x| {
                    let $a = Real::F32Flush.decode(x);
                    Real::F32Flush.encode($e)
                }),
                Real::F32FlushQuiet => row1!(|x| {
                    let $a = Real::F32FlushQuiet.decode(x);
                    Real::F32FlushQuiet.encode($e)
                }),
                Real::F32Quiet => row1!(|x| {
                    let $a = Real::F32Quiet.decode(x);
                    Real::F32Quiet.encode($e)
                }),
                Real::F64 => row1!(|x| {
                    let $a = f64::from_bits(x);
                    ($e).to_bits()
                }),
            }
        };
    }
    use RealFunction as R;
    match function {
        R::Sqrt => match real {
            Real::F64 => row1!(|a| f64::from_bits(a).sqrt().to_bits()),
            _ => function!(|a| sqrt_odd(a)),
        },
        R::Rsqrt => function!(|a| 1.0 / a.sqrt()),
        R::Reciprocal => match real {
            Real::F64 => row1!(|a| (1.0 / f64::from_bits(a)).to_bits()),
            _ => function!(|a| div_odd(1.0, a)),
        },
        R::Exp => function!(|a| a.exp()),
        R::Exp2 => function!(|a| a.exp2()),
        R::Log => function!(|a| a.ln()),
        R::Log2 => function!(|a| a.log2()),
        R::Log10 => function!(|a| a.log10()),
        R::Sin => function!(|a| a.sin()),
        R::Cos => function!(|a| a.cos()),
        R::SinTurns => function!(|a| (a.fract() * std::f64::consts::TAU).sin()),
        R::CosTurns => function!(|a| (a.fract() * std::f64::consts::TAU).cos()),
        R::Tanh => function!(|a| a.tanh()),
        R::Floor => function!(|a| a.floor()),
        R::Ceil => function!(|a| a.ceil()),
        R::Trunc => function!(|a| a.trunc()),
        R::RoundEven => function!(|a| a.round_ties_even()),
        R::RoundAway => function!(|a| a.round()),
        R::Canonicalize => function!(|a| a),
        R::Fraction => function!(|a| (a - a.floor()).min(1.0 - f64::from(f32::EPSILON) / 2.0)),
    }
}

/// From one floating-point type to another, to nearest even. Widening is exact.
pub(crate) fn real_convert(from: Real, to: Real) -> Row1 {
    macro_rules! convert {
        ($($f:ident $t:ident),+) => {
            match (from, to) {
                $((Real::$f, Real::$t) => row1!(|a| Real::$t.encode(Real::$f.decode(a))),)+
                (Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet, t) => real_convert(Real::F32, t),
                (Real::F16, Real::F32Quiet | Real::F32FlushQuiet) => row1!(|a| of_quiet_f32(half_to_f32(a))),
                (f, Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet) => real_convert(f, Real::F32),
                (Real::F16, Real::F32) => row1!(|a| of_f32(half_to_f32(a))),
                (Real::BF16, Real::F32) => row1!(|a| (a & 0xffff) << 16),
                (Real::F32, Real::F16) => row1!(|a| f32_to_half(f32_of(a))),
                (Real::F32, Real::BF16) => row1!(|a| f32_to_bf16(f32_of(a))),
                // NaN keeps the upper bits of its payload.
                (Real::F64, Real::F32) => {
                    row1!(|a| u64::from((f64::from_bits(a) as f32).to_bits()))
                }
                _ => COPY,
            }
        };
    }
    convert!(F16 F64, BF16 F64, F32 F64, F64 F16, F64 BF16, F16 BF16, BF16 F16)
}

/// A signed or unsigned integer (already extended to 64 bits) to floating point, to nearest even.
pub(crate) fn int_to_real(signed: bool, real: Real) -> Row1 {
    macro_rules! to_real {
        (|$a:ident| $value:expr) => {
            match real {
                // 64-bit integers are not exact in f64, so they round to odd on the way to a narrower type.
                Real::F16 => row1!(|$a| F16.nearest(odd_from($value))),
                Real::BF16 => row1!(|$a| BF16.nearest(odd_from($value))),
                Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => row1!(|$a| of_f32(($value) as f32)),
                Real::F64 => row1!(|$a| (($value) as f64).to_bits()),
            }
        };
    }
    if signed {
        to_real!(|a| i128::from(a as i64))
    } else {
        to_real!(|a| i128::from(a))
    }
}

/// An integer of at most 65 bits as a double rounded to odd.
fn odd_from(value: i128) -> f64 {
    let high = ((value >> 32) << 32) as f64;
    add_odd(high, (value & 0xffff_ffff) as f64)
}

/// Floating point to an integer of at most 64 bits, saturating, NaN to zero, after rounding in the given way. The
/// result is masked to `bits` by a constant row.
pub(crate) fn real_to_int(real: Real, signed: bool, rounding: Rounding) -> Row3 {
    macro_rules! to_int {
        ($real:expr, $round:ident) => {
            if signed {
                row3!(|a, max, mask| {
                    let x = $real.decode(a).$round();
                    let limit = max as i64;
                    ((x as i64).clamp(-limit - 1, limit)) as u64 & mask
                })
            } else {
                row3!(|a, max, mask| {
                    let x = $real.decode(a).$round();
                    (x as u64).min(max) & mask
                })
            }
        };
    }
    macro_rules! by_rounding {
        ($real:expr) => {
            match rounding {
                Rounding::Zero => to_int!($real, trunc),
                Rounding::NearestEven => to_int!($real, round_ties_even),
                Rounding::NearestAway => to_int!($real, round),
                Rounding::Up => to_int!($real, ceil),
                Rounding::Down => to_int!($real, floor),
            }
        };
    }
    match real {
        Real::F16 => by_rounding!(Real::F16),
        Real::BF16 => by_rounding!(Real::BF16),
        Real::F32 | Real::F32Quiet => by_rounding!(Real::F32),
        Real::F32Flush | Real::F32FlushQuiet => by_rounding!(Real::F32Flush),
        Real::F64 => by_rounding!(Real::F64),
    }
}
