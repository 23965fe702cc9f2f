//! The search for the labelling of least cost among the labels that bounds leave, or for a better one than one that is
//! known, where the graph is too dense for that.

use super::edges::Edge;
use super::elimination::{eliminate, open_edges};
use super::order::{MOST_ENTRIES, Order, obstacles};
use super::problem::Problem;

/// Entries of a table of a search in which some nodes keep their labels.
const LARGEST_TABLE: usize = 1 << 13;

impl<'f> Problem<'f> {
    /// The labels of least cost, if the graph is not too dense for that.
    pub(super) fn optimum(&self) -> Option<Vec<usize>> {
        let useful = self.without_dominated(&self.neighbours());
        let order = self.order(&useful)?;
        Some(eliminate(self, &useful, order))
    }

    /// A labelling that costs no more than this one: all nodes get the labels that are best together but for those without which
    /// tables are small, which keep theirs. Says how many times each node has kept its label, so that others keep
    /// theirs the next time.
    pub(super) fn optimum_beside_obstacles(
        &self,
        labels: &[usize],
        times: &mut [usize],
    ) -> Option<Vec<usize>> {
        // To find the dominated labels takes longer than to search among them all where most nodes cannot agree.
        let mut useful: Vec<Vec<usize>> = self
            .nodes
            .iter()
            .map(|costs| (0..costs.len()).collect())
            .collect();
        let choices: Vec<usize> = useful.iter().map(Vec::len).collect();
        for node in obstacles(&choices, &open_edges(self, &useful), LARGEST_TABLE, times) {
            times[node] += 1;
            useful[node] = vec![labels[node]];
        }
        let order = self.order(&useful)?;
        Some(eliminate(self, &useful, order))
    }

    /// The order in which to eliminate the nodes with these labels, if that takes no more than a search may.
    fn order(&self, useful: &[Vec<usize>]) -> Option<Order> {
        let choices: Vec<usize> = useful.iter().map(Vec::len).collect();
        Order::of(&choices, &open_edges(self, useful), MOST_ENTRIES)
    }

    /// The edges of each node.
    pub(super) fn neighbours(&self) -> Vec<Vec<Edge<'_, 'f>>> {
        let mut neighbours: Vec<Vec<Edge>> = vec![Vec::new(); self.nodes.len()];
        for (&(a, b), costs) in &self.edges {
            neighbours[a].push(Edge {
                other: b,
                is_low: true,
                costs,
            });
            neighbours[b].push(Edge {
                other: a,
                is_low: false,
                costs,
            });
        }
        neighbours
    }
}
