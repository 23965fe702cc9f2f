//! Products of matrices.

pub(crate) mod dot;
mod instruction;
mod multiply_add;
mod otherwise;
pub(crate) mod scaled;
pub(crate) mod warp_group;
mod warp_group_fragments;
mod warp_group_operands;
