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

/// A problem of tests: nodes with these costs, and edges whose costs follow from a number, some of them impossible and some known
/// only by a bound.
#[cfg(test)]
pub(super) fn drawn(nodes: &[Vec<u64>], edges: Vec<(usize, usize, u64)>) -> Problem<'static> {
    let mut problem = Problem::new();
    for costs in nodes {
        problem.add_node(costs.clone());
    }
    for (a, b, seed) in edges {
        let cost = move |x: usize, y: usize| {
            let mixed = seed.wrapping_mul((3 * x + 7 * y + 1) as u64 | 1) >> 32;
            if mixed % 11 == 0 {
                super::cost::IMPOSSIBLE
            } else {
                mixed % 30
            }
        };
        let known = move |x, y| match cost(x, y) % 7 {
            0 => super::cost::Known::Exactly(cost(x, y)),
            1 => super::cost::Known::Likely(cost(x, y)),
            2 => super::cost::Known::Likely(cost(x, y) - 2),
            more => super::cost::Known::AtLeast(cost(x, y) - more),
        };
        problem.add_edge_above(a % nodes.len(), b % nodes.len(), known, cost);
    }
    problem
}
