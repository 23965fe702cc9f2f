//! The layout engine: which layout each tensor has, so that the whole program costs least.
//!
//! [`assign()`] gives every tensor of a module without layouts a layout. Memory accesses propose the
//! layouts in which they are [`coalesced`]; proposals flow along uses and definitions through every
//! op that relates the layouts of its operands and results; and what is chosen among them is the
//! solution of a [`labelling`] problem, in which every op has its cost in each layout and every
//! conversion the cost of its cheapest plan, weighted by how often it runs. Conversions are then put
//! where producer and consumer differ.

mod access;
mod accesses;
mod account;
mod ahead;
mod arriving;
mod assign;
mod bringing;
mod buffer;
mod candidates;
mod catalog;
pub mod coalesced;
mod combining;
mod computing;
mod constant;
mod cost;
mod engine;
mod factor_arithmetic;
mod factors;
mod facts;
mod fewest_accesses;
mod following;
mod frequency;
mod graph;
mod grid;
mod in_threads;
mod kept;
pub mod labelling;
mod live_registers;
mod locality;
mod offset_sums;
mod parts;
mod pass;
mod pins;
mod pressure;
mod problem;
mod product_memory;
mod product_plans;
mod product_time;
mod products;
mod recompute;
mod relation;
mod residency;
mod rewriting;
mod search;
mod shifted_sums;
mod skipped;
mod slices;
mod stored;
mod transposed_products;
mod transposing;
mod within_warps;
mod write;
mod written;

pub use account::{Account, Narrow, Place, Remaining};
pub use assign::{assign, assign_with_account};
pub(crate) use frequency::times;
pub use graph::Unrelated;
pub use grid::Grid;
pub(crate) use parts::parts_of;
pub use pass::{
    ACCELERATE_MATMUL, ACCELERATE_MATMUL_AMD, ASSIGN_LAYOUTS, COALESCE, CONVERT,
    HOIST_CONVERSIONS_AMD, OPTIMIZE_DOT_OPERANDS, OPTIMIZE_DOT_OPERANDS_AMD, OPTIMIZE_EPILOGUE_AMD,
    OPTIMIZE_THREAD_LOCALITY, REDUCE_DATA_DUPLICATION, REMOVE_LAYOUT_CONVERSIONS,
};
pub(crate) use product_plans::shares_of;
pub use product_plans::unit_layout;
pub(crate) use products::elements_of;
pub(crate) use write::retype_function;
pub use written::{Accessed, Priced, Written, written};
