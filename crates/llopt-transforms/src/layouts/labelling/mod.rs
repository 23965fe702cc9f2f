//! Choosing one of several labels for each node of a graph so that the sum of all costs is least.
//!
//! # The problem
//!
//! Each node has a cost for each of its labels; each edge has a cost for each pair of labels of its two ends. Here
//! the nodes are ops, the labels candidate layouts, the cost of a label that of the op in the layout (a memory access
//! that cannot be coalesced, work repeated by threads that hold the same element), and the cost of an edge that of
//! converting the producer's layout to the one that the consumer requires. The problem is known as a partitioned
//! Boolean quadratic problem; compilers solve it to choose registers and instructions. It is NP-hard in general and
//! easy on the graphs of programs, which are close to trees.
//!
//! # The algorithm
//!
//! First, nodes with one or two neighbours are folded into edges where that takes no longer than to look at them some times
//! (`reduction`): what is left is a smaller problem with the same least cost. Then labels are dropped that no labelling of least
//! cost has, by bounds of what labellings with them cost (`relaxation`), until what is left is eliminated in less time than that
//! takes.
//!
//! Then, where tables would be large, labels that cannot help are dropped. Label `l` of a node is *dominated* by `k` if `c(k) + sum over the
//! edges of max over j of (e(k, j) - e(l, j)) <= c(l)`: whatever the neighbours choose, `k` costs no more. A cost table that
//! includes a node with one label depends on its neighbours alone.
//!
//! Then nodes are removed one by one. A node is *eliminated* by replacing all costs that depend on it by one table
//! over its neighbours: for each choice of their labels, the least that the node and those costs can add. This is
//! exact, but the size of the table is the product of the numbers of choices of its nodes. The node with the smallest
//! table goes first; a node without neighbours has a table with one entry, one with one neighbour is folded into it,
//! one with two becomes an edge between them. On trees and series-parallel graphs, which most kernels are, nothing
//! else happens. The sizes of all tables are known before one is made (`order`).
//!
//! If all tables together would have more than `MOST_ENTRIES` entries, the bound is raised further, which takes far less time
//! than the search and often leaves few enough labels. Else the result need not be optimal: beginning with the best
//! labelling that bounds have found, nodes without which all tables are small keep their labels, and all others choose the
//! best ones together; then other nodes keep theirs, for as long as that lowers the cost. The distance from the bound is known.
//! (Solving the rest for each label of a node with many neighbours takes as many times longer as the node has labels,
//! and again for the next such node. Looking only at labels whose bounds are low, as many as the limit allows, finds
//! labellings that cost about as much, and raises the bound by little where it is far from the cost.)
//!
//! On the way back, each node takes its cheapest label given the labels of its neighbours. Ties are broken
//! by the smaller label, then the smaller node: equal problems have equal solutions, and the first
//! label of each node is its preferred one.
//!
//! # Labels that are far
//!
//! Many labels are in no labelling that is cheaper than a known one. With its cost as the limit they are dropped by bounds,
//! before anything is searched ([`Problem::solve_below`]). So a labelling with few labels of each node can be shown to be the
//! best with any labels, in less time than to find it among all of them.
//!
//! # Costs on demand
//!
//! To know what a pair of labels costs takes a plan of the conversion between them, and most pairs are in no labelling that
//! comes near the least cost. So an edge says two things of a pair: what is known of its cost, found in a fraction of the time
//! ([`Problem::add_edge_above`]), and what it costs, which is asked for when a bound or the best labelling rests on it, and kept.
//! Some bounds most likely are the cost ([`Known::Likely`]): these are asked about only when a labelling is the best one whatever
//! the others turn out to be. Of twenty thousand pairs of a kernel with two products some fifty are asked for.
//!
//! # Growth
//!
//! Each node has a list of the costs that depend on it, and a queue holds the nodes by the size of their tables. So a graph of
//! bounded width is solved in time `O(n log n)`, and no graph takes more than the limit for each search.

mod cost;
mod dominated;
mod edges;
mod elimination;
mod link;
mod order;
mod per_label;
mod problem;
mod reduction;
mod relaxation;
mod rest;
mod search;

use std::collections::btree_map::Entry;
use std::rc::Rc;

pub use cost::{Cost, IMPOSSIBLE, Known};
use edges::{EdgeCosts, Term};
pub(super) use order::MOST_ENTRIES;
pub use problem::{Labelling, Problem};
use reduction::Reduction;
use relaxation::Relaxation;

/// What is known of all pairs of so many labels, row by row.
fn known_of_pairs(
    [rows, columns]: [usize; 2],
    known: impl Fn(usize, usize) -> Known,
) -> Rc<[Known]> {
    let mut all = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        all.extend((0..columns).map(|column| known(row, column)));
    }
    all.into()
}

impl<'f> Problem<'f> {
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

    /// Adds `cost(label of a, label of b)` to what the pair costs already. An edge from a node to itself is a cost of its
    /// labels.
    pub fn add_edge(&mut self, a: usize, b: usize, cost: impl Fn(usize, usize) -> Cost + 'f) {
        let cost = Rc::new(cost);
        let exactly = Rc::clone(&cost);
        let known = |of_a, of_b| Known::Exactly(exactly(of_a, of_b));
        self.add_edge_above(a, b, known, move |of_a, of_b| cost(of_a, of_b));
    }

    /// The same for a cost that is asked for only when it is needed. What is known of it before is found in a fraction of the
    /// time: of most pairs of labels nothing else is asked.
    pub fn add_edge_above(
        &mut self,
        a: usize,
        b: usize,
        known: impl Fn(usize, usize) -> Known,
        cost: impl Fn(usize, usize) -> Cost + 'f,
    ) {
        let sizes = [a, b].map(|end| self.nodes[end].len());
        let known = match a == b {
            true => Rc::from([]),
            false => known_of_pairs(sizes, known),
        };
        self.add_edge_of(a, b, known, cost);
    }

    /// The same, with what is known of all pairs, by the labels of `a` and then by those of `b`. Edges of which the same is known may
    /// share that.
    pub fn add_edge_of(
        &mut self,
        a: usize,
        b: usize,
        known: Rc<[Known]>,
        cost: impl Fn(usize, usize) -> Cost + 'f,
    ) {
        if a == b {
            for (label, total) in self.nodes[a].iter_mut().enumerate() {
                *total = total.saturating_add(cost(label, label));
            }
            return;
        }
        let (low, high) = (a.min(b), a.max(b));
        let [rows, columns] = [low, high].map(|end| self.nodes[end].len());
        let (term, known): (Rc<dyn Term + 'f>, _) = match a == low {
            true => (Rc::new(cost), known),
            false => (
                Rc::new(move |of_low: usize, of_high: usize| cost(of_high, of_low)),
                known_of_pairs([rows, columns], |row, column| known[column * rows + row]),
            ),
        };
        match self.edges.entry((low, high)) {
            Entry::Vacant(edge) => {
                edge.insert(EdgeCosts::of_term(columns, term, known));
            }
            Entry::Occupied(mut edge) => edge.get_mut().add(term, &known),
        }
    }

    /// The cost of a labelling.
    pub fn cost(&self, labels: &[usize]) -> Cost {
        let nodes = self.nodes.iter().zip(labels);
        let nodes = nodes.map(|(costs, &label)| costs[label]);
        let edges = self.edges.iter();
        let edges = edges.map(|(&(a, b), costs)| costs.at(labels[a], labels[b]));
        nodes.chain(edges).fold(0, Cost::saturating_add)
    }

    /// A labelling of small cost, with a bound of what others cost: the least one unless the graph is dense (see the module's
    /// documentation).
    pub fn solve(&self) -> Labelling {
        let reduction = Reduction::of(self);
        let found = Relaxation::of(&reduction.problem).solve().search();
        let found = found.map(|found| reduction.unfolded(found));
        found.unwrap_or_else(|| {
            // No labelling has a price, so each is as good as the others.
            let labels = vec![0; self.nodes.len()];
            Labelling {
                cost: self.cost(&labels),
                bound: IMPOSSIBLE,
                is_optimal: true,
                labels,
            }
        })
    }

    /// A labelling that costs less than a known one, or that one if there is none. Labels that are in no cheaper labelling
    /// are dropped from the start, so this takes less time than to find the known one did.
    pub fn solve_below(&self, known: &Labelling) -> Labelling {
        let proven = || Labelling {
            is_optimal: true,
            bound: known.cost,
            ..known.clone()
        };
        let Some(limit) = known.cost.checked_sub(1) else {
            return proven();
        };
        match Relaxation::up_to(self, limit).solve().search() {
            Some(found) if found.cost < known.cost => found,
            Some(found) if !found.is_optimal => Labelling {
                bound: found.bound.min(known.cost),
                is_optimal: false,
                ..known.clone()
            },
            _ => proven(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::order::logarithm;
    use super::*;

    /// The least cost, by trying everything.
    fn least(problem: &Problem<'_>) -> Cost {
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
            bound: 4,
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

    #[test]
    fn dominated_labels_are_dropped() {
        // Label 1 of the first node costs 5 more and can save 4 at most.
        let mut problem = Problem::new();
        let first = problem.add_node(vec![0, 5, 0]);
        let second = problem.add_node(vec![0, 0]);
        problem.add_edge(first, second, |a, b| match (a, b) {
            (1, 0) => 0,
            (2, _) => 10 * b as u64,
            _ => 4,
        });
        let useful = problem.without_dominated(&problem.neighbours());
        assert_eq!(useful, [vec![2], vec![0]]);
    }

    #[test]
    fn the_bound_is_below_every_labelling() {
        let mut number = 1u64;
        let mut random = |below: u64| {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            (number >> 33) % below
        };
        for _ in 0..20 {
            let mut problem = Problem::new();
            for _ in 0..6 {
                problem.add_node((0..3).map(|_| random(9)).collect());
            }
            for a in 0..6 {
                for b in 0..a {
                    let costs: Vec<u64> = (0..9).map(|_| random(9)).collect();
                    problem.add_edge(a, b, move |x, y| costs[3 * x + y]);
                }
            }
            let all = (0..3usize.pow(6)).map(|number| {
                let labels: Vec<usize> = (0..6).map(|node| number / 3usize.pow(node) % 3).collect();
                problem.cost(&labels)
            });
            let least = all.min().unwrap();
            assert!(Relaxation::of(&problem).solve().bound() <= least);
            assert_eq!(problem.solve().bound, least);
        }
    }

    #[test]
    fn logarithms_are_exact_for_powers_of_two() {
        assert_eq!(logarithm(1), 0);
        assert_eq!(logarithm(1 << 14), 14 << 32);
        let three = logarithm(3) as f64 / f64::from(1u32 << 16).powi(2);
        assert!((three - 3f64.log2()).abs() < 1e-8);
    }

    #[test]
    fn hubs_and_long_chains_are_solved() {
        // Every second node of a chain of 20,000 is also connected to one hub.
        let mut problem = Problem::new();
        let hub = problem.add_node(vec![1, 0, 2]);
        let mut last = hub;
        for number in 0..20_000u64 {
            let node = problem.add_node((0..3).map(|label| (number >> label) % 3).collect());
            problem.add_edge(last, node, |a, b| if a == b { 0 } else { 2 });
            if number % 2 == 0 {
                problem.add_edge(hub, node, |a, b| if a == b { 0 } else { 1 });
            }
            last = node;
        }
        let solution = problem.solve();
        assert!(solution.is_optimal);
        assert_eq!(problem.cost(&solution.labels), solution.cost);
    }

    /// A graph in which each node shares costs with each other one.
    fn complete(nodes: usize, labels: usize) -> Problem<'static> {
        let mut number = 1u64;
        let mut random = move |below: u64| {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            (number >> 33) % below
        };
        let mut problem = Problem::new();
        for _ in 0..nodes {
            problem.add_node((0..labels).map(|_| random(50)).collect());
        }
        for a in 0..nodes {
            for b in 0..a {
                let costs: Vec<u64> = (0..labels * labels).map(|_| random(50)).collect();
                problem.add_edge(a, b, move |x, y| costs[labels * x + y]);
            }
        }
        problem
    }

    #[test]
    fn a_dense_graph_of_few_nodes_is_solved() {
        let problem = complete(10, 3);
        let solution = problem.solve();
        assert!(solution.is_optimal);
        assert_eq!(solution.cost, least(&problem));
    }

    #[test]
    fn no_other_label_of_one_node_is_better_in_a_dense_graph() {
        let problem = complete(14, 4);
        let solution = problem.solve();
        assert!(!solution.is_optimal && solution.bound <= solution.cost);
        assert_eq!(problem.cost(&solution.labels), solution.cost);
        for node in 0..14 {
            for label in 0..4 {
                let mut labels = solution.labels.clone();
                labels[node] = label;
                assert!(problem.cost(&labels) >= solution.cost);
            }
        }
    }

    #[test]
    fn a_wide_grid_is_searched_with_a_bound() {
        // Neighbours agree or pay, and each node has prices of its own: no order has small tables.
        const SIDE: usize = 20;
        let mut number = 1u64;
        let mut random = move |below: u64| {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            (number >> 33) % below
        };
        let mut problem = Problem::new();
        for node in 0..SIDE * SIDE {
            problem.add_node((0..8).map(|_| random(100)).collect());
            for (is_there, other) in [(node % SIDE > 0, 1), (node >= SIDE, SIDE)] {
                if is_there {
                    let differ = 10 + random(20);
                    let cost = move |a, b| if a == b { 0 } else { differ };
                    problem.add_edge(node - other, node, cost);
                }
            }
        }
        let solution = problem.solve();
        assert_eq!(problem.cost(&solution.labels), solution.cost);
        assert!(solution.bound <= solution.cost);
        assert!(solution.cost - solution.bound <= solution.bound / 20);
    }

    fn problems(nodes: usize, edges: usize) -> impl Strategy<Value = Problem<'static>> {
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
                    problem.add_edge(a % count, b % count, move |x, y| {
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
                problem.add_edge(parent % node, node, move |x, y| (seed >> (8 * (x + y))) % 12);
            }
            let solution = problem.solve();
            prop_assert!(solution.is_optimal);
            prop_assert_eq!(solution.cost, least(&problem));
        }
    }
}
