//! Which iterations ahead there are: conditions by the distance to the end of a loop.
//!
//! An iteration ahead by `d` exists if `upper - number > d * step`, unsigned ([laws](super)). The right sides are the same in
//! all iterations, and are computed once, in front of the loop.

use llopt_mlir::ir::TypeExt;
use melior::ir::{Type, Value, ValueLike};

use super::super::builder::Arithmetic;
use super::super::induction::{self, Numbers};
use super::super::view::For;

/// Conditions for iterations that are ahead.
pub(super) struct Ahead<'c, 'a> {
    /// The distance to the iteration so far ahead; `None` if the type cannot represent it.
    distances: Vec<Option<Value<'c, 'a>>>,
    /// The number of iterations, if it is known.
    pub(super) count: Option<u64>,
}

impl<'c: 'a, 'a> Ahead<'c, 'a> {
    /// Computes distances up to a lead, before the loop.
    pub(super) fn new(
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        of: For<'c, 'a>,
        most: usize,
    ) -> Self {
        let (step, r#type) = (of.step(), of.step().r#type());
        let known = induction::constant(step);
        let mut distances = vec![Some(arithmetic.constant(r#type, 0))];
        for lead in 1..=most {
            let distance = match known {
                Some(step) => {
                    let whole = u128::from(step.unsigned_abs()) * lead as u128;
                    let bits = bits(r#type);
                    // As a signed number of the same bits.
                    let unused = 64 - bits;
                    let signed = (whole as i64).wrapping_shl(unused).wrapping_shr(unused);
                    (whole < 1 << bits).then(|| arithmetic.constant(r#type, signed))
                }
                None => {
                    // The largest number stands for all beyond it.
                    let before = distances[lead - 1].expect("each has a value");
                    let sum = arithmetic.add(before, step);
                    let wraps = arithmetic.is_below(sum, before, true);
                    let largest = arithmetic.constant(r#type, -1);
                    Some(arithmetic.select(wraps, largest, sum))
                }
            };
            distances.push(distance);
        }
        let count = Numbers::of(of).map(Numbers::count);
        Self { distances, count }
    }

    /// Whether there is an iteration so far ahead, given the remaining distance.
    pub(super) fn condition(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        lead: usize,
        left: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        match self.distances[lead] {
            Some(distance) => arithmetic.is_below(distance, left, true),
            None => arithmetic.never(),
        }
    }

    /// The number of the first iteration of a loop from which an operation ahead by `most` is ahead of the end, or the first of
    /// its group of so many; no number where that are all.
    pub(super) fn cut(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        of: For<'c, 'a>,
        most: usize,
        group: u32,
    ) -> Option<Value<'c, 'a>> {
        let [lower, upper, step] = of.bounds();
        let r#type = lower.r#type();
        if let Some(numbers) = Numbers::of(of) {
            let first = numbers.count().checked_sub(most as u64)?;
            let first = first - first % u64::from(group);
            return (first > 0).then(|| arithmetic.constant(r#type, numbers.at(first)));
        }
        let distance = self.distances[most]?;
        let zero = arithmetic.constant(r#type, 0);
        let one = arithmetic.constant(r#type, 1);
        let runs = arithmetic.is_below(lower, upper, of.is_unsigned());
        let all = arithmetic.subtract(upper, lower);
        let left = arithmetic.select(runs, all, zero);
        let is_long = self.condition(arithmetic, most, left);
        // So many numbers, one at least, are as far from the end; of them each `step`-th is an iteration's.
        let numbers = arithmetic.subtract(left, distance);
        let before = arithmetic.subtract(numbers, one);
        let steps = arithmetic.divide(before, step);
        let steps = arithmetic.add(steps, one);
        if group == 1 {
            let distance = arithmetic.multiply(steps, step);
            let first = arithmetic.add(lower, distance);
            return Some(arithmetic.select(is_long, first, lower));
        }
        // The distance is a product with the size of a group, from which it is seen that there are only whole ones.
        let steps = arithmetic.select(is_long, steps, zero);
        let size = arithmetic.constant(r#type, i64::from(group));
        let groups = arithmetic.divide(steps, size);
        let steps = arithmetic.multiply(groups, size);
        let distance = arithmetic.multiply(steps, step);
        Some(arithmetic.add(lower, distance))
    }
}

fn bits(r#type: Type<'_>) -> u32 {
    r#type.bit_width().unwrap_or(64).min(64)
}
