//! Whether the last iterations of a pipelined loop have a loop of their own.
//!
//! What is loaded ahead of the last iteration is masked. Where an access can be turned off by a predicate, the mask is
//! another input of what computes the predicate. Elsewhere it chooses an address, for each access of each iteration. A loop
//! of their own for the last iterations ([`End::Apart`]) spares that in all others, and is code that is fetched once more.
//!
//! A loop whose iterations are unrolled has another one behind it already, for what fills no group. Masks in that one alone
//! ([`End::Groups`]) are no more code, and it also runs the last iterations: each with masks, and with loads that load nothing,
//! in place of the code for a loop without both.

use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::ir::OperationExt;
use llopt_plan::plans::Plans;
use llopt_target::Feature;
use melior::ir::OperationRef;

use super::loads::Load;
use super::{graph, ring};
use crate::layouts::times;
use crate::loops::induction;
use crate::loops::pipeline::End;
use crate::loops::view::For;

/// Instructions that make one condition for all masks of an iteration: a comparison, and a choice.
const CONDITION: u32 = 2;
/// Words that one access moves at most.
const ACCESS: u32 = 4;
/// What it costs to fetch an instruction that is not in a cache yet, in instructions that are. A line brings eight of
/// them, for all warps of a multiprocessor.
const FETCH: f64 = 1.0;

/// How a loop of so many stages ends whose loads come earlier, and of which groups of so many iterations are unrolled.
pub(super) fn end(
    of: For<'_, '_>,
    loads: &[Load<'_, '_>],
    stages: u32,
    group: u32,
    warps: u32,
    plans: &Plans,
) -> End {
    // A wait counts what has been issued since, which would be less in the last iterations.
    if plans.target().has(Feature::PredicatedAccess) || loads.iter().any(Load::is_copied) {
        return End::Guarded;
    }
    let masks: u32 = loads.iter().map(|load| load.accesses(plans)).sum();
    let spared = times(of.operation()) * f64::from(masks + CONDITION);
    // Loads are not in it again.
    let is_load =
        |operation: &OperationRef<'_, '_>| loads.iter().any(|load| load.operation() == *operation);
    let operations = of
        .operations()
        .into_iter()
        .filter(|operation| !is_load(operation));
    let code: u32 = operations
        .map(|operation| code(operation, loads, warps, plans))
        .sum();
    let code = f64::from(code) * FETCH;
    let last = f64::from(stages - 1);
    // On average half as many iterations fill no group as may.
    let behind = last + f64::from(group - 1) / 2.0;
    let needless = behind * f64::from(masks + CONDITION) + last * f64::from(masks);
    if fills_groups(of, group) && needless < code {
        return End::Groups(group);
    }
    match spared > code {
        true => End::Apart,
        false => End::Guarded,
    }
}

/// Whether iterations are unrolled in groups, and where these end is seen to leave no rest ([`induction::is_multiple`]).
fn fills_groups(of: For<'_, '_>, group: u32) -> bool {
    let step = induction::constant(of.step()).filter(|step| *step > 0);
    group > 1
        && group.is_power_of_two()
        && step.is_some_and(|step| step.unsigned_abs().is_power_of_two())
}

/// Instructions of a thread for an operation, about.
fn code(operation: OperationRef<'_, '_>, loads: &[Load<'_, '_>], warps: u32, plans: &Plans) -> u32 {
    if let Some((_, executions)) = graph::executions(operation, plans) {
        return executions.div_ceil(warps);
    }
    let words = operation
        .result_values()
        .map(|value| ring::words(value, plans));
    let words: u32 = words.sum();
    let is_access = OpFacts::of(operation).anchor == Some(LayoutAnchor::Load)
        || LocalLoadOp::of(operation).is_some();
    match is_access {
        true => words.div_ceil(ACCESS),
        false => graph::instructions(operation, loads, plans),
    }
}
