//! The dialects as text and as types: what is read, printed, rejected and computed. All of it is one program, because
//! each program links MLIR once more.

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
