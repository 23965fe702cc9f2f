//! Integers and floats of eight bits and floats of four bits to floats of sixteen bits, in words, without conversion
//! instructions.
//!
//! The conversion units take one number at a time. For so few bits, permutes of bytes and arithmetic on pairs do the
//! same:
//!
//! * An integer in the low bits of the float 2^p, with p the bits of the mantissa, gives the number 2^p plus the
//!   integer; one subtraction removes 2^p. The mantissa of `f16` holds eight bits, so this works once a signed integer is
//!   made non-negative. That of `bf16` holds seven. But if the exponent is 0 or 1, a number is its bits times 2^-133,
//!   since denormal numbers have the spacing of the first normal ones. So eight bits alone are such a number. A
//!   product with 2^127, then one with 2^6 with -128 added, give the integer exactly; they run in another unit than
//!   the permutes.
//! * A float of eight bits with the exponent of `f16` (e5m2) is the upper byte of an `f16`, for every code.
//! * A float of four bits is a `bf16` with one of the exponents 0 to 3, denormal numbers included, times 2^126: once
//!   its bits are in place, one product with that constant is enough. `prmt` puts the codes of two pairs at the same
//!   positions of both halves of a word, since a word that is shifted by a code has the first code of a pair where
//!   the word itself has the second.
//! * Without arithmetic on pairs of `bf16`, and for `f16`, a float of four bits is one of eight magnitudes and a
//!   sign. `prmt` looks up four bytes at once in a table of eight, since the digits of its selector are codes in a
//!   word; only their signs have to be cleared, because `prmt` would take them as the request to replicate a sign.
//!   The signs are replicated to bytes and inserted again.

use llopt_plan::element::Element;
use llopt_target::{Feature, Target};

use super::shared::permute_bytes;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::values::element::LlvmType;

/// An unsigned constant of 32 bits.
fn word<'ctx>(e: &Emitter<'ctx>, bits: u32) -> V<'ctx> {
    e.i32(i64::from(bits.cast_signed()))
}

/// The four integers of a word, signed or not, the lowest first, as `f16` or `bf16`.
pub fn widen_int8<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    integers: V<'ctx>,
    is_signed: bool,
    to: Element,
) -> Option<Vec<V<'ctx>>> {
    let pairs = e.vector(to.llvm(e.context), 2).into();
    let as_pair = |bits: V<'ctx>| e.bitcast(bits, pairs);
    // The lower and the upper two, each below a byte of the exponent.
    let spread = |integers: V<'ctx>, exponent: u32| {
        [[0, 4, 1, 4], [2, 4, 3, 4]]
            .map(|places| permute_bytes(e, integers, word(e, exponent), places))
    };
    // With 128 added if they are signed.
    let non_negative = || match is_signed {
        true => e.xor(integers, word(e, 0x8080_8080)),
        false => integers,
    };
    let results = match to {
        Element::F16 => {
            // 1024 plus what was added to the integers.
            let excess = if is_signed { 0x6480_6480 } else { 0x6400_6400 };
            let excess = as_pair(word(e, excess));
            spread(non_negative(), 0x64).map(|sums| e.fsub(as_pair(sums), excess))
        }
        Element::Bf16 if target.has(Feature::Bf16MultiplyAdd) => {
            let multiply_add = |factors: [V<'ctx>; 2], sum| {
                e.intrinsic("llvm.fma", &[pairs], &[factors[0], factors[1], sum])
            };
            // 2^127 and -0, 2^6 and -128 or -0.
            let excess = if is_signed { 0xc300_c300 } else { 0x8000_8000 };
            let [large, nothing, small, excess] =
                [0x7f00_7f00, 0x8000_8000, 0x4280_4280, excess].map(|bits| as_pair(word(e, bits)));
            spread(non_negative(), 0).map(|tiny| {
                let scaled = multiply_add([as_pair(tiny), large], nothing);
                multiply_add([scaled, small], excess)
            })
        }
        _ => return None,
    };
    Some(
        results
            .into_iter()
            .flat_map(|pair| e.unpack(pair))
            .collect(),
    )
}

/// The four floats of eight bits (e5m2) of a word, the lowest first, as `f16`.
pub fn widen_e5m2<'ctx>(e: &Emitter<'ctx>, codes: V<'ctx>) -> Vec<V<'ctx>> {
    let pairs = e.vector(Element::F16.llvm(e.context), 2).into();
    let spread =
        [[4, 0, 4, 1], [4, 2, 4, 3]].map(|places| permute_bytes(e, codes, e.i32(0), places));
    spread
        .into_iter()
        .flat_map(|pair| e.unpack(e.bitcast(pair, pairs)))
        .collect()
}

/// The eight floats of four bits (e2m1) of a word, the lowest first, as `f16` or `bf16`.
pub fn widen_fp4<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    codes: V<'ctx>,
    to: Element,
) -> Option<Vec<V<'ctx>>> {
    match to {
        Element::Bf16 if target.has(Feature::Bf16MultiplyAdd) => Some(scaled_fp4(e, codes)),
        _ => looked_up_fp4(e, codes, to),
    }
}

/// As `bf16`, by the exponents that the codes have.
///
/// Of 19 instructions for eight codes, ten are executed by the logic unit, which is half as fast as the others; a
/// table takes 26 instructions, of which 16 are, and a register for each constant of its permutes.
fn scaled_fp4<'ctx>(e: &Emitter<'ctx>, codes: V<'ctx>) -> Vec<V<'ctx>> {
    let pair = e.vector(Element::Bf16.llvm(e.context), 2).into();
    let unit = e.bitcast(word(e, 0x7e80_7e80), pair);
    let before = e.shl(codes, e.i32(4));
    let mut values = Vec::with_capacity(8);
    for bytes in [[0, 1, 4, 5], [2, 3, 6, 7]] {
        // In each half, one code in bits 4 to 7, and the one after the next in bits 12 to 15.
        let two_pairs = permute_bytes(e, before, codes, bytes);
        let signs = e.and(two_pairs, word(e, 0x8080_8080));
        for (magnitudes, signs) in [
            (e.shl(two_pairs, e.i32(2)), e.shl(signs, e.i32(8))),
            (e.lshr(two_pairs, e.i32(6)), signs),
        ] {
            // The sign of the other pair occupies bits of the magnitudes, which replace it.
            let bits = choose_bits(e, 0x01c0_01c0, magnitudes, signs);
            values.extend(e.unpack(e.fmul(e.bitcast(bits, pair), unit)));
        }
    }
    values
}

/// The bits of one word where the mask has ones, and of another elsewhere. Written as operations of two operands it
/// is split: the mask of the signs becomes one for each pair.
fn choose_bits<'ctx>(e: &Emitter<'ctx>, mask: u32, ones: V<'ctx>, zeros: V<'ctx>) -> V<'ctx> {
    // A table of eight bits: those of (a & b) | (~a & c), where a, b and c are 0xf0, 0xcc and 0xaa.
    let table = (0xf0 & 0xcc) | (!0xf0 & 0xaa);
    e.inline_asm(
        &format!("lop3.b32 $0, {mask}, $1, $2, {table};"),
        "=r,r,r",
        &[e.int(32).into()],
        &[ones, zeros],
        AsmEffect::Pure,
    )[0]
}

/// As `f16` or `bf16`, by a table.
fn looked_up_fp4<'ctx>(e: &Emitter<'ctx>, codes: V<'ctx>, to: Element) -> Option<Vec<V<'ctx>>> {
    // The bytes for the magnitudes 0 to 3 and 4 to 7: 0, 0.5, 1, 1.5 and 2, 3, 4, 6.
    let (upper, lower) = match to {
        Element::F16 => ([0x3e3c_3800, 0x4644_4240], None),
        Element::Bf16 => ([0x3f3f_3f00, 0x4040_4040], Some([0xc080_0000, 0xc080_4000])),
        _ => return None,
    };
    let magnitudes = e.and(codes, word(e, 0x7777_7777));
    let pair = e.vector(to.llvm(e.context), 2).into();
    let mut values = Vec::with_capacity(8);
    for (digits, bytes) in [
        (magnitudes, [0, 0, 1, 1]),
        (e.lshr(magnitudes, e.i32(16)), [2, 2, 3, 3]),
    ] {
        let look_up = |[low, high]: [u32; 2]| {
            e.intrinsic(
                "llvm.nvvm.prmt",
                &[],
                &[word(e, low), word(e, high), digits],
            )
        };
        // A byte has two codes: of its two copies the upper keeps the sign of the second, the lower that of the first.
        let copies = permute_bytes(e, codes, codes, bytes);
        let second = e.and(copies, word(e, 0x8000_8000));
        let first = e.and(e.shl(copies, e.i32(4)), word(e, 0x0080_0080));
        let upper = e.or(e.or(look_up(upper), second), first);
        let lower = lower.map_or(e.i32(0), look_up);
        for places in [[0, 4, 1, 5], [2, 6, 3, 7]] {
            let both = permute_bytes(e, lower, upper, places);
            values.extend(e.unpack(e.bitcast(both, pair)));
        }
    }
    Some(values)
}
