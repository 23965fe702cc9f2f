//! Analyses and passes that stay at the level of layout-carrying tile IR.
//!
//! This crate never sees LLVM IR and never compares an architecture number: the capabilities of a target come from
//! `llopt-target`, and the algebra of layouts from `llopt-layout`.

use llopt_mlir::pass::PassSpec;

pub mod accumulators;
pub mod allocation;
pub mod axis;
pub mod barrier;
pub mod block_pointers;
pub mod buffer_ops;
mod chained_products;
mod choice;
pub mod compact_iterations;
mod copied_loads;
pub mod dependent_launch;
pub mod descriptor_blocks;
pub mod descriptor_objects;
pub mod descriptor_to_copy;
pub mod descriptor_to_pointer;
pub mod early_loads;
pub mod f32_dot;
mod flow;
pub mod late_operands;
pub mod layouts;
pub mod legalize;
pub mod longest_first;
pub mod loops;
pub mod ownership;
pub mod persistent;
pub mod pipelining;
pub mod products;
mod program;
pub mod reorder;
pub mod request;
pub mod scaled_dot;
pub mod split_k;
pub mod staged_conversions;
pub mod tensor_copies;
mod tile_addresses;
pub mod tile_parts;
pub mod unswitch;
pub mod warp_groups;
pub mod whole_tiles;
pub mod wide_iterations;
pub mod widened_products;

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
    &dependent_launch::REWRITE,
    &descriptor_blocks::SHARE,
    &descriptor_objects::REWRITE,
    &descriptor_to_copy::REWRITE,
    &descriptor_to_pointer::REWRITE,
    &early_loads::ISSUE,
    &f32_dot::REWRITE,
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
    &late_operands::SINK,
    &legalize::LEGALIZE,
    &longest_first::REWRITE,
    &loops::FLATTEN,
    &loops::MERGE_INDUCTIONS,
    &loops::UNROLL,
    &ownership::VERIFY,
    &reorder::REORDER,
    &reorder::REORDER_AMD,
    &persistent::REWRITE,
    &pipelining::latencies::ASSIGN,
    &pipelining::stages::SCHEDULE,
    &pipelining::PIPELINE,
    &pipelining::prefetch::PREFETCH,
    &pipelining::TAKE_TURNS,
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
