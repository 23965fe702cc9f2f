//! Accesses to global and shared memory, atomics, and the shared memory of other blocks.

pub(crate) mod atomic;
pub(crate) mod cluster;
pub(crate) mod global;
pub(crate) mod lives;
pub(crate) mod local;
pub(crate) mod packed;
pub(crate) mod scratch;
pub(crate) mod shared;
mod turns;
