//! Operations that move elements between registers, lanes, warps and blocks.

pub(crate) mod conversion;
pub(crate) mod gather;
pub(crate) mod regroup;
pub(crate) mod shape;
pub(crate) mod slice;
