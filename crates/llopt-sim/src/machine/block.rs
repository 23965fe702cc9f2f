//! One block of the grid: its shared memory and barriers, and the schedule of its warps.
//!
//! The blocks of a cluster access each other's shared memory, and are executed together, as one block: their warps
//! are numbered one block after the other, and their shared memories lie one after the other in one array. A shared
//! address below [`REMOTE`] is an offset in the block's own memory; `mapa` adds `(rank + 1) * REMOTE`, which
//! represents the cluster's window. [`Block::shared_places`] turns both into places in the array.
//!
//! Warps run one after another on one thread of the host, each until it waits or has executed its share of
//! instructions; the order is fixed, so a block's execution is deterministic. [`crate::machine::execute`] executes a
//! path of a warp; this file decides which path and which warp runs, and what happens when none can run.

use std::collections::{BTreeMap, HashMap};

use crate::machine::bytecode::{BlockId, Op, Program, SiteId, Slot};
use crate::machine::counters::Counters;
use crate::machine::findings::Findings;
use crate::machine::grid::Grid;
use crate::machine::report::FindingKind;
use crate::machine::warp::{Activation, Path, Row, State, Warp};
use crate::memory::bulk_groups::BulkGroups;
use crate::memory::clocks::Clocks;
use crate::memory::descriptors::Descriptors;
use crate::memory::footprint::Watch;
use crate::memory::global::GlobalMemory;
use crate::memory::knowledge::Knowledge;
use crate::memory::shadow::Shadow;
use crate::memory::transaction_barrier::{Polls, TransactionBarrier};
use crate::units::draft::Draft;

/// Why a block cannot continue.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A fatal error of the kernel, with its message.
    Fatal(String),
    /// Too many instructions.
    Watchdog,
}

/// Result of executing something in a block.
pub(crate) type Executed<T> = Result<T, Stop>;

/// The result of running a warp for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All lanes have left the kernel.
    Finished,
    /// Nothing can run until another warp makes progress.
    Waiting,
    /// It has executed its share.
    Running,
}

/// Warp instructions a warp executes before another gets its turn.
pub(crate) const SHARE: u64 = 4096;
/// Warp instructions a path executes before a sibling path of the same warp gets its turn.
const PATH_SHARE: u64 = 1024;

/// Distance between the shared memories of blocks in the window of a cluster.
pub(crate) const REMOTE: u64 = 1 << 24;

/// The barrier of a cluster, with separate arrival and wait.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    /// Threads that have arrived in this phase.
    pub(crate) arrived: u32,
    /// Completed phases.
    pub(crate) phase: u64,
    /// The joined knowledge of the threads that have arrived.
    pub(crate) known: Knowledge,
    /// The knowledge that a wait for a completed phase gives.
    pub(crate) taught: Knowledge,
    /// Waiting (warp, lanes).
    pub(crate) waiting: Vec<(usize, u64)>,
}

/// A barrier of the block.
#[derive(Default)]
pub(crate) struct BlockBarrier {
    /// Threads that have arrived.
    pub(crate) arrived: u32,
    /// Threads that it expects.
    pub(crate) expected: u32,
    /// The joined knowledge of the threads that have arrived.
    pub(crate) known: Knowledge,
    /// Waiting (warp, lanes, site).
    pub(crate) waiting: Vec<(usize, u64, SiteId)>,
    /// Predicate results of a reducing barrier: (warp, lane mask of true).
    pub(crate) votes: BTreeMap<usize, u64>,
    /// The destinations of a reduction's results: (warp, lanes, frame, dst).
    pub(crate) reductions: Vec<Reduction>,
}

/// A pending result of a reducing barrier.
pub(crate) struct Reduction {
    pub(crate) warp: usize,
    pub(crate) lanes: u64,
    pub(crate) frame: usize,
    pub(crate) dst: Slot,
    pub(crate) vote: crate::machine::bytecode::Vote,
    /// The result is the number of threads, rather than whether all or any.
    pub(crate) count: bool,
}

/// State of a block while it runs.
pub(crate) struct Block<'a, const W: usize> {
    pub(crate) program: &'a Program,
    pub(crate) global: &'a GlobalMemory,
    pub(crate) grid: &'a Grid,
    pub(crate) id: [u32; 3],
    pub(crate) shared: Vec<u8>,
    /// Whether it has waited for the kernel before.
    pub(crate) has_waited: bool,
    pub(crate) shadow: Option<Shadow>,
    /// The sanitizer's view of global memory.
    pub(crate) watch: Option<Watch>,
    pub(crate) clocks: Clocks,
    /// Number of the access being performed.
    pub(crate) sequence: u32,
    pub(crate) counters: Counters,
    pub(crate) findings: Findings,
    /// By the number of the block in its cluster and the number of the barrier.
    pub(crate) barriers: BTreeMap<(usize, u64), BlockBarrier>,
    pub(crate) cluster_barrier: ClusterBarrier,
    /// Warp and lane for which the copy engine works.
    pub(crate) issuer: (usize, usize),
    /// Warps of one block.
    pub(crate) warps_per_block: usize,
    /// Distance between the shared memories of the blocks of the cluster.
    shared_stride: u64,
    pub(crate) transaction_barriers: HashMap<u64, TransactionBarrier>,
    pub(crate) polls: Polls,
    /// The descriptor objects that the kernel has written.
    pub(crate) descriptors: Descriptors,
    pub(crate) output: Vec<String>,
    /// Registers that warps have released, one number for each block of the cluster.
    pub(crate) free_registers: Vec<i64>,
    /// Incomplete messages of AMD's printf, by warp and lane.
    pub(crate) drafts: HashMap<(usize, usize), Draft>,
    executed: u64,
    warps: Vec<Option<Box<Warp<W>>>>,
    finished: Vec<bool>,
}

impl<'a, const W: usize> Block<'a, W> {
    /// A block that has not started.
    pub(crate) fn new(
        program: &'a Program,
        global: &'a GlobalMemory,
        grid: &'a Grid,
        id: [u32; 3],
        counters: Counters,
    ) -> Self {
        let threads = grid.threads() as usize;
        let warps_per_block = threads.div_ceil(W);
        let blocks = grid.cluster as usize;
        let warp_count = warps_per_block * blocks;
        // Swizzles of the copy engine use only address bits below this distance.
        let shared_stride = match blocks {
            1 => grid.shared_bytes,
            _ => grid.shared_bytes.next_multiple_of(1024),
        };
        let shared_bytes = shared_stride as usize * blocks;
        let kernel = &program.functions[program.kernel];
        let warps = (0..warp_count)
            .map(|index| {
                let count = (threads - index % warps_per_block * W).min(W);
                let mask = crate::machine::row::mask(count as u32);
                let mut warp = Warp::new(index, mask);
                let frame = warp.enter_frame(kernel.slots, &kernel.constants, 0);
                for (&slot, &value) in kernel.parameters.iter().zip(&grid.arguments) {
                    warp.frames[frame].rows[slot as usize] = [value; W];
                }
                warp.grow_local(kernel.local_bytes);
                warp.paths.push(Path {
                    mask,
                    stack: vec![Activation {
                        function: program.kernel,
                        frame,
                        block: 0,
                        next: 0,
                    }],
                    regions: Vec::new(),
                    state: State::Ready,
                    forced: false,
                });
                Some(Box::new(warp))
            })
            .collect();
        let clocks = Clocks::new(warp_count, grid.lockstep).of_blocks(warps_per_block);
        Self {
            program,
            global,
            grid,
            id,
            shared: vec![0; shared_bytes],
            has_waited: !grid.overlaps,
            shadow: grid.sanitize.then(|| Shadow::new(shared_bytes)),
            watch: grid.sanitize.then(Watch::new),
            clocks: match grid.fences_order {
                true => clocks.ordered_by_fences(),
                false => clocks,
            },
            sequence: 0,
            counters,
            findings: Findings::new(id, warps_per_block),
            barriers: BTreeMap::new(),
            cluster_barrier: ClusterBarrier::default(),
            free_registers: vec![0; blocks],
            issuer: (0, 0),
            warps_per_block,
            shared_stride,
            transaction_barriers: HashMap::new(),
            polls: Polls::default(),
            descriptors: Descriptors::default(),
            output: Vec::new(),
            drafts: HashMap::new(),
            executed: 0,
            warps,
            finished: vec![false; warp_count],
        }
    }

    /// Runs for at most `share` rounds of its warps; returns whether the block has finished.
    pub(crate) fn run(&mut self, rounds: u64) -> Executed<bool> {
        for _ in 0..rounds {
            let mut can_go_on = false;
            for index in 0..self.warps.len() {
                if self.finished[index] {
                    continue;
                }
                let Some(mut warp) = self.warps[index].take() else {
                    continue;
                };
                let (asked, events) = (self.polls.count(index), self.polls.events);
                let progress = self.run_warp(&mut warp);
                self.warps[index] = Some(warp);
                match progress? {
                    Progress::Finished => {
                        self.check_end(index);
                        self.finished[index] = true;
                        can_go_on = true;
                    }
                    Progress::Running => {
                        can_go_on |= !self.polls.only_asks(index, asked);
                    }
                    Progress::Waiting => {}
                }
                // Earlier warps that polled without success may succeed now, even if this one does not.
                can_go_on |= self.polls.events != events;
                can_go_on |= self.release_barriers(false);
            }
            if self.finished.iter().all(|&f| f) {
                self.check_ends_of_blocks();
                return Ok(true);
            }
            // A warp that polls has not left the kernel, and would reach the barrier if its phase completed.
            let is_polled = self.polls.without_end().next().is_some();
            if !can_go_on && (is_polled || !self.release_barriers(true)) {
                return Err(self.deadlock());
            }
        }
        Ok(false)
    }

    /// A warp has left the kernel: it must have waited for its copies, which still read its memory.
    fn check_end(&mut self, index: usize) {
        let Some(warp) = &self.warps[index] else {
            return;
        };
        if let Some(site) = warp.products.unfinished() {
            self.findings.add(
                self.program,
                FindingKind::UnwaitedCopy,
                index,
                0,
                None,
                site,
                "the kernel ends before a product of a warp group has been waited for",
            );
        }
        let unfinished = |(lane, groups): (usize, &BulkGroups)| Some((lane, groups.unfinished()?));
        if let Some((lane, site)) = warp.bulk.iter().enumerate().find_map(unfinished) {
            self.findings.add(
                self.program,
                FindingKind::UnwaitedCopy,
                index,
                lane,
                None,
                site,
                "the kernel ends before a copy out of shared memory has been waited for",
            );
        }
    }

    /// The cluster has left the kernel: what a block did to the memory of another one must have come before the end of
    /// that one, which gives its memory back.
    fn check_ends_of_blocks(&mut self) {
        let Some(shadow) = self.shadow.take().filter(|_| self.grid.cluster > 1) else {
            return;
        };
        for block in 0..self.grid.cluster as usize {
            let first = block * self.warps_per_block;
            let warps = first..first + self.warps_per_block;
            let start = block * self.shared_stride as usize;
            let bytes = start..start + self.grid.shared_bytes as usize;
            for (byte, stamp) in shadow.not_before_end(bytes, warps, &self.clocks) {
                self.findings.add(
                    self.program,
                    FindingKind::EndedBlock,
                    stamp.warp.into(),
                    stamp.lane.into(),
                    Some((byte - start) as u64),
                    stamp.site,
                    "an access to the shared memory of another block, which may have ended",
                );
            }
        }
    }

    /// Places, in the array of shared memory, of addresses that a warp uses.
    pub(crate) fn shared_places(&self, warp: usize, addresses: &Row<W>) -> Row<W> {
        if self.grid.cluster == 1 {
            return *addresses;
        }
        addresses.map(|address| self.shared_place(warp, address))
    }

    /// The place, in the array of shared memory, of an address that a warp uses; past the end for an address that is
    /// in the memory of no block.
    pub(crate) fn shared_place(&self, warp: usize, address: u64) -> u64 {
        if self.grid.cluster == 1 {
            return address;
        }
        let block = match address / REMOTE {
            0 => (warp / self.warps_per_block) as u64,
            number => number - 1,
        };
        let offset = address % REMOTE;
        if block >= u64::from(self.grid.cluster) || offset >= self.grid.shared_bytes {
            return address | 1 << 40;
        }
        block * self.shared_stride + offset
    }

    /// Whether an access stays inside the shared memory of one block.
    pub(crate) fn is_in_one_block(&self, place: u64, bytes: u32) -> bool {
        let stride = self.shared_stride.max(1);
        place < stride * u64::from(self.grid.cluster)
            && (place % stride)
                .checked_add(u64::from(bytes))
                .is_some_and(|end| end <= self.grid.shared_bytes)
    }

    /// Adds instructions to those that count against the limit.
    pub(crate) fn spend(&mut self, warp: &mut Warp<W>, instructions: u64) -> Executed<()> {
        warp.executed += instructions;
        self.executed += instructions;
        if self.executed > self.grid.instruction_limit {
            return Err(Stop::Watchdog);
        }
        Ok(())
    }

    fn run_warp(&mut self, warp: &mut Warp<W>) -> Executed<Progress> {
        let begin = warp.executed;
        loop {
            if let Some(index) = warp.paths.iter().rposition(|p| p.state == State::Ready) {
                let mut path = warp.paths.remove(index);
                let path_begin = warp.executed;
                let limit = if warp.paths.is_empty() {
                    SHARE
                } else {
                    PATH_SHARE
                };
                let alive = self.run_path(warp, &mut path, limit)?;
                if alive {
                    // A path that has used its share goes to the end of the queue, so that siblings on which it may
                    // wait can run.
                    let used_up = warp.executed - path_begin >= limit;
                    let position = if used_up { 0 } else { warp.paths.len() };
                    warp.paths.insert(position, path);
                }
                if warp.executed - begin >= SHARE {
                    return Ok(Progress::Running);
                }
                continue;
            }
            if warp.paths.is_empty() {
                return Ok(Progress::Finished);
            }
            if !self.join_meetings(warp)? {
                let ran = warp.executed != begin;
                return Ok(if ran {
                    Progress::Running
                } else {
                    Progress::Waiting
                });
            }
        }
    }

    /// Lets paths that have reached the same op, and contain all its members, execute it together. When no meeting
    /// can become complete any more, reports it and lets each path execute the op alone.
    fn join_meetings(&mut self, warp: &mut Warp<W>) -> Executed<bool> {
        let waiting: Vec<usize> = (0..warp.paths.len())
            .filter(|&i| matches!(warp.paths[i].state, State::Meeting { .. }))
            .collect();
        if waiting.is_empty() {
            return Ok(false);
        }
        for &first in &waiting {
            let State::Meeting { members, .. } = warp.paths[first].state else {
                continue;
            };
            let place = warp.paths[first].stack.last().cloned();
            let group: Vec<usize> = waiting
                .iter()
                .copied()
                .filter(|&i| warp.paths[i].stack.last() == place.as_ref())
                .collect();
            let union = group.iter().fold(0, |mask, &i| mask | warp.paths[i].mask);
            if members & warp.alive & !union == 0 {
                self.meet(warp, &group, union)?;
                return Ok(true);
            }
        }
        if warp.paths.iter().any(|p| p.state == State::Barrier) {
            // Other paths of this warp may still leave their barrier and join.
            return Ok(false);
        }
        for &index in &waiting {
            let State::Meeting {
                members,
                barrier,
                site,
            } = warp.paths[index].state
            else {
                continue;
            };
            let missing = members & warp.alive & !warp.paths[index].mask;
            let lane = missing.trailing_zeros();
            let (kind, what) = if barrier {
                (
                    FindingKind::DivergentBarrier,
                    "a barrier is reached by part of a warp only",
                )
            } else {
                (
                    FindingKind::DivergentCollective,
                    "an operation between lanes is not reached by all its members",
                )
            };
            self.findings.add(
                self.program,
                kind,
                warp.index,
                lane as usize,
                None,
                site,
                what,
            );
            warp.paths[index].state = State::Ready;
            warp.paths[index].forced = true;
        }
        Ok(true)
    }

    /// Executes, for all paths of `group` together, the op that they have reached.
    fn meet(&mut self, warp: &mut Warp<W>, group: &[usize], union: u64) -> Executed<()> {
        let first = group[0];
        let Some(top) = warp.paths[first].stack.last().cloned() else {
            return Ok(());
        };
        let block = &self.program.functions[top.function].blocks[top.block as usize];
        let length = match &block.ops[top.next] {
            Op::Guard { length, .. } => *length as usize + 1,
            _ => 1,
        };
        // The first path represents all: it executes the op with the lanes of all paths, and the others copy its
        // state.
        let mut combined = warp.paths[first].clone();
        combined.mask = union;
        combined.state = State::Ready;
        combined.forced = true;
        self.step(warp, &mut combined, length)?;
        for &index in group {
            let path = &mut warp.paths[index];
            path.state = combined.state;
            path.forced = false;
            if let Some(top) = path.stack.last_mut() {
                top.next += length;
            }
        }
        Ok(())
    }

    /// Releases complete barriers; with `incomplete`, also those that wait only for threads that can never arrive,
    /// and reports them. Returns whether any was released.
    fn release_barriers(&mut self, incomplete: bool) -> bool {
        // When nothing can run, a thread that is not at a barrier will never reach one: it has left the kernel, or
        // waits for lanes that are at a barrier.
        let mut released = self.release_cluster();
        let mut waiting = vec![0; self.grid.cluster as usize];
        for (_, lanes, _, block) in self
            .barriers
            .iter()
            .flat_map(|((block, _), b)| b.waiting.iter().map(|&(w, l, s)| (w, l, s, *block)))
        {
            waiting[block] += lanes.count_ones();
        }
        let elsewhere = |block: usize| self.grid.threads().saturating_sub(waiting[block]);
        let ready: Vec<(usize, u64)> = self
            .barriers
            .iter()
            .filter(|(id, b)| {
                !b.waiting.is_empty()
                    && (b.arrived >= b.expected
                        || incomplete && b.arrived + elsewhere(id.0) >= b.expected)
            })
            .map(|(&id, _)| id)
            .collect();
        for id in &ready {
            let Some(barrier) = self.barriers.remove(id) else {
                continue;
            };
            if barrier.arrived < barrier.expected
                && let Some(&(warp, lanes, site)) = barrier.waiting.first()
            {
                self.findings.add(
                    self.program,
                    FindingKind::DivergentBarrier,
                    warp,
                    lanes.trailing_zeros() as usize,
                    None,
                    site,
                    "a barrier is not reached by all threads of the block",
                );
            }
            for &(warp, lanes, _) in &barrier.waiting {
                self.clocks.given(warp, &barrier.known);
                self.clocks.meet(warp);
                if let Some(warp) = self.warps[warp].as_mut() {
                    for path in &mut warp.paths {
                        if path.mask & lanes != 0 && path.state == State::Barrier {
                            path.state = State::Ready;
                        }
                    }
                }
            }
            for reduction in &barrier.reductions {
                self.reduce_votes(&barrier, reduction);
            }
        }
        released |= !ready.is_empty();
        released
    }

    /// Completes the phase of the cluster's barrier if all threads that have not left have arrived.
    fn release_cluster(&mut self) -> bool {
        let alive = self
            .warps
            .iter()
            .flatten()
            .map(|warp| warp.alive.count_ones());
        let barrier = &mut self.cluster_barrier;
        if barrier.arrived == 0 || barrier.arrived < alive.sum() {
            return false;
        }
        barrier.arrived = 0;
        barrier.phase += 1;
        barrier.taught.join(&barrier.known);
        let taught = barrier.taught.clone();
        let waiting = std::mem::take(&mut barrier.waiting);
        for &(index, lanes) in &waiting {
            self.clocks.learn(index, &taught);
            self.clocks.meet(index);
            if let Some(warp) = self.warps[index].as_mut() {
                for path in &mut warp.paths {
                    if path.mask & lanes != 0 && path.state == State::Barrier {
                        path.state = State::Ready;
                    }
                }
            }
        }
        true
    }

    fn reduce_votes(&mut self, barrier: &BlockBarrier, reduction: &Reduction) {
        use crate::machine::bytecode::Vote;
        let yes: u32 = barrier.votes.values().map(|m| m.count_ones()).sum();
        let value = if reduction.count {
            u64::from(yes)
        } else {
            u64::from(match reduction.vote {
                Vote::Any => yes > 0,
                _ => yes >= barrier.arrived,
            })
        };
        if let Some(warp) = self.warps[reduction.warp].as_mut() {
            let row = &mut warp.frames[reduction.frame].rows[reduction.dst as usize];
            for lane in crate::machine::warp::lanes(reduction.lanes) {
                row[lane] = value;
            }
        }
    }

    /// No warp can run: reports what each of them waits for.
    fn deadlock(&mut self) -> Stop {
        let mut messages = self.report_polls();
        if let Some(&(warp, lanes)) = self.cluster_barrier.waiting.first() {
            messages.push(format!(
                "the cluster's barrier has {} arrivals while warp {warp} (lane {}) waits",
                self.cluster_barrier.arrived,
                lanes.trailing_zeros()
            ));
        }
        for ((_, id), barrier) in &self.barriers {
            if let Some(&(warp, lanes, site)) = barrier.waiting.first() {
                self.findings.add(
                    self.program,
                    FindingKind::DivergentBarrier,
                    warp,
                    lanes.trailing_zeros() as usize,
                    None,
                    site,
                    "a barrier is never completed",
                );
                messages.push(format!(
                    "barrier {id} waits for {} threads, {} have arrived",
                    barrier.expected, barrier.arrived
                ));
            }
        }
        Stop::Fatal(format!("no warp can go on: {}", messages.join("; ")))
    }

    /// Moves a path to a block of the function it is in; returns false when it ended there (waits in a region or has
    /// left the kernel).
    pub(crate) fn go(&mut self, warp: &mut Warp<W>, path: &mut Path, block: BlockId) -> bool {
        if let Some(top) = path.stack.last_mut() {
            top.block = block;
            top.next = 0;
        }
        if warp.arrives(path) {
            warp.arrive(path);
            return false;
        }
        self.leave_functions(warp, path)
    }

    /// Returns from functions whose end the path has reached; returns false when it has left the kernel.
    pub(crate) fn leave_functions(&mut self, warp: &mut Warp<W>, path: &mut Path) -> bool {
        loop {
            let Some(top) = path.stack.last() else {
                return false;
            };
            let function = &self.program.functions[top.function];
            if (top.block as usize) < function.blocks.len() {
                return true;
            }
            let callee_frame = top.frame;
            path.stack.pop();
            let Some(caller) = path.stack.last_mut() else {
                warp.exit(path.mask);
                warp.leave_frame(callee_frame);
                return false;
            };
            // The caller continues after the call.
            let block = &self.program.functions[caller.function].blocks[caller.block as usize];
            if let Some(Op::Call(call)) = block.ops.get(caller.next - 1) {
                for &(here, there) in &call.results {
                    let value = warp.frames[callee_frame].rows[there as usize];
                    let row = &mut warp.frames[caller.frame].rows[here as usize];
                    for lane in crate::machine::warp::lanes(path.mask) {
                        row[lane] = value[lane];
                    }
                }
            }
            warp.leave_frame(callee_frame);
        }
    }
}
