//! The order of accesses to shared memory: vector clocks of warps, and of the engine that performs bulk copies.
//!
//! Order is *happens-before*, kept with vector clocks as in FastTrack (Flanagan and Freund, PLDI 2009). Every warp
//! has a clock, and a vector of the other clocks' ticks that it knows of. A barrier joins the vectors of all
//! participants, and each of them advances to its next tick. An access is stamped with the warp, the lane and the
//! warp's tick. An earlier access is ordered before a later one by warp `w` if
//!
//! - another warp did it, and `w` knows of that tick (through a barrier, or an mbarrier it waited for), or
//! - the same warp did it, and either the same lane, or a tick before the latest meeting of the lanes, or the hardware runs
//!   warps in lockstep (AMD), where only lanes of one and the same instruction are unordered.
//!
//! Lanes meet at barriers of the warp and of the block, which are ticks. Other instructions of a whole warp, such as
//! shuffles, synchronise its lanes but order no memory (PTX ISA, "bar.warp.sync", and nothing of the kind elsewhere). So where a
//! single lane arrives at an mbarrier, it hands on what its warp knew when the lanes met, and what it did itself since then.
//!
//! One more clock, after the last warp's, belongs to the engine that performs bulk copies. Each of its copies has its
//! own tick, and knows what the thread that issued it knew; a thread that waits for a copy learns of that tick, and
//! of no other: copies complete in any order.
//!
//! On AMD a barrier orders no memory by itself: a warp brings to it what it knew at its latest release, a fence or a
//! wait for its accesses of shared memory, and it learns what the others brought at its next acquire.
//!
//! # Proxies
//!
//! The engine reaches memory through the *async proxy*, threads through the *generic proxy* (PTX ISA, "Proxies").
//! Order alone does not make a thread's write visible to the engine: a proxy fence must come between them, by any
//! thread in the chain that orders the two. Besides the *known* ticks, each warp therefore has the *fenced* ticks:
//! those known to be followed by a fence. Barriers pass on both. A write that is known but not fenced is a separate
//! kind of problem. Warp-group products read the data of `cp.async` copies without a fence; all libraries that use
//! the two together rely on this.
//!
//! A read is *performed* some time after it is issued, and a barrier of the block does not wait for it: what other threads
//! write afterwards still comes later, since all threads reach shared memory in order, but a write of the engine may
//! overtake the read. Which instruction waits for the data is up to the assembler, which may move it past the barrier. So
//! the reader itself must execute a proxy fence before the barrier, or the engine's issuer must have waited for an mbarrier at which
//! the reader has arrived: such an arrival is itself an access of shared memory, after the read. Libraries give the buffers of a ring
//! back to its producer this way, without a fence. Each warp has the ticks of reads that it knows to be *performed*.

use std::ops::Range;

use crate::machine::bytecode::{Fence, SiteId};
use crate::memory::knowledge::Knowledge;
use crate::memory::lives::Event;
use crate::memory::ticks::Ticks;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    /// The write of a copy that a thread has issued (`cp.async`).
    CopiedWrite,
    /// The read of a warp-group product.
    ProductRead,
}

impl Kind {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite | Self::CopiedWrite)
    }

    pub(crate) fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicRead | Self::AtomicWrite)
    }

    /// Whether two such accesses must be ordered.
    pub(crate) fn conflicts(self, other: Self) -> bool {
        (self.writes() || other.writes()) && !(self.is_atomic() && other.is_atomic())
    }
}

/// An access in a byte's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) warp: u16,
    pub(crate) lane: u8,
    pub(crate) kind: Kind,
    pub(crate) tick: u32,
    pub(crate) site: SiteId,
    /// Number of the instruction among the block's accesses.
    pub(crate) sequence: u32,
}

/// Vector clocks of the block.
pub(crate) struct Clocks {
    /// Those of the warps, then the engine's; the engine's own entry is what the issuer of its copy knew of earlier
    /// copies.
    vectors: Vec<Knowledge>,
    /// Warps of a block; the blocks of a cluster are executed as one.
    warps_per_block: usize,
    lockstep: bool,
    /// For each warp, the tick that began when its lanes last met.
    met: Vec<u32>,
    /// The number of copies that the engine has performed.
    copies: u32,
    /// Where barriers order no memory by themselves: what each warp has released, and what barriers have offered it since
    /// its latest acquire.
    by_fences: Option<Vec<[Knowledge; 2]>>,
}

impl Clocks {
    pub(crate) fn new(warps: usize, lockstep: bool) -> Self {
        let vectors = (0..=warps)
            .map(|w| {
                let mut knowledge = Knowledge::of(warps);
                if let Some(own) = knowledge.known.get_mut(w) {
                    *own = 1;
                }
                knowledge
            })
            .collect();
        Self {
            vectors,
            warps_per_block: warps.max(1),
            lockstep,
            met: vec![1; warps],
            copies: 0,
            by_fences: None,
        }
    }

    /// The same where barriers order memory only together with fences.
    pub(crate) fn ordered_by_fences(self) -> Self {
        let none = || [(); 2].map(|()| Knowledge::of(self.engine()));
        let by_fences = Some((0..self.engine()).map(|_| none()).collect());
        Self { by_fences, ..self }
    }

    /// The same for blocks of that many warps.
    pub(crate) fn of_blocks(self, warps_per_block: usize) -> Self {
        Self {
            warps_per_block: warps_per_block.max(1),
            ..self
        }
    }

    /// The warps of the block that a warp is in.
    pub(crate) fn block_of(&self, warp: usize) -> Range<usize> {
        let first = warp / self.warps_per_block * self.warps_per_block;
        first..(first + self.warps_per_block).min(self.engine())
    }

    /// The index of the engine's clock.
    pub(crate) fn engine(&self) -> usize {
        self.vectors.len() - 1
    }

    /// The current tick of a warp, or of the engine.
    pub(crate) fn tick(&self, warp: usize) -> u32 {
        if warp == self.engine() {
            self.copies
        } else {
            self.vectors[warp].known[warp]
        }
    }

    /// The warp comes to its next tick.
    pub(crate) fn advance(&mut self, warp: usize) {
        self.vectors[warp].known[warp] += 1;
    }

    /// The lanes of a warp meet.
    pub(crate) fn meet(&mut self, warp: usize) {
        self.advance(warp);
        self.met[warp] = self.vectors[warp].known[warp];
    }

    /// The knowledge that a warp brings to a barrier.
    pub(crate) fn brought(&self, warp: usize) -> &Knowledge {
        match &self.by_fences {
            Some(all) => &all[warp][0],
            None => &self.vectors[warp],
        }
    }

    /// A barrier gives a warp this knowledge.
    pub(crate) fn given(&mut self, warp: usize, from: &Knowledge) {
        match &mut self.by_fences {
            Some(all) => all[warp][1].join(from),
            None => self.learn(warp, from),
        }
    }

    /// A fence of a warp.
    pub(crate) fn order(&mut self, warp: usize, fence: Fence) {
        let Some(all) = &mut self.by_fences else {
            return;
        };
        if fence.acquires {
            let offered = std::mem::take(&mut all[warp][1]);
            self.vectors[warp].join(&offered);
        }
        if fence.releases {
            all[warp][0] = self.vectors[warp].clone();
            // Later accesses of the warp come after the fence.
            self.advance(warp);
        }
    }

    /// The knowledge of the warp.
    pub(crate) fn known(&self, warp: usize) -> &Knowledge {
        &self.vectors[warp]
    }

    /// Adds knowledge to the warp's.
    pub(crate) fn learn(&mut self, warp: usize, from: &Knowledge) {
        self.vectors[warp].join(from);
    }

    /// The knowledge that a warp, or one lane of it, brings to an mbarrier: its reads are performed once the arrival is.
    pub(crate) fn arriving(&self, warp: usize, lane: Option<usize>) -> Knowledge {
        let mut knowledge = self.vectors[warp].clone();
        let now = knowledge.known[warp];
        knowledge.performed[warp] = now;
        if let Some(lane) = lane.filter(|_| !self.lockstep) {
            knowledge.known[warp] = self.met[warp] - 1;
            knowledge.lanes.insert((warp as u16, lane as u8), now);
        }
        knowledge
    }

    /// All lanes of a warp have waited at an mbarrier, where this is known.
    pub(crate) fn waited(&mut self, warp: usize, known: &Knowledge) {
        // Where all lanes have arrived themselves, they have met.
        let own = known.known.get(warp).map_or(0, |own| own + 1);
        self.met[warp] = self.met[warp].max(own.min(self.tick(warp)));
        self.learn(warp, known);
    }

    /// A proxy fence of the warp: all that it knows of becomes visible to the engine, and its own reads are performed.
    pub(crate) fn fence(&mut self, warp: usize) {
        let Knowledge {
            known,
            fenced,
            performed,
            ..
        } = &mut self.vectors[warp];
        fenced.clone_from(known);
        performed[warp] = known[warp];
        // Later accesses of the warp come after the fence.
        self.advance(warp);
    }

    /// The engine begins a copy that a warp has issued.
    pub(crate) fn begin_copy(&mut self, issuer: usize) {
        let engine = self.engine();
        self.vectors[engine] = self.vectors[issuer].clone();
        self.copies += 1;
    }

    /// The knowledge that waiting for the engine's latest copy gives.
    pub(crate) fn latest_copy(&self) -> Knowledge {
        self.copies(&[self.copies])
    }

    /// The knowledge that waiting for copies, given by their ticks, gives.
    pub(crate) fn copies(&self, ticks: &[u32]) -> Knowledge {
        let mut knowledge = Knowledge::of(self.engine());
        knowledge.copies = Ticks::of(ticks.iter().copied());
        knowledge
    }

    /// Whether the stamped access comes before anything `warp` does in `lane` from now on.
    pub(crate) fn before(&self, stamp: &Stamp, warp: usize, lane: u8, sequence: u32) -> bool {
        if usize::from(stamp.warp) == self.engine() {
            return self.vectors[warp].copies.contains(stamp.tick);
        }
        if usize::from(stamp.warp) != warp {
            return self.vectors[warp].includes(stamp.warp, stamp.lane, stamp.tick);
        }
        if stamp.lane == lane {
            return true;
        }
        if self.lockstep {
            return stamp.sequence != sequence;
        }
        stamp.tick < self.met[warp]
    }

    /// Whether an event applies to a warp or the engine, and is known to it. Events do not apply to warps of another
    /// block: the blocks of a cluster may have synchronised before the latest event, which the others cannot know of
    /// then.
    pub(crate) fn knows(&self, who: usize, event: &Event) -> bool {
        let warp = usize::from(event.warp);
        let is_one_block = self.engine() <= self.warps_per_block;
        let is_of_the_block = match who == self.engine() {
            true => is_one_block,
            false => who / self.warps_per_block == warp / self.warps_per_block,
        };
        let knowledge = &self.vectors[who];
        let mut lanes = knowledge.lanes.iter();
        let of_lane =
            |((of, _), tick): (&(u16, u8), &u32)| *of == event.warp && *tick >= event.tick;
        is_of_the_block
            && (who == warp || knowledge.known[warp] >= event.tick || lanes.any(of_lane))
    }

    /// Whether the engine, for the copy it performs, sees the data that the stamped access wrote.
    fn visible_to_engine(&self, stamp: &Stamp) -> bool {
        let engine = self.engine();
        let warp = usize::from(stamp.warp);
        warp == engine || self.vectors[engine].fenced[warp] >= stamp.tick
    }

    /// Whether the read has been performed before the engine's copy begins.
    fn performed_before_copy(&self, read: &Stamp) -> bool {
        let (engine, warp) = (self.engine(), usize::from(read.warp));
        warp == engine || self.vectors[engine].performed[warp] >= read.tick
    }

    /// Whether an access sees the data of a past one that is ordered before it, or leaves it what it reads: the engine does not
    /// unless something makes it wait.
    pub(crate) fn sees(&self, past: &Stamp, access: &Stamp) -> bool {
        usize::from(access.warp) != self.engine()
            || match past.kind {
                Kind::CopiedWrite if access.kind == Kind::ProductRead => true,
                Kind::Write | Kind::AtomicWrite | Kind::CopiedWrite => self.visible_to_engine(past),
                Kind::Read => self.performed_before_copy(past),
                // Mbarriers are not copied, and a product has been waited for.
                Kind::AtomicRead | Kind::ProductRead => true,
            }
    }
}
