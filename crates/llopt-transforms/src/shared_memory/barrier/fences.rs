//! Where fences belong between the accesses of threads and those of the asynchronous copy unit.
//!
//! The copy unit reaches shared memory by another way than threads do (PTX ISA, "Async proxy"), which barriers do not order:
//!
//! - *Writes.* It sees what threads have written only after a fence. Whether that comes before or after the barriers in
//!   between does not matter.
//! - *Reads.* A barrier does not wait for the data of a read that has been issued. The accesses of threads are performed in
//!   the order in which they are issued, but a write of the copy unit may overtake them. Only a fence of the reading thread
//!   waits for them, so it comes before the last barrier between the read and the copy: behind that barrier some thread
//!   issues the copy, or tells another partition of warps that it may. A warp that arrives at a barrier in
//!   memory for itself needs none: the arrival is an access of the same thread, performed after the reads.
//!
//! Fences for reads are therefore found in two steps. A *gate* is a barrier with what lies ahead of it before the next one:
//! copies into shared memory, and arrivals of one thread on behalf of others. Then fences are cuts between reads
//! and the gates behind which their bytes are overwritten.

use std::collections::BTreeSet;

use super::node::{Access, AccessKind};
use super::placement::Graph;
use super::separation::{Separation, Terms};

impl Graph {
    /// The nodes before which a fence belongs, so that the asynchronous copy unit sees what threads have written, and
    /// overwrites nothing that they have still to read: a sufficient set, in program order, in which none for a write
    /// and none for a read is redundant. With `after_unknown` all bytes may have been written and read before the first
    /// node. A barrier before the same node comes after the fence.
    pub fn fences(&self, after_unknown: bool) -> Vec<usize> {
        let mut fences = self.cuts(&Self::write_terms(after_unknown));
        fences.extend(self.gated(&fences).cuts(&Self::read_terms(after_unknown)));
        fences.sort_unstable();
        fences.dedup();
        fences
    }

    pub(super) fn write_terms(after_unknown: bool) -> Terms {
        Terms {
            is_cut: |node| node.is_fence,
            is_left: |access| access.kind.is_written_by_threads(),
            meets: |access| access.kind.is_by_copy_unit(),
            conflict: |before, access| {
                before.is_none_or(|before| {
                    before.overlaps(access) && before.kind.needs_fence_before(access.kind)
                })
            },
            after_unknown,
        }
    }

    /// The problem of reads on a graph of gates.
    fn read_terms(after_unknown: bool) -> Terms {
        Terms {
            is_cut: |node| node.is_fence,
            is_left: |access| access.kind == AccessKind::Read,
            meets: |access| access.kind != AccessKind::Read,
            conflict: |before, access| before.is_none_or(|before| before.overlaps(access)),
            after_unknown,
        }
    }

    /// The graph with reads as its only accesses, except that barriers access what may be overwritten behind them before the
    /// next barrier.
    fn gated(&self, fences: &[usize]) -> Self {
        let mut nodes = self.nodes.clone();
        for barrier in self.barriers() {
            nodes[barrier].is_barrier = true;
        }
        let overwrites = Terms {
            is_cut: |node| node.is_barrier,
            is_left: |_| false,
            meets: |access| matches!(access.kind, AccessKind::BulkCopy | AccessKind::Release),
            conflict: |_, _| false,
            after_unknown: false,
        };
        let accesses = self.nodes.iter().flat_map(|node| &node.accesses);
        let copies: BTreeSet<&Access> = accesses
            .filter(|access| access.kind == AccessKind::BulkCopy)
            .collect();
        let ahead = match copies.is_empty() {
            false => Separation::of(&nodes, &overwrites).accesses_ahead(),
            true => vec![Vec::new(); nodes.len()],
        };
        for (node, ahead) in nodes.iter_mut().zip(ahead) {
            node.accesses
                .retain(|access| access.kind == AccessKind::Read);
            if !node.is_barrier {
                continue;
            }
            // Which partition copies where, once it may, is not known here.
            let (arrivals, own): (Vec<Access>, Vec<Access>) = ahead
                .into_iter()
                .partition(|access| access.kind == AccessKind::Release);
            match arrivals.is_empty() {
                true => node.accesses.extend(own),
                false => node.accesses.extend(copies.iter().copied().cloned()),
            }
        }
        for &fence in fences {
            nodes[fence].is_fence = true;
        }
        Self { nodes }
    }
}
