//! How a matrix unit adds: the arithmetic of a sum of products, which is not that of IEEE additions.
//!
//! A unit adds the products of one instruction, and the accumulator with them, in fixed point. Let `e` be the
//! greatest exponent among the terms, where the exponent of a product is the sum of its factors' exponents (its
//! significand may reach 4, and is not normalised first). Each term is truncated, towards zero, to `kept_bits` bits
//! below `2^e`; the truncated terms are added exactly. A result in single precision is the sum truncated, towards
//! zero, to a number of bits below its own leading bit; one in half precision is the sum rounded to nearest. So the
//! order of the terms does not matter within an instruction, and a small term next to a large one is lost.
//!
//! Worked example, halves on Hopper (25 kept bits): `1 * 1 + 2^-14 * 2^-11` has `e = 0`; the second term's only bit
//! is `2^-25`, the last that is kept, and is lost when the sum is truncated to the 23 bits of a single: the result is
//! 1. With an accumulator of -1 the same term would survive, since the sum's leading bit is then `2^-25` itself.
//!
//! Infinities and NaNs follow IEEE; they take no part in the alignment.
//!
//! No manual documents this. The rows are the results of an H200, bit for bit, on more than 500,000 random elements
//! for each type and each kind of instruction, of halves as results on 12,000 (`tools/gpu/tensor_cores.py`). Units
//! that were not measured have no row.

use super::MatrixElement;
use crate::Target;
use crate::arch::Family;

/// When a unit adds the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccumulatorOrder {
    /// As one of the terms of the sum.
    WithProducts,
    /// After the products: the instruction is executed as two, on operands of twice the width. The first takes the
    /// lower two of the four elements of each register and starts from zero, the second takes the upper two; the
    /// accumulator is added to their sum by a single-precision addition, rounded to nearest.
    AfterTwoHalves,
}

/// How the exact sum of the truncated terms is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SumRounding {
    /// It is truncated, towards zero, to so many bits below its leading bit.
    CutOff(u32),
    /// It is rounded to the nearest number of the result's type, ties to even.
    Nearest,
}

/// The arithmetic of the sums of one kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accumulation {
    /// The number of bits below the leading bit of the greatest term that are kept of every term.
    pub kept_bits: u32,
    /// The rounding of the sum.
    pub rounding: SumRounding,
    /// When the accumulator is added.
    pub order: AccumulatorOrder,
}

/// Products of 16 bits and of `tf32`.
const SINGLE: Accumulation = Accumulation {
    kept_bits: 25,
    rounding: SumRounding::CutOff(23),
    order: AccumulatorOrder::WithProducts,
};

/// Products of eight bits by instructions of one warp.
const BY_HALVES: Accumulation = Accumulation {
    order: AccumulatorOrder::AfterTwoHalves,
    ..SINGLE
};

/// Products of eight bits by instructions of a warp group.
const SHORT: Accumulation = Accumulation {
    kept_bits: 13,
    rounding: SumRounding::CutOff(13),
    order: AccumulatorOrder::WithProducts,
};

/// How `target` adds products of `operand`s into a `result`, in an instruction of one warp or of `warps` warps;
/// `None` if that is not known.
#[must_use]
pub fn accumulation(
    target: Target,
    operand: MatrixElement,
    result: MatrixElement,
    warps: u32,
) -> Option<Accumulation> {
    if target.architecture().family != Family::Hopper {
        return None;
    }
    let narrow = matches!(operand, MatrixElement::E4m3 | MatrixElement::E5m2);
    let single = match operand {
        MatrixElement::F16 | MatrixElement::Bf16 | MatrixElement::Tf32 => SINGLE,
        _ if narrow && warps == 1 => BY_HALVES,
        _ if narrow => SHORT,
        _ => return None,
    };
    match result {
        MatrixElement::F32 => Some(single),
        MatrixElement::F16 if single.order == AccumulatorOrder::WithProducts => {
            Some(Accumulation {
                rounding: SumRounding::Nearest,
                ..single
            })
        }
        _ => None,
    }
}
