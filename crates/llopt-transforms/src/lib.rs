//! Analyses and passes that stay at the level of layout-carrying tile IR.
//!
//! This crate never sees LLVM IR and never compares an architecture number: the capabilities of a target come from
//! `llopt-target`, and the algebra of layouts from `llopt-layout`.
//!
//! A folder is a subject, and its file beside it says what its passes have in common; a pass is public at the root by its
//! own name, wherever it is.
//!
//! | folder | what its passes decide, or its analyses know |
//! |---|---|
//! | [`layouts`] | the layout of each tensor, and with it the instruction of each product |
//! | [`pipelining`] | which loads are issued iterations ahead, into how many buffers, and who issues them |
//! | [`loops`] | nothing: transformations of loops, for other passes |
//! | `iterations` | which iterations a loop executes, and in what form |
//! | `programs` | which programs, or which part of one, a block computes |
//! | `addressing` | how memory is addressed: pointers, descriptors, buffers |
//! | `matrix` | products apart from their layouts: precision, scales, accumulators |
//! | `order` | the order of straight-line code |
//! | `shared_memory` | where buffers lie, and where barriers stand |
//! | `analysis` | facts about addresses and ranges, the flow of values, and the independent checker of layouts ([`ownership`]) |
//!
//! [`legalize`] converts around ops whose code cannot work on the layout that they have, [`narrow_arithmetic`] adds in 16 bits
//! what is rounded to 16 bits, and [`warp_groups`] distributes registers among partitions of warps.

mod addressing;
mod analysis;
mod iterations;
pub mod layouts;
pub mod legalize;
pub mod loops;
mod matrix;
pub mod narrow_arithmetic;
mod order;
mod pass_options;
pub mod pipelining;
mod programs;
pub mod request;
mod shared_memory;
pub mod warp_groups;

use llopt_mlir::pass::PassSpec;

pub use addressing::{
    block_pointers, buffer_ops, chosen_offsets, descriptor_blocks, descriptor_objects,
    descriptor_to_copy, descriptor_to_pointer, distinct_loads, narrow_sums, tensor_copies,
};
pub(crate) use addressing::{copied_loads, descriptor_parts, tile_addresses};
pub use analysis::{axis, ownership};
pub(crate) use analysis::{flow, program, ranges};
pub use iterations::{
    compact_iterations, decided_conditions, idle_iterations, invariant_conditions, invariant_loads,
    positive_bounds, row_iterations, whole_tiles, wide_iterations,
};
pub(crate) use matrix::chained_products;
pub use matrix::{accumulators, f32_dot, products, scaled_dot, widened_products};
pub use order::{
    early_asserts, early_loads, joined_reductions, late_loads, late_operands, reorder,
    staged_conversions,
};
pub(crate) use programs::{block_access, choice};
pub use programs::{dependent_launch, longest_first, persistent, split_k, tile_parts, unswitch};
pub use shared_memory::{allocation, barrier};

/// All passes of this crate.
pub static PASSES: &[&PassSpec] = &[
    &accumulators::REWRITE,
    &allocation::ALLOCATE,
    &allocation::global_scratch::ALLOCATE,
    &axis::PRINT_AXIS_INFO,
    &barrier::INSERT_BARRIERS,
    &block_pointers::REWRITE,
    &buffer_ops::REWRITE,
    &buffer_ops::DIVIDE,
    &compact_iterations::REWRITE,
    &decided_conditions::REWRITE,
    &dependent_launch::REWRITE,
    &chosen_offsets::REWRITE,
    &descriptor_blocks::SHARE,
    &descriptor_objects::REWRITE,
    &descriptor_to_copy::REWRITE,
    &descriptor_to_pointer::REWRITE,
    &distinct_loads::REWRITE,
    &early_asserts::ADVANCE,
    &early_loads::ISSUE,
    &f32_dot::REWRITE,
    &idle_iterations::REWRITE,
    &invariant_conditions::REWRITE,
    &invariant_loads::REWRITE,
    &joined_reductions::JOIN,
    &layouts::ASSIGN_LAYOUTS,
    &layouts::COALESCE,
    &layouts::REMOVE_LAYOUT_CONVERSIONS,
    &layouts::OPTIMIZE_THREAD_LOCALITY,
    &layouts::OPTIMIZE_DOT_OPERANDS,
    &layouts::ACCELERATE_MATMUL,
    &layouts::ACCELERATE_MATMUL_AMD,
    &layouts::CONVERT,
    &layouts::OPTIMIZE_DOT_OPERANDS_AMD,
    &layouts::HOIST_CONVERSIONS_AMD,
    &layouts::OPTIMIZE_EPILOGUE_AMD,
    &layouts::REDUCE_DATA_DUPLICATION,
    &late_loads::SINK,
    &late_operands::SINK,
    &legalize::LEGALIZE,
    &longest_first::REWRITE,
    &narrow_arithmetic::REWRITE,
    &narrow_sums::REWRITE,
    &loops::CARRY_NUMBERS,
    &loops::FLATTEN,
    &loops::MERGE_INDUCTIONS,
    &loops::UNROLL,
    &ownership::VERIFY,
    &reorder::REORDER,
    &reorder::REORDER_AMD,
    &persistent::REWRITE,
    &positive_bounds::REWRITE,
    &pipelining::latencies::ASSIGN,
    &pipelining::stages::SCHEDULE,
    &pipelining::PIPELINE,
    &pipelining::prefetch::PREFETCH,
    &pipelining::SPREAD_COPIES,
    &pipelining::TAKE_TURNS,
    &row_iterations::REWRITE,
    &scaled_dot::REWRITE,
    &split_k::SPLIT,
    &staged_conversions::STAGE,
    &products::COMPLETE,
    &tensor_copies::REWRITE,
    &tile_parts::REWRITE,
    &unswitch::REWRITE,
    &warp_groups::ALLOCATE,
    &whole_tiles::REWRITE,
    &wide_iterations::REWRITE,
    &widened_products::REWRITE,
];

/// Registers the passes with the command line and with textual pipelines.
pub fn register() {
    for pass in PASSES {
        pass.register();
    }
}
