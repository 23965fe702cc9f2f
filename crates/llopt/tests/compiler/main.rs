//! The compiler as its callers meet it: kernels go in as text, and what comes out is read, run on the simulated
//! machine, or compared with the reference interpreter. One program holds all of it, because each one more would
//! link LLVM and MLIR once more.

mod barriers;
mod block_pointers;
mod build;
mod copy_waits;
mod examples;
mod kernels;
mod late_gathers;
mod late_operands;
mod layout_engine;
mod layout_products;
mod layout_programs;
mod loops;
mod narrow_codes;
mod reuse;
mod scaled_products;
mod warp_groups;
