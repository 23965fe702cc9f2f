//! PTX's arithmetic, logic and comparisons, on integers, floating point and packed halves.

use crate::error::Decoded;
use crate::machine::bytecode::Slot;
use crate::machine::row::{self, IntOp, Real, mask, row1, row2, row3};
use crate::numbers::float::Rounding;
use crate::translate::intrinsics::{
    Function, clamp_to_unit, count_leading_zeros, dot4, funnel_shift, rectify, rounding,
};
use crate::translate::ir::{IntPredicate, RealPredicate};

use super::ptx_operands::{Kind, Translator, Type, unknown};
use super::ptx_parse::{Instruction, Operand};

/// Flags of an arithmetic instruction.
#[derive(Default)]
struct Flags<'a> {
    ty: Option<Type>,
    mode: Option<Rounding>,
    ftz: bool,
    approximate: bool,
    sat: bool,
    relu: bool,
    nan: bool,
    xorsign: bool,
    carry_out: bool,
    /// `lo`, `hi`, `wide`, and others of single instructions.
    form: Vec<&'a str>,
}

fn flags(i: &Instruction) -> Flags<'_> {
    let mut flags = Flags::default();
    for modifier in &i.opcode[1..] {
        match modifier.as_str() {
            "ftz" => flags.ftz = true,
            "sat" | "satfinite" => flags.sat = true,
            "relu" => flags.relu = true,
            "nan" | "NaN" => flags.nan = true,
            "xorsign" => flags.xorsign = true,
            "abs" if flags.xorsign => {}
            "cc" => flags.carry_out = true,
            "approx" => flags.approximate = true,
            "full" | "noftz" => {}
            m => {
                if let Some(mode) = rounding(m) {
                    flags.mode = Some(mode);
                } else if let Some(ty) = Type::parse(m) {
                    flags.ty = Some(ty);
                } else {
                    flags.form.push(m);
                }
            }
        }
    }
    flags
}

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let flags = flags(i);
    let op = i.opcode[0].as_str();
    if matches!(op, "setp" | "set" | "slct" | "selp") {
        return compare_or_select(t, i, &flags).map(|()| true);
    }
    if op == "testp" {
        return test_property(t, i, &flags).map(|()| true);
    }
    let Some(ty) = flags.ty else {
        return Ok(false);
    };
    if ty.real(flags.ftz).is_some()
        && !matches!(op, "and" | "or" | "xor" | "not" | "shl" | "shr" | "lop3")
    {
        return real(t, i, &flags, ty).map(|()| true);
    }
    integer(t, i, &flags, ty)
}

/// Operands after the first as slots of the type.
fn sources(t: &mut Translator<'_, '_>, i: &Instruction, ty: Type) -> Decoded<Vec<Slot>> {
    i.operands
        .iter()
        .skip(1)
        .map(|o| t.read_typed(o, ty))
        .collect()
}

fn real(t: &mut Translator<'_, '_>, i: &Instruction, flags: &Flags<'_>, ty: Type) -> Decoded<()> {
    let error = || unknown(i);
    let real = ty.real(flags.ftz).ok_or_else(error)?;
    if !flags.form.is_empty() {
        return Err(error());
    }
    let target = i.operands.first().ok_or_else(error)?;
    let function = Function {
        op: &i.opcode[0],
        real,
        mode: flags.mode.unwrap_or(Rounding::NearestEven),
        ftz: flags.ftz,
        approximate: flags.approximate,
        nan: flags.nan,
        xorsign: flags.xorsign,
    };
    let operands = sources(t, i, ty)?;
    let pieces = if ty.packed { 2 } else { 1 };
    let split: Vec<Vec<Slot>> = operands
        .iter()
        .map(|&slot| {
            if ty.packed {
                t.e.unpack(slot, ty.bits, 2)
            } else {
                vec![slot]
            }
        })
        .collect();
    let mut results = Vec::new();
    for n in 0..pieces {
        let mut result = match split[..] {
            [ref a] => t.e.map1(function.unary().ok_or_else(error)?, a[n]),
            [ref a, ref b] => t.e.map2(function.binary().ok_or_else(error)?, a[n], b[n]),
            // `min` and `max` also take three operands.
            [ref a, ref b, ref c] => match function.ternary() {
                Some(f) => t.e.map3(f, a[n], b[n], c[n]),
                None => {
                    let f = function
                        .binary()
                        .filter(|_| matches!(function.op, "min" | "max"))
                        .ok_or_else(error)?;
                    let first = t.e.map2(f, a[n], b[n]);
                    t.e.map2(f, first, c[n])
                }
            },
            _ => return Err(error()),
        };
        if flags.sat {
            result = clamp_to_unit(t.e, real, result);
        }
        if flags.relu {
            result = rectify(t.e, real, result);
        }
        results.push(result);
    }
    let packed = t.e.pack(&results, ty.bits);
    t.write(target, packed, ty.register_bits())
}

/// Arithmetic on integers; `false` where the instruction is not integer arithmetic.
fn integer(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    flags: &Flags<'_>,
    ty: Type,
) -> Decoded<bool> {
    let error = || unknown(i);
    let op = i.opcode[0].as_str();
    let Some(target) = i.operands.first() else {
        return Ok(false);
    };
    let bits = ty.bits;
    let signed = ty.is_signed();
    let simple = match op {
        "add" => Some(IntOp::Add),
        "sub" => Some(IntOp::Sub),
        "and" => Some(IntOp::And),
        "or" => Some(IntOp::Or),
        "xor" => Some(IntOp::Xor),
        "div" => Some(if signed { IntOp::SDiv } else { IntOp::UDiv }),
        "rem" => Some(if signed { IntOp::SRem } else { IntOp::URem }),
        "min" => Some(if signed { IntOp::SMin } else { IntOp::UMin }),
        "max" => Some(if signed { IntOp::SMax } else { IntOp::UMax }),
        _ => None,
    };
    if let Some(op) = simple.filter(|_| flags.form.is_empty() && !flags.carry_out) {
        simple_binary(t, i, op, flags.sat, ty)?;
        return Ok(true);
    }
    if ty.packed {
        return Ok(false);
    }
    match op {
        "add" | "addc" | "sub" | "subc" | "mad" | "madc"
            if flags.carry_out || op.ends_with('c') =>
        {
            extended(t, i, flags, ty)?;
        }
        "mul" | "mad" => multiply(t, i, flags, ty)?,
        "mul24" | "mad24" if flags.form == ["lo"] => multiply_24(t, i, op == "mad24", ty)?,
        "not" | "neg" | "abs" | "cnot" | "popc" | "clz" | "brev" | "bfind" => {
            unary(t, i, flags, ty)?
        }
        "shl" | "shr" => shift(t, i, op == "shl", ty)?,
        "shf" => funnel(t, i, &flags.form)?,
        "lop3" => {
            let [_, a, b, c, table] = &i.operands[..] else {
                return Err(error());
            };
            let Operand::Int(table) = table else {
                return Err(error());
            };
            let (a, b, c) = (t.read(a, 32)?, t.read(b, 32)?, t.read(c, 32)?);
            let result = lookup3(t, a, b, c, *table as u32);
            t.write(target, result, 32)?;
        }
        "bfe" => extract_field(t, i, ty)?,
        "bfi" => insert_field(t, i, bits)?,
        "sad" => absolute_difference(t, i, ty)?,
        "dp4a" => {
            let types: Vec<Type> = i.opcode[1..]
                .iter()
                .filter_map(|m| Type::parse(m))
                .collect();
            let [a_type, b_type] = types[..] else {
                return Err(error());
            };
            let operands = sources_mixed(t, i, &[32, 32, 32])?;
            let f = dot4(a_type.is_signed(), b_type.is_signed());
            let result = t.e.map3(f, operands[0], operands[1], operands[2]);
            t.write(target, result, 32)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The first operand.
fn target(i: &Instruction) -> Decoded<&Operand> {
    i.operands.first().ok_or_else(|| unknown(i))
}

/// An operation on two integers, or on two packed pairs.
fn simple_binary(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    op: IntOp,
    sat: bool,
    ty: Type,
) -> Decoded<()> {
    let [target, a, b] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let (a, b) = (t.read_typed(a, ty)?, t.read_typed(b, ty)?);
    let op = match op {
        IntOp::Add if sat => IntOp::SAddSat,
        IntOp::Sub if sat => IntOp::SSubSat,
        other => other,
    };
    let bits = ty.bits;
    let result = if ty.packed {
        let (x, y) = (t.e.unpack(a, bits, 2), t.e.unpack(b, bits, 2));
        let low = t.e.int_binary(op, bits, x[0], y[0]);
        let high = t.e.int_binary(op, bits, x[1], y[1]);
        t.e.pack(&[low, high], bits)
    } else {
        t.e.int_binary(op, bits, a, b)
    };
    t.write(target, result, ty.register_bits())
}

/// The lower word of a product of integers of 24 bits; `mad24` adds a third operand to it.
fn multiply_24(t: &mut Translator<'_, '_>, i: &Instruction, adds: bool, ty: Type) -> Decoded<()> {
    let target = target(i)?;
    let operands = sources(t, i, ty)?;
    let f = if ty.is_signed() {
        row2!(|a, b| (row::sext(a, 24) * row::sext(b, 24)) as u64 & 0xffff_ffff)
    } else {
        row2!(|a, b| ((a & 0xff_ffff) * (b & 0xff_ffff)) & 0xffff_ffff)
    };
    let mut result = t.e.map2(f, operands[0], operands[1]);
    if adds {
        result = t.e.int_binary(
            IntOp::Add,
            32,
            result,
            *operands.get(2).ok_or_else(|| unknown(i))?,
        );
    }
    t.write(target, result, 32)
}

/// A shift, whose amount is a 32-bit number, clamped to the width.
fn shift(t: &mut Translator<'_, '_>, i: &Instruction, left: bool, ty: Type) -> Decoded<()> {
    let [target, a, b] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let (a, amount) = (t.read(a, ty.bits)?, t.read(b, 32)?);
    let op = match (left, ty.is_signed()) {
        (true, _) => IntOp::Shl,
        (false, true) => IntOp::AShr,
        (false, false) => IntOp::LShr,
    };
    let result = t.e.int_binary(op, ty.bits, a, amount);
    t.write(target, result, ty.bits)
}

/// A shift of two words, one of which is the result.
fn funnel(t: &mut Translator<'_, '_>, i: &Instruction, form: &[&str]) -> Decoded<()> {
    let (&[direction, wrap], [target, low, high, amount]) = (form, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let (low, high, mut amount) = (t.read(low, 32)?, t.read(high, 32)?, t.read(amount, 32)?);
    if wrap == "clamp" {
        // A shift by the full width gives the other word, except in the wrapping form.
        let thirty_two = t.e.constant(32);
        amount = t.e.int_binary(IntOp::UMin, 32, amount, thirty_two);
        let f = if direction == "l" {
            row3!(|low, high, s| ((high << 32 | low) << s >> 32) & 0xffff_ffff)
        } else {
            row3!(|low, high, s| ((high << 32 | low) >> s) & 0xffff_ffff)
        };
        let result = t.e.map3(f, low, high, amount);
        t.write(target, result, 32)
    } else {
        let result = funnel_shift(t.e, direction == "l", 32, high, low, amount);
        t.write(target, result, 32)
    }
}

/// The bits of a field.
fn extract_field(t: &mut Translator<'_, '_>, i: &Instruction, ty: Type) -> Decoded<()> {
    let (target, bits) = (target(i)?, ty.bits);
    let operands = sources_mixed(t, i, &[bits, 32, 32])?;
    let width = t.e.constant(u64::from(bits));
    // Position and length in one row: a function takes three.
    let shift = t.e.constant(8);
    let low = t.e.truncate(operands[1], 8);
    let length = t.e.truncate(operands[2], 8);
    let field = t.e.map3(row::INSERT_BITS, low, length, shift);
    let f = if ty.is_signed() {
        row3!(|a, field, width| {
            let (at, length) = (field & 255, field >> 8);
            if length == 0 {
                return_zero()
            } else {
                let wide = row::sext(a, width as u32);
                let moved = wide >> at.min(63);
                let end = (at + length).min(width);
                if end <= at {
                    ((wide >> 63) as u64) & mask(width as u32)
                } else {
                    row::sext(moved as u64, (end - at) as u32) as u64 & mask(width as u32)
                }
            }
        })
    } else {
        row3!(|a, field, _width| {
            let (at, length) = (field & 255, field >> 8);
            if at > 63 {
                0
            } else {
                a >> at & mask(length as u32)
            }
        })
    };
    let result = t.e.map3(f, operands[0], field, width);
    t.write(target, result, bits)
}

/// A number with one field replaced.
fn insert_field(t: &mut Translator<'_, '_>, i: &Instruction, bits: u32) -> Decoded<()> {
    let target = target(i)?;
    let operands = sources_mixed(t, i, &[bits, bits, 32, 32])?;
    let shift = t.e.constant(8);
    let at = t.e.truncate(operands[2], 8);
    let length = t.e.truncate(operands[3], 8);
    let field = t.e.map3(row::INSERT_BITS, at, length, shift);
    let f = row3!(|a, b, field| {
        let (at, length) = (field & 255, field >> 8);
        if at > 63 {
            b
        } else {
            let taken = mask(length as u32) << at;
            b & !taken | a << at & taken
        }
    });
    let result = t.e.map3(f, operands[0], operands[1], field);
    let result = t.e.truncate(result, bits);
    t.write(target, result, bits)
}

/// The absolute difference of two numbers, added to a third.
fn absolute_difference(t: &mut Translator<'_, '_>, i: &Instruction, ty: Type) -> Decoded<()> {
    let (target, bits, signed) = (target(i)?, ty.bits, ty.is_signed());
    let operands = sources(t, i, ty)?;
    let [a, b, c] = operands[..] else {
        return Err(unknown(i));
    };
    let (mut x, mut y) = (a, b);
    if signed {
        x = t.e.sign_extend(a, bits);
        y = t.e.sign_extend(b, bits);
    }
    let difference = if signed {
        t.e.map2(row2!(|a, b| (a as i64).abs_diff(b as i64)), x, y)
    } else {
        t.e.map2(row2!(|a, b| a.abs_diff(b)), x, y)
    };
    let sum = t.e.int_binary(IntOp::Add, 64, difference, c);
    let result = t.e.truncate(sum, bits);
    t.write(target, result, bits)
}

/// A field of length zero.
fn return_zero() -> u64 {
    0
}

fn sources_mixed(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    widths: &[u32],
) -> Decoded<Vec<Slot>> {
    if i.operands.len() != widths.len() + 1 {
        return Err(unknown(i));
    }
    i.operands[1..]
        .iter()
        .zip(widths)
        .map(|(o, &bits)| t.read(o, bits))
        .collect()
}

/// `lop3`: any function of three bits, as a table of eight.
fn lookup3(t: &mut Translator<'_, '_>, a: Slot, b: Slot, c: Slot, table: u32) -> Slot {
    let zero = t.e.constant(0);
    let ones = t.e.constant(mask(32));
    let mut result = zero;
    for index in 0..8 {
        if table >> index & 1 == 0 {
            continue;
        }
        let mut term = ones;
        for (bit, input) in [(2, a), (1, b), (0, c)] {
            let input = if index >> bit & 1 == 1 {
                input
            } else {
                t.e.map2(row::XOR, input, ones)
            };
            term = t.e.map2(row::AND, term, input);
        }
        result = t.e.map2(row::OR, result, term);
    }
    result
}

fn unary(t: &mut Translator<'_, '_>, i: &Instruction, flags: &Flags<'_>, ty: Type) -> Decoded<()> {
    let [target, a] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let bits = ty.bits;
    let a = t.read(a, bits)?;
    let zero = t.e.constant(0);
    let mut result_bits = bits;
    let result = match i.opcode[0].as_str() {
        "not" => {
            let ones = t.e.constant(mask(bits));
            t.e.map2(row::XOR, a, ones)
        }
        "neg" => t.e.int_binary(IntOp::Sub, bits, zero, a),
        "abs" => {
            let negated = t.e.int_binary(IntOp::Sub, bits, zero, a);
            t.e.int_binary(IntOp::SMax, bits, a, negated)
        }
        "cnot" => t.e.map1(row1!(|a| u64::from(a == 0)), a),
        "brev" => {
            let shift = t.e.constant(u64::from(64 - bits));
            t.e.map2(row2!(|a, s| a.reverse_bits() >> s), a, shift)
        }
        "popc" => {
            result_bits = 32;
            t.e.map1(row1!(|a| u64::from(a.count_ones())), a)
        }
        "clz" => {
            result_bits = 32;
            count_leading_zeros(t.e, bits, a)
        }
        _ => {
            // bfind: position of the highest set bit (of the highest bit that differs from the sign), all ones if
            // there is none.
            result_bits = 32;
            let wide = if ty.is_signed() {
                t.e.sign_extend(a, bits)
            } else {
                a
            };
            let wide = if ty.is_signed() {
                t.e.map1(row1!(|a| if (a as i64) < 0 { !a } else { a }), wide)
            } else {
                wide
            };
            if !flags.form.is_empty() {
                return Err(unknown(i));
            }
            t.e.map1(
                row1!(|a| if a == 0 {
                    0xffff_ffff
                } else {
                    63 - u64::from(a.leading_zeros())
                }),
                wide,
            )
        }
    };
    t.write(target, result, result_bits)
}

fn multiply(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    flags: &Flags<'_>,
    ty: Type,
) -> Decoded<()> {
    let error = || unknown(i);
    let target = &i.operands[0];
    let add = i.opcode[0] == "mad";
    let bits = ty.bits;
    let wide = flags.form == ["wide"];
    let result_bits = if wide { 2 * bits } else { bits };
    if i.operands.len() != if add { 4 } else { 3 } || result_bits > 64 {
        return Err(error());
    }
    let (mut a, mut b) = (t.read(&i.operands[1], bits)?, t.read(&i.operands[2], bits)?);
    let mut result = match flags.form[..] {
        ["lo"] | [] => t.e.int_binary(IntOp::Mul, bits, a, b),
        ["hi"] => {
            let op = if ty.is_signed() {
                IntOp::MulHiS
            } else {
                IntOp::MulHiU
            };
            t.e.int_binary(op, bits, a, b)
        }
        ["wide"] => {
            if ty.is_signed() {
                a = t.e.sign_extend(a, bits);
                b = t.e.sign_extend(b, bits);
            }
            let product = t.e.int_binary(IntOp::Mul, 64, a, b);
            t.e.truncate(product, result_bits)
        }
        _ => return Err(error()),
    };
    if add {
        let c = t.read(&i.operands[3], result_bits)?;
        result = t.e.int_binary(IntOp::Add, result_bits, result, c);
    }
    t.write(target, result, result_bits)
}

/// Arithmetic with the carry flag: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
fn extended(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    flags: &Flags<'_>,
    ty: Type,
) -> Decoded<()> {
    let error = || unknown(i);
    let op = i.opcode[0].trim_end_matches('c');
    let takes = i.opcode[0].ends_with('c');
    let bits = ty.bits;
    let operands = sources(t, i, ty)?;
    let (a, b) = match (op, &operands[..]) {
        ("add" | "sub", &[a, b]) => (a, b),
        ("mad", &[x, y, c]) => {
            let op = match flags.form[..] {
                ["lo"] => IntOp::Mul,
                ["hi"] if ty.is_signed() => IntOp::MulHiS,
                ["hi"] => IntOp::MulHiU,
                _ => return Err(error()),
            };
            (t.e.int_binary(op, bits, x, y), c)
        }
        _ => return Err(error()),
    };
    let zero = t.e.constant(0);
    let carry = if takes {
        t.carry.ok_or_else(error)?
    } else {
        zero
    };
    let subtract = op == "sub";
    let step = if subtract { IntOp::Sub } else { IntOp::Add };
    let partial = t.e.int_binary(step, bits, a, b);
    let result = t.e.int_binary(step, bits, partial, carry);
    if flags.carry_out {
        let less = row2!(|x, y| u64::from(x < y));
        let (first, second) = if subtract {
            (t.e.map2(less, a, b), t.e.map2(less, partial, carry))
        } else {
            (t.e.map2(less, partial, a), t.e.map2(less, result, partial))
        };
        t.carry = Some(t.e.map2(row::OR, first, second));
    }
    t.write(&i.operands[0], result, bits)
}

/// The predicates of a comparison by its PTX name: for integers, for floating point.
fn comparison(name: &str, signed: bool) -> Option<(Option<IntPredicate>, Option<RealPredicate>)> {
    use IntPredicate as I;
    use RealPredicate as R;
    Some(match name {
        "eq" => (Some(I::LLVMIntEQ), Some(R::LLVMRealOEQ)),
        "ne" => (Some(I::LLVMIntNE), Some(R::LLVMRealONE)),
        "lt" if signed => (Some(I::LLVMIntSLT), Some(R::LLVMRealOLT)),
        "le" if signed => (Some(I::LLVMIntSLE), Some(R::LLVMRealOLE)),
        "gt" if signed => (Some(I::LLVMIntSGT), Some(R::LLVMRealOGT)),
        "ge" if signed => (Some(I::LLVMIntSGE), Some(R::LLVMRealOGE)),
        "lt" | "lo" => (Some(I::LLVMIntULT), Some(R::LLVMRealOLT)),
        "le" | "ls" => (Some(I::LLVMIntULE), Some(R::LLVMRealOLE)),
        "gt" | "hi" => (Some(I::LLVMIntUGT), Some(R::LLVMRealOGT)),
        "ge" | "hs" => (Some(I::LLVMIntUGE), Some(R::LLVMRealOGE)),
        "equ" => (None, Some(R::LLVMRealUEQ)),
        "neu" => (None, Some(R::LLVMRealUNE)),
        "ltu" => (None, Some(R::LLVMRealULT)),
        "leu" => (None, Some(R::LLVMRealULE)),
        "gtu" => (None, Some(R::LLVMRealUGT)),
        "geu" => (None, Some(R::LLVMRealUGE)),
        "num" => (None, Some(R::LLVMRealORD)),
        "nan" => (None, Some(R::LLVMRealUNO)),
        _ => return None,
    })
}

/// Selections and comparisons.
fn compare_or_select(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    _flags: &Flags<'_>,
) -> Decoded<()> {
    let error = || unknown(i);
    let modifiers: Vec<&str> = i.opcode[1..]
        .iter()
        .map(String::as_str)
        .filter(|m| *m != "ftz")
        .collect();
    match (i.opcode[0].as_str(), &modifiers[..]) {
        ("selp", [ty]) => {
            let ty = Type::parse(ty).ok_or_else(error)?;
            let [d, a, b, p] = &i.operands[..] else {
                return Err(error());
            };
            let (a, b, p) = (t.read_typed(a, ty)?, t.read_typed(b, ty)?, t.read(p, 1)?);
            let result = t.e.select(p, a, b);
            t.write(d, result, ty.register_bits())
        }
        ("slct", [ty, by]) => select_by_sign(t, i, ty, by),
        ("setp" | "set", [name, rest @ ..]) => compare(t, i, name, rest),
        _ => Err(error()),
    }
}

/// One of two values, by the sign of a third.
fn select_by_sign(t: &mut Translator<'_, '_>, i: &Instruction, ty: &str, by: &str) -> Decoded<()> {
    let error = || unknown(i);
    let (ty, by) = (
        Type::parse(ty).ok_or_else(error)?,
        Type::parse(by).ok_or_else(error)?,
    );
    let [d, a, b, c] = &i.operands[..] else {
        return Err(error());
    };
    let (a, b, c) = (
        t.read_typed(a, ty)?,
        t.read_typed(b, ty)?,
        t.read_typed(c, by)?,
    );
    let at_least_zero = match by.kind {
        Kind::Signed => t.e.map1(row1!(|c| u64::from(row::sext(c, 32) >= 0)), c),
        Kind::Float => t.e.map1(row1!(|c| u64::from(row::f32_of(c) >= 0.0)), c),
        _ => return Err(error()),
    };
    let result = t.e.select(at_least_zero, a, b);
    t.write(d, result, ty.register_bits())
}

/// A comparison, whose result `set` writes as a number and `setp` as a predicate, or as a predicate and its negation.
/// It may be combined with another predicate.
fn compare(t: &mut Translator<'_, '_>, i: &Instruction, name: &str, rest: &[&str]) -> Decoded<()> {
    let error = || unknown(i);
    // setp.cmp[.bool].type; set.cmp[.bool].dtype.stype
    let into_register = i.opcode[0] == "set";
    let (boolean, types) = match rest {
        [b @ ("and" | "or" | "xor"), types @ ..] => (Some(*b), types),
        types => (None, types),
    };
    let (result_type, ty) = match (into_register, types) {
        (false, [ty]) => (None, Type::parse(ty).ok_or_else(error)?),
        (true, [d, ty]) => (
            Some(Type::parse(d).ok_or_else(error)?),
            Type::parse(ty).ok_or_else(error)?,
        ),
        _ => return Err(error()),
    };
    if ty.packed {
        return Err(error());
    }
    let [target, a, b, more @ ..] = &i.operands[..] else {
        return Err(error());
    };
    let (a, b) = (t.read_typed(a, ty)?, t.read_typed(b, ty)?);
    let (int, float) = comparison(name, ty.is_signed()).ok_or_else(error)?;
    let f = match ty.real(false) {
        Some(real) => row::real_compare(float.ok_or_else(error)?, real),
        None => row::int_compare(int.ok_or_else(error)?, ty.bits).ok_or_else(error)?,
    };
    let holds = t.e.map2(f, a, b);
    let combine = |t: &mut Translator<'_, '_>, holds: Slot| -> Decoded<Slot> {
        let (Some(boolean), [c]) = (boolean, more) else {
            return if boolean.is_none() && more.is_empty() {
                Ok(holds)
            } else {
                Err(unknown(i))
            };
        };
        let c = t.read(c, 1)?;
        let f = match boolean {
            "and" => row::AND,
            "or" => row::OR,
            _ => row::XOR,
        };
        Ok(t.e.map2(f, holds, c))
    };
    let result = combine(t, holds)?;
    if let Some(ty) = result_type {
        let value = match ty.real(false) {
            Some(Real::F32) => t.e.map1(row1!(|p| p * 0x3f80_0000), result),
            None if ty.bits == 32 => t.e.map1(row1!(|p| p * 0xffff_ffff), result),
            _ => return Err(error()),
        };
        return t.write(target, value, 32);
    }
    if let Operand::Pair(p, q) = target {
        let one = t.e.constant(1);
        let fails = t.e.map2(row::XOR, holds, one);
        let other = combine(t, fails)?;
        t.write(p, result, 1)?;
        return t.write(q, other, 1);
    }
    t.write(target, result, 1)
}

fn test_property(t: &mut Translator<'_, '_>, i: &Instruction, flags: &Flags<'_>) -> Decoded<()> {
    let (Some(ty), [d, a]) = (flags.ty, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let a = t.read_typed(a, ty)?;
    let value = match ty.real(false) {
        Some(Real::F32) => t.e.map1(row::real_convert(Real::F32, Real::F64), a),
        Some(Real::F64) => a,
        _ => return Err(unknown(i)),
    };
    let f = match flags.form[..] {
        ["finite"] => row1!(|a| u64::from(f64::from_bits(a).is_finite())),
        ["infinite"] => row1!(|a| u64::from(f64::from_bits(a).is_infinite())),
        ["number"] => row1!(|a| u64::from(!f64::from_bits(a).is_nan())),
        ["notanumber"] => row1!(|a| u64::from(f64::from_bits(a).is_nan())),
        _ => return Err(unknown(i)),
    };
    let result = t.e.map1(f, value);
    t.write(d, result, 1)
}
