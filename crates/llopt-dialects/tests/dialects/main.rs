//! The dialects as text and as types: what is read, printed, refused and computed. One program holds all of it,
//! because each one more would link MLIR once more.

mod damage;
mod damaged;
mod encoding_fuzz;
mod round_trip;
mod syntax_coverage;
mod table;
mod transfers;
mod triton_conflicts;
mod triton_layouts;
mod triton_swizzles;
mod typed_ops;
