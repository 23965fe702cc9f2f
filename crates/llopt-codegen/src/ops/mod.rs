//! The code of each operation, by family.

pub(crate) mod asynchronous;
pub(crate) mod elementwise;
pub(crate) mod grid;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod movement;
pub(crate) mod reduction;
