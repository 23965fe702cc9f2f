//! What accesses to global memory cost a warp.
//!
//! An access is a number of instructions; each touches *sectors*, the smallest pieces that travel
//! between the memory behind the caches and a multiprocessor. A sector travels once and stays in the
//! first cache for the instructions that follow, so the distinct sectors of all instructions of an
//! access decide about traffic, and their number about issue and, for loads, about how long a warp
//! waits: few loads are under way at once, however wide they are.
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
    /// A line that a part of a load asks for beyond its first one. The lanes of a warp ask in parts of [`Self::line_bytes`]
    /// together: all of them for words, eight for 16 bytes each (CUDA C++ Programming Guide, "Global Memory").
    pub request: f32,
    /// Bytes of a line of the first cache, a power of two.
    pub line_bytes: u32,
    /// What a load waits for memory, as far as other warps and the loads before it do not hide it.
    pub wait: f32,
    /// Moving a sector between a multiprocessor and the memory behind its caches.
    pub sector: f32,
    /// A sector that the same access of the block has loaded already: a hit in the first cache.
    pub again: f32,
    /// A sector that the same access of the block stores to once more: nothing collects stores before
    /// the second cache.
    pub stored_again: f32,
    /// Loading a register of a warp again from private memory, because there are too few.
    pub reload: f32,
    /// Cycles until what a load asks for is there, from beyond the caches.
    pub latency: u32,
    /// Bytes that reach a multiprocessor each cycle from the cache that all share.
    pub shared_cache_bytes: u32,
}

/// On an H200, kernels that are bound by the load-store unit take about two cycles for an instruction. A
/// line is looked up in a cycle; loops of products in which each eight lanes ask for eight lines, by 16 bytes each, take
/// 1.6 to 2.0 for each, with what they wait for the lines.
/// `ptxas` keeps two loads of a loop under way, so that each pair is an exposed wait of about 600
/// cycles that the warps of a multiprocessor share. A multiprocessor's share of the memory is 10 (A100)
/// to 20 (H200) bytes for each cycle, its first cache serves four sectors.
const NVIDIA_COSTS: GlobalCosts = GlobalCosts {
    sector_bytes: 32,
    instruction: 2.0,
    request: 2.0,
    line_bytes: 128,
    wait: 4.0,
    sector: 3.0,
    again: 0.5,
    stored_again: 1.5,
    // A pass of the pipe that is shared memory's, too.
    reload: 1.02,
    // HBM on an H100, measured by arXiv 2402.13499; 64 bytes for each cycle between the second cache and an SM.
    latency: 570,
    shared_cache_bytes: 64,
};

/// A wave of 64 sends its addresses in four cycles. A compute unit's share of the memory is some eight
/// bytes for each cycle and its first cache serves 64; the counter of loads under way is deep, and the
/// compiler waits for them together.
const AMD_COSTS: GlobalCosts = GlobalCosts {
    sector_bytes: 64,
    instruction: 4.0,
    request: 0.0,
    line_bytes: 128,
    wait: 4.0,
    sector: 8.0,
    again: 1.0,
    stored_again: 4.0,
    // Four registers with one instruction, which a wave waits for; two sectors of the first cache for each.
    reload: 4.0,
    // `global_load` on gfx950 as measured for the schedules of a fork of Triton; 64 bytes for a compute unit.
    latency: 790,
    shared_cache_bytes: 64,
};

impl Target {
    /// What accesses to global memory cost.
    #[must_use]
    pub fn global_costs(self) -> GlobalCosts {
        match self.vendor() {
            Vendor::Nvptx => NVIDIA_COSTS,
            Vendor::Amdgpu => AMD_COSTS,
        }
    }
}
