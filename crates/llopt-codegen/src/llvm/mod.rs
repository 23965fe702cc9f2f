//! LLVM itself: a builder that knows what we emit, optimisation, and the back ends.

pub(crate) mod addresses;
pub(crate) mod block_order;
pub(crate) mod c_api;
pub(crate) mod demand_order;
pub mod device_library;
pub mod diagnostics;
pub(crate) mod early_values;
pub mod emit;
pub mod emitter;
pub(crate) mod exchanges;
pub(crate) mod first_wait;
pub(crate) mod fragment_phis;
pub(crate) mod insertions;
pub(crate) mod instructions;
pub(crate) mod late_values;
pub(crate) mod library_search;
pub(crate) mod liveness;
pub mod machine;
pub mod optimize;
pub(crate) mod parts_where_taken;
pub(crate) mod recomputed;
pub(crate) mod recurrences;
pub(crate) mod strength_reduction;
pub(crate) mod trip_counts;
pub(crate) mod vector_arithmetic;
pub(crate) mod widened_bf16;
