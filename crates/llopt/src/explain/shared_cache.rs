//! The cache that all multiprocessors share: how long its slices are busy with the lines of an iteration.
//!
//! # The model
//!
//! The cache consists of *slices*, each behind its own 64 bits of the memory's bus: 80 with the five stacks of an H100,
//! 96 with the six of an H200 (NVIDIA's white papers name 40 in each half of an A100, whose bus is as wide as an
//! H100's). A slice accepts a request of a line, or of a part of one, in a cycle, and sends 64 bytes in each of the
//! next. So a whole line occupies it for three cycles, and half a line for two. If all multiprocessors request alike,
//! the iteration of one block occupies the slices for its own cycles times multiprocessors over slices. Slices have a
//! clock of their own (Nsight Compute counts `lts__cycles_elapsed` beside those of the multiprocessors), and power
//! decides about that of the latter.
//!
//! What a cluster of multiprocessors (a GPC) requests at the same time is requested once: a unit between both combines
//! such requests (Nsight Compute calls it LRC). Consecutive blocks are in the same cluster. Whether they request at the
//! same time is the question:
//!
//! - *In step.* The combined requests take less than what else paces the loop. A block that is late finds its lines in
//!   the cache and catches up, so blocks stay in step, and transfers are hidden.
//! - *Apart.* The slices do not keep up. Who is late stays so, requests are combined by chance only, and the loop
//!   takes [`APART`] of what the slices need for every request.
//!
//! Buffers that are filled from nothing are filled by every block by itself ([`FILLING`]).

/// The part of all requests of blocks that are apart which the slices answer one by one.
pub(super) const APART: f64 = 0.55;
/// The same while buffers are filled.
pub(super) const FILLING: f64 = 0.88;
/// The same of blocks in step whose requests are for parts of lines, by a descriptor that the kernel makes.
pub(super) const UNPROMOTED: f64 = 0.48;
/// The part of the requests that is left by combining, if a cluster's blocks are a square of sixteen: each of four
/// rows and of four columns is requested once.
const COMBINED: f64 = 0.25;
/// Bits of the bus of a slice.
const SLICE_BITS: u32 = 64;
/// Megahertz of the slices.
const SLICE_MEGAHERTZ: u32 = 1600;

/// A GPU of the architecture.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) multiprocessors: u32,
    /// Megahertz of its multiprocessors, as an average under load.
    pub(super) megahertz: u32,
    /// Bits of the memory's bus.
    pub(super) bus_bits: u32,
}

/// Those with products of four warps: an H100 and an H200.
pub(super) const MACHINES: [Machine; 2] = [
    Machine {
        multiprocessors: 132,
        megahertz: 1700,
        bus_bits: 5120,
    },
    Machine {
        multiprocessors: 132,
        megahertz: 1700,
        bus_bits: 6144,
    },
];

impl Machine {
    /// Cycles for which the slices are busy with an iteration of a block, if each request is answered by itself: so many
    /// lines, of which so many times 64 bytes are sent.
    pub(super) fn cache_cycles(self, lines: u32, sent: u32) -> f64 {
        let of_slice = lines + sent.max(lines);
        let clock = f64::from(self.megahertz) / f64::from(SLICE_MEGAHERTZ);
        f64::from(of_slice * self.multiprocessors) / f64::from(self.bus_bits / SLICE_BITS) * clock
    }
}

/// Whether blocks stay in step that take so long for everything else, if nobody knows in which order they are.
pub(super) fn are_in_step(cache_cycles: f64, worked: f64) -> bool {
    COMBINED * cache_cycles <= worked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_busy_with_a_request_and_with_each_64_bytes() {
        let [few, many] = MACHINES.map(|machine| machine.cache_cycles(100, 200));
        assert!((few - 300.0 * 132.0 / 80.0 * 1700.0 / 1600.0).abs() < 1e-9);
        // More memory has more slices.
        assert!((few / many - 1.2).abs() < 1e-9);
        let [half, _] = MACHINES.map(|machine| machine.cache_cycles(100, 100));
        assert!((half / few - 2.0 / 3.0).abs() < 1e-9);
        // A piece that is shorter is sent in a cycle, too.
        let [piece, _] = MACHINES.map(|machine| machine.cache_cycles(100, 25));
        assert!((piece - half).abs() < 1e-9);
    }

    /// Cycles that an H100 took, of loops that only copy: two blocks of 128x128 by 64 halves, which the products pace, and
    /// three of 128x64 by 32, which the cache does.
    #[test]
    fn blocks_are_apart_where_the_cache_takes_longer_than_products() {
        let cycles = |lines, sent, worked: f64| {
            let cache = MACHINES[0].cache_cycles(lines, sent);
            let is_in_step = are_in_step(cache, worked);
            worked.max(if is_in_step { 0.0 } else { APART * cache })
        };
        assert!((cycles(256, 512, 512.0) / 513.0 - 1.0).abs() < 0.1);
        assert!((cycles(160, 192, 128.0) / 360.0 - 1.0).abs() < 0.1);
    }
}
