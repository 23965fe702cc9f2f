//! Barriers that count arrivals and bytes, and the warps that wait at them.
//!
//! A thread that waits at a transaction barrier polls it repeatedly. Polling changes nothing, so once all remaining
//! warps only poll without success or wait at barriers of the block, and have done so since the last change of a
//! transaction barrier, they will do so for ever: the phase that they wait for cannot complete ([`Polls`]).

use std::collections::BTreeMap;

use crate::machine::bytecode::SiteId;
use crate::memory::knowledge::Knowledge;

/// A barrier in shared memory that counts arrivals and bytes (PTX `mbarrier`).
#[derive(Clone, Debug)]
pub(crate) struct TransactionBarrier {
    /// Arrivals of a phase.
    pub(crate) expected: u64,
    /// Arrivals that the current phase still needs.
    pub(crate) pending: i64,
    /// Bytes announced and not yet arrived.
    pub(crate) bytes: i64,
    /// Number of completed phases.
    pub(crate) phase: u64,
    /// The joined knowledge of the threads that arrived in this phase.
    pub(crate) known: Knowledge,
    /// The knowledge that a wait for a completed phase gives.
    pub(crate) taught: Knowledge,
}

impl TransactionBarrier {
    pub(crate) fn new(expected: u64) -> Self {
        Self {
            expected,
            pending: expected as i64,
            bytes: 0,
            phase: 0,
            known: Knowledge::default(),
            taught: Knowledge::default(),
        }
    }

    /// Bytes have arrived; a waiting thread learns this knowledge.
    pub(crate) fn deliver(&mut self, bytes: u64, arrived: &Knowledge) {
        self.known.join(arrived);
        self.bytes -= bytes as i64;
        self.settle();
    }

    /// Completes the phase if nothing is missing.
    pub(crate) fn settle(&mut self) {
        if self.pending <= 0 && self.bytes == 0 {
            self.phase += 1;
            self.pending = self.expected as i64;
            self.taught.join(&self.known);
        }
    }
}

/// The number of polls without success after which a warp is taken to do nothing but poll.
const IN_VAIN: u64 = 1 << 12;

/// A warp's polls of a phase of a transaction barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Poll {
    /// Those without success since the last change.
    pub(crate) count: u64,
    pub(crate) place: u64,
    pub(crate) lane: usize,
    pub(crate) site: SiteId,
}

/// The warps that poll without success since the last change of a transaction barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Polls {
    /// By the number of the warp.
    by_warp: BTreeMap<usize, Poll>,
    /// The number of changes.
    pub(crate) events: u64,
}

impl Polls {
    /// A transaction barrier has changed: warps that polled without success may succeed now.
    pub(crate) fn begin_anew(&mut self) {
        self.by_warp.clear();
        self.events += 1;
    }

    pub(crate) fn in_vain(&mut self, warp: usize, lane: usize, place: u64, site: SiteId) {
        let poll = self.by_warp.entry(warp).or_default();
        *poll = Poll {
            count: poll.count + 1,
            place,
            lane,
            site,
        };
    }

    /// A poll of a warp succeeded.
    pub(crate) fn answered(&mut self, warp: usize) {
        self.by_warp.remove(&warp);
    }

    /// The number of polls of a warp without success.
    pub(crate) fn count(&self, warp: usize) -> u64 {
        self.by_warp.get(&warp).map_or(0, |poll| poll.count)
    }

    /// Whether a warp only polls; `before` is its number of polls before its latest turn.
    pub(crate) fn only_asks(&self, warp: usize, before: u64) -> bool {
        let count = self.count(warp);
        count > before && count >= IN_VAIN
    }

    /// The warps that only poll.
    pub(crate) fn without_end(&self) -> impl Iterator<Item = (usize, &Poll)> {
        let polls = self.by_warp.iter().map(|(&warp, poll)| (warp, poll));
        polls.filter(|(_, poll)| poll.count >= IN_VAIN)
    }
}
