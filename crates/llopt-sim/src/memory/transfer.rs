//! Barriers of the block, asynchronous copies, and the transaction barriers that count them.
//!
//! `cp.async` copies are read from global memory when they are issued, and written to shared memory when their lane
//! waits for them; until then their bytes are *pending*, and the sanitizer reports any access to them. Bulk copies
//! are in [`crate::memory::bulk`].

use crate::machine::block::{Block, Executed, Reduction, Stop};
use crate::machine::bytecode::{AccessKind, Async, Barrier, SiteId};
use crate::machine::execute::{Flow, bit_mask};
use crate::machine::report::FindingKind;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Path, PendingCopy, Row, State, Warp, lanes};
use crate::memory::clocks::Kind;
use crate::memory::global::SHARED_WINDOW;
use crate::memory::transaction_barrier::TransactionBarrier;

/// The arrivals of threads at their transaction barriers.
struct Arrival<const W: usize> {
    addresses: Row<W>,
    /// The number of arrivals that each counts as; one when absent.
    counts: Option<Row<W>>,
    /// The number of expected bytes.
    bytes: Option<Row<W>>,
    /// Whether they arrive, or only announce bytes.
    arrive: bool,
    /// The slot for the phase in which they arrived.
    state: Option<u32>,
}

impl<const W: usize> Block<'_, W> {
    /// Reports the warps that poll for the end of a phase that cannot end; returns the messages about them.
    pub(crate) fn report_polls(&mut self) -> Vec<String> {
        let polls = std::mem::take(&mut self.polls);
        let mut messages = Vec::new();
        for (warp, poll) in polls.without_end() {
            let Some(barrier) = self.transaction_barriers.get(&poll.place) else {
                continue;
            };
            let (arrived, expected) = (barrier.expected as i64 - barrier.pending, barrier.expected);
            let message = format!(
                "warp {warp} waits at the mbarrier at {:#x} for the end of phase {}, in which {arrived} of {expected} \
                 arrivals have come and {} bytes are missing",
                poll.place, barrier.phase, barrier.bytes
            );
            let (kind, place) = (FindingKind::EndlessWait, Some(poll.place));
            self.findings.add(
                self.program,
                kind,
                warp,
                poll.lane,
                place,
                poll.site,
                &message,
            );
            messages.push(message);
        }
        messages
    }

    /// Executes a barrier of the block.
    pub(crate) fn barrier(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        frame: usize,
        barrier: &Barrier,
        site: SiteId,
        mask: u64,
    ) -> Executed<Flow> {
        if !Self::all_here(warp, path, mask, low_bits(W as u32), true, site) {
            return Ok(Flow::Blocked);
        }
        match barrier {
            Barrier::ClusterArrive => {
                self.counters.site(site).barriers += 1;
                let cluster = &mut self.cluster_barrier;
                cluster.arrived += mask.count_ones();
                cluster.known.join(self.clocks.known(warp.index));
                warp.cluster_phase = cluster.phase;
                self.clocks.advance(warp.index);
                return Ok(Flow::Next);
            }
            Barrier::ClusterWait => {
                let cluster = &mut self.cluster_barrier;
                if cluster.phase > warp.cluster_phase {
                    self.clocks.learn(warp.index, &cluster.taught);
                    self.clocks.advance(warp.index);
                    return Ok(Flow::Next);
                }
                cluster.waiting.push((warp.index, mask));
                path.state = State::Barrier;
                return Ok(Flow::Parked);
            }
            Barrier::Registers { count, more } => {
                return self.change_registers(warp, *count, *more, site);
            }
            Barrier::Sync { .. } | Barrier::Arrive { .. } => {}
        }
        let rows = &warp.frames[frame].rows;
        let first = mask.trailing_zeros() as usize % W;
        let (id, threads) = match barrier {
            Barrier::Sync { id, threads, .. } => (*id, *threads),
            Barrier::Arrive { id, threads } => (*id, Some(*threads)),
            Barrier::ClusterArrive | Barrier::ClusterWait | Barrier::Registers { .. } => {
                return Ok(Flow::Next);
            }
        };
        let id = (warp.index / self.warps_per_block, rows[id as usize][first]);
        let expected = threads.map_or(self.grid.threads(), |t| rows[t as usize][first] as u32);
        self.counters.site(site).barriers += 1;
        let entry = self.barriers.entry(id).or_default();
        if entry.arrived > 0 && entry.expected != expected {
            return Err(Stop::Fatal(format!(
                "barrier {} is used with {expected} and {} threads at once",
                id.1, entry.expected
            )));
        }
        entry.expected = expected;
        entry.arrived += mask.count_ones();
        entry.known.join(self.clocks.brought(warp.index));
        self.clocks.advance(warp.index);
        match barrier {
            Barrier::Sync { reduce, .. } => {
                entry.waiting.push((warp.index, mask, site));
                if let Some(vote) = reduce {
                    let set = bit_mask(&rows[vote.predicate as usize]) & mask;
                    *entry.votes.entry(warp.index).or_default() |= set;
                    entry.reductions.push(Reduction {
                        warp: warp.index,
                        lanes: mask,
                        frame,
                        dst: vote.dst,
                        vote: vote.vote,
                        count: vote.count,
                    });
                }
                path.state = State::Barrier;
                Ok(Flow::Parked)
            }
            Barrier::Arrive { .. }
            | Barrier::ClusterArrive
            | Barrier::ClusterWait
            | Barrier::Registers { .. } => Ok(Flow::Next),
        }
    }

    /// Executes an operation of the asynchronous copies.
    #[expect(clippy::too_many_lines, reason = "one match over the ops")]
    pub(crate) fn asynchronous(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        what: &Async,
        mask: u64,
    ) -> Executed<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let get = |warp: &Warp<W>, slot: u32| -> Row<W> { warp.frames[frame].rows[slot as usize] };
        match *what {
            Async::Copy {
                shared,
                global,
                size,
                valid,
                site,
            } => {
                let targets = get(warp, shared).map(|a| a & !SHARED_WINDOW);
                let targets = self.shared_places(warp.index, &targets);
                let sources = get(warp, global);
                let valid = valid.map(|v| get(warp, v));
                self.copy_async(warp, &targets, &sources, size, valid.as_ref(), site, mask);
            }
            Async::StoreLater {
                address,
                ref words,
                size,
                site,
            } => self.store_later(warp, frame, address, (words, size), mask, site),
            Async::Commit => {
                for lane in lanes(mask) {
                    warp.copy_group[lane] += 1;
                }
            }
            Async::Wait(pending) => {
                let groups = warp.copy_group;
                self.finish_copies(warp, mask, |lane, group| group + pending < groups[lane]);
            }
            Async::WaitAll => self.finish_copies(warp, mask, |_, _| true),
            Async::BarrierInit {
                address,
                count,
                site,
            } => self.begin_barriers(
                warp.index,
                &get(warp, address),
                &get(warp, count),
                mask,
                site,
            ),
            Async::BarrierInvalidate { address } => {
                for lane in lanes(mask) {
                    let at = get(warp, address)[lane] & !SHARED_WINDOW;
                    let at = self.shared_place(warp.index, at);
                    self.transaction_barriers.remove(&at);
                }
            }
            Async::BarrierArrive {
                address,
                state,
                count,
                expect_bytes,
                arrive,
                site,
            } => {
                let arrival = Arrival {
                    addresses: get(warp, address),
                    counts: count.map(|c| get(warp, c)),
                    bytes: expect_bytes.map(|b| get(warp, b)),
                    arrive,
                    state,
                };
                self.arrive_at_barriers(warp, frame, &arrival, mask, site)?;
            }
            Async::BarrierTest {
                address,
                done,
                parity,
                by_state,
                site,
            } => {
                let (addresses, wanted) = (get(warp, address), get(warp, parity));
                for lane in lanes(mask) {
                    let complete = self.is_complete(
                        warp.index,
                        lane,
                        addresses[lane],
                        (wanted[lane], by_state),
                        site,
                    )?;
                    warp.frames[frame].rows[done as usize][lane] = u64::from(complete);
                }
            }
            Async::BarrierTrackCopies {
                address,
                increment,
                site,
            } => {
                let addresses = get(warp, address);
                self.track_copies(warp, &addresses, increment, mask, site)?;
            }
            Async::Bulk(ref copy) => self.bulk_copies(warp, frame, copy, mask)?,
            Async::BulkCommit => {
                for lane in lanes(mask) {
                    warp.bulk[lane].commit();
                }
            }
            Async::BulkWait(pending) => {
                for lane in lanes(mask) {
                    let done = warp.bulk[lane].wait(pending as usize);
                    let done = self.clocks.copies(&done);
                    self.clocks.learn(warp.index, &done);
                }
            }
            Async::ProductFence => warp.product_registers.fence(),
            Async::ProductBegin {
                ref registers,
                assembly,
                site,
            } => {
                if self.grid.sanitize {
                    self.check_product_fence(warp, frame, registers, (mask, assembly, site));
                    warp.product_registers.begin(assembly);
                    warp.in_flight.begin(site);
                }
            }
            Async::FetchOperand(ref operand) => self.fetch_operand(warp, frame, operand, mask)?,
            Async::ProductCommit => {
                warp.products.commit();
                warp.in_flight.commit();
            }
            Async::ProductWait(pending) => {
                let done = warp.products.wait(pending as usize);
                warp.in_flight.wait(pending);
                let done = self.clocks.copies(&done);
                self.clocks.learn(warp.index, &done);
            }
            Async::ProxyFence => self.clocks.fence(warp.index),
            Async::DescriptorRelease(address) => {
                let rows = get(warp, address);
                for lane in lanes(mask) {
                    let by = (warp.index, lane);
                    self.descriptors.release(rows[lane], by, &self.clocks);
                }
            }
            Async::DescriptorAcquire(address) => {
                let rows = get(warp, address);
                for lane in lanes(mask) {
                    let by = (warp.index, lane);
                    self.descriptors.acquire(rows[lane], by, &self.clocks);
                }
            }
        }
        Ok(())
    }

    /// Stores words of shared memory that become visible to others once the copy is complete.
    fn store_later(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        address: u32,
        (words, size): (&[u32], u32),
        mask: u64,
        site: SiteId,
    ) {
        let targets = warp.frames[frame].rows[address as usize];
        let allowed = self.shared_bounds(warp.index, &targets, mask, size, AccessKind::Store, site);
        self.count_shared(&targets, allowed, size, size, AccessKind::Store, site);
        for lane in lanes(allowed) {
            let bytes: Vec<u8> = words
                .iter()
                .flat_map(|&word| {
                    let word = warp.frames[frame].rows[word as usize][lane] as u32;
                    word.to_le_bytes()
                })
                .take(size as usize)
                .collect();
            self.write_later(warp, lane, targets[lane], bytes, site);
        }
    }

    /// Initialises the barriers at the addresses.
    fn begin_barriers(
        &mut self,
        warp: usize,
        addresses: &Row<W>,
        counts: &Row<W>,
        mask: u64,
        site: SiteId,
    ) {
        for lane in lanes(mask) {
            let at = self.shared_place(warp, addresses[lane] & !SHARED_WINDOW);
            self.write_barrier_word(warp, lane, at, site);
            self.transaction_barriers
                .insert(at, TransactionBarrier::new(counts[lane]));
            self.polls.begin_anew();
        }
    }

    /// Threads arrive at their barriers, or announce bytes.
    fn arrive_at_barriers(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        arrival: &Arrival<W>,
        mask: u64,
        site: SiteId,
    ) -> Executed<()> {
        for lane in lanes(mask) {
            let alone = (mask.count_ones() as usize) < W;
            let known = self.clocks.arriving(warp.index, alone.then_some(lane));
            let (who, address) = ((warp.index, lane), arrival.addresses[lane]);
            self.touch_barrier(who, warp.index, address, Kind::AtomicWrite, site);
            let barrier = self.transaction_barrier(warp.index, lane, address, site)?;
            barrier.known.join(&known);
            let phase = barrier.phase;
            barrier.bytes += arrival.bytes.map_or(0, |b| b[lane] as u32 as i64);
            if arrival.arrive {
                barrier.pending -= arrival.counts.map_or(1, |c| c[lane] as u32 as i64);
            }
            barrier.settle();
            self.polls.begin_anew();
            if let Some(state) = arrival.state {
                warp.frames[frame].rows[state as usize][lane] = phase;
            }
        }
        self.clocks.advance(warp.index);
        Ok(())
    }

    /// The barriers track the earlier copies. The machine's copies can complete at any time after their issue: here
    /// they complete at once and arrive.
    fn track_copies(
        &mut self,
        warp: &mut Warp<W>,
        addresses: &Row<W>,
        increment: bool,
        mask: u64,
        site: SiteId,
    ) -> Executed<()> {
        self.finish_copies(warp, mask, |_, _| true);
        for lane in lanes(mask) {
            let known = self.clocks.known(warp.index).clone();
            let who = (warp.index, lane);
            self.touch_barrier(who, warp.index, addresses[lane], Kind::AtomicWrite, site);
            let barrier = self.transaction_barrier(warp.index, lane, addresses[lane], site)?;
            barrier.known.join(&known);
            if !increment {
                barrier.pending -= 1;
            }
            barrier.settle();
            self.polls.begin_anew();
        }
        self.clocks.advance(warp.index);
        Ok(())
    }

    /// Whether the phase that a lane waits for, given by a parity or by a state, is complete.
    fn is_complete(
        &mut self,
        warp: usize,
        lane: usize,
        address: u64,
        (wanted, by_state): (u64, bool),
        site: SiteId,
    ) -> Executed<bool> {
        let place = self.shared_place(warp, address & !SHARED_WINDOW);
        self.touch_barrier((warp, lane), warp, address, Kind::AtomicRead, site);
        let barrier = self.transaction_barrier(warp, lane, address, site)?;
        let complete = if by_state {
            barrier.phase > wanted
        } else {
            barrier.phase & 1 != wanted & 1
        };
        let taught = barrier.taught.clone();
        if complete {
            self.clocks.waited(warp, &taught);
            self.polls.answered(warp);
        } else {
            self.polls.in_vain(warp, lane, place, site);
        }
        Ok(complete)
    }

    #[expect(clippy::too_many_arguments, reason = "the operands of the instruction")]
    fn copy_async(
        &mut self,
        warp: &mut Warp<W>,
        targets: &Row<W>,
        sources: &Row<W>,
        size: u32,
        valid: Option<&Row<W>>,
        site: SiteId,
        mask: u64,
    ) {
        let allowed = self.shared_bounds(warp.index, targets, mask, size, AccessKind::Store, site);
        self.count_shared(targets, allowed, size, size, AccessKind::Store, site);
        let taken = |lane: usize| valid.map_or(size, |v| (v[lane] as u32).min(size));
        let reading = lanes(mask)
            .filter(|&l| taken(l) > 0)
            .fold(0, |m, l| m | 1 << l);
        self.count_global(sources, reading, size, size, AccessKind::Load, site);
        for lane in lanes(allowed) {
            let length = taken(lane);
            for (address, name) in [(targets[lane], "shared"), (sources[lane], "global")] {
                if !address.is_multiple_of(u64::from(size)) && self.grid.sanitize {
                    let message = format!(
                        "an asynchronous copy of {size} bytes is misaligned in {name} memory"
                    );
                    self.findings.add(
                        self.program,
                        FindingKind::Misaligned,
                        warp.index,
                        lane,
                        Some(address),
                        site,
                        &message,
                    );
                }
            }
            let mut bytes = vec![0; size as usize];
            if length > 0 {
                match self.check_global(sources[lane], length, AccessKind::Load) {
                    Ok(()) => {
                        for (i, byte) in bytes[..length as usize].iter_mut().enumerate() {
                            *byte = self.global.read(sources[lane] + i as u64, 1) as u8;
                        }
                    }
                    Err(fault) => self.fault(
                        warp.index,
                        lane,
                        sources[lane],
                        length,
                        AccessKind::Load,
                        fault,
                        site,
                    ),
                }
            }
            self.write_later(warp, lane, targets[lane], bytes, site);
        }
    }

    /// Bytes that are in shared memory once the lane has waited for its current group.
    fn write_later(
        &mut self,
        warp: &mut Warp<W>,
        lane: usize,
        shared: u64,
        bytes: Vec<u8>,
        site: SiteId,
    ) {
        let stamp = self.stamp(warp.index, lane, Kind::Write, site);
        let mut problem = None;
        if let Some(shadow) = &mut self.shadow {
            for (byte, &new) in (shared as usize..).zip(&bytes) {
                let changes = self.shared[byte] != new;
                let found = shadow.begin_copy(byte, stamp, changes, &self.clocks);
                problem = problem.or(found.map(|problem| (problem, byte)));
            }
        }
        if let Some((problem, byte)) = problem {
            self.report_problem(problem, AccessKind::Store, warp.index, lane, byte, site);
        }
        warp.copies.push(PendingCopy {
            lane: lane as u8,
            group: warp.copy_group[lane],
            shared,
            bytes,
            site,
        });
    }

    /// Writes the pending copies of these lanes that `ready` names by (lane, group).
    fn finish_copies(&mut self, warp: &mut Warp<W>, mask: u64, ready: impl Fn(usize, u32) -> bool) {
        let copies = std::mem::take(&mut warp.copies);
        for copy in copies {
            let lane = usize::from(copy.lane);
            if mask >> lane & 1 == 0 || !ready(lane, copy.group) {
                warp.copies.push(copy);
                continue;
            }
            for (i, &byte) in copy.bytes.iter().enumerate() {
                let at = copy.shared as usize + i;
                if let Some(shadow) = &mut self.shadow {
                    shadow.end_copy(at);
                }
                let (value, kind) = (u64::from(byte), Kind::CopiedWrite);
                self.shared_write_as(kind, warp.index, lane, at, 1, value, copy.site);
            }
        }
    }

    fn write_barrier_word(&mut self, warp: usize, lane: usize, at: u64, site: SiteId) {
        let mut row = [0; W];
        row[lane] = at;
        if self.shared_bounds(warp, &row, 1 << lane, 8, AccessKind::Store, site) != 0 {
            // Each time another word, since a write that changes nothing races with none.
            let word = u64::from(self.sequence % 255 + 1);
            self.shared_write(warp, lane, at as usize, 1, word, false, site);
            self.shared_write(warp, lane, at as usize + 1, 7, 0, false, site);
        }
    }

    /// A warp, or the copy engine on its behalf, updates or tests a transaction barrier: it comes after the barrier's
    /// initialisation, and before the next one.
    pub(crate) fn touch_barrier(
        &mut self,
        (who, lane): (usize, usize),
        issuer: usize,
        address: u64,
        kind: Kind,
        site: SiteId,
    ) {
        let at = self.shared_place(issuer, address & !SHARED_WINDOW) as usize;
        if at >= self.shared.len() {
            return;
        }
        let stamp = self.stamp(who, lane, kind, site);
        let Some(shadow) = &mut self.shadow else {
            return;
        };
        let (problem, access) = match kind {
            Kind::AtomicWrite => (
                shadow.write(at, stamp, true, &self.clocks),
                AccessKind::Store,
            ),
            _ => (shadow.read(at, stamp, &self.clocks), AccessKind::Load),
        };
        if let Some(problem) = problem {
            self.report_problem(problem, access, who, lane, at, site);
        }
    }

    pub(crate) fn transaction_barrier(
        &mut self,
        warp: usize,
        lane: usize,
        address: u64,
        site: SiteId,
    ) -> Executed<&mut TransactionBarrier> {
        let at = self.shared_place(warp, address & !SHARED_WINDOW);
        let misuse = match &self.shadow {
            Some(shadow) if at < self.shared.len() as u64 => {
                shadow.misuse(at as usize, warp, false, &self.clocks)
            }
            _ => None,
        };
        if let Some(problem) = misuse {
            self.report_problem(problem, AccessKind::Store, warp, lane, at as usize, site);
        }
        let text = &self.program.sites[site as usize].text;
        self.transaction_barriers.get_mut(&at).ok_or_else(|| {
            Stop::Fatal(format!(
                "no mbarrier has been initialised at {at:#x}: {text}"
            ))
        })
    }
}
