//! Proofs that asynchronous work and the threads that share buffers with it are ordered, for all numbers of iterations.
//!
//! # What is proven
//!
//! An access *happens before* another (Lamport, *Time, clocks, and the ordering of events*, 1978) if a chain of
//! program order and synchronisation leads from its completion to the other. Two accesses to the same bytes, of which
//! one writes, are a hazard unless one of them happens before the other. For each op that accesses shared memory or
//! synchronises, the obligation is that none of its executions is part of a hazard:
//!
//! - a buffer is read only after what fills it has arrived, and filled only after everything that reads it has finished:
//!   loads of threads, running products of matrix units, copies out of it;
//! - what threads wrote is separated by a proxy fence from what the asynchronous proxy reads or overwrites (PTX ISA,
//!   *Async proxy*); products see what `cp.async` wrote without one;
//! - what threads read has arrived before the unit that copies tiles overwrites it: the reader has executed a fence before
//!   the barrier between the two, or its warp has arrived at a barrier in memory;
//! - a wait at a transaction barrier waits for the phase that it means: it cannot pass because of an older phase of the
//!   same parity, and the barrier cannot run ahead by two phases before all threads have seen one;
//! - each wait ends; the bytes that a phase expects are those that arrive in it; no phase counts too many arrivals;
//! - counted waits (`cp.async.wait_group`, `wgmma.wait_group`, `cp.async.bulk.wait_group`, and waits of AMD's targets for
//!   their copies) leave only groups whose buffers and registers nobody uses;
//! - registers that a running product writes are not used.
//!
//! # How
//!
//! What is executed is the *skeleton* of the kernel after all passes ([`skeleton`]): loops, conditions, the integers
//! that choose buffers and phases, and the accesses and synchronisation of each partition of warps.
//!
//! **Knowledge instead of clocks.** Each access carries how far each partition knows of its completion ([`memory`]): each
//! thread what it did itself, or all threads everything. A barrier makes the second from the first. An arrival at a
//! transaction barrier hands on what is known there to who waits for the phase: if each warp arrives for itself, what each
//! did; if one thread arrives, what all know. Two threads of a partition stand for all of them, since an
//! order between any two different ones is demanded.
//!
//! **One schedule is enough.** Partitions affect one another only through transaction barriers. Every wait is proven to
//! be for one certain phase in every schedule: the partition knows that the phase before is complete, and no phase
//! is complete before all threads have waited for the last one. So the order does not depend on the schedule, which may be
//! any fair one; here each partition runs until it must wait.
//!
//! **All iterations.** Buffers and phases are counted modulo the depth of a ring and modulo two. So the state of
//! everything that decides about the future is finite, if taken relative to the present iteration: what is outstanding,
//! who knows what, the counters. A loop of unknown length is first executed as if it did not end,
//! until the state at its head recurs. An execution that stays in the loop longer repeats what was seen, so it
//! has a hazard only if a shorter one has. Then the loop is executed with every number of iterations up to those
//! at which its end could be noticed before the recurrence, by comparisons with its bound that look ahead. Comparisons
//! with an induction variable must have settled: in the period, none of them comes nearer to another result.
//! This is model checking with an induction over recurring states (Clarke, Grumberg and Peled, *Model checking*, 1999,
//! chapter 6, on quotients).
//!
//! **Loops in loops.** Where a loop has another number of iterations in each iteration of the loop around it, the executions
//! are too many. Then it is decided at each head of the outer loop whether it goes on, and each state there is followed once
//! ([`exploration`]).
//!
//! **Conditions** that nothing determines are taken both ways; equal conditions, also in different partitions, the same
//! way.
//!
//! # What is not
//!
//! An unknown number that bounds a loop is taken to be minus one step at the least; such numbers are extents and numbers of
//! programs.
//! It is not proven that the bytes which arrive are the right ones: the proofs of single ops and ordinary tests do that. A
//! mask on a copy counts as true. Inside of an op that exchanges data through scratch memory, code generation places the
//! barriers. The memory of other blocks of a cluster, functions that are not inlined, and AMD's transaction barriers
//! have no proof; the reason is given.
//!
//! # A check of the check
//!
//! [`removals`] deletes each wait, arrival, fence, barrier and commit in turn, and weakens each counted wait and each phase.
//! What it deletes without a hazard is redundant, or the check has a gap.

mod arithmetic;
mod blocks;
mod choices;
mod counters;
mod events;
mod execution;
mod exploration;
mod known_values;
mod memory;
mod number;
mod reading;
mod skeleton;

use llopt_dialects::meaning::facts::OpFacts;
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::plans::Plans;
use llopt_sim::Change;
use melior::ir::OperationRef;
use serde::Serialize;

use super::obligation::{Obligation, Subject, Verdict};
use crate::module::location_of;
use execution::{Executions, Stop};
use skeleton::{Event, Instruction, Skeleton};

/// The result of all executions of a skeleton.
enum Outcome {
    /// No execution has a hazard; how many there were.
    Ordered {
        runs: usize,
    },
    Wrong {
        place: usize,
        message: String,
    },
    Unsupported {
        reason: String,
    },
}

/// Instructions of all executions of a skeleton, after which they are explored with what is past forgotten.
const BEFORE_EXPLORATION: u64 = 1_000_000;
/// Instructions of all executions of an exploration.
const EXPLORATION: u64 = 60_000_000;
/// Instructions of all executions in which a hazard is searched that an exploration has found.
const AFTER_EXPLORATION: u64 = 10_000_000;

/// Checks all executions of a skeleton.
fn check(skeleton: &Skeleton) -> Outcome {
    if let Ok(outcome) = execute(&mut Executions::of(skeleton, BEFORE_EXPLORATION)) {
        return outcome;
    }
    let reason = match exploration::explore(skeleton, EXPLORATION) {
        Ok(runs) => return Outcome::Ordered { runs },
        Err(Stop::Wrong { place, hazard }) => {
            let of = &skeleton.places[place];
            format!("'{}' at {}: {}", of.op, of.location, hazard.text)
        }
        Err(Stop::Exhausted(reason) | Stop::Unsupported(reason)) => reason,
        Err(Stop::Learned | Stop::Recurred) => String::new(),
    };
    execute(&mut Executions::of(skeleton, AFTER_EXPLORATION)).unwrap_or_else(|exhausted| {
        let reason = format!("{exhausted}; with what is past forgotten: {reason}");
        Outcome::Unsupported { reason }
    })
}

/// Executes a skeleton in all ways; the reason if these are too many.
fn execute(executions: &mut Executions) -> Result<Outcome, String> {
    let mut runs = 0;
    loop {
        match executions.run(executions.start()) {
            Ok(()) | Err(Stop::Recurred) => runs += 1,
            Err(Stop::Learned) => {
                executions.arithmetic.choices.restart();
                continue;
            }
            Err(Stop::Exhausted(reason)) => return Err(reason),
            Err(Stop::Unsupported(reason)) => return Ok(Outcome::Unsupported { reason }),
            Err(Stop::Wrong { place, hazard }) => {
                let places = &executions.skeleton.places;
                let other = hazard.other.map(|other| &places[other]);
                let other = other.map(|other| format!(" ('{}' at {})", other.op, other.location));
                let message = format!("{}{}", hazard.text, other.unwrap_or_default());
                return Ok(Outcome::Wrong { place, message });
            }
        }
        if !executions.arithmetic.choices.advance() {
            return Ok(Outcome::Ordered { runs });
        }
    }
}

/// The kernels of a module with what is asynchronous in them, or why that is not known.
fn skeletons(
    module: OperationRef<'_, '_>,
    plans: &Plans,
) -> Vec<(String, Result<Skeleton, String>)> {
    let mut found = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        if tt::FuncOp::of(op).is_none() {
            return;
        }
        let skeleton = Skeleton::of(op, plans);
        let has_obligations = match &skeleton {
            Ok(skeleton) => skeleton.is_asynchronous(),
            Err(_) => shares_buffers(op),
        };
        if has_obligations {
            found.push((location_of(op), skeleton));
        }
    });
    found
}

/// Whether anything in a function has a buffer in memory, or is asynchronous.
fn shares_buffers(function: OperationRef<'_, '_>) -> bool {
    let mut shares = false;
    function.for_each_op(Walk::PreOrder, |op| {
        shares |= op.result_types().any(|of| MemDesc::of(of).is_some())
            || OpFacts::of(op).asynchronous.is_some();
    });
    shares
}

/// The obligations of a module that has gone through all passes, except that its control flow is structured.
pub(super) fn obligations(module: OperationRef<'_, '_>, plans: &Plans) -> Vec<Obligation> {
    let mut all = Vec::new();
    for (location, skeleton) in skeletons(module, plans) {
        match skeleton {
            Ok(skeleton) => all.extend(of_kernel(location, &skeleton)),
            Err(reason) => all.push(unsupported(location, reason)),
        }
    }
    all
}

pub(super) fn unsupported(location: String, reason: String) -> Obligation {
    Obligation {
        subject: Subject::Order,
        location,
        op: tt::FuncOp::NAME.to_owned(),
        types: String::new(),
        verdict: Verdict::Unsupported { reason },
    }
}

fn of_kernel(location: String, skeleton: &Skeleton) -> Vec<Obligation> {
    let obligation = |place: usize, verdict: Verdict| {
        let of = &skeleton.places[place];
        Obligation {
            subject: Subject::Order,
            location: of.location.clone(),
            op: of.op.clone(),
            types: of.types.clone(),
            verdict,
        }
    };
    match check(skeleton) {
        Outcome::Unsupported { reason } => vec![unsupported(location, reason)],
        // What else is true of a kernel with a hazard says nothing.
        Outcome::Wrong { place, message } => vec![obligation(place, Verdict::Wrong { message })],
        Outcome::Ordered { runs } => {
            let events = skeleton
                .code
                .iter()
                .filter_map(|instruction| match instruction {
                    Instruction::Event { place, .. } => Some(*place),
                    _ => None,
                });
            events
                .map(|place| obligation(place, Verdict::Proven { runs }))
                .collect()
        }
    }
}

/// A wait, arrival, fence, barrier or commit without which a kernel was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderRemoval {
    /// `file:line:col`.
    pub location: String,
    /// The op's name.
    pub op: String,
    /// What was done to it.
    pub change: Change,
    /// The hazard that this causes; null if there is none.
    pub hazard: Option<String>,
}

/// Checks a module without each single wait, arrival, fence, barrier and commit; the reason if it is not proven as it is.
pub(super) fn removals(
    module: OperationRef<'_, '_>,
    plans: &Plans,
) -> Result<Vec<OrderRemoval>, String> {
    let mut all = Vec::new();
    for (_, skeleton) in skeletons(module, plans) {
        let skeleton = skeleton?;
        match check(&skeleton) {
            Outcome::Ordered { .. } => {}
            Outcome::Wrong { message, .. } => return Err(message),
            Outcome::Unsupported { reason } => return Err(reason),
        }
        for index in 0..skeleton.code.len() {
            let Instruction::Event { event, place } = &skeleton.code[index] else {
                continue;
            };
            for (change, event) in changes(event) {
                let place = *place;
                let mut changed = skeleton.clone();
                changed.code[index] = match event {
                    Some(event) => Instruction::Event { event, place },
                    None => Instruction::Move(Vec::new()),
                };
                let hazard = match check(&changed) {
                    Outcome::Ordered { .. } => None,
                    Outcome::Wrong { place, message } => {
                        let at = &skeleton.places[place];
                        Some(format!("'{}' at {}: {message}", at.op, at.location))
                    }
                    Outcome::Unsupported { reason } => Some(format!("no proof: {reason}")),
                };
                all.push(OrderRemoval {
                    location: skeleton.places[place].location.clone(),
                    op: skeleton.places[place].op.clone(),
                    change,
                    hazard,
                });
            }
        }
    }
    Ok(all)
}

/// What can be changed about an event; nothing is in its place if it is removed.
fn changes(event: &Event) -> Vec<(Change, Option<Event>)> {
    /// So many groups that none is waited for.
    const ALL_GROUPS: i64 = 1 << 40;
    let (removed, weakened) = (Change::Removed, Change::Weakened);
    match event.clone() {
        Event::Arrive { .. } | Event::Commit | Event::Fence | Event::Barrier => {
            vec![(removed, None)]
        }
        Event::Wait {
            barrier,
            phase,
            flipped,
            pred,
        } => {
            let flipped = !flipped;
            vec![
                (removed, None),
                (
                    weakened,
                    Some(Event::Wait {
                        barrier,
                        phase,
                        flipped,
                        pred,
                    }),
                ),
            ]
        }
        Event::BulkWait { left } => vec![
            (removed, None),
            (weakened, Some(Event::BulkWait { left: left + 1 })),
        ],
        Event::CopyWait { left } => vec![
            (removed, None),
            (weakened, Some(Event::CopyWait { left: left + 1 })),
        ],
        Event::ProductWait { moves, left } => {
            let waits = |left| {
                let moves = moves.clone();
                Some(Event::ProductWait { moves, left })
            };
            vec![(removed, waits(ALL_GROUPS)), (weakened, waits(left + 1))]
        }
        Event::Begin { .. }
        | Event::End { .. }
        | Event::BulkLoad { .. }
        | Event::BulkStore { .. }
        | Event::Copy { .. }
        | Event::Product { .. }
        | Event::Read { .. }
        | Event::Write { .. }
        | Event::Scratch { .. } => Vec::new(),
    }
}
