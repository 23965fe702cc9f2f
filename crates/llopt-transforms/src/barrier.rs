//! Barriers: where the warps of a block must wait for one another so that shared memory holds what
//! the program says.

pub mod placement;
