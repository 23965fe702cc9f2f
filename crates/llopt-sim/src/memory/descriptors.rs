//! Descriptor objects that the kernel makes, and who has made them visible to the copy engine.
//!
//! Threads write an object through the generic proxy, and the engine reads it through the proxy of tensor maps, which keeps
//! copies of objects (PTX ISA, "Proxies", "fence.proxy.tensormap"). So the writer *releases* the object
//! (`tensormap.cp_fenceproxy` does that with the write), and before a copy a thread *acquires* it by a fence for its address,
//! which drops what the proxy has of the object. A copy may be issued by anyone who comes after the acquire: by the warp
//! that executed it, or by those that have learned of it at a barrier. What was acquired before the object was written anew does
//! not count.
//!
//! Objects that the host made are not in the list: nobody has to acquire them.

use std::collections::HashMap;

use crate::memory::clocks::Clocks;

/// When a warp, or the first of its lanes that acted, did something.
#[derive(Clone, Copy, Debug)]
struct Moment {
    warp: usize,
    lane: usize,
    tick: u32,
}

impl Moment {
    fn now((warp, lane): (usize, usize), clocks: &Clocks) -> Self {
        let tick = clocks.tick(warp);
        Self { warp, lane, tick }
    }

    /// Whether it comes before what a warp does from now on.
    fn is_before(self, warp: usize, clocks: &Clocks) -> bool {
        let known = clocks.known(warp);
        self.warp == warp || known.includes(self.warp as u16, self.lane as u8, self.tick)
    }
}

/// An object that the kernel has written.
#[derive(Debug)]
struct Released {
    at: Moment,
    acquired: Vec<Moment>,
}

/// The objects that the kernel has written, by address.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    released: HashMap<u64, Released>,
}

impl Descriptors {
    /// A lane of a warp writes an object and releases it.
    pub(crate) fn release(&mut self, address: u64, by: (usize, usize), clocks: &Clocks) {
        let released = Released {
            at: Moment::now(by, clocks),
            acquired: Vec::new(),
        };
        self.released.insert(address, released);
    }

    /// A lane of a warp acquires an object.
    pub(crate) fn acquire(&mut self, address: u64, by: (usize, usize), clocks: &Clocks) {
        if let Some(released) = self.released.get_mut(&address)
            && released.at.is_before(by.0, clocks)
        {
            released.acquired.push(Moment::now(by, clocks));
        }
    }

    /// Whether the engine sees an object in a copy that a warp issues.
    pub(crate) fn is_visible(&self, address: u64, warp: usize, clocks: &Clocks) -> bool {
        let acquired = |of: &Released| of.acquired.iter().any(|one| one.is_before(warp, clocks));
        self.released.get(&address).is_none_or(acquired)
    }
}
