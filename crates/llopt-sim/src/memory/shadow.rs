//! The sanitizer's knowledge about shared memory: the last write and reads of each byte, and what is wrong with an access.
//!
//! Two accesses of a byte of which none comes before the other ([`clocks`](super::clocks)), and one of which is a write, race,
//! unless both are atomic. Writes that do not change the byte are accepted: duplicated lanes and warps store the same value
//! intentionally.
//!
//! For each byte it is enough to keep the last plain write and later accesses, the latest of each kind by each warp:
//! an access that races with one before the write also races with the write, or the write itself has raced. An atomic
//! update is different: it races neither with the updates before it nor with those after, which may race with the
//! write before.
//!
//! An asynchronous copy writes from its issue until a thread has waited for it. All earlier accesses must be ordered
//! before its issue, and any access to its bytes before the copy is complete is reported.
//!
//! A block's memory ends with the block: accesses by other blocks of its cluster must be ordered before that.
//!
//! # Buffers
//!
//! Bytes belong to one buffer after another. [`lives`](super::lives) determines which buffer an access means.

use std::ops::Range;

use crate::machine::bytecode::SiteId;
use crate::memory::clocks::{Clocks, Kind, Stamp};
use crate::memory::lives::{Event, Lives, Misuse};

/// Several lanes of the warp.
const MANY: u8 = u8::MAX;

/// Reads and atomic updates after the last plain write.
#[derive(Clone, Copy, Debug)]
enum Since {
    None,
    One(Stamp),
    /// Index of a list with one stamp per warp and kind.
    List(u32),
}

#[derive(Clone, Copy, Debug)]
struct Byte {
    /// The last plain write.
    write: Option<Stamp>,
    since: Since,
    initialized: bool,
    /// Site of an asynchronous copy into this byte that has not completed.
    pending: Option<SiteId>,
}

/// Why an access conflicts with the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It races with that write.
    WithWrite(Stamp),
    /// It races with that read.
    WithRead(Stamp),
    Uninitialized,
    /// The buffer was deallocated there.
    Ended(Event),
    /// The byte has not been written since the buffer began there; that is the last write for an earlier buffer.
    Stale(Event, Option<Stamp>),
    /// The copy issued there has not been waited for.
    Pending(SiteId),
    /// No proxy fence is between that write and the copy engine, or that read need not be performed before the engine's write.
    Unfenced(Stamp),
}

/// The history of every byte of a block's shared memory.
pub(crate) struct Shadow {
    bytes: Vec<Byte>,
    lists: Vec<Vec<Stamp>>,
    /// The live ranges of buffers, once the code marks them.
    lives: Option<Lives>,
}

impl Shadow {
    pub(crate) fn new(size: usize) -> Self {
        let byte = Byte {
            write: None,
            since: Since::None,
            initialized: false,
            pending: None,
        };
        Self {
            bytes: vec![byte; size],
            lists: Vec::new(),
            lives: None,
        }
    }

    /// A warp marks the begin or the end of a buffer.
    pub(crate) fn mark(
        &mut self,
        bytes: Range<usize>,
        stamp: Stamp,
        begins: bool,
        clocks: &Clocks,
    ) {
        let size = self.bytes.len();
        let lives = self.lives.get_or_insert_with(|| Lives::new(size));
        let of = (stamp.warp, stamp.tick);
        let block = clocks.block_of(stamp.warp.into());
        let knows = |who, event: &Event| clocks.knows(who, event);
        lives.mark(bytes, of, stamp.site, begins, block, knows);
    }

    /// The conflict of an access with the live range of the byte's buffer, if any.
    pub(crate) fn misuse(
        &self,
        at: usize,
        warp: usize,
        reads: bool,
        clocks: &Clocks,
    ) -> Option<Problem> {
        let lives = self.lives.as_ref()?;
        let misuse = lives.against(at, reads, |event| clocks.knows(warp, event))?;
        Some(match misuse {
            Misuse::Ended(event) => Problem::Ended(event),
            Misuse::Stale(event) => Problem::Stale(event, self.bytes[at].write),
        })
    }

    /// Adds bytes without a history, which the host has written.
    pub(crate) fn grow(&mut self, bytes: usize) {
        let byte = Byte {
            write: None,
            since: Since::None,
            initialized: true,
            pending: None,
        };
        self.bytes.resize(self.bytes.len() + bytes, byte);
    }

    /// The site at which a warp has read a byte since its last plain write, if it has.
    pub(crate) fn read_by(&self, at: usize, warp: u16) -> Option<SiteId> {
        let read = self
            .since(&self.bytes[at])
            .iter()
            .find(|past| past.warp == warp && past.kind == Kind::Read);
        read.map(|read| read.site)
    }

    /// Accesses to bytes of a block's memory, by warps of other blocks, that none of its own warps knew of at its end.
    pub(crate) fn not_before_end(
        &self,
        bytes: Range<usize>,
        own: Range<usize>,
        clocks: &Clocks,
    ) -> Vec<(usize, Stamp)> {
        let is_late = |stamp: &Stamp| {
            let who = usize::from(stamp.warp);
            let is_known = |warp: usize| clocks.known(warp).known.get(who) >= Some(&stamp.tick);
            // Copies are waited for, which is checked elsewhere.
            who != clocks.engine() && !own.contains(&who) && !own.clone().any(is_known)
        };
        let mut late = Vec::new();
        for at in bytes {
            let byte = &self.bytes[at];
            let all = byte.write.iter().chain(self.since(byte));
            late.extend(all.filter(|stamp| is_late(stamp)).map(|stamp| (at, *stamp)));
        }
        late
    }

    /// The accesses to a byte after its last plain write.
    fn since<'s>(&'s self, byte: &'s Byte) -> &'s [Stamp] {
        match &byte.since {
            Since::None => &[],
            Since::One(one) => std::slice::from_ref(one),
            Since::List(list) => &self.lists[*list as usize][..],
        }
    }

    /// Records a read of a byte; returns what is wrong with it.
    pub(crate) fn read(&mut self, at: usize, stamp: Stamp, clocks: &Clocks) -> Option<Problem> {
        let byte = &self.bytes[at];
        let misuse = self.misuse(at, stamp.warp.into(), true, clocks);
        let problem = if let Some(Problem::Ended(_)) = misuse {
            misuse
        } else if let Some(site) = byte.pending {
            Some(Problem::Pending(site))
        } else if !byte.initialized {
            Some(Problem::Uninitialized)
        } else if misuse.is_some() {
            misuse
        } else {
            self.against_past(at, &stamp, clocks)
        };
        self.remember(at, stamp);
        problem
    }

    /// Records a write of a byte; `changes` says whether it alters the byte. Returns what is wrong with it.
    pub(crate) fn write(
        &mut self,
        at: usize,
        stamp: Stamp,
        changes: bool,
        clocks: &Clocks,
    ) -> Option<Problem> {
        let byte = &self.bytes[at];
        let misuse = self.misuse(at, stamp.warp.into(), false, clocks);
        let problem = if misuse.is_some() {
            misuse
        } else if let Some(site) = byte.pending {
            Some(Problem::Pending(site))
        } else if changes {
            self.against_past(at, &stamp, clocks)
        } else {
            None
        };
        if stamp.kind.is_atomic() {
            self.remember(at, stamp);
        } else if changes || byte.write.is_none() {
            let byte = &mut self.bytes[at];
            byte.write = Some(stamp);
            byte.since = Since::None;
        }
        self.bytes[at].initialized = true;
        if let Some(lives) = &mut self.lives {
            lives.write(at, |event| clocks.knows(stamp.warp.into(), event));
        }
        problem
    }

    /// The conflict of an access with a byte's history: a race first, then a missing fence.
    fn against_past(&self, at: usize, stamp: &Stamp, clocks: &Clocks) -> Option<Problem> {
        let byte = &self.bytes[at];
        let past = || {
            let all = byte.write.iter().chain(self.since(byte));
            all.filter(|past| past.kind.conflicts(stamp.kind))
        };
        let ordered =
            |past: &&Stamp| clocks.before(past, stamp.warp.into(), stamp.lane, stamp.sequence);
        if let Some(race) = past().find(|past| !ordered(past)) {
            return Some(match race.kind.writes() {
                true => Problem::WithWrite(*race),
                false => Problem::WithRead(*race),
            });
        }
        let unseen = past().find(|past| !clocks.sees(past, stamp));
        unseen.map(|past| Problem::Unfenced(*past))
    }

    /// Adds an access to those after the last plain write.
    fn remember(&mut self, at: usize, stamp: Stamp) {
        let same = |past: &Stamp| (past.warp, past.kind) == (stamp.warp, stamp.kind);
        let byte = &mut self.bytes[at];
        match &mut byte.since {
            Since::None => byte.since = Since::One(stamp),
            Since::One(past) if same(past) => merge(past, stamp),
            Since::One(past) => {
                self.lists.push(vec![*past, stamp]);
                byte.since = Since::List((self.lists.len() - 1) as u32);
            }
            Since::List(list) => {
                let list = &mut self.lists[*list as usize];
                match list.iter_mut().find(|past| same(past)) {
                    Some(past) => merge(past, stamp),
                    None => list.push(stamp),
                }
            }
        }
    }

    /// Marks a byte as the target of a copy in flight; `changes` says whether the copy alters it. Returns what is
    /// wrong with a write at this point.
    pub(crate) fn begin_copy(
        &mut self,
        at: usize,
        stamp: Stamp,
        changes: bool,
        clocks: &Clocks,
    ) -> Option<Problem> {
        let misuse = self.misuse(at, stamp.warp.into(), false, clocks);
        let race = || {
            changes
                .then(|| self.against_past(at, &stamp, clocks))
                .flatten()
        };
        let problem = misuse.or_else(race);
        self.bytes[at].pending = Some(stamp.site);
        problem
    }

    /// The copy is complete.
    pub(crate) fn end_copy(&mut self, at: usize) {
        if let Some(byte) = self.bytes.get_mut(at) {
            byte.pending = None;
        }
    }
}

/// Adds an access into an earlier one of the same kind by the same warp.
fn merge(past: &mut Stamp, stamp: Stamp) {
    let lane = if past.tick == stamp.tick && past.lane != stamp.lane {
        MANY
    } else {
        stamp.lane
    };
    *past = Stamp { lane, ..stamp };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::knowledge::Knowledge;

    fn stamp(clocks: &Clocks, kind: Kind, warp: u16, lane: u8, sequence: u32) -> Stamp {
        Stamp {
            warp,
            lane,
            kind,
            tick: clocks.tick(warp.into()),
            site: 0,
            sequence,
        }
    }

    fn barrier(clocks: &mut Clocks, warps: &[usize]) {
        let all: Vec<Knowledge> = warps.iter().map(|&w| clocks.known(w).clone()).collect();
        for &warp in warps {
            for vector in &all {
                clocks.learn(warp, vector);
            }
            clocks.meet(warp);
        }
    }

    #[test]
    fn a_barrier_orders_and_its_absence_races() {
        let mut clocks = Clocks::new(2, false);
        let mut shadow = Shadow::new(4);
        assert_eq!(
            shadow.read(0, stamp(&clocks, Kind::Read, 0, 0, 0), &clocks),
            Some(Problem::Uninitialized)
        );
        let write = stamp(&clocks, Kind::Write, 0, 0, 1);
        assert_eq!(shadow.write(1, write, true, &clocks), None);
        assert_eq!(
            shadow.read(1, stamp(&clocks, Kind::Read, 1, 3, 2), &clocks),
            Some(Problem::WithWrite(write))
        );
        assert_eq!(
            shadow.write(2, stamp(&clocks, Kind::Write, 0, 0, 3), true, &clocks),
            None
        );
        barrier(&mut clocks, &[0, 1]);
        assert_eq!(
            shadow.read(2, stamp(&clocks, Kind::Read, 1, 3, 4), &clocks),
            None
        );
        let Some(Problem::WithRead(reader)) =
            shadow.write(2, stamp(&clocks, Kind::Write, 0, 0, 5), true, &clocks)
        else {
            panic!("a write after an unordered read must race");
        };
        assert_eq!((reader.warp, reader.lane), (1, 3));
    }

    #[test]
    fn lanes_of_a_warp_are_ordered_by_meetings_or_lockstep() {
        for lockstep in [false, true] {
            let mut clocks = Clocks::new(1, lockstep);
            let mut shadow = Shadow::new(1);
            shadow.write(0, stamp(&clocks, Kind::Write, 0, 0, 0), true, &clocks);
            let problem = shadow.read(0, stamp(&clocks, Kind::Read, 0, 1, 1), &clocks);
            assert_eq!(problem.is_some(), !lockstep);
            clocks.meet(0);
            assert_eq!(
                shadow.write(0, stamp(&clocks, Kind::Write, 0, 2, 2), true, &clocks),
                None
            );
            let same_instruction =
                shadow.write(0, stamp(&clocks, Kind::Write, 0, 3, 2), true, &clocks);
            assert!(matches!(same_instruction, Some(Problem::WithWrite(_))));
        }
    }

    #[test]
    fn a_lane_that_arrives_hands_on_what_lanes_did_before_they_met() {
        let mut clocks = Clocks::new(2, false);
        let mut shadow = Shadow::new(3);
        let mut write = |clocks: &Clocks, at: usize, lane: u8| {
            let stamp = stamp(clocks, Kind::Write, 0, lane, at as u32);
            assert_eq!(shadow.write(at, stamp, true, clocks), None);
        };
        write(&clocks, 0, 5);
        clocks.meet(0);
        write(&clocks, 1, 5);
        write(&clocks, 2, 0);
        let arrival = clocks.arriving(0, Some(0));
        clocks.waited(1, &arrival);
        let mut read = |at: usize| shadow.read(at, stamp(&clocks, Kind::Read, 1, 3, 9), &clocks);
        assert_eq!((read(0), read(2)), (None, None));
        assert!(matches!(read(1), Some(Problem::WithWrite(_))));
    }

    #[test]
    fn the_engine_sees_only_what_is_fenced_and_is_seen_by_who_waits() {
        let mut clocks = Clocks::new(2, false);
        let mut shadow = Shadow::new(2);
        let engine = clocks.engine();
        let write = stamp(&clocks, Kind::Write, 0, 0, 0);
        shadow.write(0, write, true, &clocks);
        barrier(&mut clocks, &[0, 1]);
        clocks.begin_copy(1);
        let copy = stamp(&clocks, Kind::Read, engine as u16, 0, 1);
        assert_eq!(
            shadow.read(0, copy, &clocks),
            Some(Problem::Unfenced(write))
        );
        clocks.fence(1);
        clocks.begin_copy(1);
        let copy = stamp(&clocks, Kind::Read, engine as u16, 0, 2);
        assert_eq!(shadow.read(0, copy, &clocks), None);
        // The copy that reads has not been waited for.
        let rewrite = stamp(&clocks, Kind::Write, 0, 0, 3);
        assert!(matches!(
            shadow.write(0, rewrite, true, &clocks),
            Some(Problem::WithRead(_))
        ));
        clocks.begin_copy(1);
        let copy = stamp(&clocks, Kind::Write, engine as u16, 0, 4);
        shadow.write(1, copy, true, &clocks);
        let read = stamp(&clocks, Kind::Read, 0, 0, 5);
        assert_eq!(
            shadow.read(1, read, &clocks),
            Some(Problem::WithWrite(copy))
        );
        let arrived = clocks.latest_copy();
        clocks.learn(0, &arrived);
        assert_eq!(shadow.read(1, read, &clocks), None);
    }

    #[test]
    fn an_update_hides_neither_the_write_before_it_nor_other_updates() {
        let clocks = Clocks::new(3, true);
        let mut shadow = Shadow::new(1);
        let cleared = stamp(&clocks, Kind::Write, 0, 0, 0);
        assert_eq!(shadow.write(0, cleared, true, &clocks), None);
        let mut update = |warp: u16, sequence: u32| {
            let read = stamp(&clocks, Kind::AtomicRead, warp, 0, sequence);
            let write = stamp(&clocks, Kind::AtomicWrite, warp, 0, sequence);
            let problem = shadow.read(0, read, &clocks);
            problem.or(shadow.write(0, write, true, &clocks))
        };
        assert_eq!(update(0, 1), None);
        assert_eq!(update(1, 2), Some(Problem::WithWrite(cleared)));
        assert_eq!(update(0, 3), None);
        // The last update is by the same warp as the read; an earlier one is not.
        let read = stamp(&clocks, Kind::Read, 0, 0, 4);
        let Some(Problem::WithWrite(other)) = shadow.read(0, read, &clocks) else {
            panic!("a read races with an update");
        };
        assert_eq!((other.warp, other.kind), (1, Kind::AtomicWrite));
    }

    #[test]
    fn a_copy_comes_after_the_reads_before_it_when_it_is_issued() {
        let mut clocks = Clocks::new(2, true);
        let mut shadow = Shadow::new(1);
        let write = stamp(&clocks, Kind::Write, 0, 0, 0);
        shadow.write(0, write, true, &clocks);
        barrier(&mut clocks, &[0, 1]);
        let read = stamp(&clocks, Kind::Read, 1, 0, 1);
        assert_eq!(shadow.read(0, read, &clocks), None);
        let copy = stamp(&clocks, Kind::Write, 0, 0, 2);
        assert_eq!(
            shadow.begin_copy(0, copy, true, &clocks),
            Some(Problem::WithRead(read))
        );
        barrier(&mut clocks, &[0, 1]);
        let copy = stamp(&clocks, Kind::Write, 0, 0, 3);
        assert_eq!(shadow.begin_copy(0, copy, true, &clocks), None);
        let read = stamp(&clocks, Kind::Read, 0, 0, 4);
        assert_eq!(
            shadow.read(0, read, &clocks),
            Some(Problem::Pending(copy.site))
        );
    }
}
