//! The sanitizer's messages about an access of shared memory that conflicts with the history of its bytes
//! ([`shadow`](super::shadow)): both sides of it, with their places in the source.

use crate::machine::block::Block;
use crate::machine::bytecode::{AccessKind, Program, SiteId};
use crate::machine::findings::source;
use crate::machine::report::FindingKind;
use crate::memory::clocks::{Kind, Stamp};
use crate::memory::lives::Event;
use crate::memory::shadow::Problem;

impl<const W: usize> Block<'_, W> {
    /// Reports what is wrong with an access to a byte.
    pub(crate) fn report_problem(
        &mut self,
        problem: Problem,
        kind: AccessKind,
        warp: usize,
        lane: usize,
        byte: usize,
        site: SiteId,
    ) {
        let program = self.program;
        let engine = self.clocks.engine();
        let (warp, lane) = if warp == engine {
            self.issuer
        } else {
            (warp, lane)
        };
        let elsewhere = |stamp: &Stamp| {
            let place = &program.sites[stamp.site as usize];
            let line = source(program, stamp.site).map_or_else(String::new, |s| format!(" at {s}"));
            let lane = if stamp.lane == u8::MAX {
                "several lanes".to_owned()
            } else {
                format!("lane {}", stamp.lane)
            };
            if usize::from(stamp.warp) == engine {
                return format!("the copy{line}: {}", place.text);
            }
            format!("warp {} {lane}{line}: {}", stamp.warp, place.text)
        };
        let address = byte as u64;
        match problem {
            Problem::WithWrite(other) if kind == AccessKind::Store => self.find(FindingKind::SharedWriteWriteRace, warp, lane, address, site, || {
                format!("a write of shared memory races with the write of {}", elsewhere(&other))
            }),
            Problem::WithWrite(other) => self.find(FindingKind::SharedReadWriteRace, warp, lane, address, site, || {
                format!("a read of shared memory races with the write of {}", elsewhere(&other))
            }),
            Problem::WithRead(other) => self.find(FindingKind::SharedReadWriteRace, warp, lane, address, site, || {
                format!("a write of shared memory races with the read of {}", elsewhere(&other))
            }),
            Problem::Uninitialized => self.find(FindingKind::UninitializedRead, warp, lane, address, site, || {
                "a read of shared memory that nothing has written".to_owned()
            }),
            Problem::Ended(event) => self.find(FindingKind::UseAfterDealloc, warp, lane, address, site, || {
                let verb = match kind {
                    AccessKind::Store => "write",
                    AccessKind::Load => "read",
                };
                format!("a {verb} of shared memory that was given back{}", event_of(program, &event))
            }),
            Problem::Stale(event, left) => self.find(FindingKind::UninitializedRead, warp, lane, address, site, || {
                let left = left.map_or_else(String::new, |stamp| format!("; it holds what is left from the write of {}", elsewhere(&stamp)));
                format!("a read of shared memory that nothing has written since its buffer was made{}{left}", event_of(program, &event))
            }),
            Problem::Unfenced(other) => self.find(FindingKind::MissingProxyFence, warp, lane, address, site, || {
                match other.kind {
                    Kind::Read => format!(
                        "the copy engine may overtake the read of {}: the reader has neither executed a proxy fence nor arrived at an mbarrier",
                        elsewhere(&other)
                    ),
                    _ => format!("no proxy fence makes visible to the copy engine the write of {}", elsewhere(&other)),
                }
            }),
            Problem::Pending(copy) => self.find(FindingKind::UnwaitedCopy, warp, lane, address, site, || {
                let place = &program.sites[copy as usize];
                let line = source(program, copy).map_or_else(String::new, |s| format!(" at {s}"));
                let verb = match kind {
                    AccessKind::Store => "overwrites",
                    AccessKind::Load => "reads",
                };
                format!("{verb} shared memory before the asynchronous copy{line} has been waited for: {}", place.text)
            }),
        }
    }
}

/// Where a buffer began or ended.
fn event_of(program: &Program, event: &Event) -> String {
    let place = &program.sites[event.site as usize];
    let line = source(program, event.site).map_or_else(String::new, |s| format!(" at {s}"));
    format!("{line}: {}", place.text)
}
