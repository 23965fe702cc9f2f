//! The live ranges of buffers in shared memory, as each warp knows them.
//!
//! Shared memory is allocated before the program runs, so its bytes belong to one buffer after another and an access
//! does not say to which. Code that is compiled for the sanitizer calls a function of the machine where the live
//! range of a buffer, or of the scratch memory of an operation, begins, and where a buffer is deallocated. Each call
//! is an *event* at its bytes.
//!
//! Warps reach these calls independently, without a barrier: one may have deallocated a buffer, and begun the next at
//! the same bytes, while another still reads. An event therefore applies to every warp that *knows* of it, by the
//! same order that decides about races ([`clocks`](super::clocks)): the warp that caused it, and those that have
//! synchronised with it since. Among the events that a warp knows of, the latest applies. Events of a byte are
//! numbered: each has the number after the latest that its own warp knew of, so that the events of all warps at one
//! place in the program have the same number.
//!
//! A byte whose latest event is an end belongs to no buffer, and any access to it is an error. One whose latest event
//! is a beginning has the contents of an earlier buffer, unless it has been written since: a write records the number
//! of its writer's event with the byte.
//!
//! In a cluster, events apply only to the warps of the block that owns the memory: the blocks synchronise before an
//! operation that accesses the others' memory, and its buffers begin after that. An access from another block is
//! taken to be to the current buffer.
//!
//! Bytes that have the same events share one list of them. An event is dropped once every warp has a later one.

use std::collections::HashMap;
use std::ops::Range;

use crate::machine::bytecode::SiteId;

/// A beginning or an end, by a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) warp: u16,
    pub(crate) tick: u32,
    pub(crate) site: SiteId,
    pub(crate) begins: bool,
    number: u32,
}

/// Events of some bytes, in the order of their numbers.
#[derive(Clone, Debug, Default)]
struct History {
    events: Vec<Event>,
    /// The number of bytes that share it.
    bytes: usize,
}

/// The most events of a byte. A warp that knows none of the events that are left has no event.
const MOST_EVENTS: usize = 256;

/// The number of a write by a warp that knows of no event: its buffer is unknown.
const UNTOLD: u32 = u32::MAX;

/// The live ranges of all bytes of a block's shared memory.
pub(crate) struct Lives {
    /// The history of each byte; the first has no events.
    of: Vec<u32>,
    /// The number of the live range in which each byte was last written.
    written: Vec<u32>,
    histories: Vec<History>,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// The buffer was deallocated there.
    Ended(Event),
    /// Nothing has been written since the live range began there.
    Stale(Event),
}

impl Lives {
    pub(crate) fn new(bytes: usize) -> Self {
        let none = History {
            events: Vec::new(),
            bytes,
        };
        Self {
            of: vec![0; bytes],
            written: vec![0; bytes],
            histories: vec![none],
        }
    }

    /// The latest event of a byte among those that `knows` accepts.
    fn latest(&self, at: usize, knows: impl Fn(&Event) -> bool) -> Option<Event> {
        let events = &self.histories[self.of[at] as usize].events;
        events.iter().rev().find(|event| knows(event)).copied()
    }

    /// Adds an event of a warp to some bytes. `warps` are those of its block, and `knows` returns whether a warp
    /// knows of an event.
    pub(crate) fn mark(
        &mut self,
        bytes: Range<usize>,
        (warp, tick): (u16, u32),
        site: SiteId,
        begins: bool,
        warps: Range<usize>,
        knows: impl Fn(usize, &Event) -> bool,
    ) {
        let bytes = bytes.start..bytes.end.min(self.of.len());
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for at in bytes.clone() {
            *counts.entry(self.of[at]).or_default() += 1;
        }
        let mut replaced: HashMap<u32, u32> = HashMap::new();
        for (old, count) in counts {
            let mut events = self.histories[old as usize].events.clone();
            let latest = |warp: usize, events: &[Event]| {
                let mut known = events.iter().rev().filter(|event| knows(warp, event));
                known.next().map_or(0, |event| event.number)
            };
            let number = latest(warp.into(), &events) + 1;
            let event = Event {
                warp,
                tick,
                site,
                begins,
                number,
            };
            let place = events.partition_point(|other| other.number <= number);
            events.insert(place, event);
            let seen_by_all = warps.clone().map(|warp| latest(warp, &events)).min();
            events.retain(|event| event.number >= seen_by_all.unwrap_or(0));
            let excess = events.len().saturating_sub(MOST_EVENTS);
            events.drain(..excess);
            // A history that no other byte shares is changed in place.
            let new = if old != 0 && self.histories[old as usize].bytes == count {
                self.histories[old as usize].events = events;
                old
            } else {
                self.histories[old as usize].bytes -= count;
                self.histories.push(History {
                    events,
                    bytes: count,
                });
                (self.histories.len() - 1) as u32
            };
            replaced.insert(old, new);
        }
        for of in &mut self.of[bytes] {
            *of = replaced[of];
        }
    }

    /// The error of an access to a byte, if it is one; `knows` returns which events the accessing warp knows of.
    pub(crate) fn against(
        &self,
        at: usize,
        reads: bool,
        knows: impl Fn(&Event) -> bool,
    ) -> Option<Misuse> {
        let event = self.latest(at, knows)?;
        match event.begins {
            false => Some(Misuse::Ended(event)),
            true if reads && self.written[at] < event.number => Some(Misuse::Stale(event)),
            true => None,
        }
    }

    /// A write of a byte.
    pub(crate) fn write(&mut self, at: usize, knows: impl Fn(&Event) -> bool) {
        let event = self.latest(at, knows);
        self.written[at] = event.map_or(UNTOLD, |event| event.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warp 0's events, which only it knows.
    fn alone(warp: usize, event: &Event) -> bool {
        warp == usize::from(event.warp)
    }

    fn mark(lives: &mut Lives, bytes: Range<usize>, warp: u16, tick: u32, begins: bool) {
        lives.mark(bytes, (warp, tick), tick, begins, 0..2, alone);
    }

    fn against(lives: &Lives, at: usize, warp: usize) -> Option<(bool, SiteId)> {
        lives
            .against(at, true, |event| alone(warp, event))
            .map(|misuse| match misuse {
                Misuse::Ended(event) => (true, event.site),
                Misuse::Stale(event) => (false, event.site),
            })
    }

    #[test]
    fn a_warp_goes_by_the_events_that_it_knows_of() {
        let mut lives = Lives::new(16);
        mark(&mut lives, 0..8, 0, 1, true);
        mark(&mut lives, 0..8, 1, 1, true);
        lives.write(3, |event| alone(1, event));
        assert_eq!(against(&lives, 3, 0), None);
        assert_eq!(against(&lives, 4, 0), Some((false, 1)));
        mark(&mut lives, 0..8, 0, 2, false);
        mark(&mut lives, 4..12, 0, 3, true);
        // The other warp is still in the first live range.
        assert_eq!(against(&lives, 3, 1), None);
        assert_eq!(against(&lives, 3, 0), Some((true, 2)));
        assert_eq!(against(&lives, 5, 0), Some((false, 3)));
        assert_eq!(against(&lives, 15, 0), None);
        // What the other warp writes now belongs to the earlier live range.
        lives.write(5, |event| alone(1, event));
        assert_eq!(against(&lives, 5, 0), Some((false, 3)));
        lives.write(5, |event| alone(0, event));
        assert_eq!(against(&lives, 5, 0), None);
    }

    #[test]
    fn what_all_know_of_is_forgotten() {
        let mut lives = Lives::new(8);
        for tick in 0..100 {
            lives.mark(0..8, (0, tick), tick, tick % 2 == 0, 0..2, |_, _| true);
        }
        assert_eq!(lives.histories.len(), 2);
        assert_eq!(lives.histories[1].events.len(), 1);
        for tick in 0..1000 {
            mark(&mut lives, 0..8, 0, tick, true);
        }
        assert_eq!(lives.histories[1].events.len(), MOST_EVENTS);
    }
}
