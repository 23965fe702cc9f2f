//! The sanitizer's part of each access of global memory: it adds the bytes to the block's history
//! ([`footprint`](super::footprint)), and reports races within the block and accesses outside of every buffer.

use crate::machine::block::Block;
use crate::machine::bytecode::{Access, AccessKind, Program, SiteId};
use crate::machine::findings::source;
use crate::machine::report::FindingKind;
use crate::memory::clocks::Kind;
use crate::memory::footprint::Actor;
use crate::memory::global::Fault;

impl Access {
    /// The kind of access in the history.
    pub(crate) fn recorded(&self) -> Kind {
        match (self.kind, self.synchronizing) {
            (AccessKind::Load, false) => Kind::Read,
            (AccessKind::Store, false) => Kind::Write,
            (AccessKind::Load, true) => Kind::AtomicRead,
            (AccessKind::Store, true) => Kind::AtomicWrite,
        }
    }
}

/// The word for an access in a finding.
pub(super) fn verb(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Store => "store",
        AccessKind::Load => "load",
    }
}

impl<const W: usize> Block<'_, W> {
    /// Reports an access outside of every buffer.
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts that make up a finding"
    )]
    pub(crate) fn fault(
        &mut self,
        warp: usize,
        lane: usize,
        address: u64,
        bytes: u32,
        kind: AccessKind,
        fault: Fault,
        site: SiteId,
    ) {
        let verb = verb(kind);
        match fault {
            Fault::OutOfBounds(length) => {
                self.find(FindingKind::OutOfBounds, warp, lane, address, site, || match length {
                    Some((offset, length)) => format!(
                        "a {verb} of {bytes} bytes at offset {offset} of a buffer of {length} bytes is out of bounds"
                    ),
                    None => format!("a {verb} of {bytes} bytes at {address:#x} lies in no buffer"),
                });
            }
            Fault::ReadOnly => {
                self.find(
                    FindingKind::ConstantWrite,
                    warp,
                    lane,
                    address,
                    site,
                    || "a store to constant memory".to_owned(),
                );
            }
            Fault::Early => {
                self.find(FindingKind::EarlyAccess, warp, lane, address, site, || {
                    format!("a {verb} of global memory before the wait for the kernel before")
                });
            }
        }
    }

    /// Passes an access of up to 8 bytes of global memory to the sanitizer, before it is performed.
    #[expect(clippy::too_many_arguments, reason = "who does what where")]
    pub(crate) fn watch_bytes(
        &mut self,
        warp: usize,
        lane: usize,
        kind: Kind,
        address: u64,
        bytes: u32,
        new: Option<u64>,
        site: SiteId,
    ) {
        let stamp = self.stamp(warp, lane, kind, site);
        let Some(watch) = &mut self.watch else { return };
        let atomic = matches!(kind, Kind::AtomicRead | Kind::AtomicWrite);
        let time = if atomic {
            self.global.next_time()
        } else {
            self.global.time()
        };
        if atomic {
            watch.update(address, time);
        }
        let old = self.global.read(address, bytes);
        let new = new.unwrap_or(old);
        let [old, new] = [old, new].map(u64::to_le_bytes);
        let length = bytes.min(8) as usize;
        let race = watch.access(
            address,
            stamp,
            &old[..length],
            &new[..length],
            time,
            &self.clocks,
        );
        if let Some(race) = race {
            let (kind, verbs) = match (new != old || kind == Kind::Write, race.other_writes) {
                (true, true) => (FindingKind::GlobalWriteWriteRace, ["write", "write"]),
                (true, false) => (FindingKind::GlobalReadWriteRace, ["write", "read"]),
                (false, _) => (FindingKind::GlobalReadWriteRace, ["read", "write"]),
            };
            if let Some(told) = watch.told(site, race.other.site)
                && told != site
            {
                self.findings.again(kind, told);
                return;
            }
            let program = self.program;
            self.find(kind, warp, lane, address, site, || {
                let other = Actor {
                    site: race.other.site,
                    warp: race.other.warp,
                    lane: race.other.lane,
                };
                format!(
                    "a {} of global memory races with the {} of {}",
                    verbs[0],
                    verbs[1],
                    describe(program, other)
                )
            });
        }
    }
}

/// The source of an access, in words.
pub(crate) fn describe(program: &Program, actor: Actor) -> String {
    let line = source(program, actor.site).map_or_else(String::new, |s| format!(" at {s}"));
    let lane = match actor.lane {
        u8::MAX => "several lanes".to_owned(),
        lane => format!("lane {lane}"),
    };
    let text = &program.sites[actor.site as usize].text;
    format!("warp {} {lane}{line}: {text}", actor.warp)
}
