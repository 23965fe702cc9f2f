//! The compiler as its callers use it: the input is text, and the output is read, run on the simulated machine, or
//! compared with the reference interpreter. All tests are in one program, because every further program would link
//! LLVM and MLIR again.

mod barriers;
mod block_pointers;
mod build;
mod chosen_offsets;
mod contents;
mod copy_waits;
mod descriptors;
mod distinct_loads;
mod emitted;
mod examples;
mod idle_iterations;
mod indirect_loads;
mod kernels;
mod late_gathers;
mod late_operands;
mod layout_engine;
mod layout_products;
mod layout_programs;
mod loops;
mod loops_in_sequence;
mod narrow_codes;
mod order;
mod ping_pong;
mod positive_bounds;
mod prefetched_factors;
mod products_in_branches;
mod programs_in_loops;
mod programs_in_rows;
mod promises;
mod removals;
mod reuse;
mod row_iterations;
mod scaled_products;
mod shifted_sums;
mod split_k;
mod tensor_copies;
mod tile_parts;
mod uniform_inductions;
mod warp_groups;
mod whole_tiles;
mod wide_iterations;
