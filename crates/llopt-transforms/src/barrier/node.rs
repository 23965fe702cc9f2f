//! Points of a program, and what they access in shared memory.

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
    /// It waits for copies: what they wrote is there for the warp that waited.
    Arrival,
    /// It starts a copy whose arrival every reader waits for itself, at a barrier in memory.
    BulkCopy,
    /// It starts a copy that reads at some later time.
    BulkRead,
    /// It starts a product that reads at some later time.
    ProductRead,
    /// It knows such a copy to be complete. It reads nothing itself.
    BulkReadEnd,
    /// One thread makes a barrier in memory.
    Begin,
    /// It arrives or waits at a barrier in memory, which orders such accesses by itself.
    Signal,
    /// The thread that makes barriers gives the memory of one back.
    End,
    /// It tells someone outside of the block that all that came before is done.
    Publish,
}

impl AccessKind {
    /// Whether a warp that does `later` must know that the others have done `self`, if both touch
    /// the same bytes.
    ///
    /// A copy must not overwrite what is still being read. What it wrote is seen by another warp
    /// only if that one synchronises after the arrival. Copies are not ordered among themselves, and
    /// a correct program reads only what has arrived. Where every warp waits for the copy itself, it
    /// needs to know of no other warp.
    ///
    /// A barrier in memory exists for another warp only after its making; it must not vanish while
    /// another warp uses it.
    pub(super) fn precedes(self, later: Self) -> bool {
        use AccessKind::{
            Arrival, Begin, BulkCopy, BulkRead, BulkReadEnd, Copy, End, ProductRead, Publish, Read,
            Signal, Write,
        };
        match (self, later) {
            (Read | BulkRead | ProductRead | BulkReadEnd | Write | Copy | Arrival, Publish) => true,
            (_, Publish) | (Publish, _) => false,
            (Begin | End, Begin | End) | (Signal, Signal) => false,
            (Begin | Signal | End, _) | (_, Begin | Signal | End) => true,
            // What is read was written before the copy that reads it began.
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

    /// Whether threads write by it.
    pub(super) fn is_written_by_threads(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Copy | Self::Arrival | Self::Begin | Self::Signal | Self::End
        )
    }

    /// Whether a copy unit of its own accesses memory by it, which sees what threads wrote only after a
    /// fence.
    pub(super) fn is_by_copy_unit(self) -> bool {
        matches!(self, Self::BulkCopy | Self::BulkRead | Self::ProductRead)
    }

    /// Whether what it writes can be seen by a later access without a fence. What `cp.async` has brought, products see
    /// once it has arrived, as the libraries that feed products so rely on.
    pub(super) fn needs_no_fence_before(self, later: Self) -> bool {
        matches!(
            (self, later),
            (Self::Copy | Self::Arrival, Self::ProductRead)
        )
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
    /// If each warp has a part of the bytes to itself: which way of dividing them it is.
    pub by_warp: Option<u64>,
}

impl Access {
    /// An access to a range of bytes.
    pub fn new(kind: AccessKind, bytes: Range<u64>) -> Self {
        Self {
            kind,
            start: bytes.start,
            end: bytes.end,
            by_warp: None,
        }
    }

    /// An access in which each warp touches a part of the bytes of its own, divided as in all
    /// accesses with the same `parts`.
    pub fn by_warp(kind: AccessKind, bytes: Range<u64>, parts: u64) -> Self {
        Self {
            by_warp: Some(parts),
            ..Self::new(kind, bytes)
        }
    }

    /// Whether this access must have happened in all warps before a `later` one in any. Accesses
    /// that divide the same bytes among the warps in the same way do not meet.
    pub fn precedes(&self, later: &Self) -> bool {
        let same_parts = self.by_warp.is_some()
            && self.by_warp == later.by_warp
            && (self.start, self.end) == (later.start, later.end);
        self.overlaps(later) && !same_parts && self.kind.precedes(later.kind)
    }

    /// Whether the two may touch the same byte.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Whether the blocks of a cluster meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meeting {
    /// They do not.
    #[default]
    Never,
    /// They do: all have done what came before, when any does what comes after.
    Always,
    /// They do if need be, since the node writes to the memory of other blocks.
    IfNeeded,
}

/// A point of the program: an op, or one phase of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// What it accesses.
    pub accesses: Vec<Access>,
    /// The nodes that may come next.
    pub successors: Vec<usize>,
    /// Whether it is itself a barrier, which comes before its accesses.
    pub is_barrier: bool,
    /// Whether it makes what threads have written visible to the copy unit.
    pub is_fence: bool,
    /// Whether blocks meet, before its accesses; a meeting is a barrier as well.
    pub meeting: Meeting,
    /// The node at which the innermost loop around this one is entered (it lies outside that loop,
    /// every path into the loop passes it, and no path from inside comes back to it without leaving
    /// all of the loop).
    pub entry: Option<usize>,
}
