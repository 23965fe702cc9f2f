//! The warps beyond a kernel's own, which wait for partitions to run.

use inkwell::basic_block::BasicBlock;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::PartitionHooks;

/// The barrier at which the kernel's warps wait for one another.
pub(crate) const KERNEL_BARRIER: u32 = 0;
/// The barrier at which all warps of the block synchronise.
const MEETING: u32 = 1;
/// The workers of a kernel.
pub(crate) struct Workers<'ctx> {
    /// Their first block.
    pub(crate) head: BasicBlock<'ctx>,
    /// Warps of the whole block, and of the kernel.
    pub(crate) warps: u32,
    pub(crate) kernel_warps: u32,
    /// Threads of a warp.
    pub(crate) lanes: u32,
    /// Registers of a thread at the start, if some op asks for other numbers.
    pub(crate) registers: Option<u32>,
    /// The address of the number of the op.
    pub(crate) number: V<'ctx>,
    /// Keys of the ops so far.
    pub(crate) ops: Vec<usize>,
}

impl Workers<'_> {
    /// Waits for all warps of the block.
    pub(crate) fn meet(&self, e: &Emitter<'_>, hooks: &dyn PartitionHooks) {
        hooks.barrier_of_all(e, MEETING);
    }
}
