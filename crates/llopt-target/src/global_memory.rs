//! The prices of accesses to global memory.
//!
//! An access is a number of instructions; each touches *sectors*, the smallest unit of transfer between the memory
//! behind the caches and a multiprocessor. A sector is transferred once and stays in the first-level cache for the
//! following instructions, so the distinct sectors of all instructions of an access determine the traffic. The number
//! of instructions determines the issue time and, for loads, how long a warp waits: few loads are outstanding at
//! once, however wide they are.
//!
//! The unit is that of [`llopt_layout::plan::Costs`], a cycle of the pipe of shared memory.

use crate::{Target, Vendor};

/// Prices of accesses to global memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalCosts {
    /// Bytes of a sector, a power of two.
    pub sector_bytes: u32,
    /// Issuing one instruction of a warp.
    pub instruction: f32,
    /// A line that a part of a load requests beyond its first one. The lanes of a warp make their requests in parts
    /// of [`Self::line_bytes`]: all of them for words, eight for 16 bytes each (CUDA C++ Programming Guide, "Global
    /// Memory").
    pub request: f32,
    /// Bytes of a line of the first-level cache, a power of two.
    pub line_bytes: u32,
    /// The part of a load's wait for memory that other warps and earlier loads do not hide.
    pub wait: f32,
    /// Moving a sector between a multiprocessor and the memory behind its caches.
    pub sector: f32,
    /// A sector that the same access of the block has loaded already: a hit in the first-level cache.
    pub again: f32,
    /// A sector to which the same access of the block stores once more: nothing combines stores before the
    /// second-level cache, so each part of a sector is sent there by itself.
    pub stored_again: f32,
    /// Reloading a spilled register of a warp from private memory.
    pub reload: f32,
    /// Cycles until the data of a load arrive from memory, beyond the caches.
    pub latency: u32,
    /// The same while all multiprocessors request as many bytes as can reach them: requests wait in queues.
    pub loaded_latency: u32,
    /// Bytes that reach a multiprocessor in each cycle from the cache that all multiprocessors share.
    pub shared_cache_bytes: u32,
    /// Bytes of a cycle by which few multiprocessors fall short of what memory delivers, each: `n` of them that do nothing
    /// else read `w` bytes in `w / memory + w / (n * streamed_bytes)` cycles.
    pub streamed_bytes: u32,
    /// Bytes that stay in that cache from one program to the next, where many programs read them at the same time.
    pub kept_bytes: u32,
}

/// On an H200, kernels that are bound by the load-store unit take about two cycles for an instruction. The lookup of
/// a line takes one cycle; loops of products in which every eight lanes request eight lines, 16 bytes each, take 1.6
/// to 2.0 cycles for each, including the wait for the lines. `ptxas` keeps two loads of a loop outstanding, so that
/// each pair is an exposed wait of about 600 cycles that the warps of a multiprocessor share. A multiprocessor's
/// share of the memory is 10 (A100) to 20 (H200) bytes for each cycle, its first-level cache serves four sectors. No warp
/// waits for a store, so a part of a sector that is stored by itself takes what it takes in kernels whose blocks hide waits,
/// where it is fitted.
const NVIDIA_COSTS: GlobalCosts = GlobalCosts {
    sector_bytes: 32,
    instruction: 2.0,
    request: 2.0,
    line_bytes: 128,
    wait: 4.0,
    sector: 3.0,
    again: 0.5,
    stored_again: 2.5,
    // A wavefront of the pipe, which is also that of shared memory.
    reload: 1.02,
    // HBM on an H100, measured by arXiv 2402.13499; 64 bytes per cycle between the second-level cache and an SM.
    latency: 570,
    // A product of 256 x 8192² on an H100: with three buffers of 32 KiB outstanding an iteration takes 0.49 to 0.53
    // microseconds, which is the time of a buffer by Little's law when multiplied by three.
    loaded_latency: 2400,
    shared_cache_bytes: 64,
    // An H100 with deep rings of buffers reads 128 MiB of weights in 45.5 to 47 microseconds by 128 blocks, in up to 5 %
    // more by 64, and in 50 to 54 by 32. By 32 and 128 this is 280 at 1.98 GHz, which gives 48 microseconds by 64.
    streamed_bytes: 280,
    // Of the 50 MB of an H100, each half of the multiprocessors has 25, and what is stored passes through it as well.
    kept_bytes: 16 << 20,
};

/// The same where the warps of several blocks hide waits, so that only what occupies a unit counts: the lookup of a line
/// takes one cycle, however many of its sectors are wanted. *Fitted* to whole kernels on an H100, a half of them, and
/// judged on the others (`docs/performance/layouts.md`, "Costs beside times"): a load's wait is mostly hidden, and a part
/// of a sector that is stored by itself takes 2.5 cycles, as in [`NVIDIA_COSTS`]; with 1.5 to 4 the kernels are in the same order.
const NVIDIA_COSTS_AMONG_BLOCKS: GlobalCosts = GlobalCosts {
    request: 1.0,
    wait: 1.0,
    again: 0.0,
    ..NVIDIA_COSTS
};

/// A wave of 64 sends its addresses in four cycles. A compute unit's share of the memory is about eight bytes per
/// cycle, and its first-level cache serves 64; the counter of outstanding loads is large, and the compiler waits for
/// all of them together.
const AMD_COSTS: GlobalCosts = GlobalCosts {
    sector_bytes: 64,
    instruction: 4.0,
    request: 0.0,
    line_bytes: 128,
    wait: 4.0,
    sector: 8.0,
    again: 1.0,
    stored_again: 4.0,
    // Four registers with one instruction, which a wave waits for; two sectors of the first-level cache for each.
    reload: 4.0,
    // `global_load` on gfx950 as measured for the schedules of a fork of Triton; 64 bytes for a compute unit.
    // The loaded one has not been measured.
    latency: 790,
    loaded_latency: 790,
    shared_cache_bytes: 64,
    // Not measured; as on an H100.
    streamed_bytes: 280,
    // The second-level cache of one of the dies (MI300X), which each have an eighth of the blocks.
    kept_bytes: 4 << 20,
};

impl Target {
    /// The prices of accesses to global memory by a block that has its multiprocessor to itself.
    #[must_use]
    pub fn global_costs(self) -> GlobalCosts {
        match self.vendor() {
            Vendor::Nvptx => NVIDIA_COSTS,
            Vendor::Amdgpu => AMD_COSTS,
        }
    }

    /// The prices of accesses to global memory by one of several blocks of a multiprocessor, each of which works while
    /// others wait. Those of AMD have not been measured apart.
    #[must_use]
    pub fn global_costs_among_blocks(self) -> GlobalCosts {
        match self.vendor() {
            Vendor::Nvptx => NVIDIA_COSTS_AMONG_BLOCKS,
            Vendor::Amdgpu => AMD_COSTS,
        }
    }
}
