//! Costs of labels and of pairs of labels.

/// A cost; addition saturates, and [`IMPOSSIBLE`] stays impossible.
pub type Cost = u64;

/// The cost of a choice that must not be made.
pub const IMPOSSIBLE: Cost = u64::MAX;
