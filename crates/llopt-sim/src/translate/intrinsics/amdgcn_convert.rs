//! AMD's packed conversions: to and from FP8, `cvt.pkrtz`, and the scaled forms of CDNA4, which also support FP4.
//!
//! The FP8 formats that the names `fp8` and `bf8` denote depend on the chip: CDNA3 has the formats without infinities
//! and negative zero (FNUZ), later chips those of the OCP. Overflow gives NaN or infinity, or, after the kernel has
//! set the mode bit, the largest finite value. A scale is a power of two, the exponent of a single; decoding
//! multiplies by it.

use llopt_target::Feature;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::Slot;
use crate::machine::row::{self, Real, Row1, row1, row2, row3};
use crate::numbers::float::{BF16, E2M1, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, F16, Format, Rounding};
use crate::translate::emit::Emitter;

use super::Invocation;

/// FP8 format behind a name on the target.
fn format(e: &Emitter<'_>, name: &str) -> Option<Format> {
    let fnuz = e.target.has(Feature::Fp8FnuzConvert);
    Some(match (name, fnuz) {
        ("fp8", true) => E4M3_FNUZ,
        ("fp8", false) => E4M3,
        ("bf8", true) => E5M2_FNUZ,
        ("bf8", false) => E5M2,
        _ => return None,
    })
}

/// Encoder from doubles.
fn encoder(format: Format, clamp: bool) -> Option<Row1> {
    macro_rules! encode {
        ($($format:ident),+) => {
            match (format, clamp) {
                $(($format, false) => row1!(|a| $format.encode(f64::from_bits(a), Rounding::NearestEven, false)),
                ($format, true) => row1!(|a| $format.encode(f64::from_bits(a), Rounding::NearestEven, true)),)+
                _ => return None,
            }
        };
    }
    Some(encode!(E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ))
}

/// Decoder to doubles.
fn decoder(format: Format) -> Option<Row1> {
    macro_rules! decode {
        ($($format:ident),+) => {
            match format {
                $($format => row1!(|a| $format.decode(a & 0xff).to_bits()),)+
                _ => return None,
            }
        };
    }
    Some(decode!(E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ, E2M1))
}

/// Bits of 1.0.
const ONE: u64 = 0x3f80_0000;

/// Translates `llvm.amdgcn.<name>` if it is a conversion.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    let Some(rest) = name.strip_prefix("cvt.") else {
        return Ok(None);
    };
    let parts: Vec<&str> = rest.split('.').collect();
    let error = || call.unknown();
    Ok(Some(match parts[..] {
        ["pkrtz"] => {
            let f = row1!(|a| F16.encode(Real::F32.decode(a), Rounding::Zero, false));
            let (a, b) = (call.scalar(0)?, call.scalar(1)?);
            vec![e.map1(f, a), e.map1(f, b)]
        }
        ["pk", to @ ("fp8" | "bf8"), "f32"] => {
            let format = format(e, to).ok_or_else(error)?;
            let (a, b, old) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
            let pair = encode_pair(e, format, &[a, b], Real::F32).ok_or_else(error)?;
            vec![insert_word(e, old, pair, call.constant(3)? != 0)]
        }
        ["pk", "f32", from @ ("fp8" | "bf8")] => {
            let format = format(e, from).ok_or_else(error)?;
            let shift = if call.constant(1)? != 0 { 16 } else { 0 };
            let source = call.scalar(0)?;
            let mut result = Vec::new();
            for i in 0..2 {
                let byte = e.extract(source, shift + 8 * i, 8);
                let value = e.map1(decoder(format).ok_or_else(error)?, byte);
                result.push(e.map1(row::real_convert(Real::F64, Real::F32), value));
            }
            result
        }
        ["f32", from @ ("fp8" | "bf8")] => {
            let format = format(e, from).ok_or_else(error)?;
            let source = call.scalar(0)?;
            let byte = e.extract(source, 8 * (call.constant(1)? as u32 & 3), 8);
            let value = e.map1(decoder(format).ok_or_else(error)?, byte);
            vec![e.map1(row::real_convert(Real::F64, Real::F32), value)]
        }
        [
            "scalef32",
            "pk",
            to @ ("fp8" | "bf8"),
            "f32" | "f16" | "bf16",
        ] => to_scaled(e, to, call)?,
        [
            "scalef32",
            "pk",
            "f32" | "f16" | "bf16",
            from @ ("fp8" | "bf8" | "fp4"),
        ] => from_scaled(e, from, call)?,
        ["pknorm", ..] | ["pk", "u16" | "i16" | "u8", ..] => return Err(error()),
        ["pk", "bf16", "f32"] => {
            let f = row1!(|a| BF16.nearest(Real::F32.decode(a)));
            let (a, b) = (call.scalar(0)?, call.scalar(1)?);
            vec![e.map1(f, a), e.map1(f, b)]
        }
        _ => return Err(error()),
    }))
}

/// Converts to a pair of bytes in one half of a word. The operands are the old pair of words, the value or values,
/// the scale, and whether it is the upper word.
fn to_scaled(e: &mut Emitter<'_>, to: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let error = || call.unknown();
    let format = format(e, to).ok_or_else(error)?;
    let values: Vec<usize> = (1..call.arguments.len() - 2).collect();
    let scale = call.arguments.len() - 2;
    if call.constant(scale)? != ONE {
        return Err(Unknown::new(format!(
            "a scale other than one in @{}",
            call.name
        )));
    }
    let real = call
        .argument(1)?
        .leaves
        .first()
        .and_then(|l| l.real)
        .ok_or_else(error)?;
    let mut slots = Vec::new();
    for index in values {
        slots.extend(&call.argument(index)?.slots);
    }
    let pair = encode_pair(e, format, &slots, real).ok_or_else(error)?;
    let mut words = call.argument(0)?.slots.clone();
    let which = usize::from(call.constant(scale + 1)? != 0);
    *words.get_mut(which).ok_or_else(error)? = pair;
    Ok(words)
}

/// Two numbers whose codes are in a word, multiplied by a scale.
fn from_scaled(e: &mut Emitter<'_>, from: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let error = || call.unknown();
    // The half of the word that contains the pair, or the byte.
    let which = call.constant(2)? as u32;
    let (format, bits, shift) = match from {
        "fp4" => (E2M1, 4, 8 * (which & 3)),
        _ => (format(e, from).ok_or_else(error)?, 8, 16 * (which & 1)),
    };
    let real = call.result.first().and_then(|l| l.real).ok_or_else(error)?;
    let (source, scale) = (call.scalar(0)?, call.scalar(1)?);
    let factor = e.map1(
        row1!(|s| match s >> 23 & 0xff {
            // A scale of all ones is NaN.
            0xff => f64::NAN.to_bits(),
            exponent => 2f64.powi(exponent as i32 - 127).to_bits(),
        }),
        scale,
    );
    let mut result = Vec::new();
    for i in 0..2 {
        let code = e.extract(source, shift + bits * i, bits);
        let value = e.map1(decoder(format).ok_or_else(error)?, code);
        let scaled = e.map2(row::real_binary(row::RealOp::Mul, Real::F64), value, factor);
        result.push(e.map1(row::real_convert(Real::F64, real), scaled));
    }
    Ok(result)
}

/// Two values as two bytes, the first lower.
fn encode_pair(e: &mut Emitter<'_>, format: Format, values: &[Slot], real: Real) -> Option<Slot> {
    let encode = encoder(format, e.clamp_overflow)?;
    let &[a, b] = values else {
        return None;
    };
    let widen = row::real_convert(real, Real::F64);
    let (a, b) = (e.map1(widen, a), e.map1(widen, b));
    let (a, b) = (e.map1(encode, a), e.map1(encode, b));
    Some(e.map2(row2!(|low, high| low | high << 8), a, b))
}

/// Replaces one 16-bit half of a word.
fn insert_word(e: &mut Emitter<'_>, old: Slot, pair: Slot, upper: bool) -> Slot {
    let shift = e.constant(if upper { 16 } else { 0 });
    e.map3(
        row3!(|old, pair, s| old & !(0xffff << s) | pair << s),
        old,
        pair,
        shift,
    )
}
