//! Integer operations on rows, for the widths that hardware has.
//!
//! A value has its bits in the low end of a row's element, and zeros above: signed operations extend the sign, and every
//! result is masked to its width. Where LLVM calls the result poison or undefined, it is fixed: shifts by too much give 0 (or
//! the sign), and division by zero gives all ones.

use super::{Row2, mask, row2, sext};
use crate::translate::ir::IntPredicate;

/// Integer operations of two operands and one result of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
    UMin,
    UMax,
    SMin,
    SMax,
    MulHiU,
    MulHiS,
    UAddSat,
    SAddSat,
    USubSat,
    SSubSat,
}

fn int2<const B: u32>(op: IntOp) -> Row2 {
    use IntOp as I;
    match op {
        I::Add => row2!(|a, b| a.wrapping_add(b) & mask(B)),
        I::Sub => row2!(|a, b| a.wrapping_sub(b) & mask(B)),
        I::Mul => row2!(|a, b| a.wrapping_mul(b) & mask(B)),
        I::UDiv => row2!(|a, b| a.checked_div(b).unwrap_or(mask(B))),
        I::URem => row2!(|a, b| a.checked_rem(b).unwrap_or(a)),
        I::SDiv => row2!(|a, b| {
            let (x, y) = (sext(a, B), sext(b, B));
            let q = if y == 0 { -1 } else { x.wrapping_div(y) };
            q as u64 & mask(B)
        }),
        I::SRem => row2!(|a, b| {
            let (x, y) = (sext(a, B), sext(b, B));
            let r = if y == 0 { x } else { x.wrapping_rem(y) };
            r as u64 & mask(B)
        }),
        I::And => row2!(|a, b| a & b),
        I::Or => row2!(|a, b| a | b),
        I::Xor => row2!(|a, b| a ^ b),
        I::Shl => row2!(|a, b| if b < u64::from(B) {
            a << b & mask(B)
        } else {
            0
        }),
        I::LShr => row2!(|a, b| if b < u64::from(B) { a >> b } else { 0 }),
        I::AShr => row2!(|a, b| (sext(a, B) >> b.min(63)) as u64 & mask(B)),
        I::UMin => row2!(|a, b| a.min(b)),
        I::UMax => row2!(|a, b| a.max(b)),
        I::SMin => row2!(|a, b| if sext(a, B) < sext(b, B) { a } else { b }),
        I::SMax => row2!(|a, b| if sext(a, B) > sext(b, B) { a } else { b }),
        I::MulHiU => {
            row2!(|a, b| ((u128::from(a) * u128::from(b)) >> B) as u64 & mask(B))
        }
        I::MulHiS => row2!(|a, b| {
            ((i128::from(sext(a, B)) * i128::from(sext(b, B))) >> B) as u64 & mask(B)
        }),
        I::UAddSat => row2!(|a, b| (u128::from(a) + u128::from(b)).min(u128::from(mask(B))) as u64),
        I::USubSat => row2!(|a, b| a.saturating_sub(b)),
        I::SAddSat => {
            row2!(|a, b| clamp_signed(i128::from(sext(a, B)) + i128::from(sext(b, B)), B))
        }
        I::SSubSat => {
            row2!(|a, b| clamp_signed(i128::from(sext(a, B)) - i128::from(sext(b, B)), B))
        }
    }
}

fn clamp_signed(value: i128, bits: u32) -> u64 {
    let top = (1i128 << (bits - 1)) - 1;
    value.clamp(-top - 1, top) as u64 & mask(bits)
}

/// The row function of an integer operation of a given width, for the widths hardware has; `None` for others.
pub(crate) fn int_binary(op: IntOp, bits: u32) -> Option<Row2> {
    Some(match bits {
        1 => int2::<1>(op),
        8 => int2::<8>(op),
        16 => int2::<16>(op),
        32 => int2::<32>(op),
        64 => int2::<64>(op),
        _ => return None,
    })
}

fn compare<const B: u32>(predicate: IntPredicate) -> Row2 {
    use IntPredicate as P;
    match predicate {
        P::LLVMIntEQ => row2!(|a, b| u64::from(a == b)),
        P::LLVMIntNE => row2!(|a, b| u64::from(a != b)),
        P::LLVMIntUGT => row2!(|a, b| u64::from(a > b)),
        P::LLVMIntUGE => row2!(|a, b| u64::from(a >= b)),
        P::LLVMIntULT => row2!(|a, b| u64::from(a < b)),
        P::LLVMIntULE => row2!(|a, b| u64::from(a <= b)),
        P::LLVMIntSGT => row2!(|a, b| u64::from(sext(a, B) > sext(b, B))),
        P::LLVMIntSGE => row2!(|a, b| u64::from(sext(a, B) >= sext(b, B))),
        P::LLVMIntSLT => row2!(|a, b| u64::from(sext(a, B) < sext(b, B))),
        P::LLVMIntSLE => row2!(|a, b| u64::from(sext(a, B) <= sext(b, B))),
    }
}

/// Comparison of integers of a given width; `None` for widths hardware lacks.
pub(crate) fn int_compare(predicate: IntPredicate, bits: u32) -> Option<Row2> {
    Some(match bits {
        1 => compare::<1>(predicate),
        8 => compare::<8>(predicate),
        16 => compare::<16>(predicate),
        32 => compare::<32>(predicate),
        64 => compare::<64>(predicate),
        _ => return None,
    })
}
