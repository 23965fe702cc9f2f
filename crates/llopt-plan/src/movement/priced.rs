//! A kind of plan with its price: what is shown of the plans that were not taken.

use serde::Serialize;

/// A kind of plan of a gather, with its price in the target's cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Priced {
    /// `thread`, `shuffle` or `shared`.
    pub way: &'static str,
    /// The price.
    pub cost: f32,
}
