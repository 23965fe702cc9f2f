//! Stages that a program carries: `--tritongpu-schedule-loops` writes them, `--tritongpu-pipeline` obeys them.
//!
//! # The attributes
//!
//! | attribute | of | meaning |
//! |---|---|---|
//! | `loop.stage` | an operation of the body | its stage: with `S` stages, it is ahead by `S - 1` less its stage |
//! | `loop.cluster` | an operation of the body | its place within an iteration of the pipelined loop: lower numbers come first |
//! | `tt.scheduled_max_stage` | the loop | the last stage |
//!
//! # The stages of latencies
//!
//! Let the *distance* of an operation be the least number with: it is not below the distance of any operation of its
//! iteration that uses it, plus its own latency; and not below that of one of the next iteration, less one. (A value that the
//! next iteration uses may come one stage later, by the laws of [`crate::loops::pipeline`].) The stage of an operation is
//! the largest distance of all less its own, so what nothing waits for is in the last stage. Later stages come first in
//! an iteration: their operands are there already, and what is ahead overlaps with them.
//!
//! A recurrence through a latency has no distances, unless it crosses as many iterations; and an operation with effects
//! cannot be ahead, except a load of what the loop does not store to. Such loops get no stages.

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::tt::LoadOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use super::guard::{guard, may_be_ahead};
use super::indirect::may_feed;
use super::stores::stored_to;
use crate::loops::needs::{ancestor, maker};
use crate::loops::pipeline::{End, Staged, pipeline};
use crate::loops::view::{For, innermost};

/// The latency of an operation.
pub(super) const LATENCY: &str = "tt.latency";
const STAGE: &str = "loop.stage";
const CLUSTER: &str = "loop.cluster";
const LAST: &str = "tt.scheduled_max_stage";

/// Schedules loops with latencies.
pub static SCHEDULE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "tritongpu-schedule-loops",
        "give operations of loops stages that are as far apart as their latencies say",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _: &mut PassRun) -> Result<(), Complaint> {
    for of in innermost(module) {
        schedule(of);
    }
    Ok(())
}

/// Gives the operations of a loop stages by their latencies; whether it could.
pub fn schedule(of: For<'_, '_>) -> bool {
    let distances = distances(of);
    let operations = of.operations();
    for operation in &operations {
        operation.remove_attr(LATENCY);
    }
    let Some(distances) = distances else {
        return false;
    };
    let most = distances.iter().copied().max().unwrap_or(0);
    let number = |number: usize| attr::i32(of.operation().ctx(), number as i32);
    for (operation, distance) in operations.into_iter().zip(distances) {
        operation.set_attr(STAGE, number(most - distance));
        operation.set_attr(CLUSTER, number(distance));
    }
    of.operation().set_attr(LAST, number(most));
    true
}

/// Expands a loop by the stages that its operations have; `None` if they have none.
///
/// # Errors
/// Why it cannot be.
pub fn obey<'c: 'a, 'a>(of: For<'c, 'a>) -> Result<Option<For<'c, 'a>>, String> {
    Given::take(of).map(|given| given.expand(of)).transpose()
}

/// The latency of an operation.
fn latency(operation: OperationRef<'_, '_>) -> usize {
    let latency: Option<u32> = operation.attr(LATENCY).and_then(AttributeExt::as_int);
    latency.unwrap_or(0) as usize
}

/// The distance of each operation of a body; `None` if there are none, or no operation has a latency.
fn distances(of: For<'_, '_>) -> Option<Vec<usize>> {
    let operations = of.operations();
    let (carried, yielded) = (of.carried(), of.yielded());
    let bound: usize = operations.iter().map(|operation| latency(*operation)).sum();
    let number = |own: OperationRef| operations.iter().position(|other| *other == own);
    let mut distances: Vec<usize> = operations.iter().map(|own| latency(*own)).collect();
    loop {
        let mut changed = false;
        for (to, operation) in operations.iter().enumerate() {
            let mut values = Vec::new();
            operation.for_each_op(Walk::PreOrder, |inner| {
                values.extend(inner.operand_values())
            });
            for value in values {
                let argument = carried.iter().position(|argument| *argument == value);
                let made = argument.map_or(value, |argument| yielded[argument]);
                let Some(from) = maker(of, made).and_then(number).filter(|from| *from != to) else {
                    continue;
                };
                let least = (distances[to] + latency(operations[from]))
                    .saturating_sub(usize::from(argument.is_some()));
                if least > distances[from] {
                    distances[from] = least;
                    changed = true;
                }
            }
        }
        if distances.iter().any(|distance| *distance > bound) {
            return None;
        }
        if !changed {
            break;
        }
    }
    let stored = stored_to(of.operation());
    let mut ahead = operations
        .iter()
        .zip(&distances)
        .filter(|(_, distance)| **distance > 0);
    let is_legal = ahead.all(|(operation, _)| may_run_ahead(*operation, &stored));
    let is_any = distances.iter().any(|distance| *distance > 0);
    (is_legal && is_any).then_some(distances)
}

/// Whether an operation of a loop that stores to these parameters may run ahead of its iteration, and beyond the last one
/// under a condition.
fn may_run_ahead<'c: 'a, 'a>(operation: OperationRef<'c, 'a>, stored: &Stored<'c, 'a>) -> bool {
    match (LoadOp::of(operation), stored) {
        (Some(_), Ok(stored)) => may_feed(operation, stored),
        (Some(_), Err(_)) => false,
        (None, _) => operation.is_memory_effect_free() && operation.is_speculatable(),
    }
}

/// The parameters that a loop stores to, or what may store anywhere.
type Stored<'c, 'a> = Result<Vec<Option<Value<'c, 'a>>>, String>;

/// The stages that a program gives the operations of a loop.
pub(super) struct Given<'c, 'a> {
    /// The operations in the order of an iteration of the pipelined loop.
    order: Vec<Staged<'c, 'a>>,
    /// The number of stages.
    pub(super) stages: usize,
}

impl<'c: 'a, 'a> Given<'c, 'a> {
    /// Takes the attributes of a loop and its body away, and answers what they say; `None` if there are none.
    pub(super) fn take(of: For<'c, 'a>) -> Option<Self> {
        let last: Option<u32> = of.operation().attr(LAST).and_then(AttributeExt::as_int);
        of.operation().remove_attr(LAST);
        let stages = last? as usize + 1;
        let mut placed: Vec<(u32, Staged)> = Vec::new();
        for operation in of.operations() {
            let number = |name| operation.attr(name).and_then(AttributeExt::as_int);
            let stage: Option<u32> = number(STAGE);
            let cluster: Option<u32> = number(CLUSTER);
            // What has no stage belongs to the iteration itself.
            let stage = stage.map_or(stages - 1, |stage| stage as usize);
            let stage = stage.min(stages - 1);
            placed.push((cluster.unwrap_or(0), Staged { operation, stage }));
            operation.remove_attr(STAGE);
            operation.remove_attr(CLUSTER);
        }
        placed.sort_by_key(|(cluster, _)| *cluster);
        let order = placed.into_iter().map(|(_, staged)| staged).collect();
        Some(Self { order, stages })
    }

    /// The stage of an operation of the body.
    fn stage(&self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        let mut all = self.order.iter();
        let own = all.find(|staged| staged.operation == operation)?;
        Some(own.stage)
    }

    /// Whether a load is in an earlier stage than all operations of the body that use what it loads.
    pub(super) fn is_ahead(&self, of: For<'c, 'a>, load: OperationRef<'c, 'a>) -> bool {
        let Some(own) = self.stage(load) else {
            return false;
        };
        let mut values: Vec<_> = load.result_values().collect();
        let mut is_ahead = true;
        while let Some(value) = values.pop() {
            for user in value.users() {
                let views = user.result_values();
                let views: Vec<_> = views
                    .filter(|view| MemDesc::of(view.r#type()).is_some())
                    .collect();
                let stage = ancestor(of, user).and_then(|user| self.stage(user));
                // A buffer or a view of it may belong to any stage.
                match views.is_empty() {
                    true => is_ahead &= stage.is_none_or(|stage| stage > own),
                    false => values.extend(views),
                }
            }
        }
        is_ahead
    }

    /// The number of loads that are ahead.
    pub(super) fn loads_ahead(&self) -> u32 {
        let ahead = self
            .order
            .iter()
            .filter(|staged| staged.stage + 1 < self.stages);
        ahead
            .filter(|staged| may_be_ahead(staged.operation))
            .count() as u32
    }

    /// Expands a loop by these stages, with what is loaded ahead in registers.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn expand(self, of: For<'c, 'a>) -> Result<For<'c, 'a>, String> {
        let last = self.stages - 1;
        let stored = stored_to(of.operation());
        let is_late = |staged: &&Staged<'c, 'a>| {
            staged.stage < last && !may_run_ahead(staged.operation, &stored)
        };
        if let Some(staged) = self.order.iter().find(is_late) {
            let (name, stage) = (staged.operation.name_str(), staged.stage);
            return Err(format!("{name} cannot run ahead, in stage {stage}"));
        }
        // What may not run ahead may not change places either.
        let in_order = self.order.iter().map(|staged| staged.operation);
        let in_order = in_order.filter(|operation| !may_run_ahead(*operation, &stored));
        let all = of.operations().into_iter();
        let before = all.filter(|operation| !may_run_ahead(*operation, &stored));
        if let Some((one, _)) = in_order.zip(before).find(|(one, other)| one != other) {
            return Err(format!(
                "{} cannot change places with others",
                one.name_str()
            ));
        }
        let mut rewriter = Rewriter::new(of.operation().ctx());
        let expanded = pipeline(
            &mut rewriter,
            of,
            &self.order,
            self.stages,
            End::Guarded,
            guard,
        );
        expanded.map_err(|early| {
            let name = early.operation.name_str();
            format!("{name} would use a value that its stage does not have yet")
        })
    }
}
