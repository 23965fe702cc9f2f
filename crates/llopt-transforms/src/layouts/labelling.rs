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
//! Nodes are taken out one by one. A node is *eliminated* by replacing all costs that speak of it by
//! one table over its neighbours: for each choice of their labels, the least that the node and those
//! costs can add. Nothing is lost, but the table has as many entries as its nodes have choices
//! together. The node with the smallest table goes first; a node without neighbours has a table with
//! one entry, one with one neighbour is folded into it, one with two becomes an edge between them.
//! On trees and series-parallel graphs, which most kernels are, nothing else happens.
//!
//! If even the smallest table would have more than `LARGEST_TABLE` entries, a node is *fixed*
//! instead: it is given the label whose cost, with the least that everything around it can then add,
//! is smallest. Without that, the result is optimal; with it, labels are changed one at a time
//! afterwards for as long as that helps.
//!
//! Going back, each node takes its cheapest label for the labels of its neighbours. Ties are broken
//! by the smaller label, then the smaller node: equal problems have equal solutions, and the first
//! label of each node is its preferred one.

use std::collections::{BTreeMap, BTreeSet};

/// A cost; addition saturates, and [`IMPOSSIBLE`] stays impossible.
pub type Cost = u64;

/// The cost of what must not be chosen.
pub const IMPOSSIBLE: Cost = u64::MAX;

/// Entries that the table of an eliminated node may have.
const LARGEST_TABLE: usize = 1 << 14;

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

    /// A labelling of small cost, the smallest unless the graph is tightly knit (see the module's
    /// text).
    pub fn solve(&self) -> Labelling {
        let mut elimination = Elimination::of(self);
        let mut is_optimal = true;
        let mut steps = Vec::with_capacity(self.nodes.len());
        while let Some((node, entries)) = elimination.next() {
            if entries <= LARGEST_TABLE {
                steps.push((node, elimination.eliminate(node)));
            } else {
                is_optimal = false;
                steps.push((node, elimination.fix()));
            }
        }
        let mut labels = vec![0; self.nodes.len()];
        for (node, factors) in steps.iter().rev() {
            match factors {
                Step::Eliminated(factors) => {
                    labels[*node] = elimination.best_label(*node, factors, &mut labels);
                }
                Step::Fixed(fixed, label) => labels[*fixed] = *label,
            }
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
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for &(a, b) in self.edges.keys() {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        let local = |node: usize, label: usize, labels: &[usize]| {
            let edges = neighbours[node].iter().map(|&other| {
                let matrix = &self.edges[&(node.min(other), node.max(other))];
                match node < other {
                    true => matrix[label][labels[other]],
                    false => matrix[labels[other]][label],
                }
            });
            edges.fold(self.nodes[node][label], Cost::saturating_add)
        };
        loop {
            let mut changed = false;
            for node in 0..self.nodes.len() {
                let best = (0..self.nodes[node].len())
                    .min_by_key(|&label| local(node, label, labels))
                    .unwrap_or(0);
                if local(node, best, labels) < local(node, labels[node], labels) {
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

/// Costs that depend on the labels of some nodes.
#[derive(Clone, Debug)]
struct Factor {
    /// The nodes, in increasing order.
    scope: Vec<usize>,
    /// One cost for each choice of their labels, that of the last node varying fastest.
    table: Vec<Cost>,
}

impl Factor {
    fn at(&self, labels: &[usize], choices: &[usize]) -> Cost {
        let index = self
            .scope
            .iter()
            .fold(0, |index, &node| index * choices[node] + labels[node]);
        self.table[index]
    }
}

/// How a node was taken out.
enum Step {
    /// The costs that spoke of it.
    Eliminated(Vec<Factor>),
    /// The node that was given a label instead, and the label.
    Fixed(usize, usize),
}

/// A problem being taken apart.
struct Elimination {
    /// How many labels each node has.
    choices: Vec<usize>,
    factors: Vec<Factor>,
    left: BTreeSet<usize>,
    /// The nodes that each node shares costs with.
    neighbours: Vec<BTreeSet<usize>>,
}

impl Elimination {
    fn of(problem: &Problem) -> Self {
        let own = problem.nodes.iter().enumerate();
        let own = own.map(|(node, costs)| Factor {
            scope: vec![node],
            table: costs.clone(),
        });
        let pairs = problem.edges.iter().map(|(&(a, b), matrix)| Factor {
            scope: vec![a, b],
            table: matrix.iter().flatten().copied().collect(),
        });
        let mut neighbours = vec![BTreeSet::new(); problem.nodes.len()];
        for &(a, b) in problem.edges.keys() {
            neighbours[a].insert(b);
            neighbours[b].insert(a);
        }
        Self {
            choices: problem.nodes.iter().map(Vec::len).collect(),
            factors: own.chain(pairs).collect(),
            left: (0..problem.nodes.len()).collect(),
            neighbours,
        }
    }

    /// The node whose elimination makes the smallest table, and the entries of that.
    fn next(&self) -> Option<(usize, usize)> {
        let entries = |&node: &usize| {
            let sizes = self.neighbours[node].iter();
            let sizes = sizes.map(|&other| self.choices[other]);
            (node, sizes.fold(1usize, usize::saturating_mul))
        };
        let candidates = self.left.iter().map(entries);
        candidates.min_by_key(|&(node, entries)| (entries, node))
    }

    /// Takes a node and the costs that speak of it out of the problem.
    fn take(&mut self, node: usize) -> Vec<Factor> {
        self.left.remove(&node);
        for other in std::mem::take(&mut self.neighbours[node]) {
            self.neighbours[other].remove(&node);
        }
        let (taken, left) = std::mem::take(&mut self.factors)
            .into_iter()
            .partition(|factor| factor.scope.contains(&node));
        self.factors = left;
        taken
    }

    /// Replaces a node by a table over its neighbours.
    fn eliminate(&mut self, node: usize) -> Step {
        let factors = self.take(node);
        let scope: BTreeSet<usize> = factors
            .iter()
            .flat_map(|factor| factor.scope.iter().copied())
            .filter(|&other| other != node)
            .collect();
        for &other in &scope {
            self.neighbours[other].extend(scope.iter().filter(|&&third| third != other));
        }
        let scope: Vec<usize> = scope.into_iter().collect();
        let mut labels = vec![0; self.choices.len()];
        let entries: usize = scope.iter().map(|&other| self.choices[other]).product();
        let mut table = Vec::with_capacity(entries);
        for _ in 0..entries {
            let best = self.best_label(node, &factors, &mut labels);
            table.push(self.total(node, best, &factors, &mut labels));
            // The next choice of labels, the last node first.
            for &other in scope.iter().rev() {
                labels[other] += 1;
                if labels[other] < self.choices[other] {
                    break;
                }
                labels[other] = 0;
            }
        }
        if !scope.is_empty() {
            self.factors.push(Factor { scope, table });
        }
        Step::Eliminated(factors)
    }

    /// Decides on the label of the node with the most neighbours.
    fn fix(&mut self) -> Step {
        let degree = |&&node: &&usize| (std::cmp::Reverse(self.neighbours[node].len()), node);
        let node = self.left.iter().min_by_key(degree).copied().unwrap_or(0);
        let factors = self.take(node);
        // For each factor and label, the least over the labels of the others.
        let least = |factor: &Factor, label: usize| {
            self.slice(factor, node, label)
                .into_iter()
                .min()
                .unwrap_or(0)
        };
        let label = (0..self.choices[node])
            .min_by_key(|&label| {
                let costs = factors.iter().map(|factor| least(factor, label));
                costs.fold(0, Cost::saturating_add)
            })
            .unwrap_or(0);
        for factor in &factors {
            let table = self.slice(factor, node, label);
            let scope: Vec<usize> = factor
                .scope
                .iter()
                .copied()
                .filter(|&n| n != node)
                .collect();
            if !scope.is_empty() {
                self.factors.push(Factor { scope, table });
            }
        }
        Step::Fixed(node, label)
    }

    /// The entries of a factor in which a node has a label.
    fn slice(&self, factor: &Factor, node: usize, label: usize) -> Vec<Cost> {
        let position = factor.scope.iter().position(|&n| n == node).unwrap_or(0);
        let inner: usize = factor.scope[position + 1..]
            .iter()
            .map(|&n| self.choices[n])
            .product();
        let choices = self.choices[node];
        factor
            .table
            .iter()
            .enumerate()
            .filter(|(index, _)| index / inner % choices == label)
            .map(|(_, &cost)| cost)
            .collect()
    }

    fn total(&self, node: usize, label: usize, factors: &[Factor], labels: &mut [usize]) -> Cost {
        labels[node] = label;
        let costs = factors
            .iter()
            .map(|factor| factor.at(labels, &self.choices));
        costs.fold(0, Cost::saturating_add)
    }

    /// The cheapest label of a node, by these costs, for the labels of the others.
    fn best_label(&self, node: usize, factors: &[Factor], labels: &mut [usize]) -> usize {
        (0..self.choices[node])
            .min_by_key(|&label| self.total(node, label, factors, labels))
            .unwrap_or(0)
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
