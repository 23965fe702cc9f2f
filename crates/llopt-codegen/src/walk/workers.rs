//! The warps beyond a kernel's own, which wait for partitions to run.

use inkwell::basic_block::BasicBlock;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::PartitionHooks;

/// The barrier at which the kernel's warps wait for one another.
pub(crate) const KERNEL_BARRIER: u32 = 0;
/// The barrier at which all warps of the block meet.
const MEETING: u32 = 1;
/// The workers of a kernel.
pub(crate) struct Workers<'ctx> {
    /// Where they begin.
    pub(crate) head: BasicBlock<'ctx>,
    /// Warps of the whole block, and of the kernel.
    pub(crate) warps: u32,
    pub(crate) kernel_warps: u32,
    /// Threads of a warp.
    pub(crate) lanes: u32,
    /// Registers of a thread at the start, where some op asks for others.
    pub(crate) registers: Option<u32>,
    /// Where the number of the op is.
    pub(crate) number: V<'ctx>,
    /// Names of the ops met so far.
    pub(crate) ops: Vec<usize>,
}

impl Workers<'_> {
    /// Waits for all warps of the block.
    pub(crate) fn meet(&self, e: &Emitter<'_>, hooks: &dyn PartitionHooks) {
        hooks.barrier_of(e, MEETING, self.warps * self.lanes);
    }
}
