//! The semantics of operations that all dialects share: constants, rewriting, effects on memory.

pub mod dimensions;
pub mod effects;
pub mod facts;
pub mod fold;
pub mod kinds;
pub mod resource;
pub(crate) mod rewriting;
