//! Points of a program, and their accesses to shared memory.

use std::ops::Range;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// It reads.
    Read,
    /// It writes, or both.
    Write,
    /// It starts a copy that writes at some later time, and does not wait for it.
    Copy,
    /// It waits for copies: the warp that waited sees what they wrote.
    Arrival,
    /// It starts a copy for which every reader waits itself, at a transaction barrier.
    BulkCopy,
    /// It starts a copy that reads at some later time.
    BulkRead,
    /// It starts a product that reads at some later time.
    ProductRead,
    /// It is a wait after which such a copy is known to be complete. It reads nothing itself.
    BulkReadEnd,
    /// One thread initialises a barrier in memory.
    Begin,
    /// It arrives or waits at a barrier in memory, which orders such accesses by itself.
    Signal,
    /// The same, if each of several warps waits.
    Await,
    /// One thread arrives at a barrier in memory on behalf of several warps, while other partitions run.
    Release,
    /// The thread that initialises barriers releases the memory of one.
    End,
    /// It signals to a reader outside of the block that everything before is complete.
    Publish,
}

impl AccessKind {
    /// Whether a warp that does `later` must know that the others have done `self`, if both touch
    /// the same bytes.
    ///
    /// A copy must not overwrite data that are still being read. What it wrote is visible to another warp only if
    /// that warp synchronises after the arrival. Copies are not ordered among themselves, and a correct program reads
    /// only what has arrived. Where every warp waits for the copy itself, no barrier between warps is needed.
    ///
    /// A barrier in memory exists for another warp only after its initialisation; it must not be released while
    /// another warp uses it. One thread arrives on behalf of all only after all have waited: what it allows other partitions
    /// to do may otherwise complete two phases before a warp has seen one, and that warp would wait for a third.
    pub(super) fn precedes(self, later: Self) -> bool {
        use AccessKind::{
            Arrival, Await, Begin, BulkCopy, BulkRead, BulkReadEnd, Copy, End, ProductRead,
            Publish, Read, Release, Signal, Write,
        };
        match (self, later) {
            (Read | BulkRead | ProductRead | BulkReadEnd | Write | Copy | Arrival, Publish) => true,
            (Await, Release) => true,
            (_, Publish | Release) | (Publish | Release, _) => false,
            (Begin | End, Begin | End) | (Signal | Await, Signal | Await) => false,
            (Begin | Signal | Await | End, _) | (_, Begin | Signal | Await | End) => true,
            // What the copy reads was written before it began.
            (_, BulkReadEnd) => false,
            (
                Read | BulkRead | ProductRead | BulkReadEnd,
                Read | BulkRead | ProductRead | Arrival,
            ) => false,
            (Read | BulkRead | ProductRead | BulkReadEnd, Write | Copy | BulkCopy) => true,
            (Write, _) => true,
            (Copy, Write) => true,
            (Copy, Read | BulkRead | ProductRead | Copy | BulkCopy | Arrival) => false,
            (BulkCopy, _) => false,
            (Arrival, Read | BulkRead | ProductRead | Write) => true,
            (Arrival, Copy | BulkCopy | Arrival) => false,
        }
    }

    /// Whether the same is true only if the two belong to different buffers that share memory.
    ///
    /// A thread that has waited for its copies may start others to the same buffer: it writes the same bytes. In
    /// another buffer it writes those of other threads, whose copies have perhaps not arrived, even if nobody reads
    /// them (copies beyond the last iteration write zeros).
    fn precedes_in_another_buffer(self, later: Self) -> bool {
        matches!((self, later), (Self::Arrival, Self::Copy | Self::BulkCopy))
    }

    /// Whether it is a write by threads.
    pub(super) fn is_written_by_threads(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Copy
                | Self::Arrival
                | Self::Begin
                | Self::Signal
                | Self::Await
                | Self::End
        )
    }

    /// Whether it is an access by an asynchronous copy unit, which sees what threads wrote only after a fence.
    pub(super) fn is_by_copy_unit(self) -> bool {
        matches!(self, Self::BulkCopy | Self::BulkRead | Self::ProductRead)
    }

    /// Whether, as a write of threads, it needs a fence before a `later` access of the copy unit to the same bytes.
    ///
    /// Products see the data of `cp.async` once these have arrived; libraries that feed products this way rely on it.
    pub(super) fn needs_fence_before(self, later: Self) -> bool {
        match self {
            Self::Copy | Self::Arrival => later != Self::ProductRead,
            _ => true,
        }
    }
}

/// Which buffer of a ring an access is to, where a loop takes them in turn: in its iteration `t` the one with the number
/// `place + step * t` modulo `count`, but for a number that all accesses of the loop have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// The node at which the loop is entered.
    pub entry: usize,
    /// The number of buffers.
    pub count: u32,
    /// Buffers by which the loop advances in each iteration.
    pub step: u32,
    /// The place in the order of turns.
    pub place: u32,
}

impl Turn {
    /// The same buffer, as the next iteration counts.
    pub(super) fn in_next_iteration(self) -> Self {
        Self {
            place: (self.place + self.count - self.step % self.count) % self.count,
            ..self
        }
    }

    /// Whether it is another buffer in the same iteration.
    fn is_apart(self, other: Self) -> bool {
        let own = Self {
            place: self.place,
            ..other
        };
        self == own && self.place != other.place
    }
}

/// An access to shared memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// First byte of what it may touch.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// If each warp has its own part of the bytes, a number for the way in which they are divided.
    pub by_warp: Option<u64>,
    /// If the bytes are those of a ring, and only one buffer of it is accessed: which.
    pub turn: Option<Turn>,
}

impl Access {
    /// An access to a range of bytes.
    pub fn new(kind: AccessKind, bytes: Range<u64>) -> Self {
        Self {
            kind,
            start: bytes.start,
            end: bytes.end,
            by_warp: None,
            turn: None,
        }
    }

    /// An access in which each warp touches its own part of the bytes, divided as in all accesses with the same
    /// `parts`.
    pub fn by_warp(kind: AccessKind, bytes: Range<u64>, parts: u64) -> Self {
        Self {
            by_warp: Some(parts),
            ..Self::new(kind, bytes)
        }
    }

    /// Whether this access must have happened in all warps before a `later` one in any, if both count buffers in turn as
    /// the same iteration does. Accesses that divide the same bytes among the warps in the same way do not conflict.
    pub fn precedes(&self, later: &Self) -> bool {
        let same_bytes = (self.start, self.end) == (later.start, later.end);
        let same_parts = self.by_warp.is_some() && self.by_warp == later.by_warp && same_bytes;
        let in_turn = match (self.turn, later.turn) {
            (Some(own), Some(other)) => same_bytes && own.is_apart(other),
            _ => false,
        };
        let is_ordered = self.kind.precedes(later.kind)
            || !same_bytes && self.kind.precedes_in_another_buffer(later.kind);
        self.overlaps(later) && !same_parts && !in_turn && is_ordered
    }

    /// Whether the two may touch the same byte.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Whether a node is a cluster barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBarrier {
    /// It is not.
    #[default]
    Never,
    /// It is: all blocks have done what comes before it when any does what comes after it.
    Always,
    /// It is if necessary, since the node writes to the memory of other blocks.
    IfNeeded,
}

/// A point of the program: an op, or one part of its execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// What it accesses.
    pub accesses: Vec<Access>,
    /// The nodes that may come next.
    pub successors: Vec<usize>,
    /// Whether it is itself a barrier, which comes before its accesses.
    pub is_barrier: bool,
    /// Whether it makes what threads have written visible to the asynchronous copy unit.
    pub is_fence: bool,
    /// Whether there is a cluster barrier before its accesses; that is a barrier of the block as well.
    pub cluster_barrier: ClusterBarrier,
    /// The node at which the innermost loop around this one is entered (it lies outside that loop,
    /// every path into the loop passes it, and no path from inside comes back to it without leaving
    /// all of the loop).
    pub entry: Option<usize>,
}
