//! Which iterations a loop over tiles executes: none that are skipped or idle, two as one, several as rows of a tile, and
//! those of whole tiles without masks; and conditions and loads that are the same in all of them.
//!
//! These rewrites come before there are layouts. Each is done where the result is proved to be the same and the model
//! predicts a gain.

pub mod compact_iterations;
pub mod decided_conditions;
pub mod idle_iterations;
pub mod invariant_conditions;
pub mod invariant_loads;
pub mod positive_bounds;
pub mod row_iterations;
pub mod whole_tiles;
pub mod wide_iterations;
