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
//! Many pairs of a folded edge contain the same pair of a part, all of them if the node has one label. So what was found out for one
//! pair is taken over for all others: whatever contains a table of what is known is computed anew. Else each of a hundred pairs
//! would have to be the best one once before it is known that it is not.
//!
//! # When a node is folded
//!
//! A folded edge has an entry for each pair, each of which is the least of as many sums as the node has labels. A pass looks at all pairs
//! of the two edges that it replaces. So the node is folded where that takes no longer than some passes. Folded edges are
//! parts of others, as deep as `DEEPEST` and no deeper, since they are asked recursively.
//!
//! This is the elimination of nodes with small tables ([`super::elimination`]), ahead of the passes for the bound, and with prices that are not known
//! yet.

use std::cell::{Ref, RefCell};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::cost::{Cost, IMPOSSIBLE, Known};
use super::edges::{Asked, EdgeCosts, Refined, Term};
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
    /// What is known of all pairs, and how far apart it is for two labels of the node and for two of the other end.
    fn known_of_all(&self) -> (Ref<'_, [Known]>, [usize; 2]) {
        let columns = self.costs.columns();
        let strides = if self.is_low {
            [columns, 1]
        } else {
            [1, columns]
        };
        (self.costs.known_of_all(), strides)
    }

    fn pair(&self, label: usize, other: usize) -> (usize, usize) {
        match self.is_low {
            true => (label, other),
            false => (other, label),
        }
    }

    /// What is known of the cost for a label of the node and one of the other end.
    fn known(&self, label: usize, other: usize) -> Known {
        let (row, column) = self.pair(label, other);
        self.costs.known_of(row, column)
    }

    /// Finds out more about the cost, and answers what it is not above if all prices are asked for.
    fn refine(&self, label: usize, other: usize, asked: Asked) -> Cost {
        let (row, column) = self.pair(label, other);
        self.costs.refine(row, column, asked)
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
    /// What is known of what a label costs for these labels of the others.
    fn known_of(&self, label: usize, others: [usize; 2]) -> Known {
        let parts = self.parts.iter().zip(others);
        let parts = parts.map(|(part, other)| part.known(label, other));
        parts.fold(Known::Exactly(self.own[label]), Known::plus)
    }

    /// The label that costs least by what is known, for these labels of the others, of equal ones one of which most is known.
    fn cheapest(&self, others: [usize; 2]) -> (usize, Known) {
        let known = (0..self.own.len()).map(|label| (label, self.known_of(label, others)));
        let best = known.min_by_key(|(_, known)| known.rank());
        best.unwrap_or((0, Known::Exactly(IMPOSSIBLE)))
    }

    /// What the node costs at least.
    fn cost(&self, others: [usize; 2]) -> Cost {
        loop {
            match self.cheapest(others) {
                (_, Known::Exactly(cost)) => return cost,
                (label, _) => self.ask(label, others, Asked::Doubtful),
            };
        }
    }

    /// The label that costs least, the first of equal ones.
    fn best(&self, others: [usize; 2]) -> usize {
        loop {
            let known = (0..self.own.len()).map(|label| (label, self.known_of(label, others)));
            match known.min_by_key(|(_, known)| known.least()) {
                None => return 0,
                Some((label, Known::Exactly(_))) => return label,
                Some((label, _)) => self.ask(label, others, Asked::Doubtful),
            };
        }
    }

    /// Finds out more about what a label costs, and answers what it is not above if all prices are asked for.
    fn ask(&self, label: usize, others: [usize; 2], asked: Asked) -> Cost {
        let worst = self.known_of(label, others).certainty();
        let parts = self.parts.iter().zip(others);
        let most = parts.map(|(part, other)| match part.known(label, other) {
            // That most likely is the price, which is asked for when nothing else is in doubt.
            known if asked == Asked::Doubtful && known.certainty() < worst => known.least(),
            _ => part.refine(label, other, asked),
        });
        most.fold(self.own[label], Cost::saturating_add)
    }

    /// What is known of all pairs of labels of the others, row by row.
    fn known(&self, [rows, columns]: [usize; 2]) -> Vec<Known> {
        let mut all = vec![Known::Exactly(IMPOSSIBLE); rows * columns];
        let (of_rows, [by_label, by_row]) = self.parts[0].known_of_all();
        let of_columns = self.parts.get(1).map(Part::known_of_all);
        for (row, all) in all.chunks_mut(columns.max(1)).enumerate() {
            for (label, own) in self.own.iter().enumerate() {
                let of_row = of_rows[label * by_label + row * by_row];
                let before = Known::Exactly(*own).plus(of_row);
                let mut take = |column: usize, known: Known| {
                    if known.rank() < all[column].rank() {
                        all[column] = known;
                    }
                };
                match &of_columns {
                    Some((known, [by_label, by_column])) => {
                        let from = known[label * by_label..].iter().step_by(*by_column);
                        for (column, more) in from.take(columns).enumerate() {
                            take(column, before.plus(*more));
                        }
                    }
                    None => (0..columns).for_each(|column| take(column, before)),
                }
            }
        }
        all
    }
}

/// A folded node as a part of an edge.
struct Between<'p> {
    gone: Rc<Folded<'p>>,
    /// How many labels its neighbours have, the first one first.
    sizes: [usize; 2],
    /// Whether its first neighbour is the larger node of the edge.
    is_turned: bool,
    /// What is known of all pairs, as the edge numbers them.
    known: RefCell<Rc<[Known]>>,
}

impl<'p> Between<'p> {
    fn new(gone: Rc<Folded<'p>>, sizes: [usize; 2], is_turned: bool) -> Self {
        let between = Self {
            gone,
            sizes,
            is_turned,
            known: RefCell::new(Rc::new([])),
        };
        between.take_known();
        between
    }

    fn others(&self, row: usize, column: usize) -> [usize; 2] {
        match self.is_turned {
            true => [column, row],
            false => [row, column],
        }
    }

    /// Takes over what is known of the parts.
    fn take_known(&self) {
        let known = self.gone.known(self.sizes);
        let [rows, columns] = self.sizes;
        *self.known.borrow_mut() = match self.is_turned {
            true => (0..columns)
                .flat_map(|column| known.iter().skip(column).step_by(columns).take(rows))
                .copied()
                .collect(),
            false => known.into(),
        };
    }
}

impl Term for Between<'_> {
    fn cost(&self, row: usize, column: usize) -> Cost {
        self.gone.cost(self.others(row, column))
    }

    fn known(&self) -> Option<Ref<'_, [Known]>> {
        Some(Ref::map(self.known.borrow(), |known| &**known))
    }

    fn refine(&self, row: usize, column: usize, asked: Asked) -> Refined {
        let others = self.others(row, column);
        let (label, known) = self.gone.cheapest(others);
        if let Known::Exactly(cost) = known {
            return Refined { known, most: cost };
        }
        let most = self.gone.ask(label, others, asked);
        self.take_known();
        let (_, known) = self.gone.cheapest(others);
        Refined { known, most }
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

/// What is left while nodes are folded.
struct Remaining<'p> {
    /// The costs of the labels of each node, folded ones too.
    nodes: &'p [Vec<Cost>],
    /// The nodes that are not folded.
    is_left: Vec<bool>,
    /// The neighbours of each node.
    around: Vec<Vec<usize>>,
    /// The edges, by their smaller node.
    edges: BTreeMap<(usize, usize), Left<'p>>,
}

/// The edge that a node becomes.
struct Fold {
    /// Its ends, the first neighbour of the node first.
    ends: [usize; 2],
    /// How many folded edges it then contains one in the other.
    depth: u32,
}

impl<'p> Remaining<'p> {
    /// All of a problem.
    fn of(whole: &'p Problem<'_>) -> Self {
        let mut around: Vec<Vec<usize>> = vec![Vec::new(); whole.nodes.len()];
        let mut edges = BTreeMap::new();
        for (&(low, high), costs) in &whole.edges {
            around[low].push(high);
            around[high].push(low);
            let costs = EdgeCosts::as_of(costs);
            edges.insert((low, high), Left { costs, depth: 0 });
        }
        Self {
            nodes: &whole.nodes,
            is_left: vec![true; whole.nodes.len()],
            around,
            edges,
        }
    }

    /// The ends of the edge that a node with one or two neighbours is folded into; none where there is no such edge, or where
    /// it takes longer to fold the node than it saves.
    fn ends(&self, node: usize) -> Option<[usize; 2]> {
        let size = |node: usize| self.nodes[node].len();
        match self.around[node][..] {
            [one, other] => {
                let pairs = size(one) + size(other);
                (size(one) * size(other) <= PASSES * pairs).then_some([one, other])
            }
            [one] => {
                let mut beside = self.around[one].iter().copied();
                Some([one, beside.find(|&other| other != node)?])
            }
            _ => None,
        }
    }

    /// What a node would become; none if it stays, as one stays whose edge would be too deep.
    fn fold_of(&self, node: usize) -> Option<Fold> {
        // A folded node has no neighbours, and no ends.
        let ends = self.ends(node)?;
        let depth = |pair: (usize, usize)| self.edges.get(&pair).map_or(0, |edge| edge.depth);
        let parts = self.around[node].iter();
        let deepest = parts
            .map(|&near| depth(between(node, near)))
            .fold(depth(between(ends[0], ends[1])), u32::max);
        let depth = deepest + 1;
        (depth <= DEEPEST).then_some(Fold { ends, depth })
    }

    /// Removes a node with its edges.
    fn remove(&mut self, node: usize) -> Rc<Folded<'p>> {
        self.is_left[node] = false;
        let others = std::mem::take(&mut self.around[node]);
        for &near in &others {
            self.around[near].retain(|&far| far != node);
        }
        let parts = others.iter().map(|&near| {
            let edge = self.edges.remove(&between(node, near));
            Part {
                costs: edge.expect("neighbours have an edge").costs,
                is_low: node < near,
            }
        });
        Rc::new(Folded {
            node,
            own: &self.nodes[node],
            parts: parts.collect(),
            others,
        })
    }

    /// Replaces a node and its edges by one edge, or adds them to the edge that is there.
    fn fold(&mut self, node: usize, fold: &Fold) -> Rc<Folded<'p>> {
        let gone = self.remove(node);
        let [one, other] = fold.ends;
        let sizes = fold.ends.map(|end| self.nodes[end].len());
        let (low, high) = between(one, other);
        let folded = Rc::new(Between::new(Rc::clone(&gone), sizes, one != low));
        let known = Rc::clone(&folded.known.borrow());
        match self.edges.entry((low, high)) {
            Entry::Vacant(edge) => {
                self.around[one].push(other);
                self.around[other].push(one);
                let columns = self.nodes[high].len();
                let costs = EdgeCosts::of_term(columns, folded, known);
                edge.insert(Left {
                    costs,
                    depth: fold.depth,
                });
            }
            Entry::Occupied(mut edge) => {
                let edge = edge.get_mut();
                edge.costs.add(folded, &known);
                edge.depth = fold.depth;
            }
        }
        gone
    }

    /// The nodes that are left, and the problem of these alone.
    fn numbered(self) -> (Vec<usize>, Problem<'p>) {
        let left: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| self.is_left[node])
            .collect();
        let mut number = vec![0; self.nodes.len()];
        let mut problem = Problem::new();
        for &node in &left {
            number[node] = problem.add_node(self.nodes[node].clone());
        }
        let edges = self.edges.into_iter();
        problem.edges = edges
            .map(|((low, high), edge)| ((number[low], number[high]), edge.costs))
            .collect();
        (left, problem)
    }
}

impl<'p> Reduction<'p> {
    /// Folds nodes as long as that saves time.
    pub(super) fn of(whole: &'p Problem<'_>) -> Self {
        let mut remaining = Remaining::of(whole);
        let mut folded = Vec::new();
        let mut next: BTreeSet<usize> = (0..whole.nodes.len()).collect();
        while !next.is_empty() {
            // A node waits while a neighbour was folded in the same round, so that a chain is folded as a tree and not as a
            // list.
            let mut later = BTreeSet::new();
            for node in std::mem::take(&mut next) {
                if later.contains(&node) {
                    continue;
                }
                if let Some(fold) = remaining.fold_of(node) {
                    later.extend(fold.ends);
                    folded.push(remaining.fold(node, &fold));
                }
            }
            next = later;
        }
        let (left, problem) = remaining.numbered();
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
            labels[gone.node] = gone.best(others);
        }
        Labelling { labels, ..found }
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

    /// Four nodes of which each is a neighbour of each other one, the first two with so many labels, and a node with one label between
    /// these two, whose costs are known so well and are those.
    fn between_two(labels: usize, known: [Known; 2], costs: [Cost; 2]) -> Problem<'static> {
        let mut whole = Problem::new();
        for labels in [labels, labels, 1, 1, 1] {
            whole.add_node(vec![0; labels]);
        }
        for low in 0..4 {
            for high in low + 1..4 {
                whole.add_edge(low, high, |_, _| 0);
            }
        }
        for end in 0..2 {
            whole.add_edge_above(end, 4, move |_, _| known[end], move |_, _| costs[end]);
        }
        whole
    }

    #[test]
    fn what_is_found_out_for_one_pair_is_known_of_all_that_contain_it() {
        let whole = between_two(3, [Known::AtLeast(0); 2], [5, 7]);
        let reduction = Reduction::of(&whole);
        let costs = &reduction.problem.edges[&(0, 1)];
        costs.refine(0, 0, Asked::All);
        let known: Vec<Known> = (0..9)
            .map(|pair| costs.known_of(pair / 3, pair % 3))
            .collect();
        let mut expected = [12, 5, 5, 7, 0, 0, 7, 0, 0].map(Known::AtLeast);
        expected[0] = Known::Exactly(12);
        assert_eq!(known, expected);
    }

    #[test]
    fn what_most_likely_is_the_price_is_asked_for_last() {
        let whole = between_two(1, [Known::Likely(10), Known::AtLeast(1)], [10, 9]);
        let reduction = Reduction::of(&whole);
        let costs = &reduction.problem.edges[&(0, 1)];
        assert_eq!(costs.known_of(0, 0), Known::AtLeast(11));
        costs.refine(0, 0, Asked::Doubtful);
        assert_eq!(costs.known_of(0, 0), Known::Likely(19));
        costs.refine(0, 0, Asked::Doubtful);
        assert_eq!(costs.known_of(0, 0), Known::Exactly(19));
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
