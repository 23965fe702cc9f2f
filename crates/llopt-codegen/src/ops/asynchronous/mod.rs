//! Asynchronous copies, and waits for them.

pub(crate) mod bulk_copy;
pub(crate) mod copy_to_shared;
pub(crate) mod copy_wait;
pub(crate) mod schedule;
pub(crate) mod transaction_barrier;
