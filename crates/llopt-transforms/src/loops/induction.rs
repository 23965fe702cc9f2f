//! The values of induction variables with constant bounds, and the most iterations where only the distance of the bounds is
//! constant, or bounded.
//!
//! A program that computes a tile on the diagonal loops from `128 p` to `128 (p + 1)`. Bounds are linear functions of
//! values, modulo the numbers of their type, and so is their distance. If that is a constant `d >= 0`, the upper bound is
//! `d` above the lower one, or it has wrapped and is below it, and there is no iteration. Otherwise the ranges (`ranges.rs`)
//! of the bounds say how far apart they may be: a loop over the blocks of a row that come before the program's own, of four in
//! all, has at most three iterations.

use std::collections::HashMap;

use llopt_dialects::arith::{
    AddIOp, CmpIOp, CmpIPredicate, ConstantOp, MaxSIOp, MulIOp, ShLIOp, SubIOp, TruncIOp,
};
use llopt_dialects::llvm::AssumeOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt};
use melior::ir::{OperationRef, Value, ValueLike};

use super::view::For;
use crate::ranges::Range;

/// The numbers `lower`, `lower + step`, … below `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The first number, if there is one.
    pub lower: i64,
    /// All numbers are below it.
    pub upper: i64,
    /// The difference of neighbours; at least one.
    pub step: i64,
}

impl Numbers {
    /// The numbers of a loop whose bounds are constants.
    pub fn of(of: For<'_, '_>) -> Option<Self> {
        let numbers = Self {
            lower: constant(of.lower())?,
            upper: constant(of.upper())?,
            step: constant(of.step())?,
        };
        // For unsigned comparisons, negative numbers are large ones.
        let is_plain = !of.is_unsigned() || (numbers.lower >= 0 && numbers.upper >= 0);
        (numbers.step > 0 && is_plain).then_some(numbers)
    }

    /// How many there are.
    pub fn count(self) -> u64 {
        if self.lower >= self.upper {
            return 0;
        }
        self.upper
            .abs_diff(self.lower)
            .div_ceil(self.step.unsigned_abs())
    }

    /// The number at a position; it may be beyond the last. Numbers wrap, as those of the program do.
    pub fn at(self, position: u64) -> i64 {
        let distance = self.step.wrapping_mul(position.cast_signed());
        self.lower.wrapping_add(distance)
    }

    /// The last number.
    pub fn last(self) -> Option<i64> {
        Some(self.at(self.count().checked_sub(1)?))
    }
}

fn users_of<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    operation.result_values().flat_map(|value| value.users())
}

/// Whether a loop is known to have an iteration at its place: by its bounds, because the upper one is the larger of some
/// number and one above the lower one, or by a promise (`llvm.intr.assume`).
pub(crate) fn runs(of: For<'_, '_>) -> bool {
    if let Some(numbers) = Numbers::of(of) {
        return numbers.count() > 0;
    }
    let (lower, upper) = (of.lower(), of.upper());
    let larger = MaxSIOp::defining(upper).filter(|_| !of.is_unsigned());
    let numbers = larger.into_iter().flat_map(|of| [of.lhs(), of.rhs()]);
    if constant(lower).is_some_and(|lower| {
        let mut above = numbers.filter_map(constant);
        above.any(|number| number > lower)
    }) {
        return true;
    }
    let [below, above] = match of.is_unsigned() {
        true => [CmpIPredicate::Ult, CmpIPredicate::Ugt],
        false => [CmpIPredicate::Slt, CmpIPredicate::Sgt],
    }
    .map(Some);
    upper.users().filter_map(CmpIOp::of).any(|compared| {
        let (x, y) = (compared.lhs(), compared.rhs());
        let is_below = compared.predicate() == below && (x, y) == (lower, upper);
        let is_above = compared.predicate() == above && (x, y) == (upper, lower);
        // The promise is in the same block, before the loop.
        let promised = |user: OperationRef<'_, '_>| {
            AssumeOp::of(user).is_some()
                && user.parent_block() == of.operation().parent_block()
                && user.is_before(of.operation())
        };
        (is_below || is_above) && users_of(compared.operation()).any(promised)
    })
}

/// The most iterations that a loop may have, where that is known.
pub fn most_iterations(of: For<'_, '_>) -> Option<u64> {
    let step = constant(of.step()).filter(|step| *step > 0)?;
    let distance = constant_sum(&[(of.upper(), 1), (of.lower(), -1)]);
    let distance = distance.and_then(|length| u64::try_from(length).ok());
    let length = distance.or_else(|| longest(of))?;
    Some(length.div_ceil(step.unsigned_abs()))
}

/// The largest distance of the upper bound from the lower one by the ranges of both, if the one that limits it is known. A
/// bound that is narrowed to the loop's type is taken for the number that it was before: only choices depend on the result.
fn longest(of: For<'_, '_>) -> Option<u64> {
    let mut known = HashMap::new();
    let [below, above] = [of.lower(), of.upper()]
        .map(|bound| TruncIOp::defining(bound).map_or(bound, TruncIOp::r#in));
    let [lower, upper] = [below, above].map(|bound| Range::of(bound, &mut known));
    let is_plain = !of.is_unsigned() || lower.least >= 0 && upper.least >= 0;
    let whole = Range::whole(above.r#type());
    let is_known =
        is_plain && upper.most < whole.most && lower.least > Range::whole(below.r#type()).least;
    let length = upper.most.checked_sub(lower.least)?.max(0);
    u64::try_from(length).ok().filter(|_| is_known)
}

/// The sum of multiples of values of one type, modulo its numbers and as a signed one, if it is a constant.
pub(super) fn constant_sum(multiples: &[(Value<'_, '_>, i64)]) -> Option<i64> {
    let bits = multiples.first()?.0.r#type().bit_width()?;
    let unused = u64::BITS.checked_sub(bits)?;
    let mut sum = Linear::default();
    for &(value, factor) in multiples {
        sum.add(value, factor, DEEPEST);
    }
    let is_zero = |factor: i64| factor.checked_shl(unused).unwrap_or(0) == 0;
    let is_constant = sum.terms.iter().all(|(_, factor)| is_zero(*factor));
    let sum = sum.constant.checked_shl(unused)?.checked_shr(unused)?;
    is_constant.then_some(sum)
}

/// Whether the number of iterations of a loop is known to be a multiple of a factor, since the distance of its bounds is one
/// of so many steps. Modulo the numbers of a type that is known only if these are a multiple, too.
pub fn is_multiple(of: For<'_, '_>, factor: u32) -> bool {
    let Some(step) = constant(of.step()).filter(|step| *step > 0) else {
        return false;
    };
    let group = step.checked_mul(i64::from(factor));
    let Some(group) = group.filter(|group| group.unsigned_abs().is_power_of_two()) else {
        return false;
    };
    let bits = of.upper().r#type().bit_width();
    if bits.is_none_or(|bits| bits < u64::BITS - group.leading_zeros()) {
        return false;
    }
    let mut distance = Linear::default();
    distance.add(of.upper(), 1, DEEPEST);
    distance.add(of.lower(), -1, DEEPEST);
    let factors = distance.terms.iter().map(|(_, factor)| *factor);
    factors
        .chain([distance.constant])
        .all(|number| number % group == 0)
}

/// The most ops between a bound and a term of it.
const DEEPEST: u32 = 16;

/// A linear function of values, modulo the numbers of 64 bits.
#[derive(Default)]
struct Linear<'c, 'a> {
    constant: i64,
    terms: Vec<(Value<'c, 'a>, i64)>,
}

impl<'c: 'a, 'a> Linear<'c, 'a> {
    /// Adds a multiple of a value, taken apart through so many ops.
    fn add(&mut self, value: Value<'c, 'a>, factor: i64, deep: u32) {
        if let Some(number) = constant(value) {
            self.constant = self.constant.wrapping_add(factor.wrapping_mul(number));
            return;
        }
        if let Some(summands) = value.defining_op().and_then(summands).filter(|_| deep > 0) {
            for (summand, times) in summands {
                self.add(summand, factor.wrapping_mul(times), deep - 1);
            }
            return;
        }
        match self.terms.iter_mut().find(|(term, _)| *term == value) {
            Some((_, own)) => *own = own.wrapping_add(factor),
            None => self.terms.push((value, factor)),
        }
    }
}

/// The values whose multiples an operation adds up, if it does that.
fn summands<'c: 'a, 'a>(made: OperationRef<'c, 'a>) -> Option<Vec<(Value<'c, 'a>, i64)>> {
    let (x, y) = (made.operand_value(0)?, made.operand_value(1)?);
    if AddIOp::of(made).is_some() {
        Some(vec![(x, 1), (y, 1)])
    } else if SubIOp::of(made).is_some() {
        Some(vec![(x, 1), (y, -1)])
    } else if MulIOp::of(made).is_some() {
        match (constant(x), constant(y)) {
            (_, Some(times)) => Some(vec![(x, times)]),
            (Some(times), _) => Some(vec![(y, times)]),
            (None, None) => None,
        }
    } else if ShLIOp::of(made).is_some() {
        let by = u32::try_from(constant(y)?).ok()?;
        Some(vec![(x, 1i64.checked_shl(by)?)])
    } else {
        None
    }
}

/// The integer that a value is, if it is a constant.
pub fn constant(value: Value<'_, '_>) -> Option<i64> {
    ConstantOp::defining(value)?.value()?.as_i64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_a_loop(lower in -20..20i64, upper in -20..20i64, step in 1..7i64) {
            let numbers = Numbers { lower, upper, step };
            let all: Vec<i64> = (lower..upper).step_by(step as usize).collect();
            prop_assert_eq!(numbers.count(), all.len() as u64);
            prop_assert_eq!(numbers.last(), all.last().copied());
            for (position, &number) in all.iter().enumerate() {
                prop_assert_eq!(numbers.at(position as u64), number);
            }
        }
    }

    #[test]
    fn a_loop_over_all_numbers_has_a_count() {
        let numbers = Numbers {
            lower: i64::MIN,
            upper: i64::MAX,
            step: 1,
        };
        assert_eq!(numbers.count(), u64::MAX);
        assert_eq!(numbers.last(), Some(i64::MAX - 1));
    }
}
