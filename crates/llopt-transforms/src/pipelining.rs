//! `--tritongpu-pipeline`: loops with products, in which loads of later iterations run beside the products of earlier
//! ones.
//!
//! # What a loop becomes
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
//! - *Copies* go to shared memory beside the program where the target has such an instruction, in groups: all that one
//!   operation reads first. How many younger groups a wait leaves follows from the order (`waits`).
//! - Where it has none, or a load is too narrow for one, *registers* are loaded before the products of an iteration and
//!   stored behind them.
//! - A product of a group of warps that only adds to a sum *runs on* into the next iteration, which waits for it
//!   behind its own. Then rings have one buffer more. If its first factor is computed in registers from what copies brought,
//!   the next iteration reads that beside it, and waits for it before it computes with it.
//!
//! The loop itself is expanded by [`crate::loops::pipeline`]; conditions become masks.
//!
//! Where factors are copied as whole blocks, a warp of its own can issue the copies (`partitions`), and of two products in
//! a chain, as in attention, the first can run an iteration ahead of the second (`ahead`). That is done where the program
//! asks for partitions (`tt.warp_specialize` on the loop or on one around it), for such chains where the model says
//! that it pays (`price`), and for loops in another one that goes through tiles: the copies of the next tile then run
//! beside what is made of this one's sum.
//!
//! # What is left alone
//!
//! A loop stays as it was where nothing would be gained or something could go wrong, and its account says why: no
//! product, loops inside, loads whose addresses are loaded or depend on what cannot be executed ahead, stores to
//! what is loaded (by the parameter that both come from), no room in shared memory.
//!
//! # The number of stages
//!
//! `tt.num_stages` of a loop, or else the option of the pass. Where both leave it open (zero), the schedule graph of
//! the loop ([`llopt_plan::schedule`]) says how far ahead loads have to be for their latency to be hidden. If rings of so
//! many do not fit beside what else is in shared memory during the loop, there are fewer. There are more than the
//! program asks for where that hides more and costs nothing (`depth`, for a warp that only copies `divide`).

mod ahead;
mod bases;
mod depth;
mod graph;
mod guard;
mod loads;
mod partitions;
mod price;
mod rewrite;
pub(crate) mod ring;
mod slice;
mod waits;

use std::collections::HashMap;

use llopt_dialects::meaning::facts::{OpFacts, Step, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::types::{Pointer, TensorDesc, element_or_self};
use llopt_dialects::tt::FuncOp;
use llopt_dialects::ttng::{ReinterpretTensorDescOp, TensormapCreateOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{OptionKind, PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_target::Feature;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::allocation::{FunctionBuffers, plans_of};
use crate::axis::AxisAnalysis;
use crate::loops::unroll::STAGES;
use crate::loops::view::For;
use crate::products::is_product;
use loads::Load;
use rewrite::{Design, rewrite, running};
use slice::Slice;

/// Bytes of shared memory that are left free for barriers and for what is handed to partitions.
const HANDED_OVER: u64 = 1024;

/// Pipelines the loops of a module.
pub static PIPELINE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "ttg", "ttng"],
    options: &[PassOption {
        name: "num-stages",
        description: "in how many stages loops are pipelined that do not say so themselves; 0: as many as hide latencies",
        kind: OptionKind::Int,
        default: "3",
    }],
    ..PassSpec::new(
        "tritongpu-pipeline",
        "load the factors of products in a loop iterations ahead",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let stages = run.integer("num-stages");
    let stages = u32::try_from(stages)
        .map_err(|_| Complaint::new(format!("num-stages is {stages}, not a number of stages")))?;
    let plans = plans_of(module, run)?;
    pipeline(module, stages, &plans);
    Ok(())
}

/// What became of a loop with products.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopAccount {
    /// `file:line:col` of the loop.
    pub location: String,
    /// What became of it, or why it was left alone.
    pub outcome: Result<Pipelined, String>,
    /// Loads that stay where they were: where each is, and why.
    pub left: Vec<(String, String)>,
    /// Why no warp of its own issues the copies, where the program asks for one.
    pub undivided: Option<String>,
}

/// How a loop is pipelined.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipelined {
    /// The stages.
    pub stages: u32,
    /// The stages that were asked for.
    pub wanted: u32,
    /// The stages in which latencies are hidden.
    pub needed: u32,
    /// Cycles from one iteration to the next, if nothing else were in the way.
    pub interval: u32,
    /// Cycles that no schedule is below, and why.
    pub bound: u32,
    /// The pipe that is busy for so long; `None` if it is latencies around a circle.
    pub limit: Option<String>,
    /// Buffers of each ring.
    pub slots: u32,
    /// Bytes of all rings.
    pub bytes: u64,
    /// Loads that are copies beside the program.
    pub copies: u32,
    /// Loads that go through registers.
    pub through_registers: u32,
    /// Products that run on into the next iteration.
    pub running: u32,
    /// Whether the first of two products in a chain runs an iteration ahead of the second, or why it does not; `None` if
    /// there are no such products.
    pub ahead: Option<Result<(), String>>,
    /// The warps that issue the copies, if they do nothing else.
    pub producer: Option<Producer>,
}

/// Warps that issue the copies of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Producer {
    /// How many.
    pub warps: u32,
    /// The loops that they execute, with those around the one with the products.
    pub loops: u32,
    /// Registers that each of their threads keeps, if the others get the rest.
    pub registers: Option<u32>,
}

/// Pipelines the loops of a module that have products, in so many stages where they do not say themselves. Answers what
/// became of each.
pub fn pipeline(module: OperationRef<'_, '_>, stages: u32, plans: &Plans) -> Vec<LoopAccount> {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation).filter(|of| has_products(*of)));
    });
    let loops: Vec<(For, String)> = loops
        .into_iter()
        .map(|of| (of, place(of.operation())))
        .collect();
    let blocks: Option<u32> = module.attr(launch::NUM_CTAS).and_then(AttributeExt::as_int);
    let is_alone = blocks.unwrap_or(1) == 1;
    // Loops that are no longer there, since another one took their place.
    let mut gone: Vec<OperationRef> = Vec::new();
    let mut accounts = Vec::new();
    for (of, location) in loops {
        let mut account = LoopAccount {
            location,
            outcome: Err("a loop in it is divided among partitions".to_owned()),
            left: Vec::new(),
            undivided: None,
        };
        if !gone.contains(&of.operation()) {
            let outcome = match is_alone {
                true => pipeline_loop(module, of, stages, plans, &mut account, &mut gone),
                false => Err("buffers of clusters are not multiplied".to_owned()),
            };
            account.outcome = outcome;
        }
        accounts.push(account);
    }
    accounts
}

fn place(operation: OperationRef<'_, '_>) -> String {
    use llopt_mlir::ir::LocationExt;
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}

/// Whether there is a product in a loop, however deep.
fn has_products(of: For<'_, '_>) -> bool {
    let mut found = false;
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        found |= is_product(operation);
    });
    found
}

fn pipeline_loop<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    default: u32,
    plans: &Plans,
    account: &mut LoopAccount,
    gone: &mut Vec<OperationRef<'c, 'a>>,
) -> Result<Pipelined, String> {
    let wanted = of.operation().attr(STAGES).and_then(AttributeExt::as_int);
    let asked: u32 = wanted.unwrap_or(default);
    let mut has_loop = false;
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        has_loop |= operation != of.operation() && is_loop(operation);
    });
    if has_loop {
        return Err("there is a loop in it".to_owned());
    }
    let warps: Option<u32> = module
        .attr(launch::NUM_WARPS)
        .and_then(AttributeExt::as_int);
    let of = bases::carry(module, of, warps.unwrap_or(4), plans);
    if asked == 1 {
        return Err(format!("num_stages is {asked}"));
    }
    let products = loads::products(of);
    if products.is_empty() {
        return Err("its products are in branches".to_owned());
    }
    let facts = AxisAnalysis::of(module);
    let stored = stored_to(of);
    let mut chosen: Vec<Load> = Vec::new();
    for operation in loads::of_products(of, &products) {
        let design = Load::of(of, operation, &facts, plans).and_then(|load| {
            Slice::of(of, load.needs(), &[])?;
            match &stored {
                Err(reason) => Err(reason.clone()),
                Ok(roots) if may_meet(parameter(load.address()), roots) => {
                    Err("the loop may store to what it loads from".to_owned())
                }
                Ok(_) => Ok(load),
            }
        });
        match design {
            Ok(load) => chosen.push(load),
            Err(reason) => account.left.push((place(operation), reason)),
        }
    }
    if chosen.is_empty() {
        return Err("no load of it can come earlier".to_owned());
    }
    let mut running = running(of, &chosen, &products);
    let passing: u32 = chosen
        .iter()
        .map(|load| load.registers(&facts, plans))
        .sum();
    if passing > 0 && !fit_beside(of, passing, warps.unwrap_or(4), plans) {
        // What is loaded while a product is running would be put into local memory at once, and wait to come in there.
        let (copied, others) = chosen.into_iter().partition(Load::is_copied);
        let others: Vec<Load> = others;
        let reason = "its registers do not fit beside those of the products";
        let others = others
            .iter()
            .map(|load| (place(load.operation()), reason.to_owned()));
        account.left.extend(others);
        chosen = copied;
        if chosen.is_empty() {
            return Err("no load of it can come earlier".to_owned());
        }
        running = rewrite::running(of, &chosen, &products);
    }
    let scheduled = graph::schedule(of, &chosen, plans, warps.unwrap_or(4));
    let wanted = match asked {
        0 => scheduled.stages.max(2),
        _ => asked,
    };
    let per_slot: u64 = chosen.iter().map(|load| load.bytes).sum();
    let asked_for = partitions::asking(of);
    let is_asked = asked_for.is_some();
    let nest = asked_for.unwrap_or_else(|| Ok(partitions::nest_of(of)));
    let outer: Vec<OperationRef> = nest.iter().flatten().map(|of| of.operation()).collect();
    let divided = nest.and_then(|nest| {
        let request = Request {
            nest,
            loads: chosen.clone(),
            running: running
                .iter()
                .copied()
                .filter(|running| !running.computes_factor)
                .collect(),
            wanted,
            warps: warps.unwrap_or(4),
            is_asked,
        };
        divide(request, &scheduled, plans)
    });
    match divided {
        Ok(pipelined) => {
            gone.extend(outer);
            return Ok(pipelined);
        }
        Err(reason) => account.undivided = Some(reason),
    }
    let reason = match is_asked {
        true => account.undivided.clone(),
        false => account.undivided.take(),
    };
    let ahead = reason.filter(|_| ahead::Chain::of(of).is_ok()).map(Err);
    let replaced: Vec<OperationRef> = chosen.iter().flat_map(Load::replaced).collect();
    let others = others(of, &replaced, plans)?;
    let room = u64::from(plans.target().shared_memory_limit()).saturating_sub(others);
    let target = plans.target();
    let threads = warps.unwrap_or(4) * target.warp_size();
    let wanted_registers = live(of, &chosen, plans) + REGISTERS_BESIDE;
    let registers = wanted_registers.min(target.plain_registers_of_each(threads));
    let rings = depth::Rings {
        asked: wanted,
        needed: scheduled.stages,
        fit: room / per_slot.max(1),
        runs_on: !running.is_empty(),
        copies: chosen.iter().any(Load::is_copied),
        by_memory: scheduled.is_bound_by_memory(),
        warps: warps.unwrap_or(4),
        spills: wanted_registers > registers,
    };
    let resident = |slots| target.resident_blocks(threads, registers, others + slots * per_slot);
    let Some(depth) = rings.depth(resident) else {
        return Err(format!(
            "two stages take {} bytes of shared memory, of which {room} are free",
            per_slot * (1 + u64::from(!running.is_empty()))
        ));
    };
    let stages = depth.stages;
    let design = Design {
        of,
        loads: chosen,
        running,
        stages: stages as usize,
        early: depth.early,
    };
    let slots = design.slots() as u32;
    let copies = design.loads.iter().filter(|load| load.is_copied());
    let copies = copies.count() as u32;
    let pipelined = Pipelined {
        stages,
        wanted,
        needed: scheduled.stages,
        interval: scheduled.schedule.interval,
        bound: scheduled.schedule.bound.interval,
        limit: scheduled.schedule.bound.pipe.map(|pipe| pipe.to_string()),
        slots,
        bytes: per_slot * u64::from(slots),
        copies,
        through_registers: design.loads.len() as u32 - copies,
        running: design.running.len() as u32,
        ahead,
        producer: None,
    };
    let mut rewriter = Rewriter::new(of.operation().ctx());
    let new = rewrite(&mut rewriter, design);
    let new = new.ok_or("a value would be used before it is there")?;
    new.operation().remove_attr(STAGES);
    Ok(pipelined)
}

/// Whether a thread has so many registers beside what a loop carries, pointers not counted.
fn fit_beside(of: For<'_, '_>, registers: u32, warps: u32, plans: &Plans) -> bool {
    let target = plans.target();
    let kept = of.carried().into_iter();
    let kept = kept.filter(|value| Pointer::of(element_or_self(value.r#type())).is_none());
    let kept: u32 = kept.map(|value| ring::words(value, plans)).sum();
    kept + registers <= target.registers_of_each(warps * target.warp_size())
}

/// Loops that ask for partitions.
struct Request<'c, 'a> {
    nest: Vec<For<'c, 'a>>,
    loads: Vec<Load<'c, 'a>>,
    running: Vec<rewrite::Running<'c, 'a>>,
    /// Buffers for each load, if they fit.
    wanted: u32,
    /// The kernel's warps.
    warps: u32,
    /// Whether the program asks for partitions. Otherwise there are some where they pay.
    is_asked: bool,
}

/// Registers of a thread beside what a loop carries.
const REGISTERS_BESIDE: u32 = 64;
/// Registers of a thread beside sums, scores and weights where a product is ahead: addresses, and rows of maxima and sums.
const AHEAD_BESIDE: u32 = 24;
/// Registers that each thread of a producer keeps.
const PRODUCER_REGISTERS: u32 = 24;

/// Has a warp of its own issue the copies of a loop.
///
/// # Errors
/// Why none can.
fn divide<'c: 'a, 'a>(
    request: Request<'c, 'a>,
    scheduled: &graph::Scheduled,
    plans: &Plans,
) -> Result<Pipelined, String> {
    let target = plans.target();
    if !target.has(Feature::TransactionBarrier) || !target.has(Feature::BulkTensorCopy) {
        return Err(format!("{target} has no copies that arrive at barriers"));
    }
    let (Some(&root), Some(&of)) = (request.nest.first(), request.nest.last()) else {
        return Err("there is no loop".to_owned());
    };
    // The copies of later iterations run beside all of the loops.
    let roots = stored_to(root)?;
    if request
        .loads
        .iter()
        .any(|load| may_meet(parameter(load.address()), &roots))
    {
        return Err("a loop around it may store to what it loads from".to_owned());
    }
    let per_slot: u64 = request.loads.iter().map(|load| load.bytes).sum();
    let replaced: Vec<OperationRef> = request.loads.iter().flat_map(Load::replaced).collect();
    let others = others(root, &replaced, plans)?;
    let room = u64::from(target.shared_memory_limit()).saturating_sub(others + HANDED_OVER);
    let fit = room / per_slot.max(1);
    let least = fit.min(u64::from(request.wanted.max(2)));
    let live = live(of, &request.loads, plans);
    // A quarter of the register file is dealt out to every fourth warp.
    let warps = request.warps + partitions::PRODUCER_WARPS;
    let whole = warps.next_multiple_of(4);
    let each = target.registers_per_block() / (whole * target.warp_size());
    let gives = live + REGISTERS_BESIDE > each;
    let registers = gives.then_some(PRODUCER_REGISTERS);
    let threads = if gives { whole } else { warps } * target.warp_size();
    // Buffers that hide more of the latency than the program asks for cost nothing if as many blocks are resident. A
    // block that goes through tiles itself is alone.
    let is_persistent = request.nest.len() > 1;
    let resident = |slots: u64| {
        let shared = others + HANDED_OVER + slots * per_slot;
        let registers = each.min(live + REGISTERS_BESIDE);
        match is_persistent {
            true => 1,
            false => target.resident_blocks(threads, registers, shared),
        }
    };
    let most = fit.min(u64::from(scheduled.stages)).max(least);
    let enough = (least..=most).rev();
    let slots = enough
        .into_iter()
        .find(|&slots| resident(slots) == resident(least));
    let slots = slots.unwrap_or(least);
    let loops = request.nest.len() as u32;
    let share = target.plain_registers_of_each(request.warps * target.warp_size());
    let chain = chain(of, &request.loads, share, plans);
    if !request.is_asked {
        if is_repeated(root) {
            return Err("it is in another loop".to_owned());
        }
        // The copies of the next tile run beside what is made of this one's sum.
        if !is_persistent {
            let chain = chain.as_ref().map_err(Clone::clone)?;
            let block = price::Block {
                threads: request.warps * target.warp_size(),
                registers: chain.registers(plans) + AHEAD_BESIDE - chain.weights(plans),
                strands: 1,
            };
            let divided = price::Block {
                threads,
                registers: (chain.registers(plans) + AHEAD_BESIDE).min(each),
                strands: chain.strands(plans),
            };
            let iteration = price::Iteration {
                shared: others + least * per_slot,
                matrix: scheduled.matrix,
                threads: scheduled.threads,
            };
            iteration.pays(&block, &divided, target)?;
        }
    }
    // What is ahead waits for its own products.
    let running = match chain {
        Ok(_) => Vec::new(),
        Err(_) => request.running,
    };
    let division = partitions::Division::of(request.nest, request.loads, running, slots)?;
    let pipelined = Pipelined {
        stages: division.slots(),
        wanted: request.wanted,
        needed: scheduled.stages,
        interval: scheduled.schedule.interval,
        bound: scheduled.schedule.bound.interval,
        limit: scheduled.schedule.bound.pipe.map(|pipe| pipe.to_string()),
        slots: division.slots(),
        bytes: per_slot * u64::from(division.slots()),
        copies: division.loads().len() as u32,
        through_registers: 0,
        running: division.running().len() as u32,
        ahead: None,
        producer: Some(Producer {
            warps: partitions::PRODUCER_WARPS,
            loops,
            registers,
        }),
    };
    let mut rewriter = Rewriter::new(root.operation().ctx());
    let registers = registers.map(u32::cast_signed);
    let inner = partitions::divide(&mut rewriter, &division, request.warps, registers);
    let inner = inner.ok_or("a value would be used before it is there")?;
    let is_chain = ahead::Chain::of(inner).is_ok();
    let ahead = chain.and_then(|chain| chain.overlap(&mut rewriter, inner, plans).map(|_| ()));
    let ahead = is_chain.then_some(ahead);
    let pipelined = Pipelined { ahead, ..pipelined };
    Ok(pipelined)
}

/// Registers of a thread that a loop takes for tensors: what is carried, and the results of products beside it.
fn live(of: For<'_, '_>, chosen: &[Load<'_, '_>], plans: &Plans) -> u32 {
    let products = loads::products(of);
    let results = products.iter().flat_map(|product| product.result_values());
    let results = results.filter(|result| !of.yielded().contains(result));
    of.carried()
        .into_iter()
        .chain(results)
        .map(|value| loads::registers(value, chosen, plans))
        .sum()
}

/// The products of a loop of which one may run an iteration ahead, if each thread may have so many registers.
///
/// # Errors
/// Why none may.
fn chain<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[Load<'c, 'a>],
    share: u32,
    plans: &Plans,
) -> Result<ahead::Chain<'c, 'a>, String> {
    let chain = ahead::Chain::of(of)?;
    let registers = chain.registers(plans) + AHEAD_BESIDE;
    if registers > share {
        return Err(format!(
            "it takes about {registers} registers, of which a thread has {share}"
        ));
    }
    let bringing: Vec<OperationRef> = loads.iter().flat_map(Load::bringing).collect();
    chain.late(of, &bringing, plans)?;
    Ok(chain)
}

/// Whether a loop is in another one.
fn is_repeated(of: For<'_, '_>) -> bool {
    let mut operation = of.operation();
    while let Some(parent) = operation.parent_op() {
        if is_loop(parent) {
            return true;
        }
        operation = parent;
    }
    false
}

fn is_loop(operation: OperationRef<'_, '_>) -> bool {
    use llopt_dialects::scf::{ForOp, WhileOp};
    ForOp::of(operation).is_some() || WhileOp::of(operation).is_some()
}

/// Bytes of shared memory that are in use during a loop beside what rings take the place of.
fn others(
    of: For<'_, '_>,
    replaced: &[OperationRef<'_, '_>],
    plans: &Plans,
) -> Result<u64, String> {
    let mut function = of.operation();
    while let Some(parent) = function
        .parent_op()
        .filter(|parent| parent.parent_op().is_some())
    {
        function = parent;
    }
    let buffers = FunctionBuffers::of(function, plans, &HashMap::new());
    let buffers = buffers.map_err(|complaint| complaint.to_string())?;
    Ok(buffers.bytes_during(of.operation(), replaced))
}

/// Whether what comes from one parameter may be what comes from others: the same, or one that is not known.
fn may_meet<'c: 'a, 'a>(loaded: Option<Value<'c, 'a>>, stored: &[Option<Value<'c, 'a>>]) -> bool {
    let is_apart = |of: &Option<Value<'c, 'a>>| of.is_some() && loaded.is_some() && *of != loaded;
    !stored.iter().all(is_apart)
}

/// What a loop stores to: parameters, and `None` for what is not known.
///
/// # Errors
/// An operation that may store anywhere.
fn stored_to<'c: 'a, 'a>(of: For<'c, 'a>) -> Result<Vec<Option<Value<'c, 'a>>>, String> {
    let mut roots = Vec::new();
    let mut unknown = None;
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        let has_regions = operation.region_refs().len() > 0;
        let facts = OpFacts::of(operation);
        // The copies that it waits for say themselves where they go.
        if facts
            .asynchronous
            .is_some_and(|asynchronous| asynchronous.step == Step::Waits)
        {
            return;
        }
        let Some(effects) = operation.effects() else {
            // A fence orders accesses, and makes none.
            let orders = facts.synchronization != Synchronization::None;
            if !has_regions && !orders {
                unknown = Some(operation.name_str());
            }
            return;
        };
        for effect in effects {
            if effect.kind != EffectKind::Write {
                continue;
            }
            match effect.resource {
                Some(resource) if !std::ptr::eq(resource, &GLOBAL_MEMORY) => {}
                Some(_) => roots.push(effect.value.and_then(parameter)),
                None => unknown = Some(operation.name_str()),
            }
        }
    });
    match unknown {
        Some(name) => Err(format!("{name} may store to what it loads from")),
        None => Ok(roots),
    }
}

/// The address of the tensor that an object in memory describes, if it is written once.
fn described<'c: 'a, 'a>(object: ReinterpretTensorDescOp<'c, 'a>) -> Option<Value<'c, 'a>> {
    let mut makers = object.raw_desc().users().filter_map(TensormapCreateOp::of);
    let maker = makers.next()?;
    makers.next().is_none().then(|| maker.global_address())
}

/// The parameter that an address was computed from, if it was computed from one.
fn parameter<'c: 'a, 'a>(address: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let is_address = |value: &Value<'c, 'a>| {
        let r#type = value.r#type();
        Pointer::of(element_or_self(r#type)).is_some() || TensorDesc::of(r#type).is_some()
    };
    let mut value = address;
    loop {
        if let Some((block, index)) = value.argument_of() {
            let owner = melior::ir::BlockLike::parent_operation(&block)?;
            match For::of(owner) {
                Some(of) => value = of.initial()[index.checked_sub(1)?],
                None => return FuncOp::of(owner).map(|_| value),
            }
            continue;
        }
        let operation = value.defining_op()?;
        if let Some(object) = ReinterpretTensorDescOp::of(operation) {
            value = described(object)?;
            continue;
        }
        let mut sources = operation.operand_values().filter(is_address);
        let source = sources.next()?;
        let is_computed = operation.is_memory_effect_free() && operation.region_refs().len() == 0;
        if !is_computed || sources.next().is_some() {
            return None;
        }
        value = source;
    }
}
