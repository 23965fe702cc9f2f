//! The sanitizer's knowledge about global memory: the bytes that each block accesses, and conflicts between blocks.
//!
//! Within a block order is happens-before, with the same clocks and history of bytes as for shared memory
//! ([`shadow`](super::shadow)), kept here for the pages of global memory that the block touches.
//!
//! Only atomics order blocks: a block knows of another if it has updated a word that the other had updated before. So
//! each block has a *footprint*: runs of bytes with the instructions that last read, wrote or updated them, the times
//! between which they did, and what they wrote; and, for each word that it updated, the times. Times count the
//! atomics of the launch, whose blocks take turns on one thread if they have any. Two runs that overlap, of different
//! blocks and one of them written, race unless
//!
//! - both blocks only updated the bytes by atomics, or
//! - both wrote the same values, or
//! - all accesses of one block come before its update of a word, which comes before an update of the same word by the
//!   other block, which comes before all accesses of the other. Where their times overlap, as under a lock that both
//!   take repeatedly, a common word counts as order.
//!
//! A tensor's layout may hold an element in several threads, all of which load it, while one stores it. A load and a
//! store of the same element by different threads of a block are therefore accepted if the storing warp has made the
//! same load. Within a block, a write that changes nothing is accepted, as in shared memory: threads that hold copies
//! store them. Between blocks every write counts, since the previous contents depend on chance.
//!
//! Not covered: order through a third block by words that the two do not share; copies of the copy engine; and the
//! bytes of a block after its first [`MOST_BYTES`].

use std::collections::{HashMap, HashSet};

use crate::machine::bytecode::SiteId;
use crate::memory::clocks::{Clocks, Kind, Stamp};
use crate::memory::shadow::{Problem, Shadow};

/// Bytes of global memory whose history is kept for one block.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// Updates of a word whose times are kept for one block.
const MOST_UPDATES: usize = 1 << 20;

/// Bytes of a page.
const PAGE: u64 = 64;

/// The source of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) site: SiteId,
    pub(crate) warp: u16,
    pub(crate) lane: u8,
}

/// The accesses of a block to a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Touch {
    read: Option<Actor>,
    write: Option<Actor>,
    update: Option<Actor>,
    /// The value that it wrote last.
    value: u8,
    /// First and last time.
    times: (u32, u32),
    /// The site at which the warp of the last write had read the byte before.
    before: Option<SiteId>,
}

/// A block's history of global memory while it runs.
pub(crate) struct Watch {
    pages: HashMap<u64, usize>,
    shadow: Shadow,
    touches: Vec<Touch>,
    /// The times at which it updated each word.
    updates: HashMap<u64, Vec<u32>>,
    /// The word that it updated last, and how often since it accessed anything else.
    polled: Option<(u64, u32)>,
    /// Pairs of instructions that race, and the one of the two where this is reported.
    told: HashMap<(SiteId, SiteId), SiteId>,
    /// Whether it accessed more than is kept.
    is_incomplete: bool,
}

/// A race within a block: the other access, and whether that is a write.
pub(crate) struct Race {
    pub(crate) other: Stamp,
    pub(crate) other_writes: bool,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            pages: HashMap::new(),
            shadow: Shadow::new(0),
            touches: Vec::new(),
            updates: HashMap::new(),
            polled: None,
            told: HashMap::new(),
            is_incomplete: false,
        }
    }

    /// The place of the history of the byte at an address.
    fn place(&mut self, address: u64) -> Option<usize> {
        let known = self.pages.get(&(address / PAGE)).copied();
        let begin = match known {
            Some(begin) => begin,
            None if self.touches.len() >= MOST_BYTES => {
                self.is_incomplete = true;
                return None;
            }
            None => {
                let begin = self.touches.len();
                self.touches.resize(begin + PAGE as usize, Touch::default());
                self.shadow.grow(PAGE as usize);
                self.pages.insert(address / PAGE, begin);
                begin
            }
        };
        Some(begin + (address % PAGE) as usize)
    }

    /// Records an access to the bytes at `address`. `old` and `new` are the contents before and after; for a read,
    /// both are the same.
    pub(crate) fn access(
        &mut self,
        address: u64,
        stamp: Stamp,
        old: &[u8],
        new: &[u8],
        time: u32,
        clocks: &Clocks,
    ) -> Option<Race> {
        let mut race = None;
        for (i, (old, new)) in old.iter().zip(new).enumerate() {
            let Some(at) = self.place(address + i as u64) else {
                break;
            };
            let actor = Actor {
                site: stamp.site,
                warp: stamp.warp,
                lane: stamp.lane,
            };
            let problem = match stamp.kind {
                Kind::Read | Kind::AtomicRead | Kind::ProductRead => {
                    self.shadow.read(at, stamp, clocks)
                }
                Kind::Write | Kind::AtomicWrite | Kind::CopiedWrite => {
                    // Before the write, after which the history has no reads.
                    let read = self.shadow.read_by(at, stamp.warp);
                    let problem = self.shadow.write(at, stamp, old != new, clocks);
                    if old != new {
                        self.touches[at].before = read;
                    }
                    problem
                }
            };
            let touch = &mut self.touches[at];
            let first = touch.read.or(touch.write).or(touch.update).is_none();
            match stamp.kind {
                Kind::Read | Kind::ProductRead => touch.read = touch.read.or(Some(actor)),
                Kind::Write | Kind::CopiedWrite => {
                    touch.write = Some(actor);
                    touch.value = *new;
                }
                // It changes nothing, and does not conflict with atomics.
                Kind::AtomicRead => {}
                Kind::AtomicWrite => touch.update = Some(actor),
            }
            touch.times = (if first { time } else { touch.times.0 }, time);
            if !matches!(stamp.kind, Kind::AtomicRead | Kind::AtomicWrite) {
                self.polled = None;
            }
            let found = match problem {
                Some(Problem::WithWrite(other)) if touch.before != Some(stamp.site) => Some(Race {
                    other,
                    other_writes: true,
                }),
                Some(Problem::WithRead(other)) if touch.before != Some(other.site) => Some(Race {
                    other,
                    other_writes: false,
                }),
                _ => None,
            };
            race = race.or(found);
        }
        race
    }

    /// The instruction at which the race of two instructions has been reported before; from now on, the first.
    pub(crate) fn told(&mut self, at: SiteId, other: SiteId) -> Option<SiteId> {
        let pair = pair(at, other);
        let known = self.told.get(&pair).copied();
        if known.is_none() {
            self.told.insert(pair, at);
        }
        known
    }

    /// Records that the block has updated a word by an atomic.
    ///
    /// What order an access has depends on the last update before it and on the first one after it. So of many updates
    /// with no access between them, as of a lock that a block waits for, the first and the last are kept.
    pub(crate) fn update(&mut self, address: u64, time: u32) {
        let count = match self.polled {
            Some((word, count)) if word == address => count.saturating_add(1),
            _ => 1,
        };
        self.polled = Some((address, count));
        let times = self.updates.entry(address).or_default();
        let is_full = times.len() >= MOST_UPDATES;
        match times.last_mut() {
            Some(last) if count > 2 || is_full => *last = time,
            _ => times.push(time),
        }
    }

    /// The footprint of a block that has ended.
    pub(crate) fn footprint(self) -> Footprint {
        let mut pages: Vec<(u64, usize)> = self.pages.into_iter().collect();
        pages.sort_unstable();
        // Between two updates of the block all times are alike: the same updates come before and after.
        let mut updated: Vec<u32> = self.updates.values().flatten().copied().collect();
        updated.sort_unstable();
        let interval = |time: u32| updated.partition_point(|&update| update < time);
        let intervals = |times: (u32, u32)| (interval(times.0), interval(times.1));
        let mut runs: Vec<Run> = Vec::new();
        for (page, begin) in pages {
            for (i, touch) in self.touches[begin..begin + PAGE as usize]
                .iter()
                .enumerate()
            {
                let address = page * PAGE + i as u64;
                if (touch.read, touch.write, touch.update) == (None, None, None) {
                    continue;
                }
                let sites = |read: Option<Actor>, write: Option<Actor>, update: Option<Actor>| {
                    [read, write, update].map(|actor| actor.map(|actor| actor.site))
                };
                if let Some(run) = runs.last_mut()
                    && run.end == address
                    && sites(run.read, run.write, run.update)
                        == sites(touch.read, touch.write, touch.update)
                    && ((touch.read, touch.write) == (None, None)
                        || intervals(run.times) == intervals(touch.times))
                {
                    run.end += 1;
                    run.values.extend(touch.write.map(|_| touch.value));
                    run.times.0 = run.times.0.min(touch.times.0);
                    run.times.1 = run.times.1.max(touch.times.1);
                    continue;
                }
                runs.push(Run {
                    begin: address,
                    end: address + 1,
                    read: touch.read,
                    write: touch.write,
                    update: touch.update,
                    values: touch.write.map(|_| touch.value).into_iter().collect(),
                    times: touch.times,
                });
            }
        }
        Footprint {
            runs,
            updates: self.updates,
            is_incomplete: self.is_incomplete,
        }
    }
}

/// Consecutive bytes with the same accesses.
struct Run {
    begin: u64,
    end: u64,
    read: Option<Actor>,
    write: Option<Actor>,
    update: Option<Actor>,
    /// The values that it wrote, if it wrote.
    values: Vec<u8>,
    times: (u32, u32),
}

/// The bytes that a block has accessed.
#[derive(Default)]
pub(crate) struct Footprint {
    runs: Vec<Run>,
    updates: HashMap<u64, Vec<u32>>,
    pub(crate) is_incomplete: bool,
}

impl Footprint {
    /// Whether all that this block did until a time comes before what the other did from a time on, through a common
    /// word.
    fn precedes(&self, until: u32, other: &Self, from: u32) -> bool {
        let (few, many) = if self.updates.len() < other.updates.len() {
            (&self.updates, &other.updates)
        } else {
            (&other.updates, &self.updates)
        };
        few.keys()
            .filter(|word| many.contains_key(word))
            .any(|word| {
                let (mine, theirs) = (&self.updates[word], &other.updates[word]);
                // This block's first update after its accesses, then the other's last update before its own.
                let mine = mine.get(mine.partition_point(|&time| time < until));
                let theirs = theirs[..theirs.partition_point(|&time| time < from)].last();
                mine.zip(theirs).is_some_and(|(mine, theirs)| mine < theirs)
            })
    }

    /// Whether atomics may have ordered the accesses of the two blocks at these times.
    fn is_ordered(&self, mine: (u32, u32), other: &Self, theirs: (u32, u32)) -> bool {
        if mine.1 <= theirs.0 {
            return self.precedes(mine.1, other, theirs.0);
        }
        if theirs.1 <= mine.0 {
            return other.precedes(theirs.1, self, mine.0);
        }
        self.updates
            .keys()
            .any(|word| other.updates.contains_key(word))
    }
}

/// Two accesses of different blocks, at least one of them a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) address: u64,
    /// The number of the block, its access, and whether that is a write.
    pub(crate) one: (usize, Actor, bool),
    pub(crate) other: (usize, Actor, bool),
}

/// The conflicts between the footprints of blocks, one for each pair of instructions, by address.
pub(crate) fn conflicts(blocks: &[Footprint]) -> Vec<Conflict> {
    let mut all: Vec<(usize, &Run)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(block, footprint)| footprint.runs.iter().map(move |run| (block, run)))
        .collect();
    all.sort_by_key(|(block, run)| (run.begin, *block));
    let mut known: HashSet<(SiteId, SiteId)> = HashSet::new();
    let mut found = Vec::new();
    // Runs that extend beyond the current address of the sweep: those that change memory, and those that only read
    // it.
    let mut writers: Vec<(usize, &Run)> = Vec::new();
    let mut readers: Vec<(usize, &Run)> = Vec::new();
    for (block, run) in all {
        writers.retain(|(_, open)| open.end > run.begin);
        let writes = run.write.or(run.update).is_some();
        if writes {
            readers.retain(|(_, open)| open.end > run.begin);
        }
        let open = writers.iter().chain(readers.iter().filter(|_| writes));
        for &(earlier, open) in open {
            if earlier == block {
                continue;
            }
            for (address, one, other) in clashes(open, run) {
                let pair = pair(one.0.site, other.0.site);
                if known.contains(&pair) {
                    continue;
                }
                if blocks[earlier].is_ordered(open.times, &blocks[block], run.times) {
                    break;
                }
                known.insert(pair);
                found.push(Conflict {
                    address,
                    one: (earlier, one.0, one.1),
                    other: (block, other.0, other.1),
                });
            }
        }
        if writes {
            writers.push((block, run));
        } else {
            readers.push((block, run));
        }
    }
    found
}

type Side = (Actor, bool);

/// Two instructions, in a fixed order.
fn pair(one: SiteId, other: SiteId) -> (SiteId, SiteId) {
    (one.min(other), one.max(other))
}

/// The conflicts of two runs of unordered blocks, with the first byte of each.
fn clashes(one: &Run, other: &Run) -> impl Iterator<Item = (u64, Side, Side)> + use<> {
    let begin = one.begin.max(other.begin);
    let end = one.end.min(other.end);
    let of = |run: &Run, at: u64| run.values[(at - run.begin) as usize];
    let writes = one.write.zip(other.write).and_then(|(a, b)| {
        let at = (begin..end).find(|&at| of(one, at) != of(other, at))?;
        Some((at, (a, true), (b, true)))
    });
    let pairs = [
        (one.write, true, other.update, true),
        (one.update, true, other.write, true),
        (one.write, true, other.read, false),
        (one.read, false, other.write, true),
        (one.update, true, other.read, false),
        (one.read, false, other.update, true),
    ];
    let mixed = pairs
        .into_iter()
        .filter_map(move |(a, a_writes, b, b_writes)| {
            (begin < end).then_some((begin, (a?, a_writes), (b?, b_writes)))
        });
    writes.into_iter().chain(mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footprint of accesses (kind, address, bytes, time), each by another instruction.
    fn footprint(accesses: &[(Kind, u64, &[u8], u32)], updates: &[(u64, u32)]) -> Footprint {
        let clocks = Clocks::new(1, true);
        let mut watch = Watch::new();
        for (i, (kind, address, bytes, time)) in accesses.iter().enumerate() {
            let stamp = Stamp {
                warp: 0,
                lane: 0,
                kind: *kind,
                tick: clocks.tick(0),
                site: i as SiteId,
                sequence: i as u32,
            };
            let old = vec![0; bytes.len()];
            let race = watch.access(*address, stamp, &old, bytes, *time, &clocks);
            assert!(race.is_none());
        }
        for &(word, time) in updates {
            watch.update(word, time);
        }
        watch.footprint()
    }

    fn kinds(blocks: &[Footprint]) -> Vec<(u64, bool, bool)> {
        let found = conflicts(blocks).into_iter();
        found.map(|c| (c.address, c.one.2, c.other.2)).collect()
    }

    #[test]
    fn blocks_that_share_nothing_but_reads_are_in_order() {
        let one = || {
            footprint(
                &[
                    (Kind::Read, 96, &[0; 64], 0),
                    (Kind::Write, 256, &[7; 64], 0),
                ],
                &[],
            )
        };
        let other = footprint(
            &[
                (Kind::Read, 100, &[0; 8], 0),
                (Kind::Write, 320, &[7; 4], 0),
            ],
            &[],
        );
        assert_eq!(kinds(&[one(), other]), []);
        // The same values.
        assert_eq!(kinds(&[one(), one()]), []);
    }

    #[test]
    fn each_kind_of_race_is_found_once() {
        let write = |value: u8| footprint(&[(Kind::Write, 64, &[value; 8], 0)], &[]);
        let read = || footprint(&[(Kind::Read, 68, &[0; 16], 0)], &[]);
        let update = || footprint(&[(Kind::AtomicWrite, 66, &[9; 4], 0)], &[]);
        assert_eq!(kinds(&[write(1), write(2), write(3)]), [(64, true, true)]);
        assert_eq!(kinds(&[write(1), read()]), [(68, true, false)]);
        assert_eq!(kinds(&[read(), write(1)]), [(68, true, false)]);
        assert_eq!(kinds(&[update(), write(1)]), [(66, true, true)]);
        assert_eq!(kinds(&[update(), read()]), [(68, true, false)]);
        assert_eq!(kinds(&[update(), update()]), []);
    }

    #[test]
    fn a_common_word_orders_what_comes_before_with_what_comes_after() {
        let write = || footprint(&[(Kind::Write, 64, &[1; 4], 3)], &[(1000, 3)]);
        let after = footprint(&[(Kind::Read, 64, &[1; 4], 6)], &[(1000, 5)]);
        assert_eq!(kinds(&[write(), after]), []);
        let too_early = footprint(&[(Kind::Read, 64, &[1; 4], 4)], &[(1000, 5)]);
        assert_eq!(kinds(&[write(), too_early]), [(64, true, false)]);
        let another = footprint(&[(Kind::Read, 64, &[1; 4], 6)], &[(2000, 5)]);
        assert_eq!(kinds(&[write(), another]), [(64, true, false)]);
    }

    /// Neighbouring bytes that a block writes before and after it has released a lock are not written at one time.
    #[test]
    fn neighbours_written_at_different_times_are_ordered_separately() {
        let accesses: [(Kind, u64, &[u8], u32); 2] =
            [(Kind::Write, 64, &[1; 4], 3), (Kind::Write, 68, &[1; 4], 9)];
        // One instruction stores twice.
        let mut watch = Watch::new();
        let clocks = Clocks::new(1, true);
        for (sequence, (kind, address, bytes, time)) in (0..).zip(accesses) {
            let stamp = Stamp {
                warp: 0,
                lane: 0,
                kind,
                tick: clocks.tick(0),
                site: 0,
                sequence,
            };
            let race = watch.access(address, stamp, &[0; 4], bytes, time, &clocks);
            assert!(race.is_none());
        }
        watch.update(1000, 4);
        let writes = watch.footprint();
        assert_eq!(writes.runs.len(), 2);
        let after = footprint(&[(Kind::Write, 64, &[2; 4], 12)], &[(1000, 6)]);
        assert_eq!(kinds(&[writes, after]), []);
    }

    /// However long a block waits, the update by which its wait ends orders what follows.
    #[test]
    fn the_last_update_of_a_long_wait_counts() {
        let write = footprint(&[(Kind::Write, 64, &[1; 4], 3)], &[(1000, 100_000)]);
        let polls: Vec<(u64, u32)> = (0..=100_001).map(|time| (1000, time)).collect();
        let after = footprint(&[(Kind::Read, 64, &[1; 4], 100_002)], &polls);
        assert_eq!(after.updates[&1000], [0, 100_001]);
        assert_eq!(kinds(&[write, after]), []);
    }

    /// The sweep finds the same as comparing all pairs.
    #[test]
    fn the_sweep_misses_nothing() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut blocks = Vec::new();
            for _ in 0..4 {
                let accesses: Vec<(Kind, u64, Vec<u8>, u32)> = (0..3)
                    .map(|_| {
                        let kind = [Kind::Read, Kind::Write, Kind::AtomicWrite][random(3) as usize];
                        let bytes = vec![1 + random(2) as u8; 1 + random(12) as usize];
                        (kind, random(100), bytes, 0)
                    })
                    .collect();
                let borrowed: Vec<_> = accesses
                    .iter()
                    .map(|(k, a, b, t)| (*k, *a, &**b, *t))
                    .collect();
                blocks.push(footprint(&borrowed, &[]));
            }
            let mut expected = HashSet::new();
            for (i, one) in blocks.iter().enumerate() {
                for other in &blocks[i + 1..] {
                    for (a, b) in one
                        .runs
                        .iter()
                        .flat_map(|a| other.runs.iter().map(move |b| (a, b)))
                    {
                        expected.extend(clashes(a, b).map(|(_, a, b)| pair(a.0.site, b.0.site)));
                    }
                }
            }
            let found: HashSet<_> = conflicts(&blocks)
                .iter()
                .map(|c| pair(c.one.1.site, c.other.1.site))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
