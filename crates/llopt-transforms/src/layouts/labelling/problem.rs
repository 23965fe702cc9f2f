//! A problem of labelling, and its solution.

use std::collections::BTreeMap;

use super::cost::Cost;
use super::edges::EdgeCosts;

/// A graph with the costs of labels and of pairs of labels.
#[derive(Clone, Debug, Default)]
pub struct Problem<'f> {
    pub(super) nodes: Vec<Vec<Cost>>,
    /// By smaller node and larger node: costs by (label of the smaller, label of the larger).
    pub(super) edges: BTreeMap<(usize, usize), EdgeCosts<'f>>,
}

/// A label for each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelling {
    /// The label of each node.
    pub labels: Vec<usize>,
    /// The sum of all costs.
    pub cost: Cost,
    /// Whether the labelling is known to cost the least.
    pub is_optimal: bool,
    /// A lower bound of the cost of all labellings.
    pub bound: Cost,
}
