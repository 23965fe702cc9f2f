//! Loops without products whose program asks for stages: loads as many iterations ahead as it says, through rings of buffers.
//!
//! # The rewritten loop
//!
//! `tt.num_stages = S` on a loop asks for loads `S - 1` iterations ahead. In registers they can be one ahead
//! ([`super::streams`]); more of them are asynchronous copies, as in loops with products:
//!
//! ```text
//! for i …  num_stages = 3        copies of iterations 0 and 1 are issued
//!   x = load A[i]                for i …
//!   store f(x)                     issue the copy of i + 2, if there is such an iteration
//!                                  wait for the copy of i
//!                                  x = read the ring; store f(x)
//! ```
//!
//! # The price
//!
//! What the program asks for is done unless it is slower than loads in registers by the model of [`super::streams`]. With `k`
//! iterations outstanding, buffers that leave room for `B` blocks, and banks that are busy for `R` cycles with what copies
//! write and threads read, an iteration takes `max(C + R, M, max((L + M) / k, C + R of a warp) / B)`. Loops that memory
//! limits, `M`, take as long in either way: there the program decides. The kernel's number of stages, which programs have for
//! their products, asks for nothing here.

use llopt_plan::plans::Plans;
use melior::ir::ValueLike;

use super::account::{LoopAccount, Pipelined};
use super::candidate::Candidate;
use super::loads::{Load, Source};
use super::{depth, graph, ring, streams};
use crate::axis::AxisAnalysis;
use crate::layouts::times;
use crate::loops::view::For;

/// The fewest stages for which loads are more than one iteration ahead.
const FEWEST_STAGES: u32 = 3;

/// Cycles for which the banks are busy with the data of a load: what a copy writes takes as long as what threads read.
fn banks(load: &Load<'_, '_>, warps: u32, plans: &Plans) -> Option<u32> {
    let Source::Load(of, Some(_)) = load.source else {
        return None;
    };
    let reads: Vec<_> = load.reads.registers.iter().map(|read| read.to).collect();
    let cost = ring::read(plans, of.result().r#type(), &load.slot, &reads)?;
    Some((2.0 * cost * warps as f32).ceil() as u32)
}

/// Pipelines a loop without products in the stages that its program asks for; `None` if it stays as it is.
pub(super) fn in_rings(
    module: melior::ir::OperationRef<'_, '_>,
    of: For<'_, '_>,
    asked: u32,
    warps: u32,
    plans: &Plans,
) -> Option<Pipelined> {
    if asked < FEWEST_STAGES || !streams::is_simple(of) || times(of.operation()) < streams::FEWEST {
        return None;
    }
    let facts = AxisAnalysis::of(module);
    let mut account = LoopAccount::of(super::place(of.operation()));
    let wanted = streams::loads(of);
    let candidate =
        Candidate::with_loads(of, &wanted, warps, &facts, plans, None, &mut account).ok()?;
    if !account.left.is_empty() || !candidate.feeders.is_empty() {
        return None;
    }
    let scheduled = graph::schedule(of, &[], &[], plans, warps);
    let banks: Option<u32> = candidate
        .loads
        .iter()
        .map(|load| banks(load, warps, plans))
        .sum();
    let bytes =
        candidate.other_bytes(of, plans).ok()? + u64::from(asked) * candidate.bytes_of_a_slot();
    let operations: Vec<_> = candidate.loads.iter().map(Load::operation).collect();
    let iteration = streams::Iteration::of(of, &operations, 1, &scheduled, plans);
    if !iteration.is_no_slower_in_rings(asked - 1, bytes, banks?, warps, plans.target()) {
        return None;
    }
    let scheduled = graph::Scheduled {
        stages: asked,
        loaded_stages: asked,
        ..scheduled
    };
    let residence = depth::Residence::default();
    candidate
        .in_stages(asked, &scheduled, residence, &facts, plans)
        .ok()
}
