//! What happened to shared memory, and who knows of it: happens-before in a form that does not grow with time.
//!
//! Instead of clocks, each access carries how far its completion is known to each agent: not at all, to each thread of its
//! own part, or to all threads of the whole. Program order, barriers, waits and phases of transaction barriers extend that
//! knowledge exactly as they extend the happens-before order. An access disappears when a later one that is ordered
//! after it takes its place, so there are finitely many states.

use std::ops::Range;

/// Agents at most.
pub(super) const AGENTS: usize = 8;
/// Transaction barriers at most: bits of a mask.
const BARRIERS: usize = 128;

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Threads read.
    Read,
    /// Threads write.
    Write,
    /// Copies of single threads write.
    Copy,
    /// The unit that copies tiles writes.
    BulkWrite,
    /// The unit that copies tiles reads.
    BulkRead,
    /// A matrix unit reads.
    ProductRead,
    /// A transaction barrier is initialised.
    Begin,
    /// The memory of a transaction barrier is released, by the thread that initialises barriers.
    End,
    /// Threads wait for a phase of a transaction barrier.
    Wait,
}

impl Kind {
    fn is_read(self) -> bool {
        matches!(
            self,
            Self::Read | Self::BulkRead | Self::ProductRead | Self::Wait
        )
    }

    /// Whether it goes through the asynchronous proxy.
    fn is_asynchronous(self) -> bool {
        matches!(self, Self::BulkWrite | Self::BulkRead | Self::ProductRead)
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Read | Self::BulkRead | Self::ProductRead => "reads",
            Self::Write | Self::Copy | Self::BulkWrite => "overwrites",
            Self::Begin => "initialises",
            Self::End => "releases",
            Self::Wait => "waits at",
        }
    }
}

/// How far the completion of an access is known to an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// Not at all.
    #[default]
    Not,
    /// To each thread, of what that thread did.
    Part,
    /// To all threads, of everything.
    All,
}

/// How far a fact is known: to agents, and to those who wait for barriers.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    known: [Known; AGENTS],
    /// Barriers whose present phase is not complete before the fact holds.
    releasing: u128,
    /// Barriers whose last phase was complete only after it held.
    released: u128,
}

impl Spread {
    /// All threads of an agent meet.
    fn meet(&mut self, agent: usize) {
        if self.known[agent] == Known::Part {
            self.known[agent] = Known::All;
        }
    }

    /// The first agent starts the others.
    fn fork(&mut self, agents: usize) {
        let known = self.known[0];
        self.known[1..agents].fill(known);
    }

    /// The others end.
    fn join(&mut self, agents: usize) {
        let mut known = self.known[..agents].iter();
        if known.any(|known| *known != Known::Not) {
            self.known[0] = Known::All;
        }
        self.known[1..].fill(Known::Not);
    }

    /// A phase of a barrier is complete.
    fn finish(&mut self, bit: u128) {
        self.released &= !bit;
        self.released |= self.releasing & bit;
        self.releasing &= !bit;
    }

    /// An agent has waited for the last phase of a barrier: whether it learns of the fact.
    fn wait(&mut self, agent: usize, bit: u128) -> bool {
        let learns = self.released & bit != 0;
        if learns {
            self.known[agent] = Known::All;
        }
        learns
    }

    /// A barrier begins anew.
    fn forget(&mut self, bit: u128) {
        self.releasing &= !bit;
        self.released &= !bit;
    }

    /// Its part of the state, with so many agents: where all know the fact, no wait tells anyone of it.
    fn snapshot(&self, agents: usize, to: &mut Vec<i64>) {
        let is_known = self.known[..agents]
            .iter()
            .all(|known| *known == Known::All);
        for bits in [self.releasing, self.released] {
            let bits = if is_known { 0 } else { bits };
            to.extend([bits as i64, (bits >> 64) as i64]);
        }
        to.extend(self.known.iter().map(|known| *known as i64));
    }
}

/// Asynchronous work that an access is part of, until someone waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pending {
    /// None.
    No,
    /// A group of copies of single threads.
    Copies(u64),
    /// A product of warp groups.
    Product(u64),
    /// A copy from shared memory by the unit that copies tiles.
    Stores(u64),
    /// A copy that arrives at a transaction barrier.
    Phase,
}

/// An access.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) bytes: Range<u64>,
    pub(super) kind: Kind,
    pub(super) agent: usize,
    pub(super) place: usize,
    /// If each warp touches its own part of the bytes only, a number for the way in which they are divided.
    pub(super) parts: Option<usize>,
    pub(super) pending: Pending,
    /// That it comes before what follows.
    done: Spread,
    /// Of reads by threads: that their data have arrived, which takes a fence of the reader, or an arrival of the reading warp at a
    /// barrier in memory. Without it a copy of the unit that copies tiles may overtake the read.
    performed: Spread,
    fenced: bool,
    /// For waits: whether the next phase is not complete before all threads have waited.
    seen: bool,
    /// Whether lanes of a warp have done it that have not met since.
    by_lanes: bool,
}

impl Access {
    pub(super) fn new(bytes: Range<u64>, kind: Kind, agent: usize, place: usize) -> Self {
        let mut done = Spread::default();
        done.known[agent] = Known::Part;
        Self {
            bytes,
            kind,
            agent,
            place,
            parts: None,
            pending: Pending::No,
            done,
            performed: Spread::default(),
            fenced: false,
            seen: false,
            by_lanes: matches!(kind, Kind::Read | Kind::Write | Kind::Copy | Kind::Wait),
        }
    }

    pub(super) fn pending(mut self, pending: Pending) -> Self {
        self.pending = pending;
        self.done.known = [Known::Not; AGENTS];
        self
    }

    fn overlaps(&self, bytes: &Range<u64>) -> bool {
        self.bytes.start < bytes.end && bytes.start < self.bytes.end
    }
}

/// A transaction barrier.
#[derive(Clone, Debug)]
struct Barrier {
    start: u64,
    count: i64,
    completed: i64,
    arrived: i64,
    bytes: i64,
    /// The last phase that each agent knows to be complete.
    known: [i64; AGENTS],
}

/// In place of the address of a barrier that has ended: its number is free.
fn ended(index: usize) -> u64 {
    u64::MAX - index as u64
}

/// A missing order: the place of the other access if there is one, and what is missing.
#[derive(Clone, Debug)]
pub(super) struct Hazard {
    pub(super) other: Option<usize>,
    pub(super) text: String,
}

fn hazard<T>(other: Option<usize>, text: impl Into<String>) -> Result<T, Hazard> {
    Err(Hazard {
        other,
        text: text.into(),
    })
}

/// Shared memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    accesses: Vec<Access>,
    barriers: Vec<Barrier>,
    /// The agents, as bits, that are one warp.
    single_warps: u32,
}

impl Memory {
    /// Nothing has happened yet; the first agent has so many warps.
    pub(super) fn of(warps: i64) -> Self {
        Self {
            single_warps: (warps == 1).into(),
            ..Self::default()
        }
    }

    /// Checks an access against all that happened before, and remembers it.
    pub(super) fn access(&mut self, new: Access) -> Result<(), Hazard> {
        let verb = new.kind.verb();
        let mut written = !new.kind.is_read() || new.kind == Kind::Wait;
        for old in self.accesses.iter().filter(|old| old.overlaps(&new.bytes)) {
            written |= !old.kind.is_read();
            if old.kind.is_read() && new.kind.is_read() {
                continue;
            }
            if let Some(missing) = missing(old, &new) {
                let bytes = format!("{}..{}", old.bytes.start, old.bytes.end);
                return hazard(
                    Some(old.place),
                    format!("it {verb} bytes {bytes} of shared memory, {missing}"),
                );
            }
        }
        if !written {
            let Range { start, end } = new.bytes;
            return hazard(
                None,
                format!(
                    "it {verb} bytes {start}..{end} of shared memory, which nothing has written"
                ),
            );
        }
        self.remember(new);
        Ok(())
    }

    fn remember(&mut self, new: Access) {
        let within =
            |old: &Access| new.bytes.start <= old.bytes.start && old.bytes.end <= new.bytes.end;
        if new.kind.is_read() {
            self.accesses.retain(|old| {
                !(within(old) && (old.kind, old.agent) == (new.kind, new.agent))
                    || old.bytes != new.bytes
            });
        } else {
            self.accesses.retain(|old| !within(old));
        }
        self.accesses.push(new);
    }

    /// All threads of an agent meet.
    pub(super) fn meet(&mut self, agent: usize) {
        for access in &mut self.accesses {
            access.done.meet(agent);
            access.performed.meet(agent);
            access.by_lanes &= access.agent != agent;
        }
    }

    /// All lanes of each warp of an agent execute an instruction at once. That orders no memory, but none of them still waits.
    pub(super) fn converge(&mut self, agent: usize) {
        for access in &mut self.accesses {
            access.by_lanes &= access.agent != agent || access.kind != Kind::Wait;
        }
    }

    /// The first agent starts others with so many warps, which know what it knows.
    pub(super) fn fork(&mut self, warps: &[i64]) {
        self.meet(0);
        let agents = 1 + warps.len();
        for (index, _) in warps.iter().enumerate().filter(|(_, warps)| **warps == 1) {
            self.single_warps |= 2 << index;
        }
        for access in &mut self.accesses {
            access.done.fork(agents);
            access.performed.fork(agents);
        }
        for barrier in &mut self.barriers {
            let known = barrier.known[0];
            barrier.known[1..agents].fill(known);
        }
    }

    /// The others end, and the first knows what they knew.
    pub(super) fn join(&mut self, agents: usize) {
        for access in &mut self.accesses {
            access.done.join(agents);
            access.performed.join(agents);
        }
        for barrier in &mut self.barriers {
            barrier.known[0] = barrier.known[..agents].iter().copied().max().unwrap_or(-1);
        }
        self.single_warps &= 1;
    }

    /// An agent makes what it knows to be written visible to the asynchronous proxy, and waits for the data of its reads.
    pub(super) fn fence(&mut self, agent: usize) {
        for access in &mut self.accesses {
            access.fenced |= access.done.known[agent] != Known::Not;
            if access.kind == Kind::Read && access.agent == agent {
                let performed = &mut access.performed.known[agent];
                *performed = (*performed).max(Known::Part);
            }
        }
    }

    /// Asynchronous work of an agent is complete, for the threads that issued it.
    pub(super) fn complete(&mut self, agent: usize, is_complete: impl Fn(Pending) -> bool) {
        for access in &mut self.accesses {
            if access.agent == agent && is_complete(access.pending) {
                access.pending = Pending::No;
                let known = &mut access.done.known[agent];
                *known = (*known).max(Known::Part);
            }
        }
    }

    fn barrier(&self, start: u64) -> Result<usize, Hazard> {
        match self
            .barriers
            .iter()
            .position(|barrier| barrier.start == start)
        {
            Some(index) => Ok(index),
            None => hazard(None, "the barrier is not initialised"),
        }
    }

    /// Checks that a barrier exists for an agent: for all of its threads, or for the one that initialised it.
    fn exists(&self, bytes: &Range<u64>, agent: usize, least: Known) -> Result<usize, Hazard> {
        let begun = |old: &&Access| old.kind == Kind::Begin && old.overlaps(bytes);
        if let Some(begin) = self.accesses.iter().find(begun)
            && begin.done.known[agent] < least
        {
            let text = "not all threads know that the barrier is initialised";
            return hazard(Some(begin.place), text);
        }
        self.barrier(bytes.start)
    }

    /// A barrier is initialised.
    pub(super) fn begin(&mut self, new: Access, count: i64) -> Result<bool, Hazard> {
        let start = new.bytes.start;
        self.access(new)?;
        let barrier = Barrier {
            start,
            count,
            completed: 0,
            arrived: 0,
            bytes: 0,
            known: [-1; AGENTS],
        };
        let is_free =
            |(index, old): (usize, &Barrier)| old.start == start || old.start == ended(index);
        match self.barriers.iter().enumerate().position(is_free) {
            Some(index) => {
                self.barriers[index] = barrier;
                for access in &mut self.accesses {
                    access.done.forget(1 << index);
                    access.performed.forget(1 << index);
                }
            }
            None => self.barriers.push(barrier),
        }
        Ok(self.barriers.len() <= BARRIERS)
    }

    /// A barrier's memory is released.
    pub(super) fn end(
        &mut self,
        bytes: &Range<u64>,
        agent: usize,
        place: usize,
    ) -> Result<(), Hazard> {
        let index = self.exists(bytes, agent, Known::Part)?;
        self.access(Access::new(bytes.clone(), Kind::End, agent, place))?;
        self.barriers[index].start = ended(index);
        Ok(())
    }

    /// An arrival at a barrier: by all warps, each for itself, or by one thread; or one that also expects bytes. The lanes of
    /// a warp meet before one of them arrives for it, or else what they have done since they met does not come before.
    pub(super) fn arrive(
        &mut self,
        barrier: &Range<u64>,
        agent: usize,
        (count, by_warp, expected): (i64, bool, i64),
        by_lanes: bool,
    ) -> Result<(), Hazard> {
        let least = if by_warp { Known::All } else { Known::Part };
        let index = self.exists(barrier, agent, least)?;
        let released = if by_warp { Known::Part } else { Known::All };
        let own_warp = by_warp || self.single_warps & 1 << agent != 0;
        for access in &mut self.accesses {
            let is_own = access.agent == agent;
            if by_warp && !by_lanes {
                access.by_lanes &= !is_own;
            }
            let is_left_out = by_lanes && is_own && access.by_lanes;
            if access.done.known[agent] >= released && !is_left_out {
                access.done.releasing |= 1 << index;
                // The arrival is an access of the same warp, after the read.
                if own_warp && access.agent == agent || access.performed.known[agent] >= released {
                    access.performed.releasing |= 1 << index;
                }
                access.seen |= access.overlaps(barrier);
            }
        }
        self.barriers[index].arrived += count;
        self.barriers[index].bytes += expected;
        if self.barriers[index].arrived > self.barriers[index].count {
            return hazard(
                None,
                "more arrive at the barrier in one phase than it counts",
            );
        }
        self.finish_phase(index, barrier)
    }

    /// A copy by the unit that copies tiles, which arrives at a barrier with its bytes.
    pub(super) fn bulk(
        &mut self,
        barrier: &Range<u64>,
        mut new: Access,
        bytes: i64,
    ) -> Result<(), Hazard> {
        let index = self.exists(barrier, new.agent, Known::Part)?;
        new.done.releasing = 1 << index;
        let state = &mut self.barriers[index];
        if state.bytes < bytes {
            let expected = state.bytes;
            return hazard(
                None,
                format!("{bytes} bytes arrive at a barrier whose phase expects {expected} more"),
            );
        }
        self.access(new.pending(Pending::Phase))?;
        self.barriers[index].bytes -= bytes;
        self.finish_phase(index, barrier)
    }

    /// Completes the phase of a barrier if everything has arrived.
    fn finish_phase(&mut self, index: usize, bytes: &Range<u64>) -> Result<(), Hazard> {
        let state = &mut self.barriers[index];
        if state.arrived < state.count || state.bytes > 0 {
            return Ok(());
        }
        state.arrived = 0;
        state.completed += 1;
        let waits = |old: &Access| old.kind == Kind::Wait && old.overlaps(bytes);
        if let Some(unseen) = self.accesses.iter().find(|old| waits(old) && !old.seen) {
            let text = "the barrier may complete its next phase before all threads have waited for the last one";
            return hazard(Some(unseen.place), text);
        }
        self.accesses.retain(|old| !waits(old));
        let bit = 1 << index;
        for access in &mut self.accesses {
            access.done.finish(bit);
            access.performed.finish(bit);
        }
        Ok(())
    }

    /// All threads of an agent wait for the phase with this parity: `false` if it is not complete yet.
    pub(super) fn wait(
        &mut self,
        barrier: &Range<u64>,
        parity: i64,
        agent: usize,
        place: usize,
    ) -> Result<bool, Hazard> {
        let index = self.exists(barrier, agent, Known::All)?;
        let state = &mut self.barriers[index];
        if state.completed & 1 == parity & 1 {
            return Ok(false);
        }
        let phase = state.completed - 1;
        if state.known[agent] < phase - 1 {
            let text = "it may pass before the phase that it waits for: nothing orders it after the phase before";
            return hazard(None, text);
        }
        state.known[agent] = phase;
        let bit = 1 << index;
        for access in &mut self.accesses {
            access.performed.wait(agent, bit);
            if access.done.wait(agent, bit) && access.pending == Pending::Phase {
                access.pending = Pending::No;
            }
        }
        let mut wait = Access::new(barrier.clone(), Kind::Wait, agent, place);
        // The lanes of a warp wait together: they meet at the instructions of the whole warp after it.
        if self.single_warps & 1 << agent != 0 {
            wait.done.known[agent] = Known::All;
        }
        self.access(wait)?;
        Ok(true)
    }

    /// The kernel ends: nothing may still access its memory.
    pub(super) fn finish(&self) -> Result<(), Hazard> {
        match self.accesses.iter().find(|old| old.pending != Pending::No) {
            None => Ok(()),
            Some(old) => hazard(
                Some(old.place),
                "it ends the use of shared memory, but nothing waits for what still accesses it",
            ),
        }
    }

    /// The state, with groups of asynchronous work counted back from the last.
    pub(super) fn snapshot(&self, last: &[[u64; 3]], to: &mut Vec<i64>) {
        let mut accesses: Vec<Vec<i64>> = self
            .accesses
            .iter()
            .map(|access| {
                // An agent that has ended begins no more groups.
                let of_agent = last.get(access.agent).copied();
                let [copies, products, stores] = of_agent.unwrap_or_default();
                let (unit, back) = match access.pending {
                    Pending::No => (0, 0),
                    Pending::Copies(group) => (1, copies as i64 - group as i64),
                    Pending::Product(group) => (2, products as i64 - group as i64),
                    Pending::Stores(group) => (3, stores as i64 - group as i64),
                    Pending::Phase => (4, 0),
                };
                let mut key = vec![
                    access.bytes.start as i64,
                    access.bytes.end as i64,
                    access.kind as i64,
                    access.agent as i64,
                    access.parts.map_or(-1, |parts| parts as i64),
                    unit,
                    back,
                    i64::from(access.fenced),
                    i64::from(access.seen) | i64::from(access.by_lanes) << 1,
                ];
                access.done.snapshot(last.len(), &mut key);
                if access.kind == Kind::Read {
                    access.performed.snapshot(last.len(), &mut key);
                }
                key
            })
            .collect();
        accesses.sort();
        accesses.dedup();
        to.push(accesses.len() as i64);
        to.extend(accesses.into_iter().flatten());
        for barrier in &self.barriers {
            let known = barrier.known.iter().map(|known| barrier.completed - known);
            to.extend([barrier.start as i64, barrier.count]);
            to.extend([barrier.completed & 1, barrier.arrived, barrier.bytes]);
            // Agents that do not wait here know less and less; by three phases or more is the same.
            to.extend(known.map(|behind| behind.min(3)));
        }
    }
}

/// What is missing for an access to be ordered after an older one.
fn missing(old: &Access, new: &Access) -> Option<String> {
    let known = old.done.known[new.agent];
    match old.pending {
        Pending::No => {}
        Pending::Copies(_) => {
            return Some("but nothing waits for the copy that writes them".into());
        }
        Pending::Product(_) => {
            return Some("but nothing waits for the product that reads them".into());
        }
        Pending::Stores(_) => return Some("but nothing waits for the copy that reads them".into()),
        Pending::Phase => {
            return Some(
                "but no wait for a phase of a barrier is between it and the copy that writes them"
                    .into(),
            );
        }
    }
    // Each thread may use again what only it uses, and one thread initialises and releases all barriers.
    let same = old.bytes == new.bytes && old.agent == new.agent;
    let own = same
        && (old.parts.is_some() && old.parts == new.parts
            || (old.kind, new.kind) == (Kind::Copy, Kind::Copy))
        || old.agent == new.agent && (old.kind, new.kind) == (Kind::End, Kind::Begin);
    let verb = match old.kind {
        Kind::Begin => "uses them as a barrier",
        Kind::End => "releases a barrier there",
        kind if kind.is_read() => "reads them",
        _ => "writes them",
    };
    if known == Known::Not {
        return Some(format!(
            "but nothing orders it after the access that {verb}"
        ));
    }
    if known == Known::Part && !own {
        return Some(format!(
            "but no barrier of the threads is between it and the access that {verb}"
        ));
    }
    let by_threads = matches!(old.kind, Kind::Write | Kind::End);
    if by_threads && new.kind.is_asynchronous() && !old.fenced {
        return Some(format!(
            "but no fence between the proxies is between it and the access that {verb}"
        ));
    }
    if (old.kind, new.kind) == (Kind::Read, Kind::BulkWrite)
        && old.performed.known[new.agent] != Known::All
    {
        return Some(format!(
            "but it may overtake the access that {verb}: no fence of the readers comes before the barrier between the two"
        ));
    }
    None
}
