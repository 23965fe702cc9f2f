//! Where the lives of buffers in shared memory begin and end, as each warp sees it.
//!
//! Shared memory is handed out before the program runs, so that its bytes serve one buffer after another and nothing
//! in an access says for which. Code that is made to be watched calls a function of the machine's where a buffer, or
//! the scratch memory of an operation, begins, and where a buffer is given back. Each call is an *event* at its bytes.
//!
//! Warps come to these calls at their own pace, with no barrier: one may have given a buffer back, and begun the next in
//! its place, while another still reads. An event therefore holds for whoever *knows* of it, by the same order that
//! decides about races ([`shadow`](super::shadow)): the warp that did it, and those that have met it since. Among the
//! events that a warp knows of, the one that counts is the latest. Events of a byte are numbered: each has one number
//! more than the latest that its own warp knew of, so that what all warps do at one place in the program has one number.
//!
//! A byte whose latest event is an end belongs to nobody, and whoever touches it is wrong. One whose latest event is a
//! beginning holds what an earlier life left, unless it has been written since: a write leaves the number of its
//! writer's event with the byte.
//!
//! Of a cluster, only the warps of the block whose memory it is go by its events: the blocks meet before an operation
//! that reaches into the others' memory, and what is in it begins behind that meeting. What comes from elsewhere is
//! taken to be of the life that is.
//!
//! Bytes that have the same events share one list of them. What every warp has a later event for is forgotten.

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
    /// Bytes that have it.
    bytes: usize,
}

/// The most events of a byte. A warp that knows of none of those left is taken to know nothing.
const MOST_EVENTS: usize = 256;

/// Number of what is written by a warp that knows of no event: nobody can say for whom.
const UNTOLD: u32 = u32::MAX;

/// The lives of all bytes of a block's shared memory.
pub(crate) struct Lives {
    /// The history of each byte; the first has no events.
    of: Vec<u32>,
    /// Number of the life that each byte was last written in.
    written: Vec<u32>,
    histories: Vec<History>,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// The buffer was given back there.
    Ended(Event),
    /// Nothing has been written since the life began there.
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

    /// The latest event of a byte among those of which `knows` says so.
    fn latest(&self, at: usize, knows: impl Fn(&Event) -> bool) -> Option<Event> {
        let events = &self.histories[self.of[at] as usize].events;
        events.iter().rev().find(|event| knows(event)).copied()
    }

    /// Adds an event of a warp to some bytes. `warps` are those of its block, and `knows` says of a warp whether it
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
            // A history that no other byte has is changed where it is.
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

    /// What the lives of a byte say against an access by somebody, of whom `knows` says which events they know of.
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

    /// Somebody has written a byte.
    pub(crate) fn write(&mut self, at: usize, knows: impl Fn(&Event) -> bool) {
        let event = self.latest(at, knows);
        self.written[at] = event.map_or(UNTOLD, |event| event.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warp 0's events, which it alone knows of.
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
        // The other warp is still in the first life.
        assert_eq!(against(&lives, 3, 1), None);
        assert_eq!(against(&lives, 3, 0), Some((true, 2)));
        assert_eq!(against(&lives, 5, 0), Some((false, 3)));
        assert_eq!(against(&lives, 15, 0), None);
        // What the other one writes now is of the life before.
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
