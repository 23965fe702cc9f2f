//! Accesses to memory: how wide they are, what they touch, how buffers in shared memory are arranged, and what a wait for
//! copies leaves outstanding.

pub mod atomic;
pub mod buffer;
pub mod copy_count;
pub mod copy_sectors;
pub mod global_access;
pub mod global_order;
pub mod lane_order;
pub mod operand_words;
pub mod ring;
pub mod scratch;
pub mod sectors;
pub mod shared_access;
pub mod warp_parts;
