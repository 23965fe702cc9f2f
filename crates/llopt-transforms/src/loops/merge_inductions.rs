//! `--merge-inductions`: carried numbers that count with a loop are computed from its induction variable.
//!
//! ```text
//! for i = first to end step s iter_args(x = first - s)      for i = first to end step s
//!   …                                                         …
//!   y = x + s                                                 use i
//!   use y
//!   yield y
//! ```
//!
//! Two induction variables are *congruent* if both advance by the same step: their difference is the same in all
//! iterations, that of their first values. Where this is a constant, one of them is enough. Authors of persistent kernels
//! count programs twice, once for what is loaded and once for what is stored; as one number, what both compute of it is the
//! same, and it is known that a program stores the tile whose factors it has loaded ([`crate::tensor_copies`]).
//!
//! The difference is one modulo the numbers of the type, so it does not matter whether a number wraps.

use llopt_dialects::arith::AddIOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use super::builder::Arithmetic;
use super::carried;
use super::induction::constant_sum;
use super::view::For;

/// The pass.
pub static MERGE_INDUCTIONS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf"],
    ..PassSpec::new(
        "merge-inductions",
        "compute numbers that count with a loop from its induction variable",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation))
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for of in loops {
        merge(&mut rewriter, of);
    }
    Ok(())
}

/// Replaces the carried numbers of a loop that are congruent to its induction variable, and their next values.
fn merge<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
    let mut has_merged = false;
    for (index, carried) in of.carried().into_iter().enumerate() {
        let Some(add) = advance(of, carried, of.yielded()[index]) else {
            continue;
        };
        let distance = [(of.initial()[index], 1), (of.lower(), -1)];
        if let Some(distance) = constant_sum(&distance) {
            let other = beside(rewriter, of, distance);
            carried.replace_all_uses(other);
            has_merged = true;
        }
        let of_next = [distance[0], distance[1], (of.step(), 1)];
        if let Some(distance) = constant_sum(&of_next) {
            let other = beside(rewriter, of, distance);
            of.yielded()[index].replace_all_uses(other);
            add.operation().erase();
            has_merged = true;
        }
    }
    if has_merged {
        carried::drop_needless(rewriter, of);
    }
}

/// The addition of the step of a loop to a carried number, if its next value is their sum.
fn advance<'c: 'a, 'a>(
    of: For<'c, 'a>,
    carried: Value<'c, 'a>,
    next: Value<'c, 'a>,
) -> Option<AddIOp<'c, 'a>> {
    if carried.r#type() != of.number().r#type() {
        return None;
    }
    let add = AddIOp::defining(next)?;
    let added = match (add.lhs() == carried, add.rhs() == carried) {
        (true, false) => add.rhs(),
        (false, true) => add.lhs(),
        _ => return None,
    };
    let is_step = constant_sum(&[(added, 1), (of.step(), -1)]) == Some(0);
    is_step.then_some(add)
}

/// The number at a distance from the induction variable.
fn beside<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    distance: i64,
) -> Value<'c, 'a> {
    let number = of.number();
    if distance == 0 {
        return number;
    }
    rewriter.set_to_start(of.body());
    let location = of.operation().loc();
    let mut arithmetic = Arithmetic { rewriter, location };
    let distance = arithmetic.constant(number.r#type(), distance);
    arithmetic.add(number, distance)
}
