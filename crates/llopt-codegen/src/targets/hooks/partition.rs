//! The requirements of warp partitions.

use crate::llvm::emitter::{Emitter, V};

/// The instructions for the warp partitions of a block.
pub trait PartitionHooks {
    /// Waits at barrier `id` until so many threads have arrived, all at this place of the code.
    fn barrier_of<'ctx>(&self, e: &Emitter<'ctx>, id: u32, threads: u32);

    /// Waits at barrier `id` until all threads of the block have arrived, at this place of the code or at others.
    fn barrier_of_all<'ctx>(&self, e: &Emitter<'ctx>, id: u32);

    /// The number of barriers of a block.
    fn barriers(&self) -> u32;

    /// Releases registers, or waits until there are so many for each thread. Whole groups of four warps execute this.
    fn change_registers<'ctx>(&self, e: &Emitter<'ctx>, from: u32, to: u32);

    /// A number that is the same in all lanes of a warp, in a form that the hardware knows to be uniform.
    fn of_warp<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx>;
}
