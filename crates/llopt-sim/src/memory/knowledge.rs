//! What a warp, or the engine that performs copies, knows to have happened: its vector clock.

use std::collections::BTreeMap;

use crate::memory::ticks::Ticks;

/// Ticks, of all warps and of the engine, that a warp or the engine knows of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// Ticks that have happened.
    pub(super) known: Vec<u32>,
    /// Ticks that have happened and are visible to the engine.
    pub(super) fenced: Vec<u32>,
    /// Ticks whose reads have been performed.
    pub(super) performed: Vec<u32>,
    /// The engine's copies that are complete.
    pub(super) copies: Ticks,
    /// Later ticks of single lanes, by warp and lane.
    pub(super) lanes: BTreeMap<(u16, u8), u32>,
}

impl Knowledge {
    pub(super) fn of(warps: usize) -> Self {
        Self {
            known: vec![0; warps],
            fenced: vec![0; warps],
            performed: vec![0; warps],
            copies: Ticks::default(),
            lanes: BTreeMap::new(),
        }
    }

    /// Whether it includes what a lane of a warp did in a tick.
    pub(super) fn includes(&self, warp: u16, lane: u8, tick: u32) -> bool {
        let of_lane = || self.lanes.get(&(warp, lane)).copied();
        self.known[usize::from(warp)] >= tick || of_lane().is_some_and(|last| last >= tick)
    }

    /// Adds the knowledge of another.
    pub(crate) fn join(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.known, &other.known),
            (&mut self.fenced, &other.fenced),
            (&mut self.performed, &other.performed),
        ] {
            mine.resize(mine.len().max(theirs.len()), 0);
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = (*mine).max(*theirs);
            }
        }
        self.copies.join(&other.copies);
        for (&of, &tick) in &other.lanes {
            let last = self.lanes.entry(of).or_default();
            *last = (*last).max(tick);
        }
        let known = &self.known;
        self.lanes
            .retain(|(warp, _), tick| *tick > known[usize::from(*warp)]);
    }
}
