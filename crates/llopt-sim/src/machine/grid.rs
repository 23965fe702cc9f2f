//! The grid of a launch, as its blocks use it.

use llopt_target::Target;

/// Data that all blocks of a launch share.
pub(crate) struct Grid {
    pub(crate) target: Target,
    pub(crate) blocks: [u32; 3],
    pub(crate) block_threads: [u32; 3],
    /// Values of the kernel's parameter leaves.
    pub(crate) arguments: Vec<u64>,
    /// Static and dynamic shared memory.
    pub(crate) shared_bytes: u64,
    pub(crate) sanitize: bool,
    /// Whether it may start before the kernel before it has ended.
    pub(crate) overlaps: bool,
    /// Whether the program order also orders the lanes of a warp.
    pub(crate) lockstep: bool,
    /// Whether barriers order memory only together with fences.
    pub(crate) fences_order: bool,
    pub(crate) instruction_limit: u64,
    pub(crate) hidden_arguments: u64,
    /// Blocks of a cluster, along x.
    pub(crate) cluster: u32,
}

impl Grid {
    pub(crate) fn threads(&self) -> u32 {
        self.block_threads.iter().product()
    }
}
