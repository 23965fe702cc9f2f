//! Who executes a piece of code: all warps of a block, or a group of them that `ttg.warp_specialize` sets apart.
//!
//! Whatever asks how many threads there are, which of them one is, or waits for all of them, asks the context, so
//! that the code of an op is the same in all of them. A number of a thread counts from the context's first warp.

/// The warps that execute a piece of code together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionContext {
    /// The number of the first of them in the block.
    pub(crate) first_warp: u32,
    /// How many they are, a power of two.
    pub(crate) warps: u32,
    /// The barrier at which they wait for one another; `None` where they are all warps of the block.
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
