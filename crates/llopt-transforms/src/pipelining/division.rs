//! Whether a separate warp issues the copies of a loop, and with how many buffers.

use llopt_dialects::ttg::LocalAllocOp;
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Value};

use super::account::{Pipelined, Producer};
use super::candidate::Candidate;
use super::graph::Scheduled;
use super::loads::{self, Load};
use super::stores::{may_meet, parameter, stored_to};
use super::{ahead, late_waits, partitions, price, streams};
use crate::chained_products::BESIDE;
use crate::loops::view::{For, is_loop};

/// Bytes of shared memory that are left free for barriers and for values that are passed to partitions.
const HANDED_OVER: u64 = 1024;
/// Registers that each thread of a producer keeps.
const PRODUCER_REGISTERS: u32 = 24;

/// Loops that ask for partitions.
pub(super) struct Request<'c, 'a> {
    /// The loops from the outermost one to that with the products.
    pub(super) nest: Vec<For<'c, 'a>>,
    /// Buffers for each load, if they fit.
    pub(super) wanted: u32,
    /// Whether the program asks for partitions. Otherwise there are partitions where the model predicts a benefit.
    pub(super) is_asked: bool,
}

impl<'c: 'a, 'a> Request<'c, 'a> {
    /// Whether a block itself loops over tiles; then it is alone on its multiprocessor.
    fn is_persistent(&self) -> bool {
        self.nest.len() > 1
    }
}

/// The resources of a block with a producer.
struct Block {
    /// Its threads.
    threads: u32,
    /// Registers that each thread gets if all get as many.
    each: u32,
    /// Registers that a thread of the producer keeps, if the others get the rest.
    kept: Option<u32>,
    /// Bytes of shared memory in addition to the rings.
    others: u64,
    /// Buffers of each ring, and the smallest possible number.
    slots: u64,
    least: u64,
}

impl Block {
    fn of(
        candidate: &Candidate<'_, '_>,
        is_persistent: bool,
        wanted: u32,
        scheduled: &Scheduled,
        others: u64,
        plans: &Plans,
    ) -> Self {
        let target = plans.target();
        let per_slot = bytes_of_a_slot(candidate);
        let room = u64::from(target.shared_memory_limit()).saturating_sub(others);
        let fit = room / per_slot.max(1);
        let least = fit.min(u64::from(wanted.max(2)));
        let registers = candidate.registers(plans);
        // Each quarter of the register file is divided among every fourth warp.
        let warps = candidate.warps + partitions::PRODUCER_WARPS;
        let whole = warps.next_multiple_of(4);
        let each = target.registers_per_block() / (whole * target.warp_size());
        let gives = registers > each;
        let threads = if gives { whole } else { warps } * target.warp_size();
        // More buffers, to hide more latency than with those that the program asks for, cost nothing if as many
        // blocks are resident.
        let resident = |slots: u64| match is_persistent {
            true => 1,
            false => {
                target.resident_blocks(threads, each.min(registers), others + slots * per_slot)
            }
        };
        let hiding = match is_persistent {
            true => scheduled.loaded_stages,
            false => scheduled.stages,
        };
        let most = fit.min(u64::from(hiding)).max(least);
        let mut enough = (least..=most).rev();
        let slots = enough.find(|&slots| resident(slots) == resident(least));
        Self {
            threads,
            each,
            kept: gives.then_some(PRODUCER_REGISTERS),
            others,
            slots: slots.unwrap_or(least),
            least,
        }
    }
}

/// Makes a separate warp issue the copies of a loop.
///
/// # Errors
/// Why no warp can.
pub(super) fn divide<'c: 'a, 'a>(
    candidate: &Candidate<'c, 'a>,
    request: Request<'c, 'a>,
    scheduled: &Scheduled,
    plans: &Plans,
) -> Result<Pipelined, String> {
    let target = plans.target();
    if !target.has(Feature::TransactionBarrier) || !target.has(Feature::BulkTensorCopy) {
        return Err(format!("{target} has no copies that arrive at barriers"));
    }
    let Some(&root) = request.nest.first() else {
        return Err("there is no loop".to_owned());
    };
    // The copies of later iterations overlap with all of the loops.
    let roots = stored_to(root.operation())?;
    let meets = |load: &Load<'c, 'a>| may_meet(parameter(load.address()), &roots);
    if candidate.loads.iter().any(meets) {
        return Err("a loop around it may store to what it loads from".to_owned());
    }
    let spared: u64 = request
        .nest
        .iter()
        .copied()
        .map(late_waits::spared_bytes)
        .sum();
    let others = candidate.other_bytes(root, plans)?.saturating_sub(spared) + HANDED_OVER;
    let (is_persistent, wanted) = (request.is_persistent(), request.wanted);
    let block = Block::of(candidate, is_persistent, wanted, scheduled, others, plans);
    let chain = chain(candidate, plans);
    loads_beside(candidate, chain.is_ok(), plans)?;
    if !request.is_asked {
        if is_repeated(root) {
            return Err("it is in another loop".to_owned());
        }
        // The copies of the next tile overlap with the work on this one's result.
        if !is_persistent {
            let chain = chain.as_ref().map_err(Clone::clone)?;
            pays(candidate, chain, &block, scheduled, plans)?;
        }
    }
    // A chain whose first product runs ahead waits for its own products.
    let running = match chain {
        Ok(_) => Vec::new(),
        Err(_) => candidate.running.clone(),
    };
    let loops = request.nest.len() as u32;
    let nest = request.nest.clone();
    let (loads, loaded): (Vec<Load>, Vec<Load>) =
        candidate.loads.iter().cloned().partition(Load::is_block);
    let loaded: Vec<OperationRef> = loaded.iter().map(Load::operation).collect();
    let around = around(
        &request.nest,
        &roots,
        &block,
        bytes_of_a_slot(candidate),
        target,
    );
    let division =
        partitions::Division::of(request.nest, loads, around, running, block.slots, &roots)?;
    let pipelined = Pipelined {
        stages: division.slots(),
        slots: division.slots(),
        bytes: bytes_of_a_slot(candidate) * u64::from(division.slots()),
        copies: division.loads().len() as u32,
        feeders: candidate.feeders.len() as u32,
        through_registers: loaded.len() as u32,
        running: division.running().len() as u32,
        producer: Some(Producer {
            warps: partitions::PRODUCER_WARPS,
            loops,
            registers: block.kept,
        }),
        ..Pipelined::of(scheduled, wanted)
    };
    let mut rewriter = Rewriter::new(root.operation().ctx());
    for of in nest {
        late_waits::defer(&mut rewriter, of);
    }
    let registers = block.kept.map(u32::cast_signed);
    let inner = partitions::divide(&mut rewriter, &division, candidate.warps, registers);
    let mut inner = inner.ok_or("a value would be used before it is there")?;
    if !loaded.is_empty() {
        let ahead = streams::issue_ahead(&mut rewriter, inner, &loaded, plans);
        inner = ahead.ok_or("what is loaded to registers would be used before it is there")?;
    }
    let is_chain = ahead::Chain::of(inner).is_ok();
    let ahead = chain.and_then(|chain| chain.overlap(&mut rewriter, inner, plans).map(|_| ()));
    Ok(Pipelined {
        ahead: is_chain.then_some(ahead),
        ..pipelined
    })
}

/// Rings for the blocks that products read and the loop around theirs loads: with a second buffer, which is filled while
/// the first one is read, if there is room for it.
fn around<'c: 'a, 'a>(
    nest: &[For<'c, 'a>],
    stored: &[Option<Value<'c, 'a>>],
    block: &Block,
    per_slot: u64,
    target: Target,
) -> partitions::Rings<'c, 'a> {
    let [outer, _] = nest[..] else {
        return partitions::Rings::none();
    };
    let products = loads::all_products(outer);
    let buffers = loads::of_products(outer, &products).into_iter();
    let loads = buffers.filter_map(LocalAllocOp::of);
    let loads = loads.filter_map(|buffer| Load::of_block(outer, buffer).ok());
    let loads: Vec<Load> = loads
        .filter(|load| !may_meet(parameter(load.address()), stored))
        .collect();
    let again: u64 = loads.iter().map(|load| load.bytes).sum();
    let all = block.others + block.slots * per_slot + again;
    let slots = match all <= u64::from(target.shared_memory_limit()) {
        true => 2,
        false => 1,
    };
    partitions::Rings::of(outer, loads, &[], slots).unwrap_or_else(|_| partitions::Rings::none())
}

/// Bytes of the blocks that a producer copies for an iteration.
fn bytes_of_a_slot(candidate: &Candidate<'_, '_>) -> u64 {
    let blocks = candidate.loads.iter().filter(|load| load.is_block());
    blocks.map(|load| load.bytes).sum()
}

/// Whether the consumers can load what is no block of a tensor, such as scales, themselves: to the registers in which
/// it is used, an iteration ahead.
///
/// # Errors
/// Why they cannot.
fn loads_beside(
    candidate: &Candidate<'_, '_>,
    is_chain: bool,
    plans: &Plans,
) -> Result<(), String> {
    let loaded = || candidate.loads.iter().filter(|load| !load.is_block());
    if loaded().next().is_none() {
        return Ok(());
    }
    if is_chain || loaded().count() == candidate.loads.len() || !loaded().all(Load::is_in_place) {
        return Err("a factor is loaded by pointers, by many threads".to_owned());
    }
    let words: u32 = loaded().map(|load| load.words(plans)).sum();
    let needed = candidate.registers(plans) + words;
    let share = plans
        .target()
        .plain_registers_of_each(candidate.warps * plans.target().warp_size());
    match needed <= share {
        true => Ok(()),
        false => Err(format!(
            "with loads to registers it takes about {needed} of them, of which a thread has {share}"
        )),
    }
}

/// Whether an iteration of a chain takes less time with a producer than without.
///
/// # Errors
/// The reason why it does not.
fn pays<'c: 'a, 'a>(
    candidate: &Candidate<'c, 'a>,
    chain: &ahead::Chain<'c, 'a>,
    block: &Block,
    scheduled: &Scheduled,
    plans: &Plans,
) -> Result<(), String> {
    let target = plans.target();
    let registers = chain.registers(plans) + BESIDE;
    let whole = price::Block {
        threads: candidate.warps * target.warp_size(),
        registers: registers - chain.weights(plans),
        strands: 1,
    };
    let divided = price::Block {
        threads: block.threads,
        registers: registers.min(block.each),
        strands: chain.strands(plans),
    };
    let iteration = price::Iteration {
        shared: block.others - HANDED_OVER + block.least * bytes_of_a_slot(candidate),
        matrix: scheduled.matrix,
        threads: scheduled.threads,
    };
    iteration.pays(&whole, &divided, target)
}

/// The products of a loop of which one may run an iteration ahead, if each thread has enough registers.
///
/// # Errors
/// Why none may.
fn chain<'c: 'a, 'a>(
    candidate: &Candidate<'c, 'a>,
    plans: &Plans,
) -> Result<ahead::Chain<'c, 'a>, String> {
    let target: Target = plans.target();
    let share = target.plain_registers_of_each(candidate.warps * target.warp_size());
    let chain = ahead::Chain::of(candidate.of)?;
    let registers = chain.registers(plans) + BESIDE;
    if registers > share {
        return Err(format!(
            "it takes about {registers} registers, of which a thread has {share}"
        ));
    }
    let bringing: Vec<OperationRef> = candidate.loads.iter().flat_map(Load::bringing).collect();
    chain.late(candidate.of, &bringing, plans)?;
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
