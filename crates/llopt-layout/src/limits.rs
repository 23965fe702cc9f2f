//! How large a layout may be.

/// The most bits of the inputs, and of the outputs, of a layout: 2^32 points.
pub const MAX_BITS: usize = 32;

/// The most input dimensions, and the most output dimensions, of a layout.
pub const MAX_DIMS: usize = 24;
