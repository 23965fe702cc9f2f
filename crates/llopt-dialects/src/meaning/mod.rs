//! What operations do, as far as all dialects share it: constants, rewriting, effects on memory.

pub mod effects;
pub mod facts;
pub mod fold;
pub mod kinds;
pub mod resource;
pub(crate) mod rewriting;
