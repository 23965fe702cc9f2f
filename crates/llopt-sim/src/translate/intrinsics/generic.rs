//! LLVM's target-independent intrinsics.
//!
//! `fmuladd` is fused, as both vendors' back ends emit it. Transcendental functions are computed in double precision
//! and rounded (see [`RealFunction`](crate::machine::row::RealFunction)).

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{AccessKind, Address, Op, Part, Slot, Space, Terminator};
use crate::machine::row::{
    self, IntOp, Real, RealFunction, RealOp, Row1, Row2, mask, row1, row2, row3,
};
use crate::numbers::float::Rounding;
use crate::translate::emit::Emitter;

use super::{Invocation, without_types};

/// Translates `llvm.<name>`.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Vec<Slot>> {
    let base = without_types(name);
    if let Some(op) = int_operation(base) {
        return elementwise(call, |e, leaf, x| Ok(e.int_binary(op, leaf, x[0], x[1])), e);
    }
    if let Some(op) = real_operation(base) {
        let f = row::real_binary(op, real(e, call)?);
        return elementwise(call, |e, _, x| Ok(e.map2(f, x[0], x[1])), e);
    }
    if let Some(function) = real_function(base) {
        let f = row::real_function(function, real(e, call)?);
        return elementwise(call, |e, _, x| Ok(e.map1(f, x[0])), e);
    }
    if let Some(results) = integers(e, base, call)? {
        return Ok(results);
    }
    if let Some(results) = reals(e, base, call)? {
        return Ok(results);
    }
    match base {
        _ if base.starts_with("vector.reduce.") => {
            vector_reduce(e, &base["vector.reduce.".len()..], call)
        }
        "memcpy" | "memmove" | "memcpy.inline" | "memset" | "memset.inline" => {
            memory_block(e, base, call)
        }
        "trap" | "ubsantrap" => {
            let site = e.site();
            e.push(Op::Trap(site));
            Ok(Vec::new())
        }
        "assume"
        | "lifetime.start"
        | "lifetime.end"
        | "donothing"
        | "debugtrap"
        | "prefetch"
        | "sideeffect"
        | "experimental.noalias.scope.decl"
        | "dbg.value"
        | "dbg.declare"
        | "dbg.label"
        | "invariant.end"
        | "var.annotation" => Ok(Vec::new()),
        "expect"
        | "expect.with.probability"
        | "launder.invariant.group"
        | "strip.invariant.group"
        | "ssa.copy"
        | "annotation"
        | "arithmetic.fence" => Ok(call.argument(0)?.slots.clone()),
        "ptrmask" => {
            let (pointer, bits) = (call.scalar(0)?, call.scalar(1)?);
            Ok(vec![e.map2(row::AND, pointer, bits)])
        }
        "readcyclecounter" | "readsteadycounter" => {
            Ok(vec![e.special(crate::machine::bytecode::Special::Clock)])
        }
        "is.constant" => Ok(vec![e.constant(0)]),
        "objectsize" => Ok(vec![e.constant(u64::MAX)]),
        _ => Err(call.unknown()),
    }
}

/// Operations on the bits of integers.
fn integers(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    let results = match base {
        "abs" => elementwise(
            call,
            |e, bits, x| {
                let zero = e.constant(0);
                let negated = e.int_binary(IntOp::Sub, bits, zero, x[0]);
                Ok(e.int_binary(IntOp::SMax, bits, x[0], negated))
            },
            e,
        ),
        "ctpop" => elementwise(
            call,
            |e, _, x| Ok(e.map1(row1!(|a| u64::from(a.count_ones())), x[0])),
            e,
        ),
        "ctlz" => elementwise(call, |e, bits, x| Ok(count_leading_zeros(e, bits, x[0])), e),
        "cttz" => elementwise(
            call,
            |e, bits, x| {
                let width = e.constant(u64::from(bits));
                Ok(e.map2(
                    row2!(|a, w| u64::from(a.trailing_zeros()).min(w)),
                    x[0],
                    width,
                ))
            },
            e,
        ),
        "bswap" => elementwise(
            call,
            |e, bits, x| {
                let shift = e.constant(u64::from(64 - bits));
                Ok(e.map2(row2!(|a, s| a.swap_bytes() >> (s & 63)), x[0], shift))
            },
            e,
        ),
        "bitreverse" => elementwise(
            call,
            |e, bits, x| {
                let shift = e.constant(u64::from(64 - bits));
                Ok(e.map2(row2!(|a, s| a.reverse_bits() >> (s & 63)), x[0], shift))
            },
            e,
        ),
        "fshl" | "fshr" => {
            let left = base == "fshl";
            elementwise(
                call,
                |e, bits, x| Ok(funnel_shift(e, left, bits, x[0], x[1], x[2])),
                e,
            )
        }
        "uadd.with.overflow" | "sadd.with.overflow" | "usub.with.overflow"
        | "ssub.with.overflow" | "umul.with.overflow" | "smul.with.overflow" => {
            with_overflow(e, base, call)
        }
        "ucmp" | "scmp" => three_way(e, base == "scmp", call),
        _ => return Ok(None),
    };
    results.map(Some)
}

/// Minus one, zero or one, as the first is less than, equal to or greater than the second.
fn three_way(e: &mut Emitter<'_>, signed: bool, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let bits = call.bits(0)?;
    let result = call.result.first().map_or(32, |l| l.bits);
    elementwise(
        call,
        |e, _, x| {
            let (mut a, mut b) = (x[0], x[1]);
            if signed {
                let bias = e.constant(1 << (bits - 1));
                a = e.map2(row::XOR, a, bias);
                b = e.map2(row::XOR, b, bias);
            }
            let order = e.map2(
                row2!(|a, b| (i64::from(a > b) - i64::from(a < b)) as u64),
                a,
                b,
            );
            Ok(e.truncate(order, result))
        },
        e,
    )
}

/// Operations on floating-point numbers.
fn reals(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    let results = match base {
        "fma" | "fmuladd" => {
            let f = row::real_fma(real(e, call)?);
            elementwise(call, |e, _, x| Ok(e.map3(f, x[0], x[1], x[2])), e)
        }
        "fabs" => {
            let f = row::real_abs(real(e, call)?);
            elementwise(call, |e, _, x| Ok(e.map1(f, x[0])), e)
        }
        "fptosi.sat" => to_integer(e, true, Rounding::Zero, call),
        "fptoui.sat" => to_integer(e, false, Rounding::Zero, call),
        "lrint" | "llrint" => to_integer(e, true, Rounding::NearestEven, call),
        "is.fpclass" => {
            let real = real(e, call)?;
            let tests = e.constant(call.constant(1)?);
            let f = is_of_class(real);
            let values = call.argument(0)?.slots.clone();
            Ok(values.into_iter().map(|a| e.map2(f, a, tests)).collect())
        }
        "ldexp" => {
            let f = ldexp(real(e, call)?);
            let bits = call.bits(1)?;
            elementwise(
                call,
                |e, _, x| {
                    let exponent = e.sign_extend(x[1], bits);
                    Ok(e.map2(f, x[0], exponent))
                },
                e,
            )
        }
        "frexp" => frexp(e, call),
        "powi" => {
            let real = real(e, call)?;
            let f: Row2 = match real {
                Real::F64 => row2!(|a, n| f64::from_bits(a).powi(n as u32 as i32).to_bits()),
                _ => row2!(|a, n| Real::F32.encode(Real::F32.decode(a).powi(n as u32 as i32))),
            };
            elementwise(call, |e, _, x| Ok(e.map2(f, x[0], x[1])), e)
        }
        "pow" => {
            let f: Row2 = match real(e, call)? {
                Real::F64 => row2!(|a, b| f64::from_bits(a).powf(f64::from_bits(b)).to_bits()),
                Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
                    row2!(|a, b| Real::F32.encode(Real::F32.decode(a).powf(Real::F32.decode(b))))
                }
                other => return Err(Unknown::new(format!("@{} on {other:?}", call.name))),
            };
            elementwise(call, |e, _, x| Ok(e.map2(f, x[0], x[1])), e)
        }
        _ => return Ok(None),
    };
    results.map(Some)
}

/// Conversion to an integer, clamped to the smallest and the largest.
fn to_integer(
    e: &mut Emitter<'_>,
    signed: bool,
    rounding: Rounding,
    call: &Invocation<'_>,
) -> Decoded<Vec<Slot>> {
    let real = real(e, call)?;
    elementwise(
        call,
        |e, bits, x| {
            let max = e.constant(mask(bits - u32::from(signed)));
            let low = e.constant(mask(bits));
            Ok(e.map3(row::real_to_int(real, signed, rounding), x[0], max, low))
        },
        e,
    )
}

fn int_operation(base: &str) -> Option<IntOp> {
    Some(match base {
        "smax" => IntOp::SMax,
        "smin" => IntOp::SMin,
        "umax" => IntOp::UMax,
        "umin" => IntOp::UMin,
        "uadd.sat" => IntOp::UAddSat,
        "sadd.sat" => IntOp::SAddSat,
        "usub.sat" => IntOp::USubSat,
        "ssub.sat" => IntOp::SSubSat,
        _ => return None,
    })
}

fn real_operation(base: &str) -> Option<RealOp> {
    Some(match base {
        "minnum" | "minimumnum" => RealOp::MinNum,
        "maxnum" | "maximumnum" => RealOp::MaxNum,
        "minimum" => RealOp::Minimum,
        "maximum" => RealOp::Maximum,
        "copysign" => RealOp::CopySign,
        _ => return None,
    })
}

fn real_function(base: &str) -> Option<RealFunction> {
    Some(match base {
        "sqrt" => RealFunction::Sqrt,
        "exp" => RealFunction::Exp,
        "exp2" => RealFunction::Exp2,
        "log" => RealFunction::Log,
        "log2" => RealFunction::Log2,
        "log10" => RealFunction::Log10,
        "sin" => RealFunction::Sin,
        "cos" => RealFunction::Cos,
        "tanh" => RealFunction::Tanh,
        "floor" => RealFunction::Floor,
        "ceil" => RealFunction::Ceil,
        "trunc" => RealFunction::Trunc,
        "rint" | "nearbyint" | "roundeven" => RealFunction::RoundEven,
        "round" => RealFunction::RoundAway,
        "canonicalize" => RealFunction::Canonicalize,
        _ => return None,
    })
}

/// Floating-point type of the first argument.
fn real(e: &Emitter<'_>, call: &Invocation<'_>) -> Decoded<Real> {
    let real = call
        .argument(0)?
        .leaves
        .first()
        .and_then(|leaf| leaf.real)
        .ok_or_else(|| call.unknown())?;
    Ok(if real == Real::F32 { e.single } else { real })
}

/// Applies a scalar translation to each element; the closure gets the element's width in the first argument.
fn elementwise(
    call: &Invocation<'_>,
    mut scalar: impl FnMut(&mut Emitter<'_>, u32, &[Slot]) -> Decoded<Slot>,
    e: &mut Emitter<'_>,
) -> Decoded<Vec<Slot>> {
    let mut result = Vec::new();
    for (i, leaf) in call.result.iter().enumerate() {
        if leaf.bits > 64 || call.argument(0)?.leaves.len() < call.result.len() {
            return Err(call.unknown());
        }
        let operands: Vec<Slot> = call
            .arguments
            .iter()
            .filter_map(|a| a.slots.get(if a.slots.len() == 1 { 0 } else { i }).copied())
            .collect();
        result.push(scalar(e, leaf.bits, &operands)?);
    }
    Ok(result)
}

/// Number of zeros above the highest set bit.
pub(crate) fn count_leading_zeros(e: &mut Emitter<'_>, bits: u32, a: Slot) -> Slot {
    let outside = e.constant(u64::from(64 - bits));
    e.map2(
        row2!(|a, outside| u64::from(a.leading_zeros()) - outside),
        a,
        outside,
    )
}

/// Shifts the double-width number `high:low`; the amount is taken modulo the width.
pub(crate) fn funnel_shift(
    e: &mut Emitter<'_>,
    left: bool,
    bits: u32,
    high: Slot,
    low: Slot,
    amount: Slot,
) -> Slot {
    if bits == 64 {
        let f = if left {
            row3!(|h, l, s| if s & 63 == 0 {
                h
            } else {
                h << (s & 63) | l >> (64 - (s & 63))
            })
        } else {
            row3!(|h, l, s| if s & 63 == 0 {
                l
            } else {
                l >> (s & 63) | h << (64 - (s & 63))
            })
        };
        return e.map3(f, high, low, amount);
    }
    let width = e.constant(u64::from(bits));
    let shift = e.map2(row2!(|s, w| s % w), amount, width);
    if left {
        let kept = e.map2(row2!(|h, s| h << s), high, shift);
        let back = e.map2(row2!(|w, s| w - s), width, shift);
        let filled = e.map2(row2!(|l, s| l >> s), low, back);
        let both = e.map2(row::OR, kept, filled);
        e.truncate(both, bits)
    } else {
        let kept = e.map2(row2!(|l, s| l >> s), low, shift);
        let back = e.map2(row2!(|w, s| w - s), width, shift);
        let filled = e.map2(row2!(|h, s| h << s), high, back);
        let both = e.map2(row::OR, kept, filled);
        e.truncate(both, bits)
    }
}

fn with_overflow(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let bits = call.bits(0)?;
    let elements = call.argument(0)?.slots.len();
    let (op, signed) = match base {
        "uadd.with.overflow" => (IntOp::Add, false),
        "sadd.with.overflow" => (IntOp::Add, true),
        "usub.with.overflow" => (IntOp::Sub, false),
        "ssub.with.overflow" => (IntOp::Sub, true),
        "umul.with.overflow" => (IntOp::Mul, false),
        _ => (IntOp::Mul, true),
    };
    let exact: row::Row3 = match (op, signed) {
        (IntOp::Add, false) => {
            row3!(|a, b, w| u64::from((u128::from(a) + u128::from(b)) >> w != 0))
        }
        (IntOp::Add, true) => row3!(|a, b, w| overflows(wide(a, w) + wide(b, w), w)),
        (IntOp::Sub, false) => row3!(|a, b, _w| u64::from(a < b)),
        (IntOp::Sub, true) => row3!(|a, b, w| overflows(wide(a, w) - wide(b, w), w)),
        (_, false) => row3!(|a, b, w| u64::from((u128::from(a) * u128::from(b)) >> w != 0)),
        (_, true) => row3!(|a, b, w| overflows(wide(a, w) * wide(b, w), w)),
    };
    if bits > 64 {
        return Err(call.unknown());
    }
    let width = e.constant(u64::from(bits));
    let (mut values, mut flags) = (Vec::new(), Vec::new());
    for i in 0..elements {
        let (a, b) = (call.argument(0)?.slots[i], call.argument(1)?.slots[i]);
        values.push(e.int_binary(op, bits, a, b));
        flags.push(e.map3(exact, a, b, width));
    }
    values.extend(flags);
    Ok(values)
}

fn wide(value: u64, bits: u64) -> i128 {
    i128::from(row::sext(value, bits as u32))
}

fn overflows(value: i128, bits: u64) -> u64 {
    let limit = 1i128 << (bits - 1);
    u64::from(value < -limit || value >= limit)
}

/// Whether a value is of one of the classes of a mask, numbered as in [`classify`].
pub(super) fn is_of_class(real: Real) -> Row2 {
    match real {
        Real::F16 => row2!(|a, t| u64::from(classify::<5, 10>(a) & t != 0)),
        Real::BF16 => row2!(|a, t| u64::from(classify::<8, 7>(a) & t != 0)),
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => {
            row2!(|a, t| u64::from(classify::<8, 23>(a) & t != 0))
        }
        Real::F64 => row2!(|a, t| u64::from(classify::<11, 52>(a) & t != 0)),
    }
}

/// LLVM's class bit of a value: signalling NaN, quiet NaN, -inf, -normal, -subnormal, -0, +0, +subnormal, +normal,
/// +inf, lowest bit first.
fn classify<const E: u32, const M: u32>(bits: u64) -> u64 {
    let negative = bits >> (E + M) & 1 == 1;
    let exponent = bits >> M & mask(E);
    let mantissa = bits & mask(M);
    let class = if exponent == mask(E) {
        match (mantissa, negative) {
            (0, true) => 2,
            (0, false) => 9,
            _ => return 1 << (mantissa >> (M - 1) & 1),
        }
    } else {
        let size = match (exponent, mantissa) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        if negative { 5 - size } else { 6 + size }
    };
    1 << class
}

/// `x * 2^n`, rounded once.
fn scale_by_power(x: f64, n: i64) -> f64 {
    // Steps small enough that no intermediate product overflows, or loses bits before the last step.
    let mut n = n.clamp(-2200, 2200);
    let mut x = x;
    while n > 1000 {
        x *= 2f64.powi(1000);
        n -= 1000;
    }
    while n < -900 {
        // Below the normal range only the last step may round: the steps before it stay in the upper range.
        if x.abs() < 2f64.powi(-100) {
            return x * 2f64.powi(-500) * 2f64.powi(-574 + 500);
        }
        x *= 2f64.powi(-900);
        n += 900;
    }
    x * 2f64.powi(n as i32)
}

/// `value * 2^exponent` with the exponent in a row, for each type.
pub(super) fn ldexp(real: Real) -> Row2 {
    match real {
        Real::F16 => row2!(|a, n| Real::F16.encode(scale_by_power(
            Real::F16.decode(a),
            (n as i64).clamp(-100, 100)
        ))),
        Real::BF16 => row2!(|a, n| Real::BF16.encode(scale_by_power(
            Real::BF16.decode(a),
            (n as i64).clamp(-600, 600)
        ))),
        Real::F32Quiet => row2!(|a, n| Real::F32Quiet.encode(scale_by_power(
            Real::F32Quiet.decode(a),
            (n as i64).clamp(-600, 600)
        ))),
        Real::F32 => row2!(|a, n| Real::F32.encode(scale_by_power(
            Real::F32.decode(a),
            (n as i64).clamp(-600, 600)
        ))),
        Real::F32FlushQuiet => {
            row2!(|a, n| Real::F32FlushQuiet.encode(scale_by_power(
                Real::F32FlushQuiet.decode(a),
                (n as i64).clamp(-600, 600)
            )))
        }
        Real::F32Flush => {
            row2!(|a, n| Real::F32Flush.encode(scale_by_power(
                Real::F32Flush.decode(a),
                (n as i64).clamp(-600, 600)
            )))
        }
        Real::F64 => row2!(|a, n| scale_by_power(f64::from_bits(a), n as i64).to_bits()),
    }
}

/// Mantissa in [0.5, 1) and exponent of a finite value other than zero; others keep their value with exponent 0; a
/// signalling NaN becomes quiet.
pub(super) fn split(x: f64) -> (f64, i64) {
    const QUIET: u64 = 1 << 51;
    if x.is_nan() {
        return (f64::from_bits(x.to_bits() | QUIET), 0);
    }
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (x, bias) = if x.is_subnormal() {
        (x * 2f64.powi(64), -64)
    } else {
        (x, 0)
    };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i64 - 1022;
    let mantissa = f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52);
    (mantissa, exponent + bias)
}

/// [`split`] in a format: its mantissa, and its exponent in two's complement of 64 bits.
pub(super) fn split_rows(real: Real) -> (Row1, Row1) {
    match real {
        Real::F16 => (
            row1!(|a| Real::F16.encode(split(Real::F16.decode(a)).0)),
            row1!(|a| split(Real::F16.decode(a)).1 as u64),
        ),
        Real::BF16 => (
            row1!(|a| Real::BF16.encode(split(Real::BF16.decode(a)).0)),
            row1!(|a| split(Real::BF16.decode(a)).1 as u64),
        ),
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => (
            row1!(|a| Real::F32.encode(split(Real::F32.decode(a)).0)),
            row1!(|a| split(Real::F32.decode(a)).1 as u64),
        ),
        Real::F64 => (
            row1!(|a| split(f64::from_bits(a)).0.to_bits()),
            row1!(|a| split(f64::from_bits(a)).1 as u64),
        ),
    }
}

fn frexp(e: &mut Emitter<'_>, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let (mantissa, exponent) = split_rows(real(e, call)?);
    let a = call.scalar(0)?;
    let bits = call.result.get(1).map_or(32, |l| l.bits);
    let (mantissa, exponent) = (e.map1(mantissa, a), e.map1(exponent, a));
    let exponent = e.truncate(exponent, bits);
    Ok(vec![mantissa, exponent])
}

fn vector_reduce(e: &mut Emitter<'_>, op: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let ordered = matches!(op, "fadd" | "fmul");
    let vector = call.argument(usize::from(ordered))?;
    let bits = vector.leaves.first().map_or(0, |l| l.bits);
    let real = vector.leaves.first().and_then(|l| l.real);
    let mut elements = vector.slots.iter().copied();
    let first = if ordered {
        Some(call.scalar(0)?)
    } else {
        elements.next()
    };
    let mut result = first.ok_or_else(|| call.unknown())?;
    let int = match op {
        "add" => Some(IntOp::Add),
        "mul" => Some(IntOp::Mul),
        "and" => Some(IntOp::And),
        "or" => Some(IntOp::Or),
        "xor" => Some(IntOp::Xor),
        "smax" => Some(IntOp::SMax),
        "smin" => Some(IntOp::SMin),
        "umax" => Some(IntOp::UMax),
        "umin" => Some(IntOp::UMin),
        _ => None,
    };
    let float = match op {
        "fadd" => Some(RealOp::Add),
        "fmul" => Some(RealOp::Mul),
        "fmax" => Some(RealOp::MaxNum),
        "fmin" => Some(RealOp::MinNum),
        "fmaximum" => Some(RealOp::Maximum),
        "fminimum" => Some(RealOp::Minimum),
        _ => None,
    };
    for element in elements {
        result = match (int, float, real) {
            (Some(op), _, _) => e.int_binary(op, bits, result, element),
            (_, Some(op), Some(real)) => e.map2(row::real_binary(op, real), result, element),
            _ => return Err(call.unknown()),
        };
    }
    Ok(vec![result])
}

/// memcpy, memmove and memset of a constant size, unrolled; of a variable size, as a loop over bytes.
fn memory_block(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let vendor = e.target.vendor();
    let space = |index: usize| -> Decoded<Space> {
        let number = call.argument(index)?.space.ok_or_else(|| call.unknown())?;
        crate::translate::decode::space_of(vendor, number)
    };
    let set = base.starts_with("memset");
    let to = (call.scalar(0)?, space(0)?);
    let from = if set {
        None
    } else {
        Some((call.scalar(1)?, space(1)?))
    };
    let value = call.scalar(1)?;
    match call.constant(2) {
        Ok(size) if size <= 4096 => {
            let mut pieces = Vec::new();
            let mut at = 0u64;
            let pattern = if set {
                Some(e.map1(row1!(|v| (v & 0xff) * 0x0101_0101_0101_0101), value))
            } else {
                None
            };
            while at < size {
                let bytes = (size - at).min(8).next_power_of_two().min(8);
                let bytes = if bytes > size - at { bytes / 2 } else { bytes };
                let slot = match (pattern, from) {
                    (Some(pattern), _) => pattern,
                    (None, Some((source, space))) => {
                        let slot = e.slot();
                        one_access(e, AccessKind::Load, space, source, at, slot, bytes as u32);
                        slot
                    }
                    (None, None) => return Err(call.unknown()),
                };
                pieces.push((slot, at, bytes));
                at += bytes;
            }
            for (slot, at, bytes) in pieces {
                one_access(e, AccessKind::Store, to.1, to.0, at, slot, bytes as u32);
            }
        }
        _ => {
            // while (i < size) to[i] = from[i];
            let size = call.scalar(2)?;
            let counter = e.slot();
            let zero = e.constant(0);
            e.copy(counter, zero);
            let (header, body, done) = (e.new_block(), e.new_block(), e.new_block());
            let enter = e.edge(header);
            e.terminate(Terminator::Jump(enter));
            e.enter(header);
            let more = e.map2(row2!(|i, n| u64::from(i < n)), counter, size);
            let (then, otherwise) = (e.edge(body), e.edge(done));
            e.terminate(Terminator::Branch {
                condition: more,
                then,
                otherwise,
            });
            e.enter(body);
            let byte = match from {
                Some((source, space)) => {
                    let address = e.map2(row::ADD64, source, counter);
                    let byte = e.slot();
                    one_access(e, AccessKind::Load, space, address, 0, byte, 1);
                    byte
                }
                None => value,
            };
            let address = e.map2(row::ADD64, to.0, counter);
            one_access(e, AccessKind::Store, to.1, address, 0, byte, 1);
            let one = e.constant(1);
            let next = e.map2(row::ADD64, counter, one);
            e.copy(counter, next);
            let back = e.edge(header);
            e.terminate(Terminator::Jump(back));
            e.enter(done);
        }
    }
    Ok(Vec::new())
}

fn one_access(
    e: &mut Emitter<'_>,
    kind: AccessKind,
    space: Space,
    base: Slot,
    offset: u64,
    slot: Slot,
    bytes: u32,
) {
    let address = Address::Flat {
        base,
        offset: offset as i64,
    };
    let part = Part {
        slot,
        offset: 0,
        bytes,
    };
    e.access(kind, space, address, vec![part], 1, false);
}
