//! Choosing one of several labels for each node of a graph so that the sum of all costs is least.
//!
//! # The problem
//!
//! Each node has a cost for each of its labels; each edge has a cost for each pair of labels of its
//! two ends. Here the nodes are ops, the labels candidate layouts, the cost of a label what the op
//! itself costs in that layout (a memory access that cannot be coalesced, work repeated by threads
//! that hold the same element), and the cost of an edge what it takes to convert the producer's
//! layout to the one that the consumer wants. The problem is known as a partitioned Boolean
//! quadratic problem; compilers solve it to choose registers and instructions. It is NP-hard in
//! general and easy on the graphs of programs, which are close to trees.
//!
//! # The algorithm
//!
//! Nodes are taken out one by one, and their costs passed on to those that stay:
//!
//! - **R0**: a node without edges takes its cheapest label.
//! - **R1**: a node with one edge is folded into its neighbour: to each label of the neighbour is
//!   added the least that the node and the edge can cost then.
//! - **R2**: a node with two edges is folded into an edge between its neighbours in the same way.
//! - **RN**: of the nodes with more edges, the one with the most is given the label whose cost, with
//!   the least that each edge and neighbour can then cost, is smallest.
//!
//! Going back, each node takes its cheapest label for the labels of its neighbours. The first three
//! steps lose nothing: without RN the result is optimal, on every tree and on every
//! series-parallel graph. After RN, labels are changed one node at a time for as long as that helps.
//!
//! Ties are broken by the smaller label, then the smaller node: equal problems have equal solutions,
//! and the first label of each node is its preferred one.

use std::collections::BTreeMap;

/// A cost; addition saturates, and [`IMPOSSIBLE`] stays impossible.
pub type Cost = u64;

/// The cost of what must not be chosen.
pub const IMPOSSIBLE: Cost = u64::MAX;

/// A graph with the costs of labels and of pairs of labels.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    nodes: Vec<Vec<Cost>>,
    /// By smaller node and larger node: costs by (label of the smaller, label of the larger).
    edges: BTreeMap<(usize, usize), Vec<Vec<Cost>>>,
}

/// A label for each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelling {
    /// The label of each node.
    pub labels: Vec<usize>,
    /// The sum of all costs.
    pub cost: Cost,
    /// Whether no labelling costs less.
    pub is_optimal: bool,
}

impl Problem {
    /// A problem without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node with the costs of its labels, of which there is at least one, and returns its
    /// number.
    pub fn add_node(&mut self, costs: Vec<Cost>) -> usize {
        assert!(!costs.is_empty(), "a node has at least one label");
        self.nodes.push(costs);
        self.nodes.len() - 1
    }

    /// Adds `cost(label of a, label of b)` to what the pair costs already. An edge from a node to
    /// itself is a cost of its labels.
    pub fn add_edge(&mut self, a: usize, b: usize, cost: impl Fn(usize, usize) -> Cost) {
        if a == b {
            for (label, total) in self.nodes[a].iter_mut().enumerate() {
                *total = total.saturating_add(cost(label, label));
            }
            return;
        }
        let (low, high) = (a.min(b), a.max(b));
        let (rows, columns) = (self.nodes[low].len(), self.nodes[high].len());
        let matrix = self
            .edges
            .entry((low, high))
            .or_insert_with(|| vec![vec![0; columns]; rows]);
        for (row, costs) in matrix.iter_mut().enumerate() {
            for (column, total) in costs.iter_mut().enumerate() {
                let (of_a, of_b) = if a == low {
                    (row, column)
                } else {
                    (column, row)
                };
                *total = total.saturating_add(cost(of_a, of_b));
            }
        }
    }

    /// What a labelling costs.
    pub fn cost(&self, labels: &[usize]) -> Cost {
        let nodes = self.nodes.iter().zip(labels);
        let nodes = nodes.map(|(costs, &label)| costs[label]);
        let edges = self.edges.iter();
        let edges = edges.map(|(&(a, b), matrix)| matrix[labels[a]][labels[b]]);
        nodes.chain(edges).fold(0, Cost::saturating_add)
    }

    /// A labelling of small cost, the smallest if the graph reduces (see the module's text).
    pub fn solve(&self) -> Labelling {
        let mut reduction = Reduction::of(self);
        let mut is_optimal = true;
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = reduction.next() {
            if reduction.neighbours[node].len() > 2 {
                is_optimal = false;
                reduction.fix(node);
            } else {
                reduction.fold(node);
            }
            order.push(node);
        }
        let mut labels = vec![0; self.nodes.len()];
        for &node in order.iter().rev() {
            labels[node] = reduction.best_label(node, &labels);
        }
        if !is_optimal {
            self.improve(&mut labels);
        }
        Labelling {
            cost: self.cost(&labels),
            labels,
            is_optimal,
        }
    }

    /// Changes labels one node at a time while that lowers the cost.
    fn improve(&self, labels: &mut [usize]) {
        let adjacent = Reduction::of(self);
        loop {
            let mut changed = false;
            for node in 0..self.nodes.len() {
                let local = |label: usize, labels: &[usize]| {
                    adjacent.neighbours[node]
                        .iter()
                        .map(|(&other, matrix)| matrix[label][labels[other]])
                        .fold(self.nodes[node][label], Cost::saturating_add)
                };
                let best = adjacent.best_label(node, labels);
                if local(best, labels) < local(labels[node], labels) {
                    labels[node] = best;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// A problem being reduced: what is left of it, and for nodes that were taken out what is needed to
/// label them afterwards.
struct Reduction {
    costs: Vec<Vec<Cost>>,
    /// For each node its neighbours and the costs by (own label, neighbour's label). A node that
    /// was taken out keeps the edges it had then.
    neighbours: Vec<BTreeMap<usize, Vec<Vec<Cost>>>>,
    taken: Vec<bool>,
}

impl Reduction {
    fn of(problem: &Problem) -> Self {
        let mut neighbours = vec![BTreeMap::new(); problem.nodes.len()];
        for (&(a, b), matrix) in &problem.edges {
            neighbours[b].insert(a, transposed(matrix));
            neighbours[a].insert(b, matrix.clone());
        }
        Self {
            costs: problem.nodes.clone(),
            neighbours,
            taken: vec![false; problem.nodes.len()],
        }
    }

    /// The node to take out next: one with at most two edges if there is one, fewest first; else
    /// the one with most.
    fn next(&self) -> Option<usize> {
        let left = || (0..self.costs.len()).filter(|&node| !self.taken[node]);
        let degree = |&node: &usize| self.neighbours[node].len();
        let fewest = left().min_by_key(degree)?;
        if degree(&fewest) <= 2 {
            return Some(fewest);
        }
        left().min_by_key(|node| std::cmp::Reverse(degree(node)))
    }

    /// Takes out a node with at most two edges and passes its costs on (R0, R1, R2).
    fn fold(&mut self, node: usize) {
        self.taken[node] = true;
        let edges: Vec<(usize, Vec<Vec<Cost>>)> =
            self.neighbours[node].clone().into_iter().collect();
        let costs = &self.costs[node];
        let least = |extra: &dyn Fn(usize) -> Cost| {
            let totals = costs.iter().enumerate();
            let totals = totals.map(|(label, cost)| cost.saturating_add(extra(label)));
            totals.min().unwrap_or(0)
        };
        match &edges[..] {
            [(one, to_one)] => {
                let added: Vec<Cost> = (0..self.costs[*one].len())
                    .map(|label| least(&|own| to_one[own][label]))
                    .collect();
                self.neighbours[*one].remove(&node);
                for (total, added) in self.costs[*one].iter_mut().zip(added) {
                    *total = total.saturating_add(added);
                }
            }
            [(one, to_one), (two, to_two)] => {
                let pair = |a: usize, b: usize| {
                    least(&|own| to_one[own][a].saturating_add(to_two[own][b]))
                };
                let matrix: Vec<Vec<Cost>> = (0..self.costs[*one].len())
                    .map(|a| (0..self.costs[*two].len()).map(|b| pair(a, b)).collect())
                    .collect();
                for end in [one, two] {
                    self.neighbours[*end].remove(&node);
                }
                let mirrored = transposed(&matrix);
                add(&mut self.neighbours[*one], *two, matrix);
                add(&mut self.neighbours[*two], *one, mirrored);
            }
            _ => {}
        }
    }

    /// Takes out a node by deciding on its label (RN): its edges become costs of its neighbours.
    fn fix(&mut self, node: usize) {
        self.taken[node] = true;
        let estimate = |label: usize| {
            let edges = self.neighbours[node].iter().map(|(&other, matrix)| {
                let totals = matrix[label].iter().zip(&self.costs[other]);
                totals
                    .map(|(edge, own)| edge.saturating_add(*own))
                    .min()
                    .unwrap_or(0)
            });
            edges.fold(self.costs[node][label], Cost::saturating_add)
        };
        let label = (0..self.costs[node].len())
            .min_by_key(|&label| estimate(label))
            .unwrap_or(0);
        for (other, matrix) in std::mem::take(&mut self.neighbours[node]) {
            self.neighbours[other].remove(&node);
            for (total, added) in self.costs[other].iter_mut().zip(&matrix[label]) {
                *total = total.saturating_add(*added);
            }
        }
        for (candidate, cost) in self.costs[node].iter_mut().enumerate() {
            if candidate != label {
                *cost = IMPOSSIBLE;
            }
        }
    }

    /// The cheapest label of a node for the labels of its neighbours.
    fn best_label(&self, node: usize, labels: &[usize]) -> usize {
        let total = |label: usize| {
            let edges = self.neighbours[node].iter();
            let edges = edges.map(|(&other, matrix)| matrix[label][labels[other]]);
            edges.fold(self.costs[node][label], Cost::saturating_add)
        };
        (0..self.costs[node].len())
            .min_by_key(|&label| total(label))
            .unwrap_or(0)
    }
}

fn transposed(matrix: &[Vec<Cost>]) -> Vec<Vec<Cost>> {
    let columns = matrix.first().map_or(0, Vec::len);
    (0..columns)
        .map(|column| matrix.iter().map(|row| row[column]).collect())
        .collect()
}

/// Adds the costs of an edge to those it has already.
fn add(edges: &mut BTreeMap<usize, Vec<Vec<Cost>>>, to: usize, matrix: Vec<Vec<Cost>>) {
    match edges.get_mut(&to) {
        None => {
            edges.insert(to, matrix);
        }
        Some(known) => {
            for (known, added) in known.iter_mut().flatten().zip(matrix.into_iter().flatten()) {
                *known = known.saturating_add(added);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least cost, by trying everything.
    fn least(problem: &Problem) -> Cost {
        let mut labels = vec![0; problem.nodes.len()];
        let mut best = problem.cost(&labels);
        loop {
            let next = (0..labels.len()).find(|&node| {
                labels[node] += 1;
                if labels[node] < problem.nodes[node].len() {
                    return true;
                }
                labels[node] = 0;
                false
            });
            if next.is_none() {
                return best;
            }
            best = best.min(problem.cost(&labels));
        }
    }

    #[test]
    fn a_conversion_goes_where_it_is_cheapest() {
        // load -> add -> store: the load wants layout 0, the store layout 1, converting after the
        // load costs 8 and before the store 4.
        let mut problem = Problem::new();
        let load = problem.add_node(vec![0, 100]);
        let add = problem.add_node(vec![0, 0]);
        let store = problem.add_node(vec![100, 0]);
        problem.add_edge(load, add, |a, b| if a == b { 0 } else { 8 });
        problem.add_edge(add, store, |a, b| if a == b { 0 } else { 4 });
        let expected = Labelling {
            labels: vec![0, 0, 1],
            cost: 4,
            is_optimal: true,
        };
        assert_eq!(problem.solve(), expected);
    }

    #[test]
    fn the_first_label_is_preferred_among_equals() {
        let mut problem = Problem::new();
        let nodes: Vec<usize> = (0..5).map(|_| problem.add_node(vec![3, 3, 3])).collect();
        for pair in nodes.windows(2) {
            problem.add_edge(pair[0], pair[1], |a, b| if a == b { 0 } else { 1 });
        }
        assert_eq!(problem.solve().labels, [0; 5]);
    }

    fn problems(nodes: usize, edges: usize) -> impl Strategy<Value = Problem> {
        let costs = || prop::collection::vec(0..20u64, 1..4);
        let edge = (any::<usize>(), any::<usize>(), any::<u64>());
        (
            prop::collection::vec(costs(), 1..nodes),
            prop::collection::vec(edge, 0..=edges),
        )
            .prop_map(|(nodes, edges)| {
                let mut problem = Problem::new();
                for costs in nodes {
                    problem.add_node(costs);
                }
                let count = problem.nodes.len();
                for (a, b, seed) in edges {
                    problem.add_edge(a % count, b % count, |x, y| {
                        let mixed = seed.wrapping_mul((3 * x + 7 * y + 1) as u64 | 1);
                        (mixed >> 32) % 12
                    });
                }
                problem
            })
    }

    proptest! {
        #[test]
        fn claimed_optima_are_optima_and_the_others_are_close(problem in problems(7, 10)) {
            let solution = problem.solve();
            let least = least(&problem);
            prop_assert_eq!(problem.cost(&solution.labels), solution.cost);
            prop_assert!(solution.cost >= least);
            if solution.is_optimal {
                prop_assert_eq!(solution.cost, least);
            }
        }

        #[test]
        fn trees_are_solved_exactly(problem in problems(8, 0), parents in prop::collection::vec(any::<(usize, u64)>(), 8)) {
            let mut problem = problem;
            let count = problem.nodes.len();
            for (node, (parent, seed)) in parents.into_iter().enumerate().take(count).skip(1) {
                problem.add_edge(parent % node, node, |x, y| (seed >> (8 * (x + y))) % 12);
            }
            let solution = problem.solve();
            prop_assert!(solution.is_optimal);
            prop_assert_eq!(solution.cost, least(&problem));
        }
    }
}
