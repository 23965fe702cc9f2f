//! AMD's inline assembly: scalar waits and hints, and vector arithmetic on whole registers.
//!
//! Statements are separated by newlines or semicolons; operands are placeholders, numbers, or floating-point numbers
//! that the hardware has as inline constants.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{Barrier, Op, Slot};
use crate::machine::row::{self, IntOp, Real, RealFunction, RealOp, row1, row2, row3};
use crate::numbers::float::{F16, Rounding};
use crate::translate::assembly::Bound;
use crate::translate::emit::Emitter;
use crate::translate::intrinsics::PERM;

/// Translates a template.
pub(super) fn translate(e: &mut Emitter<'_>, template: &str, bound: &[Bound]) -> Decoded<()> {
    for statement in template.split(['\n', ';']) {
        let statement = statement.split("//").next().unwrap_or("").trim();
        if statement.is_empty() {
            continue;
        }
        let (mnemonic, rest) = statement
            .split_once(char::is_whitespace)
            .unwrap_or((statement, ""));
        one(e, mnemonic, rest.trim(), bound)?;
    }
    Ok(())
}

fn one(e: &mut Emitter<'_>, mnemonic: &str, rest: &str, bound: &[Bound]) -> Decoded<()> {
    let error = || Unknown::new(format!("the AMD instruction '{mnemonic} {rest}'"));
    match mnemonic {
        "s_barrier" => {
            let id = e.constant(0);
            let site = e.site();
            let sync = Barrier::Sync {
                id,
                threads: None,
                reduce: None,
            };
            e.push(Op::Barrier(Box::new(sync), site));
            return Ok(());
        }
        "s_nop" | "s_sleep" | "s_setprio" => {
            e.push(Op::Nothing);
            return Ok(());
        }
        _ if mnemonic.starts_with("s_wait") => {
            e.push(Op::Nothing);
            return Ok(());
        }
        _ => {}
    }
    let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
    let (target, sources) = operands.split_first().ok_or_else(error)?;
    let target = placeholder(target)
        .and_then(|n| bound.get(n))
        .filter(|b| b.writable && b.words.len() == 1)
        .ok_or_else(error)?;
    let slots = sources
        .iter()
        .map(|text| source(e, text, bound).ok_or_else(error))
        .collect::<Decoded<Vec<Slot>>>()?;
    // The encoding suffix does not change what is computed.
    let name = mnemonic.trim_end_matches("_e32").trim_end_matches("_e64");
    let result = value(e, name, &slots).ok_or_else(error)?;
    e.copy(target.words[0], result);
    Ok(())
}

fn placeholder(text: &str) -> Option<usize> {
    let text = text.strip_prefix('$')?;
    let text = text
        .strip_prefix('{')
        .and_then(|t| t.strip_suffix('}'))
        .unwrap_or(text);
    text.parse().ok()
}

fn source(e: &mut Emitter<'_>, text: &str, bound: &[Bound]) -> Option<Slot> {
    if let Some(number) = placeholder(text) {
        return match bound.get(number)?.words[..] {
            [word] => Some(word),
            _ => None,
        };
    }
    let bits = if let Some(hex) = text.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Ok(integer) = text.parse::<i64>() {
        integer as u64
    } else {
        u64::from(text.parse::<f32>().ok()?.to_bits())
    };
    Some(e.constant(bits & 0xffff_ffff))
}

/// A mnemonic without its type, and the type.
fn real(name: &str) -> Option<(&str, Real)> {
    let (op, ty) = name.rsplit_once('_')?;
    let real = match ty {
        "f32" => Real::F32,
        "f16" => Real::F16,
        "f64" => Real::F64,
        _ => return None,
    };
    Some((op, real))
}

/// The value of a vector instruction.
fn value(e: &mut Emitter<'_>, name: &str, s: &[Slot]) -> Option<Slot> {
    match s {
        [a] => unary(e, name, *a),
        [a, b] => binary(e, name, *a, *b),
        [a, b, c] => ternary(e, name, *a, *b, *c),
        _ => None,
    }
}

/// The operation of an instruction on two integers, and whether its operands are in reverse order.
fn integer(name: &str) -> Option<(IntOp, bool)> {
    Some(match name {
        "v_and_b32" => (IntOp::And, false),
        "v_or_b32" => (IntOp::Or, false),
        "v_xor_b32" => (IntOp::Xor, false),
        "v_add_u32" | "v_add_nc_u32" => (IntOp::Add, false),
        "v_sub_u32" | "v_sub_nc_u32" => (IntOp::Sub, false),
        "v_subrev_u32" | "v_subrev_nc_u32" => (IntOp::Sub, true),
        "v_mul_lo_u32" => (IntOp::Mul, false),
        "v_mul_hi_u32" => (IntOp::MulHiU, false),
        "v_mul_hi_i32" => (IntOp::MulHiS, false),
        "v_min_u32" => (IntOp::UMin, false),
        "v_max_u32" => (IntOp::UMax, false),
        "v_min_i32" => (IntOp::SMin, false),
        "v_max_i32" => (IntOp::SMax, false),
        "v_lshlrev_b32" => (IntOp::Shl, true),
        "v_lshrrev_b32" => (IntOp::LShr, true),
        "v_ashrrev_i32" => (IntOp::AShr, true),
        _ => return None,
    })
}

/// The value of an instruction on one operand.
fn unary(e: &mut Emitter<'_>, name: &str, a: Slot) -> Option<Slot> {
    let f = match name {
        "v_mov_b32" => row::COPY,
        "v_not_b32" => row1!(|a| !a & 0xffff_ffff),
        "v_bfrev_b32" => row1!(|a| u64::from((a as u32).reverse_bits())),
        "v_cvt_f32_i32" => row1!(|a| row::of_f32(a as u32 as i32 as f32)),
        "v_cvt_f32_u32" => row1!(|a| row::of_f32(a as u32 as f32)),
        "v_cvt_i32_f32" => row1!(|a| u64::from(row::f32_of(a) as i32 as u32)),
        "v_cvt_u32_f32" => row1!(|a| u64::from(row::f32_of(a) as u32)),
        "v_cvt_f16_f32" => row::real_convert(Real::F32, Real::F16),
        "v_cvt_f32_f16" => row::real_convert(Real::F16, Real::F32),
        _ => {
            let (op, real) = real(name)?;
            let function = match op {
                "v_exp" => RealFunction::Exp2,
                "v_log" => RealFunction::Log2,
                "v_rcp" => RealFunction::Reciprocal,
                "v_rsq" => RealFunction::Rsqrt,
                "v_sqrt" => RealFunction::Sqrt,
                "v_sin" => RealFunction::SinTurns,
                "v_cos" => RealFunction::CosTurns,
                "v_floor" => RealFunction::Floor,
                "v_ceil" => RealFunction::Ceil,
                "v_trunc" => RealFunction::Trunc,
                "v_rndne" => RealFunction::RoundEven,
                "v_fract" => RealFunction::Fraction,
                _ => return None,
            };
            row::real_function(function, real)
        }
    };
    Some(e.map1(f, a))
}

/// The value of an instruction on two operands.
fn binary(e: &mut Emitter<'_>, name: &str, a: Slot, b: Slot) -> Option<Slot> {
    if let Some((op, reversed)) = integer(name) {
        let (mut a, mut b) = if reversed { (b, a) } else { (a, b) };
        if matches!(op, IntOp::Shl | IntOp::LShr | IntOp::AShr) {
            b = e.truncate(b, 5);
        }
        a = e.truncate(a, 32);
        return Some(e.int_binary(op, 32, a, b));
    }
    if matches!(name, "v_cvt_pkrtz_f16_f32" | "v_cvt_pk_rtz_f16_f32") {
        let f = row2!(|a, b| {
            let half = |x| F16.encode(Real::F32.decode(x), Rounding::Zero, false);
            half(a) | half(b) << 16
        });
        return Some(e.map2(f, a, b));
    }
    let (op, real) = real(name)?;
    let (op, reversed) = match op {
        "v_add" => (RealOp::Add, false),
        "v_sub" => (RealOp::Sub, false),
        "v_subrev" => (RealOp::Sub, true),
        "v_mul" => (RealOp::Mul, false),
        "v_min" => (RealOp::MinNum, false),
        "v_max" => (RealOp::MaxNum, false),
        _ => return None,
    };
    let (a, b) = if reversed { (b, a) } else { (a, b) };
    Some(e.map2(row::real_binary(op, real), a, b))
}

/// The value of an instruction on three operands.
fn ternary(e: &mut Emitter<'_>, name: &str, a: Slot, b: Slot, c: Slot) -> Option<Slot> {
    let f = match name {
        "v_perm_b32" => PERM,
        "v_and_or_b32" => row3!(|a, b, c| a & b | c),
        "v_or3_b32" => row3!(|a, b, c| a | b | c),
        "v_xor3_b32" => row3!(|a, b, c| a ^ b ^ c),
        "v_add3_u32" => row3!(|a, b, c| (a + b + c) & 0xffff_ffff),
        "v_lshl_or_b32" => row3!(|a, s, c| a << (s & 31) & 0xffff_ffff | c),
        "v_lshl_add_u32" => row3!(|a, s, c| ((a << (s & 31)) + c) & 0xffff_ffff),
        "v_add_lshl_u32" => {
            row3!(|a, b, s| ((a + b) & 0xffff_ffff) << (s & 31) & 0xffff_ffff)
        }
        "v_bfi_b32" => row3!(|m, a, b| m & a | !m & b & 0xffff_ffff),
        "v_alignbit_b32" => row3!(|a, b, s| (a << 32 | b) >> (s & 31) & 0xffff_ffff),
        _ => {
            let (op, real) = real(name)?;
            if op != "v_fma" {
                return None;
            }
            row::real_fma(real)
        }
    };
    Some(e.map3(f, a, b, c))
}
