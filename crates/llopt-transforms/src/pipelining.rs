//! `--tritongpu-pipeline`: software pipelining of loops with products, in which loads of later iterations overlap
//! with the products of earlier ones.
//!
//! # The pipelined loop
//!
//! A product waits for its factors, and these come from global memory, which takes longer than the product. So
//! the loads of an iteration are issued `S - 1` iterations ahead (`S` is the number of *stages*) into a *ring* of
//! buffers in shared memory, of which each iteration uses the next:
//!
//! ```text
//! for i = …                          ring of A, ring of B
//!   a = load A[i]                    copies of iterations 0 … S - 2 are issued
//!   b = load B[i]                    for i = …
//!   sum = dot a, b, sum                wait for the copies of i
//!                                      sum = dot ring A[i mod n], ring B[i mod n], sum
//!                                      issue copies of i + S - 1, if there is such an iteration
//! ```
//!
//! - Asynchronous *copies* to shared memory are used where the target has them. They are committed in groups: all
//!   copies that the same operation reads first. The number of younger groups that a wait leaves outstanding follows
//!   from the order (`waits`).
//! - Where it has none, or a load is too narrow for one, *registers* are loaded before the products of an iteration
//!   and stored after them.
//! - A warp-group product that only adds to an accumulator *runs on* into the next iteration, which waits for it
//!   after it has issued its own. Then rings have one more buffer. If the first factor is computed in registers from
//!   copied data, the next iteration reads its data while the product runs, and waits for the product before it
//!   computes the factor.
//!
//! The loop itself is expanded by [`crate::loops::pipeline`]; conditions become masks. Where these cost instructions, the
//! last iterations can have a loop of their own (`last_iterations`).
//!
//! Blocks that are copied before the loop and read in it are waited for after the copies of the first iterations
//! (`first_waits`).
//!
//! Where factors are copied as whole blocks, a separate warp can issue the copies (`partitions`), and of two products
//! in a chain, as in attention, the first can run an iteration ahead of the second (`ahead`). That is done where the
//! program asks for partitions (`tt.warp_specialize` on the loop or on one around it), for such chains where the
//! model predicts a benefit (`price`), and for loops inside a loop over tiles: the copies of the next tile then
//! overlap with the work on this one's result.
//!
//! Loads that addresses depend on go ahead of the loads that they feed (`indirect`), and divisions that they depend on get a
//! meaning for all operands (`quotients`). What is loaded and transposed is converted before the
//! transposition (`turned`). Loads that only the work on products' results needs are one iteration ahead, in
//! registers (`beside`).
//!
//! Loads in branches stand before them, with the condition as a mask (`branches`), if the loop could not be made one over the
//! iterations that take the branch ([`crate::compact_iterations`]).
//!
//! On targets where several waves share a matrix unit, the halves of a block can take turns in a pipelined loop
//! (`ping_pong`); that is a pass of its own.
//!
//! Loads of loops without products are one iteration ahead, in registers (`streams`), or as many as the program asks for on the
//! loop itself, through rings (`asked`).
//!
//! # Loops that stay as they are
//!
//! A loop is not changed if there is no benefit or if the change could be incorrect, and its account gives the
//! reason: no product, loops inside, loads whose addresses depend on operations that cannot be executed ahead, stores to the loaded memory (judged by the parameter that both addresses come from), too little shared
//! memory. Or all loads go to registers and no product runs on, and enough other blocks are resident while one waits: on an H100,
//! second products of LoRA take 0.76 to 0.86 of the time with their loads in the iteration (`exposed_latency`).
//!
//! # The number of stages
//!
//! `tt.num_stages` of a loop, or else the option of the pass. If neither sets it (zero), the schedule graph of the
//! loop ([`llopt_plan::schedule`]) says how far ahead loads have to be for their latency to be hidden. If rings for
//! so many stages do not fit into shared memory together with the other buffers live during the loop, there are
//! fewer, and no more than iterations. There are more than the program asks for if that hides more latency and costs nothing (`depth`, for a warp
//! that only copies `divide`).

mod account;
mod ahead;
mod asked;
mod bases;
mod beside;
mod branches;
mod buffers;
mod candidate;
mod copy_order;
mod depth;
mod design;
mod division;
mod exposed_latency;
mod first_waits;
mod graph;
pub(crate) mod guard;
mod indirect;
mod last_iterations;
mod late_waits;
pub mod latencies;
pub(crate) mod live_registers;
mod loads;
mod order;
mod overlap;
mod partitions;
mod ping_pong;
pub mod prefetch;
mod price;
mod quotients;
mod reads;
mod rewrite;
pub(crate) mod ring;
mod running;
mod slice;
mod spread_copies;
pub mod stages;
pub(crate) mod stores;
mod streamed_registers;
mod streams;
mod turned;
mod waits;
mod warps;

use llopt_dialects::tables::module as launch;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, Walk, attr};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::OperationRef;

use crate::allocation::plans_of;
use crate::axis::AxisAnalysis;
use crate::loops::unroll::{STAGES, asked_stages};
use crate::loops::view::For;
use crate::matrix::accumulators;
use crate::products::multiplies;
pub use account::{LoopAccount, Pipelined, PlacedUnit, Producer};
pub use ping_pong::{DIALECTS as TURN_DIALECTS, TAKE_TURNS, Turns, TurnsAccount, take_turns};
pub use spread_copies::SPREAD_COPIES;
pub use warps::choose as choose_warps;

pub(crate) use account::place;
use candidate::Candidate;
use division::{Request, divide};
pub(crate) use graph::{ISSUERS, is_special, matrix_cycles};
pub(crate) use loads::POINTER;
pub(crate) use partitions::ASKS;
use stages::Given;

/// The option of the passes that decide on stages.
const NUM_STAGES: PassOption = PassOption::integer(
    "num-stages",
    "in how many stages loops are pipelined that do not say so themselves; 0: as many as hide latencies",
    "3",
);

/// The value of [`NUM_STAGES`].
fn stages_asked(run: &PassRun) -> Result<u32, Complaint> {
    let stages = run.integer(NUM_STAGES.name);
    u32::try_from(stages)
        .map_err(|_| Complaint::new(format!("num-stages is {stages}, not a number of stages")))
}

/// Pipelines the loops of a module.
pub static PIPELINE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "ttg", "ttng"],
    options: &[NUM_STAGES],
    ..PassSpec::new(
        "tritongpu-pipeline",
        "load the factors of products in a loop iterations ahead",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let stages = stages_asked(run)?;
    let plans = plans_of(module, run)?;
    pipeline(module, stages, &plans);
    Ok(())
}

/// Writes one stage on the loops with products that do not name a number of stages: layouts depend on whether loads are ahead.
pub fn ask_for_one_stage(module: OperationRef<'_, '_>) {
    module.for_each_op(Walk::PreOrder, |operation| {
        let is_asked = operation.attr(STAGES).is_some();
        if For::of(operation).is_some() && multiplies(operation) && !is_asked {
            operation.set_discardable_attr(STAGES, attr::i32(module.ctx(), 1));
        }
    });
}

/// Pipelines the loops of a module that have products, in so many stages unless they set their own number, and loads of
/// other loops an iteration ahead. Answers an account of each with products, and of the others that were changed.
pub fn pipeline(module: OperationRef<'_, '_>, stages: u32, plans: &Plans) -> Vec<LoopAccount> {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation).filter(|of| multiplies(of.operation())));
    });
    let loops: Vec<(For, String)> = loops
        .into_iter()
        .map(|of| (of, place(of.operation())))
        .collect();
    let blocks: Option<u32> = module.attr(launch::NUM_CTAS).and_then(AttributeExt::as_int);
    let is_alone = blocks.unwrap_or(1) == 1;
    // Loops that were replaced by other ones.
    let mut gone: Vec<OperationRef> = Vec::new();
    let mut accounts = Vec::new();
    for (of, location) in loops {
        let mut account = LoopAccount::of(location);
        if !gone.contains(&of.operation()) {
            let outcome = match is_alone {
                true => pipeline_loop(module, of, stages, plans, &mut account, &mut gone),
                false => Err("buffers of clusters are not multiplied".to_owned()),
            };
            account.outcome = outcome;
        }
        accounts.push(account);
    }
    let warps = warps_of(module);
    let mut others = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        others.extend(For::of(operation).filter(|of| !multiplies(of.operation())));
    });
    for of in others {
        let account = LoopAccount::of(place(of.operation()));
        let asked = asked_stages(of.operation());
        let outcome = match Given::take(of) {
            Some(given) => Some(expand(of, given, warps, plans)),
            None if asked.unwrap_or(stages) == 1 => None,
            None => asked
                .and_then(|asked| asked::in_rings(module, of, asked, warps, plans))
                .or_else(|| streams::load_ahead(of, warps, plans))
                .map(Ok),
        };
        accounts.extend(outcome.map(|outcome| LoopAccount { outcome, ..account }));
    }
    accounts
}

/// The warps of a block of a module.
fn warps_of(module: OperationRef<'_, '_>) -> u32 {
    let warps = module.attr(launch::NUM_WARPS);
    warps.and_then(AttributeExt::as_int).unwrap_or(4)
}

fn pipeline_loop<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    default: u32,
    plans: &Plans,
    account: &mut LoopAccount,
    gone: &mut Vec<OperationRef<'c, 'a>>,
) -> Result<Pipelined, String> {
    let asked = asked_stages(of.operation()).unwrap_or(default);
    if of.has_loops() {
        return Err("there is a loop in it".to_owned());
    }
    let warps = warps_of(module);
    if let Some(given) = Given::take(of) {
        return pipeline_as_given(module, of, given, plans, account);
    }
    let of = bases::carry(module, of, warps, plans);
    if asked == 1 {
        return Err(format!("num_stages is {asked}"));
    }
    branches::hoist_loads(of);
    quotients::define(of);
    turned::convert_before(of);
    let (of, _) = accumulators::begin_loop_anew(of);
    let of = indirect::feed_ahead(of);
    let of = beside::load_ahead(of, warps, plans);
    let overlaps = overlap::issue_early(of, warps, plans);
    if overlaps {
        overlap::sum_last(of);
    }
    late_waits::defer(&mut Rewriter::new(of.operation().ctx()), of);
    let facts = AxisAnalysis::of(module);
    let candidate = Candidate {
        overlaps,
        ..Candidate::of(of, warps, &facts, plans, None, account)?
    };
    let scheduled = graph::schedule(of, &candidate.loads, &candidate.feeders, plans, warps);
    let wanted = match asked {
        0 => scheduled.stages.max(2),
        _ => asked,
    };

    let asked_for = partitions::asking(of);
    let is_asked = asked_for.is_some();
    let nest = asked_for.unwrap_or_else(|| Ok(partitions::nest_of(of)));
    let outer: Vec<OperationRef> = nest.iter().flatten().map(|of| of.operation()).collect();
    let divided = nest.and_then(|nest| {
        let request = Request {
            nest,
            wanted,
            is_asked,
        };
        divide(&candidate, request, &scheduled, plans)
    });
    let reason = match divided {
        Ok(pipelined) => {
            gone.extend(outer);
            return Ok(pipelined);
        }
        Err(reason) => reason,
    };
    account.undivided = is_asked.then(|| reason.clone());
    let ahead = ahead::Chain::of(of).is_ok().then_some(Err(reason));
    // Launches of more programs than multiprocessors take the kernel whose blocks compute several.
    let is_alone = module.attr(launch::SINGLE_WAVE).is_some();
    let residence = depth::Residence {
        is_filled_once: is_alone || module.attr(launch::PERSISTENT_PROPOSAL).is_some(),
        is_alone,
    };
    let pipelined = candidate.in_stages(wanted, &scheduled, residence, &facts, plans)?;
    Ok(Pipelined { ahead, ..pipelined })
}

/// Pipelines a loop in the stages that the program gives it: through rings of buffers where these lead to products, or
/// else in registers.
fn pipeline_as_given<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    given: Given<'c, 'a>,
    plans: &Plans,
    account: &mut LoopAccount,
) -> Result<Pipelined, String> {
    let (warps, facts) = (warps_of(module), AxisAnalysis::of(module));
    let wanted = given.stages as u32;
    match Candidate::of(of, warps, &facts, plans, Some(&given), account) {
        Ok(candidate) => {
            let scheduled = graph::schedule(of, &candidate.loads, &candidate.feeders, plans, warps);
            candidate.in_stages(
                wanted,
                &scheduled,
                depth::Residence::default(),
                &facts,
                plans,
            )
        }
        Err(_) => expand(of, given, warps, plans),
    }
}

/// Expands a loop by given stages.
fn expand<'c: 'a, 'a>(
    of: For<'c, 'a>,
    given: Given<'c, 'a>,
    warps: u32,
    plans: &Plans,
) -> Result<Pipelined, String> {
    let scheduled = graph::schedule(of, &[], &[], plans, warps);
    let (stages, loads) = (given.stages as u32, given.loads_ahead());
    given.expand(of)?;
    Ok(Pipelined {
        stages,
        through_registers: loads,
        ..Pipelined::of(&scheduled, stages)
    })
}
