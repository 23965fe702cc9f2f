//! How elements are combined: each with those of other tensors, along an axis, or over the blocks of a cluster.

pub mod cluster_sum;
pub mod elementwise;
pub mod reduction;
pub mod scan;
