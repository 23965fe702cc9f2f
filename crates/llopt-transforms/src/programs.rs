//! Which programs of a grid a block computes, and when it begins.
//!
//! A launch names one program for each block. What a block computes may be more (one program after another), less (a
//! part of a tile, or of the iterations of a loop that a cluster shares), or in another order; and it may begin while
//! the kernel before it still runs. Each is a rewrite of the kernel that the launch must know of: the numbers of programs,
//! and of blocks, are no longer the same.

pub(crate) mod block_access;
pub(crate) mod choice;
pub mod dependent_launch;
pub mod longest_first;
pub mod persistent;
pub mod split_k;
pub mod tile_parts;
pub mod unswitch;
