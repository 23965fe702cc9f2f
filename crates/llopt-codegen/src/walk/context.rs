//! The warps that execute a piece of code: all warps of a block, or a partition of `ttg.warp_specialize`.
//!
//! Code that depends on the number of threads, on the number of the current thread, or that waits for all threads
//! asks the context, so that the code of an op is the same in all contexts. The number of a thread counts from the
//! context's first warp.

/// The warps that execute a piece of code together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionContext {
    /// The number of the first of them in the block.
    pub(crate) first_warp: u32,
    /// Their number, a power of two.
    pub(crate) warps: u32,
    /// The barrier at which they wait for one another; `None` if they are all warps of the block.
    pub(crate) barrier: Option<u32>,
}

impl ExecutionContext {
    /// All warps of a block.
    pub(crate) fn block(warps: u32) -> Self {
        Self {
            first_warp: 0,
            warps,
            barrier: None,
        }
    }
}
