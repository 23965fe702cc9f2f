//! Operations of groups of warps: products of four warps, and partitions with their own code.

mod partitions;
mod products;
mod ptx_registers;
