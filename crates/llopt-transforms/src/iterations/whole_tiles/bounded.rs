//! Masks by a bound: true at the places whose number `start + offset` is below it, signed.
//!
//! If the offsets are from 0 to `m`, such a mask is true throughout if `start < bound - m`. No sum wraps then: `start` is
//! at most `bound - 1 - m`, so `start + m` is below the bound, and `start` is the least of the numbers. The difference
//! wraps if the bound is within `m` of the least number; then nothing that is not below the least number itself counts as
//! whole, which is only less than could be known.

use llopt_dialects::arith::{AddIOp, CmpIOp, CmpIPredicate, ConstantOp};
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt};
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

/// The most ops that are looked at for how a tensor of numbers is made.
const LONGEST_WAY: u32 = 32;

/// A number that all elements of a tensor are compared with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Bound<'c, 'a> {
    /// A constant.
    Constant(i64),
    /// A scalar of the program.
    Scalar(Value<'c, 'a>),
}

/// A mask by a bound.
#[derive(Clone)]
pub(super) struct Bounded<'c, 'a> {
    /// The comparison.
    pub(super) mask: Value<'c, 'a>,
    /// The scalars whose sum is the first number.
    pub(super) start: Vec<Value<'c, 'a>>,
    /// The largest offset.
    pub(super) farthest: i64,
    /// What the numbers are compared with.
    pub(super) bound: Bound<'c, 'a>,
}

/// A tensor of numbers: a sum of scalars, and an offset that differs from place to place.
struct Numbers<'c, 'a> {
    scalars: Vec<Value<'c, 'a>>,
    /// The range of the offset, its ends included.
    least: i64,
    most: i64,
}

impl<'c: 'a, 'a> Bounded<'c, 'a> {
    /// Whether it is true throughout if and only if another one is.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.start == other.start && self.farthest == other.farthest && self.bound == other.bound
    }

    /// The scalars that decide where it is true.
    pub(super) fn scalars(&self) -> Vec<Value<'c, 'a>> {
        let bound = match self.bound {
            Bound::Constant(_) => None,
            Bound::Scalar(bound) => Some(bound),
        };
        self.start.iter().copied().chain(bound).collect()
    }

    /// The result of an op as such a mask, if it is one.
    pub(super) fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let compare = CmpIOp::of(operation)?;
        let mask = operation.result_value(0)?;
        RankedTensor::of(mask.r#type())?;
        // `x <= y` is `x - 1 < y`.
        let (lower, upper, less) = match compare.predicate()? {
            CmpIPredicate::Slt => (compare.lhs(), compare.rhs(), 0),
            CmpIPredicate::Sle => (compare.lhs(), compare.rhs(), 1),
            CmpIPredicate::Sgt => (compare.rhs(), compare.lhs(), 0),
            CmpIPredicate::Sge => (compare.rhs(), compare.lhs(), 1),
            _ => return None,
        };
        let mut left = LONGEST_WAY;
        let (below, above) = (numbers(lower, &mut left)?, numbers(upper, &mut left)?);
        let bound = match above.scalars[..] {
            _ if above.least != above.most => return None,
            [] => Bound::Constant(above.least),
            [scalar] if above.least == 0 => Bound::Scalar(scalar),
            _ => return None,
        };
        let farthest = below.most - less;
        (below.least >= 0 && farthest >= 0).then_some(Self {
            mask,
            start: below.scalars,
            farthest,
            bound,
        })
    }
}

/// How a tensor of numbers, or a scalar, is made.
fn numbers<'c: 'a, 'a>(value: Value<'c, 'a>, left: &mut u32) -> Option<Numbers<'c, 'a>> {
    *left = left.checked_sub(1)?;
    let constant = |least: i64, most: i64| Numbers {
        scalars: Vec::new(),
        least,
        most,
    };
    if let Some(known) = constant_of(value) {
        return Some(constant(known, known));
    }
    if RankedTensor::of(value.r#type()).is_none() {
        return Some(Numbers {
            scalars: vec![value],
            least: 0,
            most: 0,
        });
    }
    let operation = value.defining_op()?;
    if let Some(sum) = AddIOp::of(operation) {
        let (mut x, y) = (numbers(sum.lhs(), left)?, numbers(sum.rhs(), left)?);
        x.scalars.extend(y.scalars);
        let (least, most) = (x.least.checked_add(y.least)?, x.most.checked_add(y.most)?);
        return Some(Numbers { least, most, ..x });
    }
    let integers = OpFacts::of(operation).integers;
    if integers == Integers::Range {
        let [first, end] = ["start", "end"].map(|name| operation.attr(name)?.as_i64());
        return Some(constant(first?, end?.checked_sub(1)?));
    }
    let is_moved = matches!(
        integers,
        Integers::Splat | Integers::ExpandDims | Integers::Broadcast
    );
    let source = operation.operand_value(0).filter(|_| is_moved)?;
    numbers(source, left)
}

/// The integer that a scalar, or each element of a tensor, is if it is a constant.
pub(super) fn constant_of(value: Value<'_, '_>) -> Option<i64> {
    let known = ConstantOp::defining(value)?.value()?;
    let element = value.r#type().element_or_self();
    if !element.is_integer() {
        return None;
    }
    let unused = 64 - element.bit_width()?.min(64);
    let bits = known.splat_bits().or_else(|| known.as_bits())?;
    Some((bits as i64).wrapping_shl(unused).wrapping_shr(unused))
}
