//! `--tritongpu-assign-latencies`: by how many iterations the loads of a loop should be ahead of their uses.
//!
//! The *latency* of a load (`tt.latency`) is the number of stages between it and what uses it. With `S` stages and chains
//! of `c` loads, of which each takes its address from the one before and the last is read by a product, each load of a chain
//! gets `(S - 1) / c`, so that a chain takes all stages. Latencies that a program has are kept, those of loads that
//! cannot be ahead excepted. `--tritongpu-schedule-loops` makes stages of them (`stages`).
//!
//! Loops with products get them, for the loads that `--tritongpu-pipeline` can issue earlier; and loops without that ask
//! for stages themselves (`tt.num_stages`), for all loads of tensors.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::LoadOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, ValueLike};

use super::account::{LoopAccount, place};
use super::candidate::Candidate;
use super::stages::LATENCY;
use super::{NUM_STAGES, graph, indirect, stages_asked, warps_of};
use crate::allocation::plans_of;
use crate::axis::AxisAnalysis;
use crate::loops::unroll::asked_stages;
use crate::loops::view::{For, innermost};

/// Assigns latencies to loads.
pub static ASSIGN: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    options: &[NUM_STAGES],
    ..PassSpec::new(
        "tritongpu-assign-latencies",
        "say by how many iterations loads should be ahead of what uses them",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let stages = stages_asked(run)?;
    let plans = plans_of(module, run)?;
    let facts = AxisAnalysis::of(module);
    for of in innermost(module) {
        let own = asked_stages(of.operation());
        let asked = own.unwrap_or(stages);
        if asked == 1 || has_latencies(of) {
            continue;
        }
        let (loads, most) = match pipelined(of, asked, module, &facts, &plans) {
            Some(all) => all,
            None if own.is_some() && asked > 1 => (loads_of_tensors(of), asked),
            None => continue,
        };
        let chain = indirect::longest_chain(of, &loads).max(1);
        let latency = (most - 1) as usize / chain;
        for load in loads {
            load.set_attr(LATENCY, attr::i32(load.ctx(), latency.max(1) as i32));
        }
    }
    Ok(())
}

/// Whether a program gives latencies itself.
fn has_latencies(of: For<'_, '_>) -> bool {
    let mut found = false;
    of.operation().for_each_op(Walk::PreOrder, |inner| {
        found |= inner.attr(LATENCY).is_some()
    });
    found
}

/// The loads of a loop with products that can be ahead, those that their addresses depend on included, and the number of
/// stages.
fn pipelined<'c: 'a, 'a>(
    of: For<'c, 'a>,
    asked: u32,
    module: OperationRef<'c, 'a>,
    facts: &AxisAnalysis,
    plans: &Plans,
) -> Option<(Vec<OperationRef<'c, 'a>>, u32)> {
    let warps = warps_of(module);
    let mut account = LoopAccount::of(place(of.operation()));
    let candidate = Candidate::of(of, warps, facts, plans, None, &mut account).ok()?;
    let stages = match asked {
        0 => graph::schedule(of, &candidate.loads, &candidate.feeders, plans, warps)
            .stages
            .max(2),
        _ => asked,
    };
    let loads = candidate.loads.iter().map(|load| load.operation());
    Some((
        loads
            .chain(candidate.feeders.iter().copied())
            .filter(|operation| LoadOp::of(*operation).is_some())
            .collect(),
        stages,
    ))
}

/// The loads of tensors in a body.
fn loads_of_tensors<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let loads = of.operations().into_iter().filter_map(LoadOp::of);
    loads
        .filter(|load| RankedTensor::of(load.result().r#type()).is_some() && !load.is_volatile())
        .map(LoadOp::operation)
        .collect()
}
