//! Nodes with one or two neighbours, which need no search.
//!
//! Whatever labels the two neighbours `a` and `c` of a node `b` have, `b` takes the label that costs least with them. So `b` and
//! its two edges are one edge between `a` and `c` (and with one neighbour a cost of that one's labels, which is put on another
//! edge of it):
//!
//! ```text
//!   a --- b --- c              a -------- c     least over l of  own(l) + e(i, l) + f(l, j)
//! ```
//!
//! Edges with the same ends add up, so that a graph in series and in parallel is folded into one node. Ops on elements have few
//! operands, and two of three nodes of a program are folded. What is left is a smaller problem with the same least cost, whose
//! bounds are closer, as what was folded is exact, and each pass over it ([`super::relaxation`]) takes less time.
//!
//! # Prices on demand
//!
//! The cost of a pair of a folded edge is known not to be below that sum of what is known of the parts, and is known as soon as both parts
//! are for a label of the least sum. When more has to be known, the parts of that label are asked for, once: another label may have the least sum
//! then, but who asked may have lost interest in the pair. So no more is priced than without folding.
//!
//! # When a node is folded
//!
//! A folded edge has an entry for each pair, each of which is the least of as many sums as the node has labels. A pass looks at all pairs
//! of the two edges that it replaces. So the node is folded where that takes no longer than some passes. Folded edges are
//! parts of others, as deep as `DEEPEST` and no deeper, since they are asked recursively.
//!
//! This is the elimination of nodes with small tables ([`super::elimination`]), ahead of the passes for the bound, and with prices that are not known
//! yet.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::cost::{Cost, IMPOSSIBLE, Known};
use super::edges::{EdgeCosts, Refined, Term};
use super::problem::{Labelling, Problem};

/// How many passes over the pairs of two edges may take as long as to fold these: a search for layouts has four or six passes.
const PASSES: usize = 4;
/// How many folded edges an edge contains one in the other, at most.
const DEEPEST: u32 = 64;

/// The costs of an edge, as the node sees it that is folded.
struct Part<'p> {
    costs: EdgeCosts<'p>,
    /// Whether the node is the smaller one of its ends.
    is_low: bool,
}

impl Part<'_> {
    fn pair(&self, label: usize, other: usize) -> (usize, usize) {
        match self.is_low {
            true => (label, other),
            false => (other, label),
        }
    }

    /// What is known of the cost for a label of the node and one of the other end, and whether that is the cost.
    fn least(&self, label: usize, other: usize) -> (Cost, bool) {
        let (row, column) = self.pair(label, other);
        (
            self.costs.least(row, column),
            self.costs.is_known(row, column),
        )
    }

    /// Finds out more about the cost, and answers what it is not above.
    fn refine(&self, label: usize, other: usize) -> Cost {
        let (row, column) = self.pair(label, other);
        self.costs.refine(row, column)
    }
}

/// A node that was folded.
struct Folded<'p> {
    node: usize,
    own: &'p [Cost],
    /// Its neighbours, one or two of them.
    others: Vec<usize>,
    parts: Vec<Part<'p>>,
}

impl Folded<'_> {
    /// The label that costs least by what is known, for these labels of the others, the first of equal ones.
    fn cheapest(&self, others: [usize; 2]) -> (usize, Known) {
        let mut best = (0, Known::Exactly(IMPOSSIBLE));
        for (label, own) in self.own.iter().enumerate() {
            let (mut sum, mut is_known) = (*own, true);
            for (part, other) in self.parts.iter().zip(others) {
                let (least, known) = part.least(label, other);
                sum = sum.saturating_add(least);
                is_known &= known;
            }
            if sum < best.1.least() {
                best = (label, known(sum, is_known));
            }
        }
        best
    }

    /// The same by what it costs.
    fn best(&self, others: [usize; 2]) -> (usize, Cost) {
        loop {
            match self.cheapest(others) {
                (label, Known::Exactly(cost)) => return (label, cost),
                (label, Known::AtLeast(_)) => self.ask(label, others),
            };
        }
    }

    /// Finds out more about what a label costs, and answers what it is not above.
    fn ask(&self, label: usize, others: [usize; 2]) -> Cost {
        let parts = self.parts.iter().zip(others);
        let most = parts.map(|(part, other)| part.refine(label, other));
        most.fold(self.own[label], Cost::saturating_add)
    }

    /// What is known of all pairs of labels of the others, row by row.
    fn known(&self, [rows, columns]: [usize; 2]) -> Vec<Known> {
        let mut all = Vec::with_capacity(rows * columns);
        let mut sums: Vec<(Cost, bool)> = Vec::with_capacity(columns);
        for row in 0..rows {
            sums.clear();
            sums.resize(columns, (IMPOSSIBLE, true));
            for (label, own) in self.own.iter().enumerate() {
                let (of_row, row_is_known) = self.parts[0].least(label, row);
                let before = own.saturating_add(of_row);
                for (column, least) in sums.iter_mut().enumerate() {
                    let (of_column, is_known) = match self.parts.get(1) {
                        Some(part) => part.least(label, column),
                        None => (0, true),
                    };
                    let sum = before.saturating_add(of_column);
                    let is_known = row_is_known && is_known;
                    if sum < least.0 || sum == least.0 && is_known {
                        *least = (sum, is_known);
                    }
                }
            }
            all.extend(sums.iter().map(|&(least, is_known)| known(least, is_known)));
        }
        all
    }
}

fn known(least: Cost, is_known: bool) -> Known {
    match is_known {
        true => Known::Exactly(least),
        false => Known::AtLeast(least),
    }
}

/// A folded node as a part of an edge.
struct Between<'p> {
    gone: Rc<Folded<'p>>,
    /// Whether its first neighbour is the larger node of the edge.
    is_turned: bool,
}

impl Between<'_> {
    fn others(&self, row: usize, column: usize) -> [usize; 2] {
        match self.is_turned {
            true => [column, row],
            false => [row, column],
        }
    }
}

impl Term for Between<'_> {
    fn cost(&self, row: usize, column: usize) -> Cost {
        self.gone.best(self.others(row, column)).1
    }

    fn refine(&self, row: usize, column: usize) -> Refined {
        let others = self.others(row, column);
        let (label, known) = self.gone.cheapest(others);
        match known {
            Known::Exactly(cost) => Refined { known, most: cost },
            Known::AtLeast(_) => {
                let most = self.gone.ask(label, others);
                let (_, known) = self.gone.cheapest(others);
                Refined { known, most }
            }
        }
    }
}

/// An edge of what is left, and how many folded ones it contains one in the other.
struct Left<'p> {
    costs: EdgeCosts<'p>,
    depth: u32,
}

/// A problem without the nodes that were folded.
pub(super) struct Reduction<'p> {
    /// What is left, its nodes in their order.
    pub(super) problem: Problem<'p>,
    /// The numbers of these nodes in the whole problem.
    left: Vec<usize>,
    /// The nodes that were folded, one after the other.
    folded: Vec<Rc<Folded<'p>>>,
}

/// The edge between two nodes, by the smaller one.
fn between(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl<'p> Reduction<'p> {
    /// Folds nodes as long as that saves time.
    pub(super) fn of(whole: &'p Problem<'_>) -> Self {
        let mut around: Vec<Vec<usize>> = vec![Vec::new(); whole.nodes.len()];
        let mut edges: BTreeMap<(usize, usize), Left<'p>> = BTreeMap::new();
        for (&(low, high), costs) in &whole.edges {
            around[low].push(high);
            around[high].push(low);
            let costs = EdgeCosts::as_of(costs);
            edges.insert((low, high), Left { costs, depth: 0 });
        }
        let mut folded: Vec<Rc<Folded<'p>>> = Vec::new();
        let mut is_left = vec![true; whole.nodes.len()];
        // A node waits while a neighbour was folded in the same round, so that a chain is folded as a tree and not as a list.
        let mut waits_in = vec![0; whole.nodes.len()];
        let mut next: Vec<usize> = (0..whole.nodes.len()).collect();
        let mut round = 0;
        while !next.is_empty() {
            round += 1;
            let mut later = Vec::new();
            for node in std::mem::take(&mut next) {
                if !is_left[node] || around[node].len() > 2 {
                    continue;
                }
                if waits_in[node] == round {
                    later.push(node);
                    continue;
                }
                let Some([one, other]) = ends(node, &around, whole) else {
                    continue;
                };
                let depths = around[node]
                    .iter()
                    .map(|&near| edges[&between(node, near)].depth);
                let present = edges.get(&between(one, other)).map_or(0, |edge| edge.depth);
                let depth = depths.fold(present, u32::max) + 1;
                if depth > DEEPEST {
                    continue;
                }
                let others = std::mem::take(&mut around[node]);
                let parts = others.iter().map(|&near| Part {
                    costs: edges
                        .remove(&between(node, near))
                        .expect("it is there")
                        .costs,
                    is_low: node < near,
                });
                let gone = Rc::new(Folded {
                    node,
                    own: &whole.nodes[node],
                    parts: parts.collect(),
                    others,
                });
                for &near in &gone.others {
                    around[near].retain(|&far| far != node);
                }
                is_left[node] = false;
                let sizes = [one, other].map(|end| whole.nodes[end].len());
                let (low, high) = between(one, other);
                let left = edges.entry((low, high)).or_insert_with(|| {
                    around[one].push(other);
                    around[other].push(one);
                    let [rows, columns] = [low, high].map(|end| whole.nodes[end].len());
                    let costs = EdgeCosts::new(rows, columns);
                    Left { costs, depth }
                });
                left.depth = depth;
                let known = gone.known(sizes);
                let is_turned = one != low;
                let between = Between {
                    gone: Rc::clone(&gone),
                    is_turned,
                };
                let known = |row: usize, column: usize| match is_turned {
                    true => known[column * sizes[1] + row],
                    false => known[row * sizes[1] + column],
                };
                left.costs.add(Rc::new(between), known);
                for end in [one, other] {
                    waits_in[end] = round;
                    later.push(end);
                }
                folded.push(gone);
            }
            later.sort_unstable();
            later.dedup();
            next = later;
        }
        let left: Vec<usize> = (0..is_left.len()).filter(|&node| is_left[node]).collect();
        let mut number = vec![0; is_left.len()];
        let mut problem = Problem::new();
        for &node in &left {
            number[node] = problem.add_node(whole.nodes[node].clone());
        }
        let numbered = edges.into_iter();
        problem.edges = numbered
            .map(|((low, high), edge)| ((number[low], number[high]), edge.costs))
            .collect();
        Self {
            problem,
            left,
            folded,
        }
    }

    /// A labelling of the whole problem, from one of what is left: each folded node takes the best label.
    pub(super) fn unfolded(&self, found: Labelling) -> Labelling {
        let mut labels = vec![0; self.left.len() + self.folded.len()];
        for (&node, label) in self.left.iter().zip(found.labels) {
            labels[node] = label;
        }
        for gone in self.folded.iter().rev() {
            let last = gone.others.len() - 1;
            let others = [0, last].map(|position| labels[gone.others[position]]);
            labels[gone.node] = gone.best(others).0;
        }
        Labelling { labels, ..found }
    }
}

/// The ends of the edge that a node with one or two neighbours is folded into, the first of its neighbours first; none where
/// there is no such edge, or where it takes longer to fold the node than it saves.
fn ends(node: usize, around: &[Vec<usize>], whole: &Problem<'_>) -> Option<[usize; 2]> {
    let size = |node: usize| whole.nodes[node].len();
    match around[node][..] {
        [one, other] => {
            let pairs = size(one) + size(other);
            (size(one) * size(other) <= PASSES * pairs).then_some([one, other])
        }
        [one] => {
            let mut beside = around[one].iter().copied();
            Some([one, beside.find(|&other| other != node)?])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::layouts::labelling::problem::drawn;

    #[test]
    fn series_and_parallels_become_one_node() {
        // a has two ways to d, through b and c, and b has a leaf: the pair left is one edge, and then nothing.
        let mut whole = Problem::new();
        let nodes: Vec<usize> = (0..5).map(|_| whole.add_node(vec![0, 1])).collect();
        for (one, other) in [(0, 1), (1, 3), (0, 2), (2, 3), (1, 4)] {
            let cost = |a: usize, b: usize| if a == b { 0 } else { 3 };
            whole.add_edge(nodes[one], nodes[other], cost);
        }
        let reduction = Reduction::of(&whole);
        assert_eq!(reduction.problem.nodes.len(), 2);
        assert_eq!(reduction.problem.edges.len(), 1);
        assert_eq!(whole.solve().labels, [0; 5]);
    }

    #[test]
    fn only_what_may_be_cheapest_is_priced() {
        // A chain from one label of its first node to one of its last: of the sixteen ways between them one is cheap.
        let asked = Cell::new(0);
        let mut whole = Problem::new();
        let ends = [whole.add_node(vec![0]), whole.add_node(vec![0])];
        let between = [whole.add_node(vec![0; 4]), whole.add_node(vec![0; 4])];
        for (one, other) in [
            (ends[0], between[0]),
            (between[0], between[1]),
            (between[1], ends[1]),
        ] {
            let known = |a: usize, b: usize| Known::AtLeast(if a + b == 0 { 1 } else { 5 });
            whole.add_edge_above(one, other, known, |a, b| {
                asked.set(asked.get() + 1);
                if a + b == 0 { 2 } else { 7 }
            });
        }
        let solution = whole.solve();
        assert_eq!((solution.cost, solution.is_optimal), (6, true));
        assert_eq!(asked.get(), 3);
    }

    proptest! {
        /// A labelling of what is left costs what the whole one does into which it is unfolded, and none that has these labels costs less.
        #[test]
        fn folded_nodes_take_the_best_labels(
            nodes in prop::collection::vec(prop::collection::vec(0..40u64, 1..4), 2..7),
            edges in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u64>()), 0..9),
            seed in any::<u64>(),
        ) {
            let whole = drawn(&nodes, edges);
            let reduction = Reduction::of(&whole);
            let left = reduction.problem.nodes.iter().enumerate();
            let labels: Vec<usize> = left.map(|(node, costs)| (seed >> node) as usize % costs.len()).collect();
            let cost = reduction.problem.cost(&labels);
            let found = Labelling { labels: labels.clone(), cost, is_optimal: false, bound: 0 };
            let unfolded = reduction.unfolded(found);
            prop_assert_eq!(whole.cost(&unfolded.labels), cost);
            // With these labels alone, nothing else is cheaper.
            let mut fixed = whole.clone();
            for (&node, &label) in reduction.left.iter().zip(&labels) {
                for (other, cost) in fixed.nodes[node].iter_mut().enumerate() {
                    if other != label {
                        *cost = IMPOSSIBLE;
                    }
                }
            }
            let least = fixed.optimum().map(|labels| fixed.cost(&labels));
            prop_assert_eq!(least, Some(cost));
        }
    }
}
