//! Loops whose iterations overlap: when the parts of an iteration begin, and halves of a block that take turns.

pub mod schedule;
pub mod turns;
