//! How the tiles of global memory are addressed.
//!
//! A program may name a tile by a tensor of pointers, by a pointer to a tile that it advances, or by a descriptor of
//! the whole tensor. Hardware takes pointers everywhere, offsets of 32 bits into a buffer on AMD, and descriptors where
//! there is a unit for tensor copies. The passes here turn one form into another: what the program has into what the
//! target executes, and pointers into descriptors or buffers where that costs less.

pub mod block_pointers;
pub mod buffer_ops;
pub mod chosen_offsets;
pub(crate) mod copied_loads;
pub mod descriptor_blocks;
pub mod descriptor_objects;
pub(crate) mod descriptor_parts;
pub mod descriptor_to_copy;
pub mod descriptor_to_pointer;
pub mod distinct_loads;
pub mod narrow_sums;
pub mod tensor_copies;
pub(crate) mod tile_addresses;
