//! What groups of warps do together: products of four warps, and partitions with code of their own.

mod partitions;
mod products;
mod ptx_registers;
