//! Overlapping iterations: a body is cut into stages, and the new loop runs one stage each of several iterations.
//!
//! # The objects
//!
//! Each operation of the body has a *stage* `s` below the number of stages `S`, and a place in an order. The
//! pipelined loop runs as often as the old one. In its iteration `i` an operation of stage `s` does what it did in
//! iteration `i + S - 1 - s`: those of the last stage belong to this iteration, those of earlier stages are ahead by
//! their *lead* `S - 1 - s`. Before the loop, round `p` of the prologue runs stage `s` of iteration `p - s`, for all
//! stages up to `p`. Operations with effects that would run beyond the last iteration are *guarded*, by a condition
//! that the caller attaches to them. Operations without effects are executed needlessly there.
//!
//! Where that costs too much, or an operation cannot be guarded, the last iteration is *peeled*: the new loop runs
//! one iteration less, and is followed by the last stage of the last iteration. Then the stage before the last never
//! runs beyond the end, and only earlier ones are guarded. All of this is inside a conditional, unless it is known
//! that there is an iteration.
//!
//! Or the last iterations are *apart*: of `n` iterations the loop runs the first `n - (S - 1)`, from which nothing is
//! ahead of the end, so that it has no guards; and a second loop, which goes on with what the first has carried, runs
//! what the others have in all stages but the first, with guards for those between the first and the last. Where
//! there are fewer iterations than stages, the first loop runs none. So any number of stages costs the code of one
//! more iteration.
//!
//! A loop that is to be unrolled needs a second one anyway, for the iterations that fill no group. Where the first loop runs
//! whole *groups*, as many as are among its `n - (S - 1)`, and the second one runs all others in all stages, with guards, that
//! one also does what a loop of the last iterations would.
//!
//! # The laws
//!
//! Let a value be looked up for an operation with lead `d`.
//!
//! - A result of an operation with lead `e` is that of this iteration if `e = d`, the operation then has to come
//!   before; one of `e - d` iterations ago if `e > d`, and is carried until then; and does not exist yet if `e < d`.
//! - A carried value of the old loop is for `d > 0` what the iteration before yields: the yielded value, looked up with
//!   lead `d - 1`. For `d = 0` it is carried on.
//!
//! So a pipelined loop carries pairs of a value and a lead, called *slots*: the content is the value in the iteration
//! that is so far ahead. The next content of a slot is its value with a lead larger by one. The initial contents of
//! slots are known from the prologue.
//!
//! Whether there is an iteration that is ahead by `d` is decided by `upper - number > d * step`, unsigned. The left
//! side is the distance between numbers of the type, the first below the second, so it does not overflow; and where
//! the right side would, there is no such iteration.

mod ahead;
mod expansion;
mod plan;

use std::collections::HashMap;

use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use self::expansion::Expansion;
pub use self::plan::{Early, Staged};
use self::plan::{Part, Plan, Second, key};
use super::builder::Arithmetic;
use super::induction::Numbers;
use super::peel;
use super::view::For;

/// The end of a pipelined loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has as many iterations as the old one; operations beyond the last iteration are guarded.
    Guarded,
    /// The last iteration is peeled.
    Peeled,
    /// It guards nothing; a second loop runs the iterations from which something of the first stage would be ahead of the
    /// end, without that.
    Apart,
    /// It guards nothing, and runs whole groups of so many iterations; a second loop runs all others, guarded.
    Groups(u32),
}

/// Pipelines a loop by stages of its operations, given in the order in which they are to run. `guard` attaches a
/// condition to a copy of an operation with effects that may run beyond the last iteration, and returns the operation
/// that replaces it. The rewriter is before the copy during that call.
///
/// Requires: each operation of the body occurs in the order once. An operation with effects that is ahead (by more
/// than one iteration, if the last one is peeled) can be guarded; one without effects may be executed beyond the last
/// iteration.
///
/// # Errors
/// An operation would use a value that does not exist yet; the loop is unchanged.
pub fn pipeline<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    order: &[Staged<'c, 'a>],
    stages: usize,
    end: End,
    guard: impl FnMut(
        &mut Rewriter<'c, 'a>,
        OperationRef<'c, 'a>,
        Value<'c, 'a>,
    ) -> OperationRef<'c, 'a>,
) -> Result<For<'c, 'a>, Early<'c, 'a>> {
    let mut places = HashMap::new();
    for (place, staged) in order.iter().enumerate() {
        for result in staged.operation.result_values() {
            places.insert(key(result), place);
        }
    }
    let plan = Plan {
        of,
        order,
        stages,
        yielded: of.yielded(),
        places,
    };
    let slots = plan.slots()?;
    let location = of.operation().loc();
    let has_effects = order
        .iter()
        .map(|staged| !staged.operation.is_memory_effect_free())
        .collect();
    let is_peeled = end == End::Peeled && Numbers::of(of).is_none_or(|all| all.count() > 0);

    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let last = is_peeled.then(|| peel::last_number(&mut arithmetic, of));
    let apart = match end {
        End::Guarded | End::Peeled => None,
        End::Apart => Some(Second {
            group: 1,
            part: Part::Rest,
        }),
        End::Groups(group) => Some(Second {
            group,
            part: Part::All { on_time: 0 },
        }),
    };
    let mut expansion = Expansion {
        plan,
        slots,
        has_effects,
        guard,
    };
    let used: Vec<Value> = of
        .results()
        .into_iter()
        .filter(|result| result.has_uses())
        .collect();
    let (new, results) = match last {
        Some((last, Some(runs))) => expansion.expand_if(rewriter, runs, last),
        Some((last, None)) => expansion.expand(rewriter, Some(last), None),
        None => expansion.expand(rewriter, None, apart),
    };
    for (result, value) in used.into_iter().zip(results) {
        result.replace_all_uses(value);
    }
    rewriter.set_after(of.operation());
    of.operation().erase();
    Ok(new)
}
