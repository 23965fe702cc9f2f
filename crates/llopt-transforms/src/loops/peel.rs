//! Peeling of the first or the last iteration.

use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Type, Value, ValueLike};

use super::builder::Arithmetic;
use super::clone::Mapping;
use super::induction::Numbers;
use super::view::{For, If};

/// Peels the first iteration, and puts it before the loop; in a conditional, unless it is known that there is one.
/// Answers whether anything was done: nothing is if no iteration runs.
pub fn first<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> bool {
    let numbers = Numbers::of(of);
    if numbers.is_some_and(|numbers| numbers.count() == 0) {
        return false;
    }
    let location = of.operation().loc();
    rewriter.set_before(of.operation());
    let (lower, initial) = (of.lower(), of.initial());
    let iteration = |rewriter: &mut Rewriter<'c, 'a>| {
        Mapping::iteration(of, lower, &initial).copy_body(rewriter, of)
    };
    let carried = if numbers.is_some() {
        iteration(rewriter)
    } else {
        let condition =
            Arithmetic { rewriter, location }.is_below(lower, of.upper(), of.is_unsigned());
        let types: Vec<Type> = initial.iter().map(|value| value.r#type()).collect();
        let unchanged = initial.clone();
        let branch = If::build(rewriter, location, condition, &types, iteration, |_| {
            unchanged
        });
        branch.results()
    };
    // If no iteration runs, the next number is not below the upper bound either.
    let mut arithmetic = Arithmetic { rewriter, location };
    let second = match numbers {
        Some(numbers) => arithmetic.constant(lower.r#type(), numbers.at(1)),
        None => arithmetic.add(lower, of.step()),
    };
    of.set_bound(0, second);
    of.set_initial(&carried);
    true
}

/// Peels the last iteration, and puts it after the loop; in a conditional, unless it is known that there is one.
/// Answers whether anything was done: nothing is if no iteration runs.
pub fn last<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> bool {
    if Numbers::of(of).is_some_and(|numbers| numbers.count() == 0) {
        return false;
    }
    let location = of.operation().loc();
    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let (number, condition) = last_number(&mut arithmetic, of);
    of.set_bound(1, number);

    let results = of.results();
    let uses: Vec<_> = results
        .iter()
        .map(|result| result.uses().collect::<Vec<_>>())
        .collect();
    rewriter.set_after(of.operation());
    let iteration = |rewriter: &mut Rewriter<'c, 'a>| {
        Mapping::iteration(of, number, &results).copy_body(rewriter, of)
    };
    let values: Vec<Value> = match condition {
        None => iteration(rewriter),
        Some(condition) => {
            let types: Vec<Type> = results.iter().map(|value| value.r#type()).collect();
            let unchanged = results.clone();
            let branch = If::build(rewriter, location, condition, &types, iteration, |_| {
                unchanged
            });
            branch.results()
        }
    };
    for (uses, value) in uses.into_iter().zip(values) {
        for r#use in uses {
            r#use.operation.set_operand_value(r#use.operand, value);
        }
    }
    true
}

/// The last number of a loop, and the condition that there is one, unless it is known to hold; otherwise the number is
/// the lower bound.
///
/// Requires: if the numbers are known, there is one.
pub(super) fn last_number<'c: 'a, 'a>(
    arithmetic: &mut Arithmetic<'_, 'c, 'a>,
    of: For<'c, 'a>,
) -> (Value<'c, 'a>, Option<Value<'c, 'a>>) {
    let r#type = of.lower().r#type();
    if let Some(last) = Numbers::of(of).and_then(Numbers::last) {
        return (arithmetic.constant(r#type, last), None);
    }
    let condition = arithmetic.is_below(of.lower(), of.upper(), of.is_unsigned());
    let steps = arithmetic.steps_to_last(of.bounds());
    let distance = arithmetic.multiply(steps, of.step());
    let last = arithmetic.add(of.lower(), distance);
    // No number is below the lower bound.
    let last = arithmetic.select(condition, last, of.lower());
    (last, Some(condition))
}
