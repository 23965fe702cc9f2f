//! Removing nodes one by one, each with a table of what it costs at least for the labels of those around it.
//!
//! # Steps
//!
//! The node that goes has *terms*, which are costs of its labels and of those of some nodes that are still there: its own
//! costs, edges, and tables of nodes that went before. Its *scope* is all nodes that they depend on. For each choice of labels
//! of the scope the sum of the terms is least for some label of the node, and these least sums are a table over the scope: a
//! term of that node of the scope that goes next (bucket elimination, Dechter 1999).
//!
//! ```text
//!   a - b - c        a goes: table over b, a term of b
//!        \ /         b goes: its own costs, the edges to c and d, a's table; table over c and d, a term of c
//!         d          c goes: the edge to d, b's table; table over d, a term of d
//! ```
//!
//! # Changes
//!
//! Tables are kept. Where the cost of a pair changes, those on the way from its step to the last one are computed anew, as far
//! as they change, and no other. A search that finds out what pairs cost as it chooses them ([`super::relaxation`]) begins
//! with all tables and then takes a part of that for each labelling.
//!
//! # Inner loops
//!
//! Labels of the node that goes next vary fastest in the terms that depend on it, before those of the node that goes. So the
//! least sums for all labels of the next node are found together, element by element of rows. They are floating-point numbers,
//! of which each processor has a minimum of several at once, and which are exact for all costs below `2^53`.

use super::cost::{Cost, IMPOSSIBLE};
use super::order::Order;
use super::problem::Problem;

/// What an impossible choice costs here: more than any sum of others.
const NEVER: f64 = (1u128 << 96) as f64;

/// A cost in tables.
fn entry(cost: Cost) -> f64 {
    match cost {
        IMPOSSIBLE => NEVER,
        cost => cost as f64,
    }
}

/// The edges of a problem between nodes that have several useful labels.
pub(super) fn open_edges(problem: &Problem<'_>, useful: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let edges = problem.edges.keys().copied();
    edges
        .filter(|&(a, b)| useful[a].len() > 1 && useful[b].len() > 1)
        .collect()
}

/// The labels of least cost among the useful ones of each node.
pub(super) fn eliminate(problem: &Problem<'_>, useful: &[Vec<usize>], order: Order) -> Vec<usize> {
    let own = problem.nodes.iter().zip(useful);
    let own = own.map(|(costs, labels)| labels.iter().map(|&label| costs[label]).collect());
    let edges = problem.edges.iter().map(|(&(low, high), costs)| {
        let (rows, columns) = (&useful[low], &useful[high]);
        let at = move |row: usize, column: usize| costs.at(rows[row], columns[column]);
        ([low, high], at)
    });
    let mut elimination = Elimination::of(own.collect(), edges, order);
    let labels = useful.iter().zip(elimination.best());
    labels.map(|(labels, chosen)| labels[chosen]).collect()
}

/// Costs of a label of the node that goes and of labels of some nodes of its scope.
struct Term {
    /// The positions of these nodes in the scope, with how far apart two entries are whose labels of one are neighbours.
    strides: Vec<(usize, usize)>,
    /// How far apart they are for the node that goes.
    own: usize,
    /// One cost for each choice of labels.
    table: Vec<f64>,
}

/// The removal of a node.
struct Step {
    node: usize,
    /// The nodes that its terms depend on, the one that goes next at the end.
    scope: Vec<usize>,
    terms: Vec<Term>,
    /// By position in the scope, the terms of which it is the last one.
    ending: Vec<Vec<usize>>,
    into: Option<Into>,
    /// Whether terms have changed since the table was made.
    is_stale: bool,
}

/// The place of a step's table: the step that gets it and which of its terms it is there, and how far apart entries are by
/// position in the scope.
#[derive(Clone)]
struct Into {
    step: usize,
    term: usize,
    strides: Vec<usize>,
}

/// Where the costs of an edge are: a step and its term, and how far apart entries are for labels of the smaller node and of the
/// larger one.
#[derive(Clone, Copy)]
struct Place {
    step: usize,
    term: usize,
    strides: [usize; 2],
}

/// The costs of a problem, during elimination and after it.
pub(super) struct Elimination {
    /// How many labels each node has.
    choices: Vec<usize>,
    steps: Vec<Step>,
    /// Where the costs of each edge are; nowhere if it has one pair.
    places: Vec<Option<Place>>,
}

impl Elimination {
    /// The problem with these costs of each node's labels and of the pairs of each edge, by its smaller node and its larger one.
    pub(super) fn of<F: Fn(usize, usize) -> Cost>(
        own: Vec<Vec<Cost>>,
        edges: impl Iterator<Item = ([usize; 2], F)>,
        order: Order,
    ) -> Self {
        let mut elimination = Self {
            choices: own.iter().map(Vec::len).collect(),
            steps: Vec::with_capacity(own.len()),
            places: Vec::new(),
        };
        let steps = elimination.add_steps(order);
        for (node, costs) in own.into_iter().enumerate() {
            let table = costs.into_iter().map(entry).collect();
            elimination.steps[steps[node]].add(Vec::new(), 1, table);
        }
        for (ends, cost) in edges {
            let place = elimination.add_edge(&steps, ends, cost);
            elimination.places.push(place);
        }
        for step in &mut elimination.steps {
            step.find_ending();
        }
        elimination
    }

    /// Adds the steps in this order, with terms for the tables of others; the step of each node.
    fn add_steps(&mut self, order: Order) -> Vec<usize> {
        let mut steps = vec![0; self.choices.len()];
        for (number, (node, _)) in order.steps.iter().enumerate() {
            steps[*node] = number;
        }
        for (node, mut scope) in order.steps {
            scope.sort_by_key(|&other| std::cmp::Reverse(steps[other]));
            self.steps.push(Step {
                node,
                scope,
                terms: Vec::new(),
                ending: Vec::new(),
                into: None,
                is_stale: true,
            });
        }
        for number in 0..self.steps.len() {
            let scope = &self.steps[number].scope;
            if let Some((&next, others)) = scope.split_last() {
                let others = others.to_vec();
                let (term, own, strides) = self.add_term(steps[next], &others, Vec::new());
                let strides = strides.into_iter().chain([own]).collect();
                self.steps[number].into = Some(Into {
                    step: steps[next],
                    term,
                    strides,
                });
            }
        }
        steps
    }

    /// Adds a term that depends on these nodes of a step's scope; its number, and how far apart entries are for the node that
    /// goes and for these.
    fn add_term(
        &mut self,
        step: usize,
        nodes: &[usize],
        table: Vec<f64>,
    ) -> (usize, usize, Vec<usize>) {
        let choices = &self.choices;
        let step = &mut self.steps[step];
        let next = step.scope.last().filter(|next| nodes.contains(next));
        let own = next.map_or(1, |&next| choices[next]);
        let mut stride = own * choices[step.node];
        let strides = nodes.iter().map(|node| {
            if Some(node) == next {
                return 1;
            }
            let of_node = stride;
            stride *= choices[*node];
            of_node
        });
        let strides: Vec<usize> = strides.collect();
        let positions = nodes.iter().map(|&node| step.position(node));
        let placed = positions.zip(strides.iter().copied()).collect();
        (step.add(placed, own, table), own, strides)
    }

    /// Adds the costs of an edge to the step of the end that goes first.
    fn add_edge(
        &mut self,
        steps: &[usize],
        [low, high]: [usize; 2],
        cost: impl Fn(usize, usize) -> Cost,
    ) -> Option<Place> {
        let (rows, columns) = (self.choices[low], self.choices[high]);
        // With one label on one side it is a cost of the other alone.
        let is_of_low = match (rows, columns) {
            (1, 1) => return None,
            (_, 1) => true,
            (1, _) => false,
            _ => steps[low] < steps[high],
        };
        let (node, other) = if is_of_low { (low, high) } else { (high, low) };
        let is_open = self.choices[other] > 1;
        let nodes = if is_open { &[other][..] } else { &[] };
        let (term, own, strides) = self.add_term(steps[node], nodes, vec![0.0; rows * columns]);
        let of_other = strides.first().copied().unwrap_or(0);
        let place = Place {
            step: steps[node],
            term,
            strides: if is_of_low {
                [own, of_other]
            } else {
                [of_other, own]
            },
        };
        let table = &mut self.steps[place.step].terms[term].table;
        for row in 0..rows {
            for column in 0..columns {
                table[place.entry([row, column])] = entry(cost(row, column));
            }
        }
        Some(place)
    }

    /// Changes the cost of a pair of an edge, by its number.
    pub(super) fn change(&mut self, edge: usize, pair: [usize; 2], cost: Cost) {
        if let Some(place) = self.places[edge] {
            let step = &mut self.steps[place.step];
            let known = &mut step.terms[place.term].table[place.entry(pair)];
            let cost = entry(cost);
            step.is_stale |= *known != cost;
            *known = cost;
        }
    }

    /// The labels of least cost; of equal ones the first label of the node that goes last, and so on.
    pub(super) fn best(&mut self) -> Vec<usize> {
        let mut room = Room::default();
        for number in 0..self.steps.len() {
            let step = &mut self.steps[number];
            let Some(into) = step.into.clone().filter(|_| step.is_stale) else {
                continue;
            };
            step.is_stale = false;
            let table = step.least(&self.choices, &into.strides, &mut room);
            let next = &mut self.steps[into.step];
            let term = &mut next.terms[into.term].table;
            if *term != *table {
                std::mem::swap(term, table);
                next.is_stale = true;
            }
        }
        // The node that went last finds all those that its costs depend on.
        let mut chosen = vec![0; self.choices.len()];
        for step in self.steps.iter().rev() {
            chosen[step.node] = step.best_label(self.choices[step.node], &chosen);
        }
        chosen
    }
}

impl Place {
    fn entry(self, [row, column]: [usize; 2]) -> usize {
        row * self.strides[0] + column * self.strides[1]
    }
}

/// Room for what the loops over a table need.
#[derive(Default)]
struct Room {
    /// By position in the scope, the sums of what depends on the nodes before alone, for each label of the node that goes.
    sums: Vec<f64>,
    /// The least sum for each label of the node that goes next.
    least: Vec<f64>,
    /// Where each term is read.
    offsets: Vec<usize>,
    /// The labels of the scope.
    labels: Vec<usize>,
    table: Vec<f64>,
}

fn resize<T: Clone>(entries: &mut Vec<T>, count: usize, value: T) {
    entries.clear();
    entries.resize(count, value);
}

impl Step {
    /// Adds a term; its number.
    fn add(&mut self, strides: Vec<(usize, usize)>, own: usize, table: Vec<f64>) -> usize {
        self.terms.push(Term {
            strides,
            own,
            table,
        });
        self.terms.len() - 1
    }

    /// The position of a node in the scope.
    fn position(&self, node: usize) -> usize {
        let position = self.scope.iter().position(|&other| other == node);
        position.expect("a term depends on the scope alone")
    }

    /// Sorts the terms by the last node that they depend on.
    fn find_ending(&mut self) {
        self.ending = vec![Vec::new(); self.scope.len()];
        for (number, term) in self.terms.iter().enumerate() {
            if let Some(last) = term.strides.iter().map(|(position, _)| *position).max() {
                self.ending[last].push(number);
            }
        }
    }

    /// The cheapest label, the first of equal ones, for these labels of the others.
    fn best_label(&self, count: usize, labels: &[usize]) -> usize {
        let mut totals = vec![0.0; count];
        for term in &self.terms {
            let strides = term.strides.iter();
            let offsets = strides.map(|(position, stride)| stride * labels[self.scope[*position]]);
            let row = term.table[offsets.sum::<usize>()..].iter();
            for (total, cost) in totals.iter_mut().zip(row.step_by(term.own)) {
                *total += cost;
            }
        }
        let mut best = (0, NEVER);
        for (label, total) in totals.into_iter().enumerate() {
            if total < best.1 {
                best = (label, total);
            }
        }
        best.0
    }

    /// What the node costs at least for each choice of labels of its scope, which is not empty, in a table with these strides.
    fn least<'r>(
        &self,
        choices: &[usize],
        strides: &[usize],
        room: &'r mut Room,
    ) -> &'r mut Vec<f64> {
        let count = choices[self.node];
        let last = self.scope.len() - 1;
        let entries = self.scope.iter().map(|&node| choices[node]).product();
        resize(&mut room.table, entries, 0.0);
        resize(&mut room.sums, (last + 1) * count, 0.0);
        resize(&mut room.offsets, self.terms.len(), 0);
        resize(&mut room.labels, last, 0);
        for term in self.terms.iter().filter(|term| term.strides.is_empty()) {
            add(&mut room.sums[..count], &term.table, 1);
        }
        let (mut changed, mut offset) = (0, 0);
        loop {
            for position in changed..last {
                let (before, after) = room.sums[position * count..].split_at_mut(count);
                let after = &mut after[..count];
                after.copy_from_slice(before);
                for &number in &self.ending[position] {
                    let term = &self.terms[number];
                    add(after, &term.table[room.offsets[number]..], term.own);
                }
            }
            resize(&mut room.least, choices[self.scope[last]], NEVER);
            self.least_of_rows(&room.sums[last * count..], &room.offsets, &mut room.least);
            let row = room.table[offset..].iter_mut().step_by(strides[last]);
            for (entry, least) in row.zip(&room.least) {
                *entry = *least;
            }
            // The next choice of labels, the last node first.
            changed = last;
            loop {
                let Some(position) = changed.checked_sub(1) else {
                    return &mut room.table;
                };
                changed = position;
                let before = room.labels[position];
                let is_last = before + 1 == choices[self.scope[position]];
                let moved = |offset: &mut usize, stride: usize| match is_last {
                    true => *offset -= stride * before,
                    false => *offset += stride,
                };
                for (offset, term) in room.offsets.iter_mut().zip(&self.terms) {
                    let of_position = term.strides.iter();
                    for (_, stride) in of_position.filter(|(other, _)| *other == position) {
                        moved(offset, *stride);
                    }
                }
                moved(&mut offset, strides[position]);
                room.labels[position] = if is_last { 0 } else { before + 1 };
                if !is_last {
                    break;
                }
            }
        }
    }

    /// The same for all labels of the node that goes next, given the sums of what does not depend on it for each label of the
    /// node that goes, and where the others are read.
    fn least_of_rows(&self, sums: &[f64], offsets: &[usize], least: &mut [f64]) {
        let count = least.len();
        let ending = self.ending.last().map_or(&[][..], Vec::as_slice);
        let row = |number: usize, label: usize| {
            &self.terms[number].table[offsets[number] + label * count..][..count]
        };
        match *ending {
            [one] => {
                for (label, sum) in sums.iter().enumerate() {
                    for (least, cost) in least.iter_mut().zip(row(one, label)) {
                        *least = smaller(*least, sum + cost);
                    }
                }
            }
            [one, two] => {
                for (label, sum) in sums.iter().enumerate() {
                    let rows = row(one, label).iter().zip(row(two, label));
                    for (least, (cost, other)) in least.iter_mut().zip(rows) {
                        *least = smaller(*least, sum + cost + other);
                    }
                }
            }
            _ => {
                let mut totals = vec![0.0; count];
                for (label, sum) in sums.iter().enumerate() {
                    totals.fill(*sum);
                    for &number in ending {
                        add(&mut totals, row(number, label), 1);
                    }
                    for (least, total) in least.iter_mut().zip(&totals) {
                        *least = smaller(*least, *total);
                    }
                }
            }
        }
    }
}

/// The smaller one of two numbers.
fn smaller(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

/// Adds costs that are so far apart.
fn add(sums: &mut [f64], costs: &[f64], stride: usize) {
    for (sum, cost) in sums.iter_mut().zip(costs.iter().step_by(stride)) {
        *sum += cost;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layouts::labelling::order::MOST_ENTRIES;

    type Edges = Vec<([usize; 2], Vec<Cost>)>;

    /// Up to eight nodes with costs of their labels, and edges with costs of pairs, some of which are impossible.
    fn problems() -> impl Strategy<Value = (Vec<Vec<Cost>>, Edges)> {
        let costs = prop::collection::vec(0..30u64, 1..5);
        let edges = prop::collection::btree_map((0..8usize, 0..8usize), any::<u64>(), 0..14);
        (prop::collection::vec(costs, 2..8), edges).prop_map(|(own, edges)| {
            let edges = edges.into_iter().filter_map(|((low, high), seed)| {
                let pairs = own.get(low)?.len() * own.get(high)?.len();
                let cost = |pair: usize| match seed.wrapping_mul(2 * pair as u64 + 1) >> 32 {
                    mixed if mixed % 13 == 0 => IMPOSSIBLE,
                    mixed => mixed % 30,
                };
                (low < high).then(|| ([low, high], (0..pairs).map(cost).collect()))
            });
            let edges = edges.collect();
            (own, edges)
        })
    }

    fn of(own: &[Vec<Cost>], edges: &Edges) -> Elimination {
        let choices: Vec<usize> = own.iter().map(Vec::len).collect();
        let open = edges.iter().map(|([low, high], _)| (*low, *high));
        let open: Vec<_> = open
            .filter(|&(low, high)| choices[low] > 1 && choices[high] > 1)
            .collect();
        let edges = edges.iter().map(|(ends, costs)| {
            let columns = own[ends[1]].len();
            (*ends, move |row, column| costs[row * columns + column])
        });
        let order = Order::of(&choices, &open, MOST_ENTRIES).unwrap();
        Elimination::of(own.to_vec(), edges, order)
    }

    proptest! {
        /// Tables that are kept say what tables of the changed costs do.
        #[test]
        fn changes_are_as_good_as_a_new_beginning(
            (own, mut edges) in problems(),
            changes in prop::collection::vec((any::<usize>(), any::<usize>(), 0..40u64), 1..12),
        ) {
            let mut kept = of(&own, &edges);
            for (edge, pair, cost) in changes {
                if edges.is_empty() {
                    return Ok(());
                }
                let edge = edge % edges.len();
                let (ends, costs) = &mut edges[edge];
                let (pair, columns) = (pair % costs.len(), own[ends[1]].len());
                costs[pair] = cost;
                kept.change(edge, [pair / columns, pair % columns], cost);
                prop_assert_eq!(kept.best(), of(&own, &edges).best());
            }
        }
    }
}
