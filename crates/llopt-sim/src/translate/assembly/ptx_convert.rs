//! PTX's moves and conversions: `mov`, `cvt`, `prmt` and similar ones.
//!
//! Conversions round the exact value as the suffix specifies; `.satfinite` clamps to the largest finite value, as
//! conversions to FP8 always do. NaN converts to the format's NaN, to zero for integers.

use crate::error::Decoded;
use crate::machine::bytecode::Slot;
use crate::machine::row::{self, Real, Row1, mask, row1};
use crate::numbers::float::{BF16, E4M3, E5M2, F16, F32, Format, Rounding};
use crate::translate::intrinsics::{
    PERMUTE_BYTES, ROUND_TF32, clamp_to_unit, rectify, rounding, to_integer,
};
use crate::translate::ir::RealPredicate;

use super::ptx_operands::{Kind, Translator, Type, unknown};
use super::ptx_parse::Instruction;

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let modifiers: Vec<&str> = i.opcode[1..].iter().map(String::as_str).collect();
    match i.opcode[0].as_str() {
        "mov" => {
            let ([ty], [d, a]) = (&modifiers[..], &i.operands[..]) else {
                return Err(unknown(i));
            };
            let ty = Type::parse(ty).ok_or_else(|| unknown(i))?;
            let value = t.read_typed(a, ty)?;
            t.write(d, value, ty.register_bits())?;
        }
        "cvt" => convert(t, i, &modifiers)?,
        "prmt" => {
            let (["b32"], [d, a, b, c]) = (&modifiers[..], &i.operands[..]) else {
                return Err(unknown(i));
            };
            let (a, b, c) = (t.read(a, 32)?, t.read(b, 32)?, t.read(c, 32)?);
            let result = t.e.map3(PERMUTE_BYTES, a, b, c);
            t.write(d, result, 32)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Encoders to 16-bit formats in each direction of rounding, from a type.
fn narrow(from: Real, to: Format, mode: Rounding, saturate: bool) -> Option<Row1> {
    macro_rules! by_mode {
        ($decode:expr, $format:expr) => {
            match (mode, saturate) {
                (Rounding::NearestEven, false) => {
                    row1!(|a| $format.encode($decode(a), Rounding::NearestEven, false))
                }
                (Rounding::NearestEven, true) => {
                    row1!(|a| $format.encode($decode(a), Rounding::NearestEven, true))
                }
                (Rounding::Zero, false) => {
                    row1!(|a| $format.encode($decode(a), Rounding::Zero, false))
                }
                (Rounding::Zero, true) => {
                    row1!(|a| $format.encode($decode(a), Rounding::Zero, true))
                }
                (Rounding::Up, false) => row1!(|a| $format.encode($decode(a), Rounding::Up, false)),
                (Rounding::Down, false) => {
                    row1!(|a| $format.encode($decode(a), Rounding::Down, false))
                }
                _ => return None,
            }
        };
    }
    macro_rules! by_source {
        ($format:expr) => {
            match from {
                Real::F16 => by_mode!(|a| Real::F16.decode(a), $format),
                Real::BF16 => by_mode!(|a| Real::BF16.decode(a), $format),
                Real::F32 | Real::F32Quiet => by_mode!(|a| Real::F32.decode(a), $format),
                Real::F32Flush | Real::F32FlushQuiet => {
                    by_mode!(|a| Real::F32Flush.decode(a), $format)
                }
                Real::F64 => by_mode!(f64::from_bits, $format),
            }
        };
    }
    Some(match to {
        F16 => by_source!(F16),
        BF16 => by_source!(BF16),
        F32 => by_source!(F32),
        E4M3 => by_source!(E4M3),
        E5M2 => by_source!(E5M2),
        _ => return None,
    })
}

/// A packed format of eight bits by its PTX name.
fn small_format(name: &str) -> Option<Format> {
    match name {
        "e4m3x2" => Some(E4M3),
        "e5m2x2" => Some(E5M2),
        _ => None,
    }
}

/// The rounding of a conversion, and its treatment of numbers that do not fit.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// The direction, and whether the result is integral.
    mode: Option<(Rounding, bool)>,
    ftz: bool,
    sat: bool,
    satfinite: bool,
    relu: bool,
}

impl Manner {
    /// The manner that the modifiers before the types name.
    fn of(flags: &[&str]) -> Option<Self> {
        let mut manner = Self::default();
        for flag in flags {
            match *flag {
                "ftz" => manner.ftz = true,
                "sat" => manner.sat = true,
                "satfinite" => manner.satfinite = true,
                "relu" => manner.relu = true,
                other => manner.mode = Some((rounding(other)?, other.ends_with('i'))),
            }
        }
        Some(manner)
    }
}

/// `cvt`.
fn convert(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let error = || unknown(i);
    let [flags @ .., to, from] = modifiers else {
        return Err(error());
    };
    let manner = Manner::of(flags).ok_or_else(error)?;
    if *to == "tf32" {
        return to_tf32(t, i, manner);
    }
    if let Some(format) = small_format(to) {
        return to_small(t, i, format, from, manner.relu);
    }
    if let Some(format) = small_format(from) {
        return from_small(t, i, format, to, manner.relu);
    }
    let (to, from) = (
        Type::parse(to).ok_or_else(error)?,
        Type::parse(from).ok_or_else(error)?,
    );
    if to.packed {
        return to_pair(t, i, to, from, manner);
    }
    let [d, a] = &i.operands[..] else {
        return Err(error());
    };
    let a = t.read_typed(a, from)?;
    let (real_to, real_from) = (to.real(manner.ftz), from.real(manner.ftz));
    let result = match (real_from, real_to) {
        (None, None) => between_integers(t, a, from, to, manner.sat),
        (Some(real), None) => {
            if to.bits > 64 || to.kind == Kind::Predicate {
                return Err(error());
            }
            let signed = to.is_signed();
            let direction = manner.mode.map_or(Rounding::Zero, |m| m.0);
            to_integer(t.e, real, signed, to.bits, direction, a)
        }
        (None, Some(real)) => {
            if manner.mode.is_some_and(|m| m.0 != Rounding::NearestEven) {
                return Err(error());
            }
            let wide = if from.is_signed() {
                t.e.sign_extend(a, from.bits)
            } else {
                a
            };
            t.e.map1(row::int_to_real(from.is_signed(), real), wide)
        }
        (Some(source), Some(target)) => {
            between_reals(t, a, source, target, manner).ok_or_else(error)?
        }
    };
    t.write_extended(d, result, to)
}

/// A single as TF32.
fn to_tf32(t: &mut Translator<'_, '_>, i: &Instruction, manner: Manner) -> Decoded<()> {
    let error = || unknown(i);
    let [d, a] = &i.operands[..] else {
        return Err(error());
    };
    let a = t.read(a, 32)?;
    let f: Row1 = match manner.mode {
        Some((Rounding::NearestAway, _)) => ROUND_TF32,
        Some((Rounding::NearestEven, _)) => {
            row1!(|a| crate::numbers::float::TF32.nearest(Real::F32.decode(a)) << 13)
        }
        Some((Rounding::Zero, _)) => row1!(|a| a & 0xffff_e000),
        _ => return Err(error()),
    };
    let result = t.e.map1(f, a);
    t.write(d, result, 32)
}

/// Two numbers as a pair of bytes.
fn to_small(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    format: Format,
    from: &str,
    relu: bool,
) -> Decoded<()> {
    let error = || unknown(i);
    // Two values to a pair of bytes; the first operand is the upper one.
    let pair = match (from, &i.operands[..]) {
        ("f32", [_, high, low]) => (t.read(high, 32)?, t.read(low, 32)?, Real::F32),
        ("f16x2" | "bf16x2", [_, both]) => {
            let both = t.read(both, 32)?;
            let halves = t.e.unpack(both, 16, 2);
            (
                halves[1],
                halves[0],
                if from == "f16x2" {
                    Real::F16
                } else {
                    Real::BF16
                },
            )
        }
        _ => return Err(error()),
    };
    let f = narrow(pair.2, format, Rounding::NearestEven, true).ok_or_else(error)?;
    let (mut high, mut low) = (pair.0, pair.1);
    if relu {
        high = rectify(t.e, pair.2, high);
        low = rectify(t.e, pair.2, low);
    }
    let (high, low) = (t.e.map1(f, high), t.e.map1(f, low));
    let packed = t.e.pack(&[low, high], 8);
    t.write(&i.operands[0], packed, 16)
}

/// A pair of bytes as two halves.
fn from_small(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    format: Format,
    to: &str,
    relu: bool,
) -> Decoded<()> {
    let error = || unknown(i);
    let [d, a] = &i.operands[..] else {
        return Err(error());
    };
    let a = t.read(a, 16)?;
    let bytes = t.e.unpack(a, 8, 2);
    let f: Row1 = match (format, to) {
        (E4M3, "f16x2") => row1!(|a| F16.nearest(E4M3.decode(a))),
        (E5M2, "f16x2") => row1!(|a| F16.nearest(E5M2.decode(a))),
        (E4M3, "bf16x2") => row1!(|a| BF16.nearest(E4M3.decode(a))),
        (E5M2, "bf16x2") => row1!(|a| BF16.nearest(E5M2.decode(a))),
        _ => return Err(error()),
    };
    let mut halves: Vec<Slot> = bytes.into_iter().map(|b| t.e.map1(f, b)).collect();
    if relu {
        halves = halves
            .into_iter()
            .map(|h| rectify(t.e, Real::F16, h))
            .collect();
    }
    let packed = t.e.pack(&halves, 16);
    t.write(d, packed, 32)
}

/// Two singles as a pair of halves.
fn to_pair(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    to: Type,
    from: Type,
    manner: Manner,
) -> Decoded<()> {
    let error = || unknown(i);
    let ([d, high, low], Some(real), 32) = (&i.operands[..], to.real(false), from.bits) else {
        return Err(error());
    };
    let format = if real == Real::F16 { F16 } else { BF16 };
    let direction = manner.mode.map_or(Rounding::NearestEven, |m| m.0);
    let source = if manner.ftz {
        Real::F32Flush
    } else {
        Real::F32
    };
    let f = narrow(source, format, direction, manner.satfinite).ok_or_else(error)?;
    let mut halves = Vec::new();
    for operand in [low, high] {
        let value = t.read(operand, 32)?;
        let value = t.e.map1(f, value);
        halves.push(if manner.relu {
            rectify(t.e, real, value)
        } else {
            value
        });
    }
    let packed = t.e.pack(&halves, 16);
    t.write(d, packed, 32)
}

/// An integer as another one, clamped with `.sat`.
fn between_integers(t: &mut Translator<'_, '_>, a: Slot, from: Type, to: Type, sat: bool) -> Slot {
    let wide = if from.is_signed() {
        t.e.sign_extend(a, from.bits)
    } else {
        a
    };
    if sat {
        let (low, high) = if to.is_signed() {
            (-(1i64 << (to.bits - 1)), (1i64 << (to.bits - 1)) - 1)
        } else {
            (0, mask(to.bits).min(i64::MAX as u64) as i64)
        };
        let (low, high) = (t.e.constant(low as u64), t.e.constant(high as u64));
        let op = |t: &mut Translator<'_, '_>, op, x, y| t.e.int_binary(op, 64, x, y);
        let clamped = op(t, row::IntOp::SMax, wide, low);
        let clamped = op(t, row::IntOp::SMin, clamped, high);
        t.e.truncate(clamped, to.bits)
    } else {
        t.e.truncate(wide, to.bits)
    }
}

/// A floating-point number as another one.
fn between_reals(
    t: &mut Translator<'_, '_>,
    a: Slot,
    source: Real,
    target: Real,
    manner: Manner,
) -> Option<Slot> {
    let Manner {
        mode,
        sat,
        satfinite,
        relu,
        ..
    } = manner;
    let to_integral = mode.is_some_and(|m| m.1);
    let mut value = a;
    if source == Real::F64 && target == Real::F32Flush {
        // A result that is tiny as a single is flushed before it is rounded.
        let flush = row1!(|a| {
            let x = f64::from_bits(a);
            if x.abs() < f64::from(f32::MIN_POSITIVE) {
                0f64.copysign(x).to_bits()
            } else {
                a
            }
        });
        value = t.e.map1(flush, value);
    }
    if to_integral {
        let function = match mode.map(|m| m.0) {
            Some(Rounding::Zero) => row::RealFunction::Trunc,
            Some(Rounding::Up) => row::RealFunction::Ceil,
            Some(Rounding::Down) => row::RealFunction::Floor,
            _ => row::RealFunction::RoundEven,
        };
        value = t.e.map1(row::real_function(function, source), value);
    }
    let widens = target.bits() >= source.bits()
        && !(source == Real::F16 && target == Real::BF16)
        && !(source == Real::BF16 && target == Real::F16);
    let converted = if widens {
        if source == target {
            value
        } else {
            t.e.map1(row::real_convert(source, target), value)
        }
    } else {
        let format = match target {
            Real::F16 => F16,
            Real::BF16 => BF16,
            _ => F32,
        };
        let direction = mode.filter(|m| !m.1).map_or(Rounding::NearestEven, |m| m.0);
        let f = narrow(source, format, direction, satfinite)?;
        let narrowed = t.e.map1(f, value);
        if source == Real::F64 && target.bits() == 32 {
            let unordered = row::real_compare(RealPredicate::LLVMRealUNO, source);
            let is_nan = t.e.map2(unordered, value, value);
            let kept = t.e.map1(row::real_convert(source, Real::F32), value);
            t.e.select(is_nan, kept, narrowed)
        } else {
            narrowed
        }
    };
    let converted = if sat {
        clamp_to_unit(t.e, target, converted)
    } else {
        converted
    };
    Some(if relu {
        rectify(t.e, target, converted)
    } else {
        converted
    })
}
