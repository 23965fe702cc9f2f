//! A loop with those of its loads that can be issued earlier, and its pipelining in stages.

use std::collections::HashMap;

use llopt_dialects::tables::types::{Pointer, element_or_self};
use llopt_mlir::ir::{OperationExt, ValueExt, attr};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, ValueLike};

use super::account::{LoopAccount, Pipelined, place};
use super::design::Design;
use super::exposed_latency::Iteration;
use super::graph::Scheduled;
use super::live_registers::BESIDE;
use super::loads::{self, Load};
use super::rewrite::rewrite;
use super::running::{Running, running};
use super::slice::Slice;
use super::stages::Given;
use super::stores::{may_meet, parameter, stored_to};
use super::{beside, copy_order, depth, first_waits, indirect, last_iterations, overlap, ring};
use crate::allocation::FunctionBuffers;
use crate::axis::AxisAnalysis;
use crate::loops::induction;
use crate::loops::unroll::{FACTOR, STAGES};
use crate::loops::view::{For, is_loop};

/// Registers of a thread for addresses that accesses share, and counters.
const ADDRESSES: u32 = 40;
/// The sets of registers that loads of successive iterations bring data to, where they are outstanding at the same time.
const HALVES: u32 = 2;

/// A loop, and the loads and products of it that can move.
pub(super) struct Candidate<'c, 'a> {
    pub(super) of: For<'c, 'a>,
    /// The loads; at least one.
    pub(super) loads: Vec<Load<'c, 'a>>,
    /// Loads that the addresses of these depend on.
    pub(super) feeders: Vec<OperationRef<'c, 'a>>,
    /// Products that can run on into the next iteration.
    pub(super) running: Vec<Running<'c, 'a>>,
    /// The kernel's warps.
    pub(super) warps: u32,
    /// Whether some of its products are issued early.
    pub(super) overlaps: bool,
    /// Registers of a thread for what is loaded to registers in an iteration.
    pub(super) passing: u32,
}

/// What a block takes of a multiprocessor during a loop.
struct Block {
    target: Target,
    threads: u32,
    /// Registers of a thread.
    registers: u32,
    /// Bytes of shared memory for one slot of all rings.
    per_slot: u64,
    /// Bytes of shared memory for all else.
    others: u64,
}

impl Block {
    /// The block of a loop's kernel.
    ///
    /// # Errors
    /// What is wrong with the buffers of the kernel.
    fn of(candidate: &Candidate<'_, '_>, plans: &Plans) -> Result<Self, String> {
        let target = plans.target();
        let threads = candidate.warps * target.warp_size();
        let most = target.plain_registers_of_each(threads);
        Ok(Self {
            target,
            threads,
            registers: candidate.registers(plans).min(most),
            per_slot: candidate.bytes_of_a_slot(),
            others: candidate.other_bytes(candidate.of, plans)?,
        })
    }

    /// Bytes of shared memory for rings.
    fn room(&self) -> u64 {
        u64::from(self.target.shared_memory_limit()).saturating_sub(self.others)
    }

    /// Blocks that are resident with so many slots, and so many more registers of a thread.
    fn resident(&self, slots: u64, more: u32) -> u32 {
        let bytes = self.others + slots * self.per_slot;
        let registers = self.registers + more;
        self.target.resident_blocks(self.threads, registers, bytes)
    }
}

impl<'c: 'a, 'a> Candidate<'c, 'a> {
    /// Chooses the loads of a loop, among those that are ahead by the stages that the program gives, if it gives any; the
    /// account gets the reasons why others are not moved.
    ///
    /// # Errors
    /// Why none can be issued earlier.
    pub(super) fn of(
        of: For<'c, 'a>,
        warps: u32,
        facts: &AxisAnalysis,
        plans: &Plans,
        given: Option<&Given<'c, 'a>>,
        account: &mut LoopAccount,
    ) -> Result<Self, String> {
        let wanted = loads::of_products(of, &loads::all_products(of));
        Self::with_loads(of, &wanted, warps, facts, plans, given, account)
    }

    /// The same with these loads.
    ///
    /// # Errors
    /// Why none can be issued earlier.
    pub(super) fn with_loads(
        of: For<'c, 'a>,
        wanted: &[OperationRef<'c, 'a>],
        warps: u32,
        facts: &AxisAnalysis,
        plans: &Plans,
        given: Option<&Given<'c, 'a>>,
        account: &mut LoopAccount,
    ) -> Result<Self, String> {
        const NONE: &str = "no load of it can come earlier";
        let products = loads::products(of);
        let stored = stored_to(of.operation());
        let may_feed = |feeder| {
            let stored = stored.as_ref();
            stored.is_ok_and(|stored| indirect::may_feed(feeder, stored))
        };
        let mut chosen: Vec<Load> = Vec::new();
        let mut feeders: Vec<OperationRef> = Vec::new();
        for &operation in wanted {
            let load = Load::of(of, operation, facts, plans).and_then(|load| {
                if given.is_some_and(|given| !given.is_ahead(of, operation)) {
                    return Err("its stage is not before that of its uses".to_owned());
                }
                let needed = Slice::of(of, load.needs(), &[], may_feed)?;
                for feeder in needed.feeders() {
                    if !feeders.contains(&feeder) {
                        feeders.push(feeder);
                    }
                }
                match &stored {
                    Err(reason) => Err(reason.clone()),
                    Ok(roots) if may_meet(parameter(load.address()), roots) => {
                        Err("the loop may store to what it loads from".to_owned())
                    }
                    Ok(_) => Ok(load),
                }
            });
            match load {
                Ok(load) => chosen.push(load),
                Err(reason) => account.left.push((place(operation), reason)),
            }
        }
        let (chosen_feeders, mut chosen): (Vec<Load>, Vec<Load>) = chosen
            .into_iter()
            .partition(|load| feeders.contains(&load.operation()));
        let reason = "the addresses of other loads depend on it";
        let of_feeders = chosen_feeders.iter();
        account
            .left
            .extend(of_feeders.map(|load| (place(load.operation()), reason.to_owned())));
        if chosen.is_empty() {
            return Err(NONE.to_owned());
        }
        let passing = chosen.iter().map(|load| load.registers(facts, plans));
        let passing: u32 = passing.sum();
        if passing > 0 && !fit_beside(of, passing, warps, plans) {
            // Registers loaded while a product is running would be spilled at once, and the spill would wait for the
            // load.
            let others: Vec<Load>;
            (chosen, others) = chosen.into_iter().partition(Load::is_copied);
            let reason = "its registers do not fit beside those of the products";
            let others = others
                .iter()
                .map(|load| (place(load.operation()), reason.to_owned()));
            account.left.extend(others);
            if chosen.is_empty() {
                return Err(NONE.to_owned());
            }
        }
        Ok(Self {
            running: running(of, &chosen, &products, warps, plans),
            of,
            loads: chosen,
            feeders,
            warps,
            overlaps: false,
            passing,
        })
    }

    /// Bytes of one slot of all rings.
    pub(super) fn bytes_of_a_slot(&self) -> u64 {
        self.loads.iter().map(|load| load.bytes).sum()
    }

    /// Bytes of shared memory that are in use during a loop, this one or one around it, except buffers that rings
    /// replace.
    pub(super) fn other_bytes(&self, during: For<'c, 'a>, plans: &Plans) -> Result<u64, String> {
        let replaced: Vec<OperationRef> = self.loads.iter().flat_map(Load::replaced).collect();
        others(during, &replaced, plans)
    }

    /// Registers of a thread that the loop takes: for carried tensors, for the results of products that are not
    /// carried, and for other values.
    pub(super) fn registers(&self, plans: &Plans) -> u32 {
        let products = loads::products(self.of);
        let results = products.iter().flat_map(|product| product.result_values());
        let results = results.filter(|result| !self.of.yielded().contains(result));
        let live: u32 = self
            .of
            .carried()
            .into_iter()
            .chain(results)
            .map(|value| loads::registers(value, &self.loads, plans))
            .sum();
        live + BESIDE
    }

    /// Whether what is loaded to registers is held there for an iteration of so many stages: if a thread has registers for
    /// the data of two iterations. Where the last iterations have a loop of their own, all operations are in the first stage
    /// or in the last. A factor that is computed in registers while products run takes the time of the loads.
    fn holds(&self, stages: u32, facts: &AxisAnalysis, plans: &Plans) -> bool {
        let through_registers = self.loads.iter().filter(|load| !load.is_copied());
        let both = through_registers.map(|load| load.registers(facts, plans) + load.words(plans));
        let both: u32 = both.sum();
        let computes = self.running.iter().any(|running| running.computes_factor);
        plans.target().has(Feature::PredicatedAccess)
            && stages > 2
            && both > 0
            && !computes
            && fit_beside(self.of, both + ADDRESSES, self.warps, plans)
    }

    /// Whether the loop begins once in each iteration of another one, and each access of its loads moves one element. Then the
    /// loads of the first stages are issued as often as it begins, and take as long as those of as many iterations.
    fn begins_often(&self) -> bool {
        let around = self.of.operation().parent_op();
        let mut around = std::iter::successors(around, |inner| inner.parent_op());
        around.any(is_loop) && self.loads.iter().all(Load::is_scattered)
    }

    /// The stages that are wanted, or as many as leave registers to what comes through them: an assembler loads the data of all first
    /// iterations before it stores any. Their addresses follow from those that are carried, or from one another.
    fn most_stages(&self, wanted: u32, facts: &AxisAnalysis, plans: &Plans) -> u32 {
        let target = plans.target();
        let loads = || self.loads.iter().filter(|load| !load.is_copied());
        let pointers: u32 = loads()
            .map(|load| loads::POINTER * load.accesses(plans))
            .sum();
        let both: u32 = loads().map(|load| load.registers(facts, plans)).sum();
        let data = both.saturating_sub(pointers);
        if data == 0 || target.llvm_allocates_registers() || wanted == 0 {
            return wanted;
        }
        let all = target.plain_registers_of_each(self.warps * target.warp_size());
        let left = all.saturating_sub(self.registers(plans));
        wanted.min((1 + left / data).max(2))
    }

    /// Pipelines the loop, in as many stages as are wanted if they fit.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn in_stages(
        self,
        wanted: u32,
        scheduled: &Scheduled,
        residence: depth::Residence,
        facts: &AxisAnalysis,
        plans: &Plans,
    ) -> Result<Pipelined, String> {
        let (of, overlaps, warps) = (self.of, self.overlaps, self.warps);
        let block = Block::of(&self, plans)?;
        let rings = self.rings(wanted, scheduled, residence, &block, facts, plans);
        let waits = !rings.copies && self.running.is_empty();
        if (waits || self.begins_often()) && self.is_hidden_by_blocks(scheduled, &block) {
            return Err("other blocks hide the latency of its loads".to_owned());
        }
        let most = if residence.is_alone { 1 } else { u32::MAX };
        let Some(depth) = rings.depth(|slots| block.resident(slots, 0).min(most)) else {
            return Err(format!(
                "two stages take {} bytes of shared memory, of which {} are free",
                block.per_slot * (1 + u64::from(!self.running.is_empty())),
                block.room()
            ));
        };
        let unrolled = if depth.outstanding { HALVES } else { 1 };
        let design = self.design(depth, unrolled, facts, plans);
        let slots = design.slots() as u32;
        let copies = design.loads.iter().filter(|load| load.is_copied());
        let copies = copies.count() as u32;
        let pipelined = Pipelined {
            stages: depth.stages,
            iterations: rings.iterations,
            slots,
            bytes: block.per_slot * u64::from(slots),
            copies,
            through_registers: design.loads.len() as u32 - copies,
            feeders: design.feeders.len() as u32,
            held: design.held,
            running: design.running.len() as u32,
            unrolled,
            ..Pipelined::of(scheduled, wanted)
        };
        let mut rewriter = Rewriter::new(of.operation().ctx());
        // Of the loops that take its place none is pipelined again.
        of.operation().remove_attr(STAGES);
        let new = rewrite(&mut rewriter, design);
        let new = new.ok_or("a value would be used before it is there")?;
        first_waits::defer(&mut rewriter, new);
        if depth.outstanding {
            // Later, when accesses have their final form.
            let factor = attr::i32(new.operation().ctx(), unrolled as i32);
            new.operation().set_attr(FACTOR, factor);
        } else {
            if overlaps {
                overlap::run_until_read(&mut rewriter, new, warps, plans);
            }
            if pipelined.running > 0 {
                copy_order::load_first(&mut rewriter, new);
            }
        }
        Ok(pipelined)
    }

    /// The inputs to the decision how deep the rings of the loop are.
    fn rings(
        &self,
        wanted: u32,
        scheduled: &Scheduled,
        residence: depth::Residence,
        block: &Block,
        facts: &AxisAnalysis,
        plans: &Plans,
    ) -> depth::Rings {
        let factors: Vec<OperationRef> = self.loads.iter().map(Load::operation).collect();
        depth::Rings {
            asked: self.most_stages(wanted, facts, plans),
            iterations: induction::most_iterations(self.of),
            needed: scheduled.stages,
            loaded: match residence.is_filled_once {
                true => scheduled.loaded_stages,
                false => scheduled.stages,
            },
            fit: block.room() / block.per_slot.max(1),
            runs_on: !self.running.is_empty(),
            copies: self.loads.iter().any(Load::is_copied),
            through_registers: self.through_registers(plans),
            by_memory: scheduled.is_bound_by_memory(),
            warps: self.warps,
            spills: self.registers(plans) > block.registers,
            only_sums: only_add_up(self.of),
            waiting: beside::waiting(self.of, &factors, scheduled, self.warps, plans),
        }
    }

    /// Whether an iteration that waits for its own loads takes no longer than one that has them ahead, since more blocks are
    /// resident then and compute meanwhile.
    fn is_hidden_by_blocks(&self, scheduled: &Scheduled, block: &Block) -> bool {
        if block.target.llvm_allocates_registers() {
            return false;
        }
        let iteration = Iteration::of(scheduled, self.warps, block.target);
        iteration.time(block.resident(1, 0))
            <= iteration.time_ahead(block.resident(2, self.passing))
    }

    /// The design with loads ahead by so much, in a loop that is unrolled so often.
    fn design(
        self,
        depth: depth::Depth,
        unrolled: u32,
        facts: &AxisAnalysis,
        plans: &Plans,
    ) -> Design<'c, 'a> {
        let (of, loads, stages) = (self.of, &self.loads, depth.stages);
        let end = last_iterations::end(of, loads, stages, unrolled, self.warps, plans);
        Design {
            end,
            held: !depth.outstanding && self.holds(stages, facts, plans),
            of,
            loads: self.loads,
            feeders: self.feeders,
            running: self.running,
            stages: stages as usize,
            early: depth.early,
            outstanding: depth.outstanding,
        }
    }

    /// The registers of loads that may be outstanding for more than an iteration: all go through registers, no product is
    /// still running when they are stored, and no assembler orders instructions by itself.
    fn through_registers(&self, plans: &Plans) -> Option<depth::Loaded> {
        let is_stored = self.running.is_empty() && !self.overlaps;
        let through_registers = !self.loads.iter().any(Load::is_copied);
        let is_in_order = plans.target().llvm_allocates_registers();
        (is_stored && through_registers && is_in_order).then(|| depth::Loaded {
            each: self.passing,
            others: self.registers(plans),
            limit: plans
                .target()
                .plain_registers_of_each(self.warps * plans.target().warp_size()),
        })
    }
}

/// Whether a thread has so many registers in addition to the carried values of a loop, except pointers.
fn fit_beside(of: For<'_, '_>, registers: u32, warps: u32, plans: &Plans) -> bool {
    let target = plans.target();
    let kept = of.carried().into_iter();
    let kept = kept.filter(|value| Pointer::of(element_or_self(value.r#type())).is_none());
    let kept: u32 = kept.map(|value| ring::words(value, plans)).sum();
    kept + registers <= target.registers_of_each(warps * target.warp_size())
}

/// Bytes of shared memory that are in use during a loop, except buffers that rings replace.
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

/// Whether what products of a loop give is only what they add to in the next iteration.
fn only_add_up(of: For<'_, '_>) -> bool {
    let results = loads::all_products(of)
        .into_iter()
        .flat_map(|product| product.result_values());
    results
        .flat_map(|result| result.users())
        .all(|user| user == of.terminator())
}
