//! The numbers between which integers are known to be.
//!
//! # Theory
//!
//! A range `[a, b]` is claimed of a signed integer, or of each element of a tensor of integers. The operations on ranges are
//! those of interval arithmetic: the range of a result has all numbers `f(x, y)` of `x` and `y` in the ranges of the operands,
//! as if numbers had no end. If it leaves the numbers of the result's type, the result may have wrapped, and all that is known
//! of it is its type. So every range is a claim about the value that the program computes. For instance
//!
//! ```text
//! p                       the number of a program      [0, 2^31 - 1]
//! p rem 4                                              [0, 3]
//! min(n, 4) - p rem 4     n is an argument             [-2^31, 4], since -2^31 - 3 wraps: the whole type
//! ```
//!
//! Nothing is known of how two values are related: `x - x` may be anything between `a - b` and `b - a`. What loops carry is not
//! followed, but for the variable that counts their iterations.

use std::collections::HashMap;

use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::{arith, tt};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt, key};
use melior::ir::{BlockLike, OperationRef, Type, Value, ValueLike};

use crate::loops::view::For;

/// How many ops are followed backwards from a value.
const MOST_DEPTH: u32 = 64;

/// The numbers between which an integer, or each element of a tensor of integers, is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) least: i128,
    pub(crate) most: i128,
}

impl Range {
    pub(crate) fn of_one(number: i128) -> Self {
        Self {
            least: number,
            most: number,
        }
    }

    /// The range of a value; `known` keeps those of values from which it is computed.
    pub(crate) fn of(value: Value<'_, '_>, known: &mut HashMap<usize, Self>) -> Self {
        Self::within(value, known, MOST_DEPTH)
    }

    /// All numbers of a type.
    pub(crate) fn whole(r#type: Type<'_>) -> Self {
        let bits = r#type
            .element_or_self()
            .bit_width()
            .unwrap_or(64)
            .clamp(1, 64);
        Self {
            least: -(1 << (bits - 1)),
            most: (1 << (bits - 1)) - 1,
        }
    }

    fn within(value: Value<'_, '_>, known: &mut HashMap<usize, Self>, depth: u32) -> Self {
        let whole = Self::whole(value.r#type());
        if depth == 0 {
            return whole;
        }
        if let Some(&range) = known.get(&key(value)) {
            return range;
        }
        let found = match value.defining_op() {
            Some(made) => Self::made(made, known, depth - 1),
            None => Self::counted(value, known, depth - 1),
        };
        // A value beyond the type's range has wrapped, and may be anything.
        let range = found.filter(|range| whole.least <= range.least && range.most <= whole.most);
        let range = range.unwrap_or(whole);
        known.insert(key(value), range);
        range
    }

    /// The range of the number of a loop's iteration: from the lower bound to the number before the upper one.
    fn counted(value: Value<'_, '_>, known: &mut HashMap<usize, Self>, depth: u32) -> Option<Self> {
        let of = For::of(value.argument_of()?.0.parent_operation()?)?;
        let [lower, upper, step] = of.bounds().map(|bound| Self::within(bound, known, depth));
        let is_plain = !of.is_unsigned() || lower.least >= 0 && upper.least >= 0;
        (of.number() == value && is_plain && step.least > 0).then_some(())?;
        (lower.least < upper.most).then(|| Self {
            least: lower.least,
            most: upper.most - 1,
        })
    }

    /// The range of an op's result from those of its operands, before it wraps.
    fn made(
        operation: OperationRef<'_, '_>,
        known: &mut HashMap<usize, Self>,
        depth: u32,
    ) -> Option<Self> {
        let mut operand = |index| Some(Self::within(operation.operand_value(index)?, known, depth));
        if let Some(op) = arith::Op::of(operation) {
            return Self::made_by_arithmetic(op, &mut operand);
        }
        match OpFacts::of(operation).integers {
            Integers::Range => tt::MakeRangeOp::of(operation).map(|range| Self {
                least: range.start().into(),
                most: i128::from(range.end()) - 1,
            }),
            Integers::Same
            | Integers::Splat
            | Integers::Element
            | Integers::Broadcast
            | Integers::ExpandDims
            | Integers::Transpose
            | Integers::Reshape
            | Integers::Split => operand(0),
            Integers::Program => Some(Self::up_to(i32::MAX.into())),
            Integers::Unknown
            | Integers::Bits
            | Integers::Elementwise
            | Integers::IfPure
            | Integers::Read
            | Integers::Join
            | Integers::Concatenate
            | Integers::Address => None,
        }
    }

    /// The same for an op of `arith`, whose operands have these ranges.
    fn made_by_arithmetic(
        op: arith::Op<'_, '_>,
        operand: &mut dyn FnMut(usize) -> Option<Self>,
    ) -> Option<Self> {
        match op {
            arith::Op::Constant(constant) => {
                let value = constant.operation().attr("value")?;
                let result = constant.operation().result_value(0)?;
                let bits = result.r#type().element_or_self().bit_width()?;
                let number = value.splat_bits().or_else(|| value.as_bits())?;
                let number = (number << (64 - bits.clamp(1, 64))).cast_signed();
                Some(Self::of_one(i128::from(number >> (64 - bits.clamp(1, 64)))))
            }
            arith::Op::AddI(_) => operand(0)?.plus(operand(1)?),
            arith::Op::SubI(_) => operand(0)?.plus(operand(1)?.negated()?),
            arith::Op::MulI(_) => operand(0)?.times(operand(1)?),
            arith::Op::RemSI(_) => operand(0)?.remainder(operand(1)?),
            arith::Op::DivSI(_) => operand(0)?.quotient(operand(1)?),
            arith::Op::RemUI(_) => {
                let of = operand(0).filter(|of| of.least >= 0)?;
                of.remainder(operand(1)?)
            }
            arith::Op::DivUI(_) => {
                let of = operand(0).filter(|of| of.least >= 0)?;
                of.quotient(operand(1)?)
            }
            arith::Op::MinSI(_) => Some(operand(0)?.smaller(operand(1)?)),
            arith::Op::MaxSI(_) => Some(operand(0)?.larger(operand(1)?)),
            arith::Op::Select(_) => Some(operand(1)?.or(operand(2)?)),
            arith::Op::AndI(_) => {
                let counted = [operand(0)?, operand(1)?].into_iter();
                let counted = counted.filter(|range| range.least >= 0);
                counted.map(|range| range.most).min().map(Self::up_to)
            }
            arith::Op::ExtSI(_) | arith::Op::TruncI(_) => operand(0),
            arith::Op::ExtUI(_) => operand(0).filter(|range| range.least >= 0),
            arith::Op::OrI(_)
            | arith::Op::XOrI(_)
            | arith::Op::MinUI(_)
            | arith::Op::MaxUI(_)
            | arith::Op::AddF(_)
            | arith::Op::MaximumF(_)
            | arith::Op::MinimumF(_)
            | arith::Op::MaxNumF(_)
            | arith::Op::MinNumF(_)
            | arith::Op::DivF(_)
            | arith::Op::CeilDivSI(_)
            | arith::Op::CeilDivUI(_)
            | arith::Op::FloorDivSI(_)
            | arith::Op::RemF(_)
            | arith::Op::SubF(_)
            | arith::Op::MulF(_)
            | arith::Op::NegF(_)
            | arith::Op::ShLI(_)
            | arith::Op::ShRSI(_)
            | arith::Op::ShRUI(_)
            | arith::Op::CmpF(_)
            | arith::Op::CmpI(_)
            | arith::Op::Bitcast(_)
            | arith::Op::ExtF(_)
            | arith::Op::TruncF(_)
            | arith::Op::ScalingExtF(_)
            | arith::Op::ScalingTruncF(_)
            | arith::Op::SIToFP(_)
            | arith::Op::UIToFP(_)
            | arith::Op::FPToSI(_)
            | arith::Op::FPToUI(_)
            | arith::Op::IndexCast(_)
            | arith::Op::IndexCastUI(_)
            | arith::Op::AddUIExtended(_)
            | arith::Op::MulSIExtended(_)
            | arith::Op::MulUIExtended(_) => None,
        }
    }

    /// Of a number that is not negative.
    fn up_to(most: i128) -> Self {
        Self { least: 0, most }
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            least: self.least.checked_add(other.least)?,
            most: self.most.checked_add(other.most)?,
        })
    }

    fn negated(self) -> Option<Self> {
        Some(Self {
            least: self.most.checked_neg()?,
            most: self.least.checked_neg()?,
        })
    }

    fn times(self, other: Self) -> Option<Self> {
        let mut products = Vec::new();
        for one in [self.least, self.most] {
            for two in [other.least, other.most] {
                products.push(one.checked_mul(two)?);
            }
        }
        Some(Self {
            least: *products.iter().min()?,
            most: *products.iter().max()?,
        })
    }

    /// Quotients, rounded towards zero, by positive divisors: each end by the divisor that brings it farthest from the other.
    fn quotient(self, by: Self) -> Option<Self> {
        (by.least > 0).then(|| Self {
            least: self.least / if self.least < 0 { by.least } else { by.most },
            most: self.most / if self.most < 0 { by.most } else { by.least },
        })
    }

    /// Remainders of division by positive divisors: smaller than the divisor, no farther from zero than the dividend, and of
    /// its sign.
    fn remainder(self, by: Self) -> Option<Self> {
        (by.least > 0).then(|| Self {
            least: self.least.max(1 - by.most).min(0),
            most: self.most.min(by.most - 1).max(0),
        })
    }

    fn smaller(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.min(other.most),
        }
    }

    fn larger(self, other: Self) -> Self {
        Self {
            least: self.least.max(other.least),
            most: self.most.max(other.most),
        }
    }

    /// What is in either.
    fn or(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_the_results_for_all_pairs_of_numbers() {
        let ranges: Vec<Range> = (-3..4)
            .flat_map(|least| (least..4).map(move |most| Range { least, most }))
            .collect();
        for one in &ranges {
            for two in &ranges {
                let all = |f: fn(i128, i128) -> i128| {
                    let pairs = (one.least..=one.most)
                        .flat_map(|x| (two.least..=two.most).map(move |y| f(x, y)));
                    let all: Vec<i128> = pairs.collect();
                    Range {
                        least: *all.iter().min().unwrap(),
                        most: *all.iter().max().unwrap(),
                    }
                };
                assert_eq!(one.plus(*two), Some(all(|x, y| x + y)));
                assert_eq!(one.times(*two), Some(all(|x, y| x * y)));
                assert_eq!(one.negated(), Some(all(|x, _| -x)));
                assert_eq!(one.smaller(*two), all(|x, y| x.min(y)));
                assert_eq!(one.larger(*two), all(|x, y| x.max(y)));
                assert_eq!(two.least > 0, one.quotient(*two).is_some());
                if let Some(quotient) = one.quotient(*two) {
                    assert_eq!(quotient, all(|x, y| x / y));
                }
                if let Some(remainder) = one.remainder(*two) {
                    let all = all(|x, y| x % y);
                    assert!(remainder.least <= all.least && all.most <= remainder.most);
                }
            }
        }
    }
}
