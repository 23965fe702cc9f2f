//! The layout engine: which layout each tensor has, so that the whole program costs least.

pub mod coalesced;
pub mod labelling;
