//! The warps, lanes and blocks that a program is laid out for.

/// The warps, lanes and blocks that a program is laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Warps for each block, a power of two.
    pub num_warps: u32,
    /// Lanes for each warp, a power of two.
    pub threads_per_warp: u32,
    /// Blocks for each cluster, a power of two.
    pub num_ctas: u32,
}
