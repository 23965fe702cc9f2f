//! Executing a path of a warp: scalar operations on rows, control flow, and the calls of all other parts.

use crate::machine::block::{Block, Executed, Stop};
use crate::machine::bytecode::{
    EdgeId, Expectation, LaneMask, Life, Op, Slot, Special, Terminator,
};
use crate::machine::findings::source;
use crate::machine::report::FindingKind;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Activation, Path, Row, State, Warp, lanes};
use crate::memory::clocks::Kind;

/// The effect of an op on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Continue with the next op.
    Next,
    /// The path waits at this op and will execute it again.
    Blocked,
    /// The op is done; the path waits after it.
    Parked,
    /// A function was entered.
    Called,
}

impl<const W: usize> Block<'_, W> {
    /// Executes a path until it waits, ends, or has executed `limit` instructions. Returns whether it still exists.
    pub(crate) fn run_path(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        limit: u64,
    ) -> Executed<bool> {
        if !self.leave_functions(warp, path) {
            return Ok(false);
        }
        let begin = warp.executed;
        let program = self.program;
        loop {
            let Some(top) = path.stack.last() else {
                return Ok(false);
            };
            let (number, frame, at) = (top.function, top.frame, top.block);
            let block = &program.functions[number].blocks[at as usize];
            if top.next == 0 {
                let counter = &mut self.counters.blocks[number][at as usize];
                counter[0] += 1;
                counter[1] += u64::from(path.mask.count_ones());
                self.spend(warp, block.ops.len() as u64 + 1)?;
            }
            let left = block.ops.len() - top.next;
            match self.step(warp, path, left)? {
                Flow::Next => {}
                Flow::Called => continue,
                Flow::Blocked | Flow::Parked => return Ok(true),
            }
            let alive = match &block.terminator {
                Terminator::Jump(edge) => self.take(warp, path, *edge),
                Terminator::Branch {
                    condition,
                    then,
                    otherwise,
                } => {
                    let row = &warp.frames[frame].rows[*condition as usize];
                    let taken = bit_mask(row) & path.mask;
                    self.branch(
                        warp,
                        path,
                        &[(taken, *then), (path.mask & !taken, *otherwise)],
                    )
                }
                Terminator::Switch {
                    value,
                    cases,
                    default,
                } => {
                    let row = warp.frames[frame].rows[*value as usize];
                    let mut targets = Vec::new();
                    let mut left = path.mask;
                    for &(case, edge) in cases {
                        let here = lanes(left)
                            .filter(|&l| row[l] == case)
                            .fold(0, |m, l| m | 1 << l);
                        left &= !here;
                        targets.push((here, edge));
                    }
                    targets.push((left, *default));
                    self.branch(warp, path, &targets)
                }
                Terminator::Return(values) => {
                    let function = &program.functions[number];
                    let rows = &mut warp.frames[frame].rows;
                    let results: Vec<Row<W>> = values.iter().map(|&v| rows[v as usize]).collect();
                    for (&slot, value) in function.results.iter().zip(&results) {
                        blend(&mut rows[slot as usize], value, path.mask);
                    }
                    self.go(warp, path, function.blocks.len() as u32)
                }
                Terminator::Exit => {
                    warp.exit(path.mask);
                    false
                }
                Terminator::Unreachable(site) => {
                    let place = &program.sites[*site as usize];
                    return Err(Stop::Fatal(format!(
                        "warp {} reached 'unreachable' in @{}{}",
                        warp.index,
                        place.function,
                        source(program, *site).map_or_else(String::new, |s| format!(" ({s})")),
                    )));
                }
            };
            if !alive {
                return Ok(false);
            }
            if warp.executed - begin >= limit {
                return Ok(true);
            }
        }
    }

    /// Follows an edge with all lanes of the path.
    fn take(&mut self, warp: &mut Warp<W>, path: &mut Path, edge: EdgeId) -> bool {
        let Some(top) = path.stack.last() else {
            return false;
        };
        let edge = &self.program.functions[top.function].edges[edge as usize];
        let rows = &mut warp.frames[top.frame].rows;
        if !warp.in_flight.is_idle() {
            for &(target, source) in &edge.moves {
                warp.in_flight.copy(top.frame, target, source);
            }
        }
        if warp.product_registers.is_fenced() && self.grid.sanitize {
            for &(target, source) in &edge.moves {
                warp.product_registers.copy(top.frame, target, source);
            }
        }
        for &(target, source) in &edge.moves {
            let value = rows[source as usize];
            if path.mask == low_bits(W as u32) {
                rows[target as usize] = value;
            } else {
                blend(&mut rows[target as usize], &value, path.mask);
            }
        }
        self.go(warp, path, edge.target)
    }

    /// Follows several edges, each with its own lanes. The path continues with the first edge that has lanes and does
    /// not end them.
    fn branch(&mut self, warp: &mut Warp<W>, path: &mut Path, targets: &[(u64, EdgeId)]) -> bool {
        if let Some(&(_, edge)) = targets.iter().find(|(mask, _)| *mask == path.mask) {
            return self.take(warp, path, edge);
        }
        let Some(top) = path.stack.last() else {
            return false;
        };
        let meets_at = self.program.functions[top.function].blocks[top.block as usize].meets_at;
        warp.open_region(path, meets_at);
        let mut parts = Vec::new();
        for &(mask, edge) in targets.iter().filter(|(mask, _)| *mask != 0) {
            let mut part = path.clone();
            part.mask = mask;
            if self.take(warp, &mut part, edge) {
                parts.push(part);
            }
        }
        let Some(first) = (!parts.is_empty()).then(|| parts.remove(0)) else {
            return false;
        };
        warp.paths.extend(parts);
        *path = first;
        true
    }

    /// Executes the next `count` ops of the block that the path has reached.
    pub(crate) fn step(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        count: usize,
    ) -> Executed<Flow> {
        let Some(top) = path.stack.last() else {
            return Ok(Flow::Next);
        };
        let (number, frame, at, begin) = (top.function, top.frame, top.block, top.next);
        let block = &self.program.functions[number].blocks[at as usize];
        let full = path.mask == low_bits(W as u32);
        let end = begin + count;
        let mut next = begin;
        while next < end {
            let op = &block.ops[next];
            if !warp.in_flight.is_idle() {
                self.watch_results(warp, frame, op, path.mask);
            }
            if warp.product_registers.is_fenced() && self.grid.sanitize {
                warp.product_registers.follow(frame, op);
            }
            // The common case first, without leaving this loop.
            if full {
                let rows = &mut warp.frames[frame].rows;
                let mut result = [0; W];
                let target = match op {
                    Op::Copy { dst, a } => {
                        result = rows[*a as usize];
                        Some(*dst)
                    }
                    Op::Map1 { f, dst, a } => {
                        f(&mut result, &rows[*a as usize]);
                        Some(*dst)
                    }
                    Op::Map2 { f, dst, a, b } => {
                        f(&mut result, &rows[*a as usize], &rows[*b as usize]);
                        Some(*dst)
                    }
                    Op::Map3 { f, dst, a, b, c } => {
                        f(
                            &mut result,
                            &rows[*a as usize],
                            &rows[*b as usize],
                            &rows[*c as usize],
                        );
                        Some(*dst)
                    }
                    _ => None,
                };
                if let Some(target) = target {
                    rows[target as usize] = result;
                    next += 1;
                    continue;
                }
            }
            let (flow, consumed) = if let Op::Guard {
                predicate,
                negate,
                length,
            } = op
            {
                let length = *length as usize;
                let row = &warp.frames[frame].rows[*predicate as usize];
                let set = bit_mask(row);
                let mask = path.mask & if *negate { !set } else { set };
                let mut flow = Flow::Next;
                if mask != 0 {
                    for guarded in &block.ops[next + 1..=next + length] {
                        flow = self.op(warp, path, frame, guarded, mask, next + length)?;
                        if flow != Flow::Next {
                            break;
                        }
                    }
                }
                (flow, length + 1)
            } else {
                (self.op(warp, path, frame, op, path.mask, next)?, 1)
            };
            match flow {
                Flow::Next => next += consumed,
                Flow::Called => return Ok(flow),
                Flow::Blocked | Flow::Parked => {
                    if let Some(top) = path.stack.last_mut() {
                        top.next = next + if flow == Flow::Parked { consumed } else { 0 };
                    }
                    return Ok(flow);
                }
            }
        }
        if let Some(top) = path.stack.last_mut() {
            top.next = end;
        }
        Ok(Flow::Next)
    }

    /// Executes one op for the lanes of `mask`; `index` is the caller's position after the op.
    fn op(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        frame: usize,
        op: &Op,
        mask: u64,
        index: usize,
    ) -> Executed<Flow> {
        match op {
            Op::Copy { dst, a } => {
                let rows = &mut warp.frames[frame].rows;
                let value = rows[*a as usize];
                blend(&mut rows[*dst as usize], &value, mask);
            }
            Op::Map1 { f, dst, a } => {
                let rows = &mut warp.frames[frame].rows;
                let mut result = [0; W];
                f(&mut result, &rows[*a as usize]);
                blend(&mut rows[*dst as usize], &result, mask);
            }
            Op::Map2 { f, dst, a, b } => {
                let rows = &mut warp.frames[frame].rows;
                let mut result = [0; W];
                f(&mut result, &rows[*a as usize], &rows[*b as usize]);
                blend(&mut rows[*dst as usize], &result, mask);
            }
            Op::Map3 { f, dst, a, b, c } => {
                let rows = &mut warp.frames[frame].rows;
                let mut result = [0; W];
                f(
                    &mut result,
                    &rows[*a as usize],
                    &rows[*b as usize],
                    &rows[*c as usize],
                );
                blend(&mut rows[*dst as usize], &result, mask);
            }
            Op::Special { what, dst } => self.special(warp, frame, *what, *dst, mask),
            Op::Access(access) => self.access(warp, frame, access, mask),
            Op::Atomic(atomic) => self.atomic(warp, frame, atomic, mask),
            Op::Collective(meeting) => return self.meeting(warp, path, frame, meeting, mask),
            Op::Tiles(tiles) => return self.tiles(warp, path, frame, tiles, mask),
            Op::TransposeLoad(load) => self.transpose_load(warp, frame, load, mask),
            Op::Barrier(barrier, site) => {
                return self.barrier(warp, path, frame, barrier, *site, mask);
            }
            Op::Async(what, _) => self.asynchronous(warp, frame, what, mask)?,
            Op::Alloca { dst, offset } => {
                let frame = &mut warp.frames[frame];
                let address = [frame.local_base + offset; W];
                blend(&mut frame.rows[*dst as usize], &address, mask);
            }
            Op::Call(call) => {
                let callee = &self.program.functions[call.callee];
                let caller = &self.program.functions[path.stack.last().map_or(0, |t| t.function)];
                let base = warp.frames[frame].local_base + caller.local_bytes.next_multiple_of(16);
                let inner = warp.enter_frame(callee.slots, &callee.constants, base);
                warp.grow_local(base + callee.local_bytes);
                for &(there, here) in &call.arguments {
                    let value = warp.frames[frame].rows[here as usize];
                    warp.frames[inner].rows[there as usize] = value;
                }
                if let Some(top) = path.stack.last_mut() {
                    top.next = index + 1;
                }
                path.stack.push(Activation {
                    function: call.callee,
                    frame: inner,
                    block: 0,
                    next: 0,
                });
                return Ok(Flow::Called);
            }
            Op::Fence(fence, _) => self.clocks.order(warp.index, *fence),
            Op::GridWait(_) => self.has_waited = true,
            Op::Nothing | Op::Guard { .. } => {}
            Op::Trap(site) => {
                let place = &self.program.sites[*site as usize];
                return Err(Stop::Fatal(format!(
                    "warp {} trapped in @{}{}",
                    warp.index,
                    place.function,
                    source(self.program, *site).map_or_else(String::new, |s| format!(" ({s})")),
                )));
            }
            Op::Print(print) => self.print(warp, frame, print, mask)?,
            Op::Expect(expectation) => self.expect(warp, frame, expectation, mask),
            Op::Life(life) => self.life(warp, frame, life, mask),
        }
        Ok(Flow::Next)
    }

    /// A buffer of shared memory begins or ends; all lanes have the same operands.
    fn life(&mut self, warp: &Warp<W>, frame: usize, life: &Life, mask: u64) {
        let Some(lane) = lanes(mask).next() else {
            return;
        };
        let stamp = self.stamp(warp.index, lane, Kind::Read, life.site);
        let address = warp.frames[frame].rows[life.address as usize][lane];
        let at = self.shared_place(warp.index, address);
        let end = at.saturating_add(life.bytes).min(self.shared.len() as u64);
        if let Some(shadow) = &mut self.shadow
            && at < end
        {
            shadow.mark(at as usize..end as usize, stamp, life.begins, &self.clocks);
        }
    }

    /// Reports the first lane whose value does not meet the condition.
    fn expect(&mut self, warp: &Warp<W>, frame: usize, expected: &Expectation, mask: u64) {
        if !self.grid.sanitize {
            return;
        }
        let row = &warp.frames[frame].rows[expected.value as usize];
        let holds = |value: u64| match expected.below {
            Some(bound) => value < bound,
            None => value != 0,
        };
        let Some(lane) = lanes(mask).find(|&lane| !holds(row[lane])) else {
            return;
        };
        let (kind, message) = match expected.below {
            Some(bound) => (
                FindingKind::IndexOutOfRange,
                format!(
                    "the index {} is out of range: there are {bound}",
                    row[lane] as i32
                ),
            ),
            None => (
                FindingKind::DivisionByZero,
                "an integer is divided by zero".to_owned(),
            ),
        };
        let (program, site) = (self.program, expected.site);
        self.findings
            .add(program, kind, warp.index, lane, None, site, &message);
    }

    /// Whether all members of a collective operation have arrived; if not, the path waits for them.
    pub(crate) fn all_here(
        warp: &Warp<W>,
        path: &mut Path,
        mask: u64,
        members: u64,
        barrier: bool,
        site: u32,
    ) -> bool {
        if path.forced {
            path.forced = false;
            return true;
        }
        let members = members & warp.alive;
        if members & !mask == 0 || members & !path.mask == 0 {
            return true;
        }
        path.state = State::Meeting {
            members,
            barrier,
            site,
        };
        false
    }

    fn special(&self, warp: &mut Warp<W>, frame: usize, what: Special, dst: Slot, mask: u64) {
        let grid = self.grid;
        let base = (warp.index % self.warps_per_block * W) as u32;
        let rank = (warp.index / self.warps_per_block) as u32;
        let mut row = [0; W];
        for (lane, value) in row.iter_mut().enumerate() {
            let thread = base + lane as u32;
            *value = match what {
                Special::ThreadId(axis) => {
                    let [x, y, _] = grid.block_threads;
                    u64::from(match axis {
                        0 => thread % x,
                        1 => thread / x % y,
                        _ => thread / (x * y),
                    })
                }
                Special::BlockId(0) => u64::from(self.id[0] + rank),
                Special::BlockId(axis) => u64::from(self.id[axis]),
                Special::ClusterRank => u64::from(rank),
                Special::ClusterBlocks => u64::from(grid.cluster),
                Special::ClusterId(0) => u64::from(self.id[0] / grid.cluster),
                Special::ClusterId(axis) => u64::from(self.id[axis]),
                Special::GridClusters(0) => u64::from(grid.blocks[0] / grid.cluster),
                Special::GridClusters(axis) => u64::from(grid.blocks[axis]),
                Special::BlockThreads(axis) => u64::from(grid.block_threads[axis]),
                Special::GridBlocks(axis) => u64::from(grid.blocks[axis]),
                Special::Lane => lane as u64,
                Special::WarpId => (warp.index % self.warps_per_block) as u64,
                Special::WarpCount => u64::from(grid.threads()).div_ceil(W as u64),
                Special::WarpSize => W as u64,
                Special::LaneMask(relation) => {
                    let bit = 1u64 << lane;
                    let below = bit - 1;
                    let all = low_bits(W as u32);
                    match relation {
                        LaneMask::Lt => below,
                        LaneMask::Le => below | bit,
                        LaneMask::Eq => bit,
                        LaneMask::Ge => all & !below,
                        LaneMask::Gt => all & !below & !bit,
                    }
                }
                Special::Clock => warp.executed,
                Special::Processor => u64::from(self.id[0] + rank),
                Special::DynamicSharedBytes => grid.shared_bytes - self.program.shared_dynamic,
                Special::TotalSharedBytes => grid.shared_bytes,
                Special::HiddenArguments => grid.hidden_arguments,
                Special::ActiveMask => mask,
            };
        }
        blend(&mut warp.frames[frame].rows[dst as usize], &row, mask);
    }
}

/// Lanes whose value has its lowest bit set.
#[inline]
pub(crate) fn bit_mask<const W: usize>(row: &Row<W>) -> u64 {
    row.iter()
        .enumerate()
        .fold(0, |mask, (lane, value)| mask | (value & 1) << lane)
}

/// Copies the values of the lanes of `mask`.
#[inline]
pub(crate) fn blend<const W: usize>(target: &mut Row<W>, value: &Row<W>, mask: u64) {
    for (lane, (target, &value)) in target.iter_mut().zip(value).enumerate() {
        let keep = (mask >> lane & 1).wrapping_sub(1);
        *target = *target & keep | value & !keep;
    }
}
