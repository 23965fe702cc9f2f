//! What groups of warps that run code of their own need of a target.

use crate::llvm::emitter::{Emitter, V};

/// The instructions for groups of warps of a block.
pub trait PartitionHooks {
    /// Waits at barrier `id` until so many threads have come.
    fn barrier_of<'ctx>(&self, e: &Emitter<'ctx>, id: u32, threads: u32);

    /// How many barriers a block has.
    fn barriers(&self) -> u32;

    /// Gives registers back, or waits until there are so many for each thread. Whole groups of four warps do this.
    fn change_registers<'ctx>(&self, e: &Emitter<'ctx>, from: u32, to: u32);

    /// A number that is the same in all lanes of a warp, as one that the hardware knows to be the same.
    fn of_warp<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx>;
}
