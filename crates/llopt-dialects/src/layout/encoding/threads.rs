//! The threads for which a layout is made.

use super::CgaLayout;

/// The numbers of threads for which a distributed layout is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Lanes of a warp.
    pub lanes: u32,
    /// Warps of a block.
    pub warps: u32,
    /// Blocks of a cluster.
    pub blocks: u32,
}

impl Threads {
    /// For warps of so many lanes, arranged in a grid, in the blocks of a cluster.
    pub(super) fn of_grid(lanes: u32, warps_per_cta: &[u32], cga_layout: &CgaLayout) -> Self {
        Self {
            lanes,
            warps: warps_per_cta.iter().product(),
            blocks: cga_layout.num_blocks(),
        }
    }
}
