//! Memory: global and shared, what accesses to it cost, the copy engine, and who may see what when.

pub(crate) mod access;
pub(crate) mod banks;
pub(crate) mod bulk;
pub(crate) mod bulk_groups;
pub(crate) mod footprint;
pub(crate) mod global;
pub(crate) mod lives;
pub(crate) mod problem;
pub(crate) mod shadow;
pub(crate) mod ticks;
pub(crate) mod transaction_barrier;
pub(crate) mod transfer;
pub(crate) mod watch;
