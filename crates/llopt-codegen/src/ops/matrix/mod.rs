//! Products of matrices.

pub(crate) mod dot;
mod multiply_add;
mod otherwise;
pub(crate) mod scaled;
pub(crate) mod warp_group;
