//! Operations on rows: one value of every lane, computed by one call.
//!
//! A *row* is a slice with one `u64` per lane, the bits of a value of at most 64 bits, zero-extended. An operation is
//! a plain function from rows to a row, so that interpreting one instruction for a whole warp costs one indirect
//! call and a loop that the compiler vectorises. Functions are total: inactive lanes hold any bits, and their
//! results are dropped by the machine. Parameters of an operation (a shift, a mask) are rows of constants.
//!
//! Here are the operations that move bits; those on numbers are in `integer` and `real`. Results that LLVM calls poison or
//! undefined are fixed there, the same on both vendors.

mod integer;
mod real;

pub(crate) use integer::{IntOp, int_binary, int_compare};
pub(crate) use real::{
    NAN_F32, Real, RealFunction, RealOp, f32_of, flush, int_to_real, is_tiny, of_f32, real_abs,
    real_binary, real_compare, real_convert, real_fma, real_function, real_negate, real_to_int,
};

/// One value of every lane.
pub(crate) type Row<const W: usize> = [u64; W];

/// Number of a row in a frame.
pub(crate) type Slot = u32;

/// The lanes of a mask, lowest first.
#[inline]
pub(crate) fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros() as usize;
        left &= left - 1;
        Some(lane)
    })
}

/// One row from one.
pub(crate) type Row1 = fn(&mut [u64], &[u64]);
/// One row from two.
pub(crate) type Row2 = fn(&mut [u64], &[u64], &[u64]);
/// One row from three.
pub(crate) type Row3 = fn(&mut [u64], &[u64], &[u64], &[u64]);

/// A [`Row1`] from an expression on one lane's bits.
macro_rules! row1 {
    (|$a:ident| $e:expr) => {
        (|d: &mut [u64], x: &[u64]| {
            for (d, &$a) in d.iter_mut().zip(x) {
                *d = $e;
            }
        }) as $crate::machine::row::Row1
    };
}
/// A [`Row2`] from an expression on one lane's bits.
macro_rules! row2 {
    (|$a:ident, $b:ident| $e:expr) => {
        (|d: &mut [u64], x: &[u64], y: &[u64]| {
            for ((d, &$a), &$b) in d.iter_mut().zip(x).zip(y) {
                *d = $e;
            }
        }) as $crate::machine::row::Row2
    };
}
/// A [`Row3`] from an expression on one lane's bits.
macro_rules! row3 {
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        (|d: &mut [u64], x: &[u64], y: &[u64], z: &[u64]| {
            for (((d, &$a), &$b), &$c) in d.iter_mut().zip(x).zip(y).zip(z) {
                *d = $e;
            }
        }) as $crate::machine::row::Row3
    };
}
pub(crate) use {row1, row2, row3};

/// The low `bits` bits set.
#[inline]
pub(crate) const fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Sign-extends the low `bits` bits.
#[inline]
pub(crate) const fn sext(value: u64, bits: u32) -> i64 {
    if bits == 0 {
        return 0;
    }
    let shift = 64 - bits;
    ((value << shift) as i64) >> shift
}

/// `value` sign-extended from 64 minus `shift` bits.
pub(crate) const SIGN_EXTEND: Row2 =
    row2!(|a, shift| (((a << (shift & 63)) as i64) >> (shift & 63)) as u64);
/// Bitwise and.
pub(crate) const AND: Row2 = row2!(|a, b| a & b);
/// Bitwise or.
pub(crate) const OR: Row2 = row2!(|a, b| a | b);
/// Bitwise exclusive or.
pub(crate) const XOR: Row2 = row2!(|a, b| a ^ b);
/// Wrapping 64-bit sum.
pub(crate) const ADD64: Row2 = row2!(|a, b| a.wrapping_add(b));
/// `value * factor + base` on 64 bits: the addressing step.
pub(crate) const SCALE_ADD: Row3 =
    row3!(|base, value, factor| base.wrapping_add(value.wrapping_mul(factor)));
/// Copies.
pub(crate) const COPY: Row1 = row1!(|a| a);
/// `condition ? a : b`.
pub(crate) const SELECT: Row3 = row3!(|c, a, b| if c & 1 != 0 { a } else { b });
/// `low | high << shift`.
pub(crate) const INSERT_BITS: Row3 = row3!(|low, high, shift| low | high << (shift & 63));
/// `value >> shift & mask`.
pub(crate) const EXTRACT_BITS: Row3 = row3!(|value, shift, mask| value >> (shift & 63) & mask);
