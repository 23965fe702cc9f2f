//! Arithmetic and conversions of NVIDIA's intrinsics.
//!
//! Approximate functions (`ex2.approx`, `rsqrt.approx`, …) are computed accurately; hardware is allowed an error of
//! about 2 ulp (`ex2`, `rcp`, `rsqrt`, `sqrt`, `div.full`), or 2^-21 to 2^-10 absolute or relative for `lg2`, `sin`,
//! `cos`, `tanh` (PTX ISA, "Floating Point Instructions"). `.ftz` flushes subnormal singles on the way in and out.
//! Other rules of the manual are followed: `div.approx` gives zero for divisors beyond 2^126, and the approximations
//! of doubles use and give only the upper halves.

use crate::error::Decoded;
use crate::machine::bytecode::Slot;
use crate::machine::row::{
    self, IntOp, Real, RealFunction, RealOp, Row1, Row2, Row3, f32_of, of_f32, row1, row2, row3,
};
use crate::numbers::directed;
use crate::numbers::float::{BF16, E4M3, E5M2, F16, F32, Format, Rounding, TF32, div_odd};
use crate::translate::emit::Emitter;
use crate::translate::ir::RealPredicate;

use super::Invocation;

/// Direction of rounding by its PTX name, without an `i` for "to integer".
pub(crate) fn rounding(name: &str) -> Option<Rounding> {
    Some(match name {
        "rn" | "rni" => Rounding::NearestEven,
        "rna" => Rounding::NearestAway,
        "rz" | "rzi" => Rounding::Zero,
        "rp" | "rpi" => Rounding::Up,
        "rm" | "rmi" => Rounding::Down,
        _ => return None,
    })
}

/// Translates `llvm.nvvm.<name>`.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Vec<Slot>> {
    if let Some(slots) = integers(e, name, call)? {
        return Ok(slots);
    }
    if let Some(slots) = conversions(e, name, call)? {
        return Ok(slots);
    }
    let parts: Vec<&str> = name.split('.').collect();
    let (&op, modifiers) = parts.split_first().ok_or_else(|| call.unknown())?;
    let has = |wanted: &str| modifiers.contains(&wanted);
    let leaf = call
        .result
        .first()
        .and_then(|l| l.real)
        .ok_or_else(|| call.unknown())?;
    let real = if leaf == Real::F32 && has("ftz") {
        Real::F32Flush
    } else {
        leaf
    };
    let mode = modifiers
        .iter()
        .find_map(|m| rounding(m))
        .unwrap_or(Rounding::NearestEven);
    let function = Function {
        op,
        real,
        mode,
        ftz: has("ftz"),
        approximate: has("approx"),
        nan: has("nan"),
        xorsign: has("xorsign"),
    };
    let lanes = call.result.len();
    let mut results = Vec::new();
    for i in 0..lanes {
        let operand = |index: usize| -> Decoded<Slot> {
            let slots = &call.argument(index)?.slots;
            slots.get(i).copied().ok_or_else(|| call.unknown())
        };
        let mut result = match call.arguments.len() {
            1 => {
                let a = operand(0)?;
                let f = function.unary().ok_or_else(|| call.unknown())?;
                e.map1(f, a)
            }
            2 => {
                let (a, b) = (operand(0)?, operand(1)?);
                let f = function.binary().ok_or_else(|| call.unknown())?;
                e.map2(f, a, b)
            }
            3 => {
                let (a, b, c) = (operand(0)?, operand(1)?, operand(2)?);
                let f = function.ternary().ok_or_else(|| call.unknown())?;
                e.map3(f, a, b, c)
            }
            _ => return Err(call.unknown()),
        };
        if has("sat") {
            result = clamp_to_unit(e, real, result);
        }
        if has("relu") {
            result = rectify(e, real, result);
        }
        results.push(result);
    }
    Ok(results)
}

/// Clamps to [0, 1]; NaN becomes 0.
fn unit(x: f64) -> f64 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// Clamps to [0, 1]; NaN becomes 0.
pub(crate) fn clamp_to_unit(e: &mut Emitter<'_>, real: Real, a: Slot) -> Slot {
    let f: Row1 = match real {
        Real::F16 => row1!(|a| Real::F16.encode(unit(Real::F16.decode(a)))),
        Real::BF16 => row1!(|a| Real::BF16.encode(unit(Real::BF16.decode(a)))),
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
            row1!(|a| of_f32(unit(f64::from(f32_of(a))) as f32))
        }
        Real::F64 => row1!(|a| unit(f64::from_bits(a)).to_bits()),
    };
    e.map1(f, a)
}

/// Clamps negative values to zero; NaN stays.
pub(crate) fn rectify(e: &mut Emitter<'_>, real: Real, a: Slot) -> Slot {
    let f: Row1 = match real {
        Real::F16 => row1!(|a| if Real::F16.decode(a) < 0.0 || a == 0x8000 {
            0
        } else {
            a
        }),
        Real::BF16 => row1!(|a| if Real::BF16.decode(a) < 0.0 || a == 0x8000 {
            0
        } else {
            a
        }),
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
            row1!(|a| if f32_of(a) <= 0.0 { 0 } else { a })
        }
        Real::F64 => row1!(|a| if f64::from_bits(a) <= 0.0 { 0 } else { a }),
    };
    e.map1(f, a)
}

/// A floating-point instruction of PTX.
pub(crate) struct Function<'a> {
    /// Mnemonic: `add`, `fma`, `ex2`, …
    pub(crate) op: &'a str,
    pub(crate) real: Real,
    pub(crate) mode: Rounding,
    pub(crate) ftz: bool,
    /// The coarser of two approximations.
    pub(crate) approximate: bool,
    /// NaN operands give NaN.
    pub(crate) nan: bool,
    /// The sign is the exclusive or of the operands', the magnitude that of the smaller (larger) one.
    pub(crate) xorsign: bool,
}

impl Function<'_> {
    pub(crate) fn unary(&self) -> Option<Row1> {
        match (self.op, self.real) {
            ("ex2", Real::BF16) if self.ftz => return Some(EXP2_FLUSHED),
            ("rcp", Real::F64) if self.approximate => return Some(RECIPROCAL_OF_HALF),
            ("rsqrt", Real::F64) if self.approximate && self.ftz => return Some(RSQRT_OF_HALF),
            _ => {}
        }
        let function = match self.op {
            "ex2" => RealFunction::Exp2,
            "lg2" => RealFunction::Log2,
            "sin" => RealFunction::Sin,
            "cos" => RealFunction::Cos,
            "tanh" => RealFunction::Tanh,
            "rcp" if self.mode == Rounding::NearestEven => RealFunction::Reciprocal,
            "rsqrt" => RealFunction::Rsqrt,
            "sqrt" if self.mode == Rounding::NearestEven => RealFunction::Sqrt,
            "floor" => RealFunction::Floor,
            "ceil" => RealFunction::Ceil,
            "trunc" => RealFunction::Trunc,
            "round" => RealFunction::RoundEven,
            "fabs" | "abs" => return Some(self.absolute()),
            "neg" if self.real == Real::F32 => return Some(row1!(|a| of_f32(-f32_of(a)))),
            "neg" if self.real == Real::F32Flush => {
                return Some(row1!(|a| of_f32(-row::flush(f32_of(a)))));
            }
            "neg" => return Some(row::real_negate(self.real)),
            "saturate" => {
                return Some(match self.real {
                    Real::F64 => row1!(|a| unit(f64::from_bits(a)).to_bits()),
                    _ => row1!(|a| of_f32(unit(f64::from(f32_of(a))) as f32)),
                });
            }
            _ => return None,
        };
        Some(row::real_function(function, self.real))
    }

    fn absolute(&self) -> Row1 {
        match self.real {
            Real::F32 => row1!(|a| of_f32(f32_of(a).abs())),
            Real::F32Flush => row1!(|a| of_f32(row::flush(f32_of(a)).abs())),
            real => row::real_abs(real),
        }
    }

    pub(crate) fn binary(&self) -> Option<Row2> {
        if self.op == "div" && self.approximate {
            return match self.real {
                Real::F32 => Some(row2!(|a, b| divide(Real::F32, a, b))),
                Real::F32Flush => Some(row2!(|a, b| divide(Real::F32Flush, a, b))),
                _ => None,
            };
        }
        let op = match self.op {
            "add" => RealOp::Add,
            "sub" => RealOp::Sub,
            "mul" => RealOp::Mul,
            "div" => RealOp::Div,
            "fmin" | "min" if self.xorsign => {
                return Some(match self.real {
                    Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
                        row2!(|a, b| {
                            let sign = (a ^ b) & 0x8000_0000;
                            signed_magnitude(f32_of(a).abs().min(f32_of(b).abs()), sign)
                        })
                    }
                    _ => return None,
                });
            }
            "fmax" | "max" if self.xorsign => {
                return Some(match self.real {
                    Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
                        row2!(|a, b| {
                            let sign = (a ^ b) & 0x8000_0000;
                            signed_magnitude(f32_of(a).abs().max(f32_of(b).abs()), sign)
                        })
                    }
                    _ => return None,
                });
            }
            "fmin" | "min" => {
                if self.nan {
                    RealOp::Minimum
                } else {
                    RealOp::MinNum
                }
            }
            "fmax" | "max" => {
                if self.nan {
                    RealOp::Maximum
                } else {
                    RealOp::MaxNum
                }
            }
            "copysign" => RealOp::CopySign,
            _ => return None,
        };
        let arithmetic = matches!(op, RealOp::Add | RealOp::Sub | RealOp::Mul | RealOp::Div);
        if arithmetic && self.mode != Rounding::NearestEven {
            return match self.real {
                Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
                    directed::binary(op, self.mode, self.ftz)
                }
                _ => None,
            };
        }
        Some(row::real_binary(op, self.real))
    }

    pub(crate) fn ternary(&self) -> Option<Row3> {
        if !matches!(self.op, "fma" | "mad") {
            return None;
        }
        if self.mode == Rounding::NearestEven {
            return Some(row::real_fma(self.real));
        }
        match self.real {
            Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
                directed::fma(self.mode, self.ftz)
            }
            _ => None,
        }
    }
}

/// A magnitude with a sign; NaN has none.
fn signed_magnitude(magnitude: f32, sign: u64) -> u64 {
    of_f32(magnitude) | if magnitude.is_nan() { 0 } else { sign }
}

/// `div.approx`: a product with the divisor's reciprocal, which is flushed to zero where it is subnormal.
fn divide(real: Real, a: u64, b: u64) -> u64 {
    let (a, b) = (real.decode(a), real.decode(b));
    let inverse_is_subnormal = b.abs() > 2f64.powi(126) && b.is_finite();
    real.encode(if inverse_is_subnormal {
        a * 0f64.copysign(b)
    } else {
        div_odd(a, b)
    })
}

/// `ex2.approx.ftz.bf16`.
const EXP2_FLUSHED: Row1 = row1!(|a| {
    // The smallest normal number, which is the same as for singles.
    let flush = |x: f64| {
        if x.abs() < f64::from(f32::MIN_POSITIVE) {
            0f64.copysign(x)
        } else {
            x
        }
    };
    Real::BF16.encode(flush(flush(Real::BF16.decode(a)).exp2()))
});

/// `rcp.approx.ftz.f64`.
const RECIPROCAL_OF_HALF: Row1 = row1!(|a| of_upper_half(a, |a| 1.0 / a));

/// `rsqrt.approx.ftz.f64`.
const RSQRT_OF_HALF: Row1 = row1!(|a| of_upper_half(a, |a| 1.0 / a.sqrt()));

/// A function of a double's upper half; the lower half of the result is zero, and subnormal numbers are treated as
/// zero.
fn of_upper_half(a: u64, function: impl Fn(f64) -> f64) -> u64 {
    let upper = |bits: u64| bits & !0xffff_ffff;
    let flush = |bits: u64| {
        let sign = 1 << 63;
        if f64::from_bits(bits).is_subnormal() {
            bits & sign
        } else {
            bits
        }
    };
    let result = function(f64::from_bits(flush(upper(a))));
    if result.is_nan() {
        return row::NAN_F32 << 32;
    }
    // An H200's result is within one unit of this.
    flush(upper(result.to_bits()))
}

fn integers(e: &mut Emitter<'_>, name: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    let binary = |op: IntOp, bits: u32, e: &mut Emitter<'_>| -> Decoded<Option<Vec<Slot>>> {
        let (a, b) = (call.scalar(0)?, call.scalar(1)?);
        Ok(Some(vec![e.int_binary(op, bits, a, b)]))
    };
    match name {
        "mulhi.i" => return binary(IntOp::MulHiS, 32, e),
        "mulhi.ui" => return binary(IntOp::MulHiU, 32, e),
        "mulhi.ll" => return binary(IntOp::MulHiS, 64, e),
        "mulhi.ull" => return binary(IntOp::MulHiU, 64, e),
        "mulhi.s" => return binary(IntOp::MulHiS, 16, e),
        "mulhi.us" => return binary(IntOp::MulHiU, 16, e),
        _ => {}
    }
    Ok(Some(match name {
        "prmt" => {
            let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
            vec![e.map3(PERMUTE_BYTES, a, b, c)]
        }
        "mul24.i" => {
            let (a, b) = (call.scalar(0)?, call.scalar(1)?);
            vec![e.map2(
                row2!(|a, b| (row::sext(a, 24) * row::sext(b, 24)) as u64 & 0xffff_ffff),
                a,
                b,
            )]
        }
        "mul24.ui" => {
            let (a, b) = (call.scalar(0)?, call.scalar(1)?);
            vec![e.map2(
                row2!(|a, b| ((a & 0xff_ffff) * (b & 0xff_ffff)) & 0xffff_ffff),
                a,
                b,
            )]
        }
        "sad.i" => {
            let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
            let f =
                row3!(|a, b, c| (c + row::sext(a, 32).abs_diff(row::sext(b, 32))) & 0xffff_ffff);
            vec![e.map3(f, a, b, c)]
        }
        "sad.ui" => {
            let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
            vec![e.map3(row3!(|a, b, c| (c + a.abs_diff(b)) & 0xffff_ffff), a, b, c)]
        }
        "idp4a.s.s" | "idp4a.u.u" | "idp4a.s.u" | "idp4a.u.s" => {
            let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
            let f = dot4(
                name.ends_with("s.s") || name.contains(".s."),
                name.ends_with(".s"),
            );
            vec![e.map3(f, a, b, c)]
        }
        "d2i.lo" => {
            let a = call.scalar(0)?;
            vec![e.truncate(a, 32)]
        }
        "d2i.hi" => {
            let a = call.scalar(0)?;
            vec![e.extract(a, 32, 32)]
        }
        "lohi.i2d" => {
            let (low, high) = (call.scalar(0)?, call.scalar(1)?);
            vec![e.pack(&[low, high], 32)]
        }
        _ => return Ok(None),
    }))
}

/// Sum of products of four bytes and a third operand.
pub(crate) fn dot4(a_signed: bool, b_signed: bool) -> Row3 {
    macro_rules! dot {
        ($a:expr, $b:expr) => {
            row3!(|a, b, c| {
                (0..4).fold(c, |sum, i| {
                    let x = $a(a >> (8 * i) & 0xff);
                    let y = $b(b >> (8 * i) & 0xff);
                    sum.wrapping_add((x * y) as u64)
                }) & 0xffff_ffff
            })
        };
    }
    fn signed(x: u64) -> i64 {
        row::sext(x, 8)
    }
    fn unsigned(x: u64) -> i64 {
        x as i64
    }
    match (a_signed, b_signed) {
        (true, true) => dot!(signed, signed),
        (true, false) => dot!(signed, unsigned),
        (false, true) => dot!(unsigned, signed),
        (false, false) => dot!(unsigned, unsigned),
    }
}

/// `prmt`: each nibble of the selector picks one of eight bytes, or its sign replicated.
pub(crate) const PERMUTE_BYTES: Row3 = row3!(|a, b, selector| {
    let bytes = a & 0xffff_ffff | b << 32;
    (0..4).fold(0, |result, i| {
        let nibble = selector >> (4 * i) & 15;
        let byte = bytes >> (8 * (nibble & 7)) & 0xff;
        let byte = if nibble & 8 != 0 {
            (byte >> 7) * 0xff
        } else {
            byte
        };
        result | byte << (8 * i)
    })
});

/// Encodes to one of the packed formats, saturating.
fn encode_saturated(format: Format, value: f64) -> u64 {
    format.encode(value, Rounding::NearestEven, true)
}

/// `cvt` from floating point to an integer: saturating; NaN gives zero, or the top bit alone if the source or the result
/// has 64 bits (PTX ISA, `cvt`).
pub(crate) fn to_integer(
    e: &mut Emitter<'_>,
    real: Real,
    signed: bool,
    bits: u32,
    mode: Rounding,
    a: Slot,
) -> Slot {
    let max = e.constant(row::mask(bits - u32::from(signed)));
    let low = e.constant(row::mask(bits));
    let result = e.map3(row::real_to_int(real, signed, mode), a, max, low);
    if real != Real::F64 && bits != 64 {
        return result;
    }
    let is_nan = e.map2(row::real_compare(RealPredicate::LLVMRealUNO, real), a, a);
    let top = e.constant(1 << (bits - 1));
    e.select(is_nan, top, result)
}

/// Conversions between types of numbers.
fn conversions(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    let parts: Vec<&str> = name.split('.').collect();
    let has = |wanted: &str| parts.contains(&wanted);
    let mode = parts
        .iter()
        .find_map(|m| rounding(m))
        .unwrap_or(Rounding::NearestEven);
    let to_int = from_real_name(parts[0]);
    if let Some((real, signed, bits)) =
        to_int.filter(|_| parts.len() > 1 && rounding(parts[1]).is_some())
    {
        let real = if has("ftz") { Real::F32Flush } else { real };
        let a = call.scalar(0)?;
        return Ok(Some(vec![to_integer(e, real, signed, bits, mode, a)]));
    }
    let from_int = from_integer_name(parts[0]);
    if let Some((signed, bits, real)) = from_int.filter(|_| mode == Rounding::NearestEven) {
        let a = call.scalar(0)?;
        let wide = if signed { e.sign_extend(a, bits) } else { a };
        return Ok(Some(vec![e.map1(row::int_to_real(signed, real), wide)]));
    }
    let narrow = narrow_row(parts[0], mode);
    if let Some(f) = narrow {
        let a = call.scalar(0)?;
        return Ok(Some(vec![e.map1(f, a)]));
    }
    // One single, or two, the first for the high half; `relu` clamps before the rounding.
    let narrowing: Option<fn(bool, bool) -> Row1> = match (parts[0], mode) {
        ("f2f16" | "ff2f16x2", Rounding::NearestEven | Rounding::Zero) => Some(narrowing::<0>),
        ("f2bf16" | "ff2bf16x2", Rounding::NearestEven | Rounding::Zero) => Some(narrowing::<1>),
        ("f2tf32", Rounding::NearestEven | Rounding::Zero) => Some(narrowing::<2>),
        _ => None,
    };
    if let Some(narrowing) = narrowing {
        let f = narrowing(mode == Rounding::Zero, has("satfinite"));
        let arguments = if parts[0].starts_with("ff") { 2 } else { 1 };
        let mut results = Vec::with_capacity(arguments);
        for i in (0..arguments).rev() {
            let a = call.scalar(i)?;
            let a = if has("relu") {
                rectify(e, Real::F32, a)
            } else {
                a
            };
            results.push(e.map1(f, a));
        }
        return Ok(Some(results));
    }
    pairs_of_bytes(e, name, call)
}

/// A conversion from a float to an integer: the type, whether the integer is signed, and its bits.
fn from_real_name(name: &str) -> Option<(Real, bool, u32)> {
    match name {
        "f2i" => Some((Real::F32, true, 32)),
        "f2ui" => Some((Real::F32, false, 32)),
        "f2ll" => Some((Real::F32, true, 64)),
        "f2ull" => Some((Real::F32, false, 64)),
        "d2i" => Some((Real::F64, true, 32)),
        "d2ui" => Some((Real::F64, false, 32)),
        "d2ll" => Some((Real::F64, true, 64)),
        "d2ull" => Some((Real::F64, false, 64)),
        _ => None,
    }
}

/// A conversion from an integer to a float: whether the integer is signed, its bits, and the type.
fn from_integer_name(name: &str) -> Option<(bool, u32, Real)> {
    match name {
        "i2f" => Some((true, 32, Real::F32)),
        "ui2f" => Some((false, 32, Real::F32)),
        "ll2f" => Some((true, 64, Real::F32)),
        "ull2f" => Some((false, 64, Real::F32)),
        "i2d" => Some((true, 32, Real::F64)),
        "ui2d" => Some((false, 32, Real::F64)),
        "ll2d" => Some((true, 64, Real::F64)),
        "ull2d" => Some((false, 64, Real::F64)),
        _ => None,
    }
}

/// A conversion of a float to a narrower type.
fn narrow_row(name: &str, mode: Rounding) -> Option<Row1> {
    match (name, mode) {
        ("d2f", Rounding::NearestEven) => Some(row::real_convert(Real::F64, Real::F32)),
        ("d2f", Rounding::Zero) => Some(row1!(|a| F32.encode(
            f64::from_bits(a),
            Rounding::Zero,
            false
        ))),
        ("d2f", Rounding::Up) => Some(row1!(|a| F32.encode(
            f64::from_bits(a),
            Rounding::Up,
            false
        ))),
        ("d2f", Rounding::Down) => Some(row1!(|a| F32.encode(
            f64::from_bits(a),
            Rounding::Down,
            false
        ))),
        ("f2h", Rounding::NearestEven) => Some(row::real_convert(Real::F32, Real::F16)),
        ("f2tf32", Rounding::NearestAway) => Some(ROUND_TF32),
        _ => None,
    }
}

/// Conversions to and from pairs of floats of eight bits.
fn pairs_of_bytes(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    Ok(Some(match name {
        "ff.to.e4m3x2.rn" | "ff.to.e5m2x2.rn" => {
            let (high, low) = (call.scalar(0)?, call.scalar(1)?);
            let f: Row2 = if name.contains("e4m3") {
                row2!(|h, l| encode_saturated(E4M3, Real::F32.decode(h)) << 8
                    | encode_saturated(E4M3, Real::F32.decode(l)))
            } else {
                row2!(|h, l| encode_saturated(E5M2, Real::F32.decode(h)) << 8
                    | encode_saturated(E5M2, Real::F32.decode(l)))
            };
            vec![e.map2(f, high, low)]
        }
        "f16x2.to.e4m3x2.rn" | "f16x2.to.e5m2x2.rn" => {
            let halves = &call.argument(0)?.slots;
            let (&low, &high) = (
                halves.first().ok_or_else(|| call.unknown())?,
                halves.get(1).ok_or_else(|| call.unknown())?,
            );
            let f: Row2 = if name.contains("e4m3") {
                row2!(|h, l| encode_saturated(E4M3, Real::F16.decode(h)) << 8
                    | encode_saturated(E4M3, Real::F16.decode(l)))
            } else {
                row2!(|h, l| encode_saturated(E5M2, Real::F16.decode(h)) << 8
                    | encode_saturated(E5M2, Real::F16.decode(l)))
            };
            vec![e.map2(f, high, low)]
        }
        "e4m3x2.to.f16x2.rn" | "e5m2x2.to.f16x2.rn" => {
            let pair = call.scalar(0)?;
            let f: Row1 = if name.contains("e4m3") {
                row1!(|a| F16.nearest(E4M3.decode(a & 0xff)))
            } else {
                row1!(|a| F16.nearest(E5M2.decode(a & 0xff)))
            };
            let high = e.extract(pair, 8, 8);
            vec![e.map1(f, pair), e.map1(f, high)]
        }
        _ => return Ok(None),
    }))
}

/// The narrower formats of singles, and the left shift of their codes.
const NARROW: [(Format, u32); 3] = [(F16, 0), (BF16, 0), (TF32, 13)];

/// Rounds a single to `NARROW[F]`: to nearest even or towards zero, to infinity beyond the largest number (to the
/// largest with `saturate`).
fn narrowing<const F: usize>(zero: bool, saturate: bool) -> Row1 {
    fn encode<const F: usize>(a: u64, rounding: Rounding, saturate: bool) -> u64 {
        let (format, shift) = NARROW[F];
        format.encode(Real::F32.decode(a), rounding, saturate) << shift
    }
    match (zero, saturate) {
        (false, false) => row1!(|a| encode::<F>(a, Rounding::NearestEven, false)),
        (false, true) => row1!(|a| encode::<F>(a, Rounding::NearestEven, true)),
        (true, false) => row1!(|a| encode::<F>(a, Rounding::Zero, false)),
        (true, true) => row1!(|a| encode::<F>(a, Rounding::Zero, true)),
    }
}

/// Rounds a single to the ten bits of mantissa that the matrix unit reads, ties away from zero.
pub(crate) const ROUND_TF32: Row1 = row1!(|a| {
    if a & 0x7f80_0000 == 0x7f80_0000 {
        a & 0xffff_e000
    } else {
        (a + 0x1000) & 0xffff_e000
    }
});
