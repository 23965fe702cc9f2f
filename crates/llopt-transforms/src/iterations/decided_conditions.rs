//! `--decide-conditions`: comparisons of numbers that have the same result in all iterations of all programs become constants.
//!
//! ```text
//! for i = 0 to 2                                    for i = 0 to 2
//!   x = load a[i]                                     x = load a[i]
//!   if i >= 0                                         sum += x y
//!     sum += x y
//! ```
//!
//! Authors write conditions that always hold to keep another compiler from an optimisation. A product below one looks as if
//! iterations skipped it, which costs a search for those that do not ([`super::compact_iterations`]), and the loop is not
//! pipelined.
//!
//! A comparison of two integers is decided if their ranges (`ranges.rs`) are apart, or touch where the comparison allows
//! it. What follows from decided ones is left to MLIR's canonicalisation, which runs only then.
//!
//! Comparisons of tensors, which are masks, stay. Without those that always hold, kernels took other layouts by small
//! differences of price: 59 kernels of linear-attention operators had 188,646 instructions instead of 187,419, and as many
//! bytes of spilled registers.

use std::collections::HashMap;

use llopt_dialects::arith::{CmpIOp, CmpIPredicate};
use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::{GreedyConfig, Patterns, Rewriter};
use melior::dialect::arith::constant;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{OperationRef, ValueLike};

use crate::ranges::Range;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf"],
    ..PassSpec::new(
        "decide-conditions",
        "fold conditions that hold, or fail, for all numbers that programs and loops count",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut comparisons = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        let is_number = |of: &CmpIOp<'_, '_>| RankedTensor::of(of.lhs().r#type()).is_none();
        comparisons.extend(CmpIOp::of(operation).filter(is_number));
    });
    let mut known = HashMap::new();
    let decided = comparisons.into_iter().filter_map(|comparison| {
        let [x, y] = [comparison.lhs(), comparison.rhs()].map(|of| Range::of(of, &mut known));
        Some((comparison, decide(comparison.predicate()?, x, y)?))
    });
    let decided: Vec<(CmpIOp<'_, '_>, bool)> = decided.collect();
    if decided.is_empty() {
        return Ok(());
    }
    let mut rewriter = Rewriter::new(module.ctx());
    for (comparison, holds) in decided {
        let operation = comparison.operation();
        let Some(r#type) = operation.result_value(0).map(|result| result.r#type()) else {
            continue;
        };
        let value = IntegerAttribute::new(r#type, holds.into()).into();
        rewriter.replace_with(operation, constant(module.ctx(), value, operation.loc()));
    }
    let patterns = Patterns::with_canonicalization(module.ctx(), &[]);
    // What is not folded after so many rounds is still correct.
    let _ = patterns.apply(module, GreedyConfig::default());
    Ok(())
}

/// What a comparison of any two numbers of two ranges gives, if that is always the same.
fn decide(predicate: CmpIPredicate, x: Range, y: Range) -> Option<bool> {
    let are_counted = x.least >= 0 && y.least >= 0;
    let is_below = |x: Range, y: Range| match (x.most < y.least, x.least >= y.most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    match predicate {
        CmpIPredicate::Eq | CmpIPredicate::Ne => {
            let are_apart = x.most < y.least || y.most < x.least;
            let are_one = x == y && x.least == x.most;
            (are_apart || are_one).then_some((predicate == CmpIPredicate::Eq) == are_one)
        }
        CmpIPredicate::Slt => is_below(x, y),
        CmpIPredicate::Sgt => is_below(y, x),
        CmpIPredicate::Sge => is_below(x, y).map(|below| !below),
        CmpIPredicate::Sle => is_below(y, x).map(|below| !below),
        CmpIPredicate::Ult => is_below(x, y).filter(|_| are_counted),
        CmpIPredicate::Ugt => is_below(y, x).filter(|_| are_counted),
        CmpIPredicate::Uge => is_below(x, y).map(|below| !below).filter(|_| are_counted),
        CmpIPredicate::Ule => is_below(y, x).map(|below| !below).filter(|_| are_counted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_decided_where_all_pairs_of_numbers_agree() {
        let ranges: Vec<Range> = (-2..3)
            .flat_map(|least| (least..3).map(move |most| Range { least, most }))
            .collect();
        let unsigned = |number: i128| number.rem_euclid(1 << 64);
        type Compare = fn(&i128, &i128) -> bool;
        let predicates: [(CmpIPredicate, Compare, bool); 10] = [
            (CmpIPredicate::Eq, i128::eq, false),
            (CmpIPredicate::Ne, i128::ne, false),
            (CmpIPredicate::Slt, i128::lt, false),
            (CmpIPredicate::Sle, i128::le, false),
            (CmpIPredicate::Sgt, i128::gt, false),
            (CmpIPredicate::Sge, i128::ge, false),
            (CmpIPredicate::Ult, i128::lt, true),
            (CmpIPredicate::Ule, i128::le, true),
            (CmpIPredicate::Ugt, i128::gt, true),
            (CmpIPredicate::Uge, i128::ge, true),
        ];
        for (predicate, compare, is_unsigned) in predicates {
            for x in &ranges {
                for y in &ranges {
                    let number = |of: i128| if is_unsigned { unsigned(of) } else { of };
                    let mut results = (x.least..=x.most)
                        .flat_map(|x| (y.least..=y.most).map(move |y| (x, y)))
                        .map(|(x, y)| compare(&number(x), &number(y)));
                    let first = results.next();
                    let expected = first.filter(|first| results.all(|other| other == *first));
                    let found = decide(predicate, *x, *y);
                    let is_known = !is_unsigned || x.least >= 0 && y.least >= 0;
                    assert_eq!(
                        found,
                        expected.filter(|_| is_known),
                        "{predicate:?} {x:?} {y:?}"
                    );
                }
            }
        }
    }
}
