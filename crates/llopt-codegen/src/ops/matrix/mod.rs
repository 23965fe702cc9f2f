//! Products of matrices.

pub(crate) mod dot;
pub(crate) mod scaled;
pub(crate) mod warp_group;
