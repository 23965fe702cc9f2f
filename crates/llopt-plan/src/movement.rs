//! How elements reach other places: conversions, gathers, ops that renumber elements, and plans that the user forces.

pub mod cluster;
pub mod conversion;
pub mod gather;
pub mod priced;
pub mod regroup;
pub mod request;
