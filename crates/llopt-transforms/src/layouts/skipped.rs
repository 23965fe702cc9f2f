//! Loads that a loop makes ahead of their use.
//!
//! A loop that loads for the next iteration ([`crate::pipelining`]) differs from one that loads for its own in two ways
//! that a price by iterations does not show. In the last iteration there is nothing left to load: the mask of the
//! load says so for all elements at once, no request is made, and together with the load before the loop as many
//! are made as without. And no iteration waits for its own load, as the whole work of one lies between the load and
//! its first use.

use llopt_dialects::arith::{AndIOp, CmpIOp, CmpIPredicate, ConstantOp, SubIOp};
use llopt_dialects::tt::SplatOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use melior::ir::{BlockLike, OperationRef, Value};

use super::frequency::times;
use crate::loops::view::For;

/// The loop whose body an op stands in.
fn around<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<For<'c, 'a>> {
    For::of(operation.parent_block()?.parent_operation()?)
}

/// Whether only the next iterations of the loop around it, or what follows the loop, use what a load loads.
pub(super) fn is_used_later(load: OperationRef<'_, '_>) -> bool {
    let (Some(of), Some(loaded)) = (around(load), load.result_value(0)) else {
        return false;
    };
    let end = of.terminator();
    let mut users = loaded.users().peekable();
    users.peek().is_some() && users.all(|user| user == end)
}

/// The share of the executions of an access in which its mask lets it do something.
pub(super) fn share_of_runs<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
) -> f64 {
    let skipped =
        around(operation).and_then(|of| Some((times(of.operation()), last_iterations(of, mask?)?)));
    match skipped {
        Some((all, last)) if last < all => (all - last) / all,
        _ => 1.0,
    }
}

/// How many of the last iterations of a loop have a mask that is false everywhere.
fn last_iterations<'c: 'a, 'a>(of: For<'c, 'a>, mask: Value<'c, 'a>) -> Option<f64> {
    let made = mask.defining_op()?;
    if let Some(both) = AndIOp::of(made) {
        let found = [both.lhs(), both.rhs()].map(|mask| last_iterations(of, mask));
        let found = found.into_iter().flatten();
        return found.reduce(f64::max);
    }
    if let Some(splat) = SplatOp::of(made) {
        return last_iterations(of, splat.src());
    }
    // `distance < upper - number`
    let compare = CmpIOp::of(made).filter(|compare| {
        matches!(
            compare.predicate(),
            Some(CmpIPredicate::Slt | CmpIPredicate::Ult)
        )
    })?;
    let left = SubIOp::defining(compare.rhs())?;
    if left.lhs() != of.upper() || left.rhs() != of.number() {
        return None;
    }
    if compare.lhs() == of.step() {
        return Some(1.0);
    }
    let [distance, step] = [compare.lhs(), of.step()].map(|value| {
        let number = ConstantOp::defining(value)?.value()?.as_i64()?;
        (number > 0).then_some(number as u64)
    });
    Some(distance?.div_ceil(step?) as f64)
}
