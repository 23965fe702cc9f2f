//! Memory: global and shared memory, the cost of accesses, the copy engine, and the order of accesses.

pub(crate) mod access;
pub(crate) mod banks;
pub(crate) mod bulk;
pub(crate) mod bulk_groups;
pub(crate) mod clocks;
pub(crate) mod descriptors;
pub(crate) mod footprint;
pub(crate) mod global;
pub(crate) mod knowledge;
pub(crate) mod lives;
pub(crate) mod problem;
pub(crate) mod shadow;
pub(crate) mod ticks;
pub(crate) mod transaction_barrier;
pub(crate) mod transfer;
pub(crate) mod watch;
