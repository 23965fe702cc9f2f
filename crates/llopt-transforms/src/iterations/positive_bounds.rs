//! `--positive-bounds`: an iteration of a loop that counts up from zero knows that the loop's bound is positive.
//!
//! ```text
//!   x = pid · n + lanes                         m = max(n, 1)
//!   for i = 0 to n                              y = pid · m + lanes
//!     … x / k …                         →       for i = 0 to n
//!                                                 … y / k …
//! ```
//!
//! Division of signed integers rounds towards zero, so of `x / k` and `x rem k` nothing is known along a row of consecutive `x`
//! unless `x` is not negative ([the axis analysis](crate::axis)), and addresses that are computed of them are loaded one at a
//! time. Nothing says that the argument `n` is not negative. But where an iteration runs, `n` is greater than the number of the
//! iteration, so the greater one of `n` and 1 is `n` there, and whatever is computed of it has the same value.
//!
//! # What a bound tells
//!
//! If a loop counts from `a` or more upwards, an iteration has a bound of at least `t = a + 1`. From that follows, going from a
//! result to its operands:
//!
//! ```text
//! x + c ≥ t,  c ≥ 0        x ≥ t - c       the sum of a negative x and c does not wrap, and a sum that wraps is negative
//! x / c ≥ t,  c > 0        x ≥ t · c       if t > 0
//! min(x, y) ≥ t            x ≥ t and y ≥ t
//! extended x ≥ t           x ≥ t
//! ```
//!
//! The values at the ends of these chains, which nothing else is known of, get their least number.
//!
//! # What is computed anew
//!
//! Operations in front of the loop that depend on such a value and that its iterations use, as far as they have no effects and
//! fail for no operands. An initial value of what the loop carries is one that only iterations see if the loop's result is not
//! used. Nothing is computed anew unless the loop divides tensors that may be negative and depend on the value.

use std::collections::{HashMap, HashSet};

use llopt_dialects::arith;
use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, key};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use crate::axis::AxisAnalysis;
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;
use crate::loops::induction::constant;
use crate::loops::view::For;
use crate::ranges::Range;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith"],
    ..PassSpec::new(
        "positive-bounds",
        "let iterations that divide know that the bound of their loop is positive",
        |module, _run| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Tells the iterations of all loops of a module what their bounds are at least.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        loops.extend(For::of(operation).filter(|of| has_signed_division(*of)));
    });
    if loops.is_empty() {
        return;
    }
    let mut rewriter = Rewriter::new(module.ctx());
    for of in loops {
        for bound in Bound::all_of(of) {
            // What the bound before has changed is known anew.
            let analysis = AxisAnalysis::of(module);
            if bound.decides_a_division(of, &analysis) {
                bound.tell(&mut rewriter, of);
            }
        }
    }
}

/// The dividends of tensors that a loop divides.
fn dividends<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let mut found = Vec::new();
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        let divides = matches!(
            arith::Op::of(operation),
            Some(arith::Op::DivSI(_) | arith::Op::RemSI(_))
        );
        let dividend = operation.operand_value(0).filter(|_| divides);
        found.extend(dividend.filter(|value| RankedTensor::of(value.r#type()).is_some()));
    });
    found
}

fn has_signed_division(of: For<'_, '_>) -> bool {
    !dividends(of).is_empty()
}

/// A number that is not less than another one wherever an iteration of a loop runs.
#[derive(Clone, Copy)]
struct Bound<'c, 'a> {
    value: Value<'c, 'a>,
    least: i64,
}

impl<'c: 'a, 'a> Bound<'c, 'a> {
    /// What the upper bound of a loop is computed of, as far as it may be negative by all that is known otherwise.
    fn all_of(of: For<'c, 'a>) -> Vec<Self> {
        let mut known = HashMap::new();
        let mut range = |value| Range::of(value, &mut known);
        let (lower, step) = (range(of.lower()), range(of.step()));
        if of.is_unsigned() || lower.least < 0 || step.least <= 0 {
            return Vec::new();
        }
        let Ok(least) = i64::try_from(lower.least + 1) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut open = vec![Self {
            value: of.upper(),
            least,
        }];
        while let Some(bound) = open.pop() {
            match bound.operands() {
                Some(operands) => open.extend(operands),
                None => found.push(bound),
            }
        }
        found.retain(|bound| bound.least > 0 && range(bound.value).least < 0);
        found
    }

    /// What follows for the operands of the value; `None` if nothing does.
    fn operands(self) -> Option<Vec<Self>> {
        let made = arith::Op::of(self.value.defining_op()?)?;
        let same = |value| Self { value, ..self };
        Some(match made {
            arith::Op::AddI(sum) => {
                let [x, y] = [sum.lhs(), sum.rhs()];
                let (value, added) = match (constant(x), constant(y)) {
                    (_, Some(added)) => (x, added),
                    (Some(added), None) => (y, added),
                    (None, None) => return None,
                };
                let least = self.least.checked_sub(added)?;
                (added >= 0).then(|| vec![Self { value, least }])?
            }
            arith::Op::DivSI(quotient) if self.least > 0 => {
                let by = constant(quotient.rhs()).filter(|by| *by > 0)?;
                vec![Self {
                    value: quotient.lhs(),
                    least: self.least.checked_mul(by)?,
                }]
            }
            arith::Op::MinSI(least) => vec![same(least.lhs()), same(least.rhs())],
            arith::Op::ExtSI(extended) => vec![same(extended.r#in())],
            _ => return None,
        })
    }

    /// Whether the loop divides a tensor that depends on the value and may be negative.
    fn decides_a_division(self, of: For<'c, 'a>, analysis: &AxisAnalysis) -> bool {
        let unsure = dividends(of).into_iter();
        unsure
            .filter(|dividend| !analysis.facts(*dividend).non_negative)
            .any(|dividend| depends(dividend, self.value))
    }

    /// Lets the loop use the value's least number, in what is computed of it.
    fn tell(self, rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
        let operation = of.operation();
        let slice = self.slice(of);
        rewriter.set_before(operation);
        let mut arithmetic = Arithmetic {
            rewriter,
            location: operation.loc(),
        };
        let least = arithmetic.constant(self.value.r#type(), self.least);
        let told = arithmetic.larger(self.value, least);
        let mut mapping = Mapping::new();
        mapping.map(self.value, told);
        for made in slice {
            mapping.copy(rewriter, made);
        }
        let initial = of.initial().into_iter().zip(of.results());
        let initial = initial.map(|(value, result)| match result.has_uses() {
            true => value,
            false => mapping.get(value),
        });
        of.set_initial(&initial.collect::<Vec<_>>());
        operation.for_each_op(Walk::PreOrder, |inner| {
            if inner == operation {
                return;
            }
            let operands: Vec<Value> = inner.operand_values().collect();
            for (index, operand) in operands.into_iter().enumerate() {
                let other = mapping.get(operand);
                if other != operand {
                    inner.set_operand_value(index, other);
                }
            }
        });
    }

    /// The operations in front of the loop that depend on the value and that can be computed anew, in their order.
    fn slice(self, of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
        let mut dependent = HashSet::from([key(self.value)]);
        let mut slice = in_front(of);
        slice.retain(|made| {
            let mut operands = made.operand_values();
            let is_dependent = operands.any(|operand| dependent.contains(&key(operand)));
            let is_pure = made.is_memory_effect_free() && made.is_speculatable();
            let is_copied = is_dependent && is_pure && made.region_refs().len() == 0;
            if is_copied {
                dependent.extend(made.result_values().map(key));
            }
            is_copied
        });
        slice
    }
}

/// The operations before a loop in its block, and in the blocks around that one, the outermost first.
fn in_front<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut blocks = Vec::new();
    let mut inner = of.operation();
    while let (Some(block), Some(around)) = (inner.parent_block(), inner.parent_op()) {
        let before = block.operations().take_while(|other| *other != inner);
        blocks.push(before.collect::<Vec<_>>());
        inner = around;
    }
    blocks.into_iter().rev().flatten().collect()
}

/// Whether a value is computed of another one, iterations before included.
fn depends<'c: 'a, 'a>(value: Value<'c, 'a>, on: Value<'c, 'a>) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if value == on {
            return true;
        }
        if !seen.insert(key(value)) {
            continue;
        }
        if let Some(made) = value.defining_op() {
            open.extend(made.operand_values());
            for region in made.region_refs() {
                let ends = region
                    .blocks()
                    .filter_map(|block| block.operations().last());
                open.extend(ends.flat_map(|end| end.operand_values()));
            }
        } else if let Some(of) = value
            .argument_of()
            .and_then(|(block, _)| For::of(block.parent_operation()?))
        {
            let carried = of.carried().iter().position(|carried| *carried == value);
            if let Some(at) = carried {
                open.extend([of.initial()[at], of.yielded()[at]]);
            }
        }
    }
    false
}
