//! Shared memory: where each buffer is, and where the warps of a block wait for one another because of it.

pub mod allocation;
pub mod barrier;
