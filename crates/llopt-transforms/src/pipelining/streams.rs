//! Loops without products: loads one iteration ahead of the work on what they load, through registers.
//!
//! # The rewritten loop
//!
//! A warp waits for its loads, then it computes. Other warps are supposed to compute meanwhile; but those of one launch
//! begin together, and so they all load, and then all compute. With loads one iteration ahead each warp does both:
//!
//! ```text
//! for i …                    x = load A[0], if there is an iteration
//!   x = load A[i]            for i …
//!   sum = f(sum, x)            next = load A[i + 1], if there is such an iteration
//!                              sum = f(sum, x); x = next
//! ```
//!
//! A load whose address is loaded is an iteration ahead of the work, and the load of its address two.
//!
//! On an H100 the loss of rows of 32,000 logits, which are in the cache, takes 0.62 of the time, and 0.87 where they come
//! from memory.
//!
//! # The price
//!
//! What is loaded takes [registers](super::streamed_registers) while the work goes on. That costs nothing if as many blocks are
//! resident as before. Otherwise the times of an iteration decide. A multiprocessor takes no less than the work `C` of a block,
//! nor than the time `M` in which its share of the memory delivers what a block loads. A block has the data of one iteration
//! outstanding, so it takes the latency `L` and `M` for them, and then `C`; `B` blocks do so at the same time:
//!
//! | loads | time of an iteration |
//! |---|---|
//! | in their iteration | `max(C, M, (L + M + C) / B)` |
//! | whose addresses are loaded | `max(C, M, (2 L + M + C) / B)` |
//! | ahead | `max(C, M, max(L + M, C) / B)`, with fewer blocks |
//!
//! If both take as long, it depends on who orders the instructions. LLVM issues the loads of an iteration together. An assembler
//! may issue one only after the data of the one before have been used, which takes fewer registers: NVIDIA's does so in loops
//! that add up what they load. Loads that are ahead are all outstanding whatever it does, so there they are ahead. On an H100,
//! times in per cent of those with loads in their iteration:
//!
//! | loop, with data from memory | blocks before, after | time |
//! |---|---:|---:|
//! | sums of columns | 12, 9 | 81 |
//! | moments of columns | 9, 9 | 90 |
//! | cross entropy | 9, 8 | 90 |
//! | smallest of columns | 10, 8 | 95 |
//! | backward pass of an RMS norm | 4, 4 | 97 |
//! | linear recurrence | 8, 6 | 98 |
//! | sums of rows; backward pass of a layer norm of 1,000; columns standardised; group norm | 16, 16; 7, 5; 12, 8; 16, 16 | 99 to 101 |
//! | backward pass of a layer norm of 4,096 | 2, 1 | 105 |
//!
//! # Loops that an assembler unrolls
//!
//! A block that is alone waits for `max(L + M, C)` with loads ahead. How many there are depends on the launch, and nobody knows it
//! here. NVIDIA's assembler unrolls loops whose number of iterations it knows, if nothing that they load is carried, and issues
//! the loads of `u` iterations together: such a block takes `(L + u (M + C)) / u`. So where that is less, and many blocks take
//! no longer, loads stay in their iteration. (Where the number is not known, it unrolls both kinds by four.) It leaves a loop
//! of some 256 instructions, or none if all iterations together have less than some 800. A square root, a quotient or a
//! function is some eight of them; a sum of square roots, of 145 instructions, is not unrolled, and took 1.49 of Triton's time.
//!
//! Rows of 32,768 numbers of 16 bits, added up by tiles of 1,024, took 2.2 of Triton's time with loads ahead (H200, 132 rows).
//! With several iterations as one by our own hand, and no loop where there were 32, the assembler kept loads beside their sums.
//!
//! # Loops that stay as they are
//!
//! Loops with others in them, or that run at most twice; loads that are volatile, or that may read what the loop stores. Loads
//! whose addresses are loaded in a loop of few iterations, if their number is known: a mean of 16 rows of a table took 1.02
//! of its time.

use llopt_dialects::arith::DivFOp;
use llopt_dialects::meaning::facts::{OpFacts, Synchronization};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{ExternElementwiseOp, LoadOp};
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Value};

use super::account::Pipelined;
use super::graph;
use super::guard::guard;
use super::indirect::may_feed;
use super::slice::Slice;
use super::stores::stored_to;
use super::streamed_registers::{held, loaded};
use crate::layouts::times;
use crate::loops::induction::Numbers;
use crate::loops::needs::maker;
use crate::loops::pipeline::{End, Staged, pipeline};
use crate::loops::view::{For, is_loop};

/// Registers of a thread for addresses, counters and what is streamed: the median of what `ptxas` takes beside the values that
/// are held, in 22 loops, with loads ahead and without.
const BESIDE: u32 = 16;
/// The most iterations of a loop, if their number is known, that LLVM unrolls to straight code, in which it issues the loads
/// of addresses together.
const UNROLLED: u64 = 32;
/// The fewest iterations of a loop that is known to have so many.
pub(super) const FEWEST: f64 = 3.0;
/// Instructions of a warp in a loop that an assembler has unrolled, and in straight code that it makes of one.
const UNROLLED_LOOP: u64 = 256;
const STRAIGHT: u64 = 800;
/// Instructions for an element of a function that is no single one.
const OF_FUNCTION: u32 = 8;
/// By how many per cent an iteration must become shorter if fewer blocks are resident, and loads of an iteration are issued
/// together anyway.
const MARGIN: u32 = 10;

/// The loads of tensors in a body that can be ahead of the work.
pub(super) fn loads<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut loads = all_loads(of);
    loads.retain(|load| {
        let mut types = load.result_types();
        types.any(|of| RankedTensor::of(of).is_some())
    });
    loads
}

/// The same with those of scalars.
pub(super) fn all_loads<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let Ok(stored) = stored_to(of.operation()) else {
        return Vec::new();
    };
    let mut loads = of.operations();
    loads.retain(|operation| {
        LoadOp::of(*operation).is_some_and(|load| {
            load.result().has_uses()
                && may_feed(*operation, &stored)
                && needs(of, &[*operation], &stored).is_some()
        })
    });
    loads
}

/// All that some loads need, other loads and themselves included.
fn needs<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[OperationRef<'c, 'a>],
    stored: &[Option<Value<'c, 'a>>],
) -> Option<Slice<'c, 'a>> {
    let values = loads.iter().flat_map(|load| load.operand_values());
    let values: Vec<Value> = values.collect();
    let slice = Slice::of(of, values, &[], |feeder| may_feed(feeder, stored));
    let mut slice = slice.ok()?;
    slice.include(of, loads);
    Some(slice)
}

/// By how many iterations each operation of a slice is ahead: a load by one more than what uses it, everything else by as
/// many. `None` if a load needs what it loads.
fn leads(of: For<'_, '_>, slice: &Slice<'_, '_>) -> Option<Vec<usize>> {
    let operations = &slice.operations;
    let (carried, yielded) = (of.carried(), of.yielded());
    let own: Vec<usize> = operations
        .iter()
        .map(|operation| usize::from(LoadOp::of(*operation).is_some()))
        .collect();
    let most: usize = own.iter().sum();
    let mut leads = own.clone();
    loop {
        let before = leads.clone();
        for (to, operation) in operations.iter().enumerate() {
            for value in operation.operand_values() {
                let argument = carried.iter().position(|argument| *argument == value);
                let made = argument.map_or(value, |argument| yielded[argument]);
                let from = maker(of, made);
                let from = from.and_then(|from| operations.iter().position(|own| *own == from));
                if let Some(from) = from {
                    leads[from] = leads[from].max(leads[to] + own[from]);
                }
            }
        }
        if leads.iter().any(|lead| *lead > most) {
            return None;
        }
        if leads == before {
            return Some(leads);
        }
    }
}

/// Whether an iteration does nothing that other threads or loads have to be ordered with.
pub(super) fn is_simple(of: For<'_, '_>) -> bool {
    let mut simple = true;
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        let is_inner = operation != of.operation() && is_loop(operation);
        let facts = OpFacts::of(operation);
        let orders = facts.synchronization != Synchronization::None;
        simple &= !is_inner && !orders && facts.asynchronous.is_none();
    });
    simple
}

/// An iteration of a loop whose loads may be ahead.
pub(super) struct Iteration {
    /// Registers of a thread for what it holds, and for what it loads.
    held: u32,
    loaded: u32,
    /// Loads that wait for one another.
    chain: u32,
    /// Cycles for which a block keeps the units busy with which threads compute.
    work: u32,
    /// Cycles for which what a block loads keeps its multiprocessor's share of the memory busy.
    memory: u32,
    /// Instructions of a thread.
    size: u32,
}

/// Times of an iteration with its loads in it and an iteration ahead.
struct Times {
    now: u32,
    ahead: u32,
    /// Resident blocks in both cases.
    blocks: [u32; 2],
}

impl Iteration {
    /// Of a loop with these loads, of which so many wait for one another.
    pub(super) fn of<'c: 'a, 'a>(
        of: For<'c, 'a>,
        loads: &[OperationRef<'c, 'a>],
        chain: u32,
        scheduled: &graph::Scheduled,
        plans: &Plans,
    ) -> Self {
        let bytes = loads.iter().map(|load| graph::bytes_of_results(*load));
        let memory = plans.target().global_costs();
        let sectors = bytes.sum::<u64>() as f32 / memory.sector_bytes as f32;
        Self {
            held: held(of, loads, plans),
            loaded: loaded(loads, plans),
            chain,
            work: scheduled.threads,
            memory: (sectors * memory.sector) as u32,
            size: size(of, plans),
        }
    }

    /// Cycles of the units for the work of one warp.
    fn of_warp(&self, warps: u32) -> u32 {
        self.work * graph::ISSUERS / warps.max(1)
    }

    /// Cycles below which no iteration is, however many blocks there are.
    fn least(&self) -> u32 {
        self.work.max(self.memory)
    }

    /// Cycles of an iteration whose loads are ahead, of a block that is alone.
    fn ahead_alone(&self, warps: u32, target: Target) -> u32 {
        (target.global_costs().latency + self.memory).max(self.of_warp(warps))
    }

    /// The time with loads in their iteration, and with loads ahead; `None` for the latter if a thread has too few registers.
    fn times(&self, warps: u32, target: Target) -> Option<Times> {
        let threads = warps * target.warp_size();
        let registers = self.held + BESIDE;
        if registers + self.loaded > target.plain_registers_of_each(threads) {
            return None;
        }
        let blocks = [registers, registers + self.loaded]
            .map(|each| target.resident_blocks(threads, each, 0));
        let waits = self.chain * target.global_costs().latency;
        let now = (waits + self.memory + self.of_warp(warps)) / blocks[0].max(1);
        let ahead = self.ahead_alone(warps, target) / blocks[1].max(1);
        let [now, ahead] = [now, ahead].map(|line| line.max(self.least()));
        Some(Times { now, ahead, blocks })
    }

    /// Whether it takes less time with loads that are ahead.
    fn pays(&self, warps: u32, target: Target) -> bool {
        self.times(warps, target).is_some_and(|times| {
            let longer = match target.llvm_allocates_registers() {
                true => times.ahead * (100 + MARGIN) > times.now * 100,
                false => times.ahead > times.now,
            };
            times.blocks[0] == times.blocks[1] || !longer
        })
    }

    /// Whether a block that is alone takes less time, and many blocks no more, with loads in their iteration, where an assembler
    /// unrolls a loop of so many iterations.
    fn is_faster_unrolled(&self, count: u64, warps: u32, target: Target) -> bool {
        let Some(times) = self.times(warps, target) else {
            return false;
        };
        let size = u64::from(self.size.max(1));
        let together = match count * size <= STRAIGHT {
            true => count,
            false => UNROLLED_LOOP / size,
        };
        let together = together.max(1) as f32;
        let waits = (self.chain * target.global_costs().latency) as f32;
        let alone = waits / together + (self.memory + self.of_warp(warps)) as f32;
        let ahead = self.ahead_alone(warps, target) as f32;
        let many = (alone / times.blocks[0].max(1) as f32).max(self.least() as f32);
        alone * (100 + MARGIN) as f32 <= ahead * 100.0 && many <= times.ahead as f32
    }

    /// Whether it takes no more time than in registers if its loads are `lead` iterations ahead, through buffers of so many
    /// bytes, and the banks of shared memory are busy with them for so many cycles.
    pub(super) fn is_no_slower_in_rings(
        &self,
        lead: u32,
        bytes: u64,
        banks: u32,
        warps: u32,
        target: Target,
    ) -> bool {
        let threads = warps * target.warp_size();
        let resident = target.resident_blocks(threads, self.held + BESIDE, bytes);
        if resident == 0 {
            return false;
        }
        let latency = target.global_costs().latency;
        let line = ((latency + self.memory) / lead.max(1)).max(self.of_warp(warps) + banks);
        let rings = (line / resident).max(self.work + banks).max(self.memory);
        self.times(warps, target)
            .is_none_or(|times| rings <= times.now.min(times.ahead))
    }
}

/// Instructions of a thread for an iteration, about.
fn size(of: For<'_, '_>, plans: &Plans) -> u32 {
    let mut count = 0;
    of.operation().for_each_op(Walk::PreOrder, |operation| {
        let is_function = graph::is_special(operation)
            || DivFOp::of(operation).is_some()
            || ExternElementwiseOp::of(operation).is_some();
        let each = if is_function { OF_FUNCTION } else { 1 };
        if operation != of.operation() {
            count += each * graph::instructions(operation, &[], plans);
        }
    });
    count
}

/// Makes the loads of a loop without products run ahead; `None` if it stays as it is.
pub(super) fn load_ahead(of: For<'_, '_>, warps: u32, plans: &Plans) -> Option<Pipelined> {
    if !is_simple(of) || times(of.operation()) < FEWEST {
        return None;
    }
    let stored = stored_to(of.operation()).ok()?;
    let mut loads = loads(of);
    let mut slice = needs(of, &loads, &stored)?;
    let count = Numbers::of(of).map(Numbers::count);
    let is_unrolled = count.is_some_and(|count| count <= UNROLLED);
    if is_unrolled || leads(of, &slice).is_none() {
        // Where a load needs what it has loaded, or nothing is gained, those stay whose addresses are loaded.
        loads.retain(|load| {
            needs(of, &[*load], &stored).is_some_and(|all| all.loads().count() == 1)
        });
        slice = needs(of, &loads, &stored)?;
    }
    let chain = leads(of, &slice)?.into_iter().max()?;
    let of_slice: Vec<_> = slice.loads().map(|load| load.operation()).collect();
    let scheduled = graph::schedule(of, &[], &[], plans, warps);
    let iteration = Iteration::of(of, &of_slice, chain as u32, &scheduled, plans);
    let target = plans.target();
    let stays = !target.llvm_allocates_registers()
        && count.is_some_and(|count| iteration.is_faster_unrolled(count, warps, target));
    if stays || !iteration.pays(warps, target) {
        return None;
    }
    let (own, all) = (loads.len() as u32, slice.loads().count() as u32);
    let mut rewriter = Rewriter::new(of.operation().ctx());
    let (_, stages) = expand(&mut rewriter, of, slice, &loads, plans)?;
    Some(Pipelined {
        stages: stages as u32,
        through_registers: own,
        feeders: all - own,
        ..Pipelined::of(&scheduled, stages as u32)
    })
}

/// Issues loads of a loop, with what computes their addresses, an iteration ahead of all else; `None` if they cannot be.
pub(super) fn issue_ahead<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    ahead: &[OperationRef<'c, 'a>],
    plans: &Plans,
) -> Option<For<'c, 'a>> {
    let needed = ahead.iter().flat_map(|load| load.operand_values());
    let slice = Slice::of(of, needed.collect::<Vec<_>>(), ahead, |_| false);
    let mut slice = slice.ok()?;
    slice.include(of, ahead);
    expand(rewriter, of, slice, ahead, plans).map(|(of, _)| of)
}

/// Expands a loop such that the operations of a slice are ahead, each as its loads ask for. Answers the loop that runs
/// most, and the number of stages.
fn expand<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    mut slice: Slice<'c, 'a>,
    loads: &[OperationRef<'c, 'a>],
    plans: &Plans,
) -> Option<(For<'c, 'a>, usize)> {
    slice.split(of, rewriter, loads);
    let leads = leads(of, &slice)?;
    let last = leads.iter().copied().max()?;
    let stage = |operation: OperationRef<'c, 'a>| {
        let index = slice.operations.iter().position(|own| *own == operation);
        last - index.map_or(0, |index| leads[index])
    };
    let operations = of.operations().into_iter();
    let mut order: Vec<Staged> = operations
        .map(|operation| Staged {
            operation,
            stage: stage(operation),
        })
        .collect();
    order.sort_by_key(|staged| staged.stage == last);
    // Where an access cannot be turned off, a mask would choose an address in each iteration.
    let end = match plans.target().has(Feature::PredicatedAccess) {
        true => End::Guarded,
        false => End::Apart,
    };
    let expanded = pipeline(rewriter, of, &order, last + 1, end, guard).ok()?;
    Some((expanded, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_take_no_more_time_where_memory_limits_an_iteration() {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let in_rings = |work, memory, kilobytes: u64| {
            let iteration = Iteration {
                held: 16,
                loaded: 8,
                chain: 1,
                work,
                memory,
                size: 4 * work,
            };
            iteration.is_no_slower_in_rings(2, kilobytes << 10, 100, 4, target)
        };
        assert!(in_rings(28, 500, 24));
        // Threads limit it, and a ring makes them wait for the banks as well.
        assert!(!in_rings(600, 500, 24));
        // One block has all of shared memory, and waits for two iterations at a time alone.
        assert!(!in_rings(28, 100, 200));
    }

    #[test]
    fn short_iterations_of_a_known_number_are_left_to_the_assembler() {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let is_left = |count, size| {
            let iteration = Iteration {
                held: 12,
                loaded: 4,
                chain: 1,
                work: size,
                memory: 60,
                size,
            };
            iteration.is_faster_unrolled(count, 4, target)
        };
        assert!(is_left(32, 20));
        assert!(is_left(1024, 20));
        // There is no room for a second iteration in the loop that it leaves.
        assert!(!is_left(1024, 150));
        // One iteration is not worth it.
        assert!(!is_left(1, 20));
    }
}
