//! A way to do something, and its price: what is shown of the ways that were not taken.

use serde::Serialize;

/// A way to gather, with its price in the target's cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Priced {
    /// `thread`, `shuffle` or `shared`.
    pub way: &'static str,
    /// The price.
    pub cost: f32,
}
