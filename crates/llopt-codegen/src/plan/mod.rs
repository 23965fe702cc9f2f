//! What the code of an op will do, decided before any of it is emitted.

pub mod access;
pub(crate) mod copy_count;
pub(crate) mod gather_plan;
pub(crate) mod lane_order;
pub mod legality;
pub mod request;
pub mod scratch;
