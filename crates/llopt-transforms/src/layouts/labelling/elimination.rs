//! Removing nodes one by one, each with a table of what it costs at least for the labels of those around it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::cost::{Cost, IMPOSSIBLE};
use super::problem::Problem;

/// Entries that the table of an eliminated node may have.
pub(super) const LARGEST_TABLE: usize = 1 << 13;

/// Costs that depend on the labels of some nodes.
#[derive(Clone, Debug)]
pub(super) struct Factor {
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

    /// The factor that is left when a node of the scope has a label.
    fn slice(&self, node: usize, label: usize, choices: &[usize]) -> Self {
        let position = self.scope.iter().position(|&n| n == node).unwrap_or(0);
        let inner: usize = self.scope[position + 1..]
            .iter()
            .map(|&n| choices[n])
            .product();
        let entries = self.table.iter().enumerate();
        Self {
            scope: self.scope.iter().copied().filter(|&n| n != node).collect(),
            table: entries
                .filter(|(index, _)| index / inner % choices[node] == label)
                .map(|(_, &cost)| cost)
                .collect(),
        }
    }
}

/// The cheapest label of a node, by these costs, for the labels of the others, and its cost.
fn best_label(
    node: usize,
    factors: &[Factor],
    choices: &[usize],
    labels: &mut [usize],
) -> (usize, Cost) {
    let mut best = (0, IMPOSSIBLE);
    for label in 0..choices[node] {
        labels[node] = label;
        let costs = factors.iter().map(|factor| factor.at(labels, choices));
        let total = costs.fold(0, Cost::saturating_add);
        if total < best.1 {
            best = (label, total);
        }
    }
    best
}

/// How a node was removed.
#[derive(Clone)]
pub(super) enum Step {
    /// The costs that depended on it.
    Eliminated(Rc<Vec<Factor>>),
    /// The label that it got instead.
    Fixed(usize),
}

/// A logarithm to base 2 in units of `2^-32`: exact for powers of two, and the same everywhere.
pub(super) fn logarithm(number: usize) -> u64 {
    let whole = number.ilog2();
    // Squaring the mantissa in `1..2` brings out one bit of the logarithm after the other.
    let mut mantissa = ((number as u128) << 64) >> whole;
    let mut bits = u64::from(whole);
    for _ in 0..32 {
        mantissa = ((mantissa >> 2) * (mantissa >> 2)) >> 60;
        bits <<= 1;
        if mantissa >> 65 != 0 {
            mantissa >>= 1;
            bits |= 1;
        }
    }
    bits
}

/// A problem during elimination.
#[derive(Clone)]
pub(super) struct Elimination {
    /// How many labels each node has.
    pub(super) choices: Vec<usize>,
    /// The logarithms of these.
    weights: Vec<u64>,
    /// The costs, `None` once they are replaced by others.
    factors: Vec<Option<Factor>>,
    /// The costs of each node alone.
    own: Vec<usize>,
    /// The costs that depend on each node; replaced ones may be among them.
    factors_of: Vec<Vec<usize>>,
    /// The nodes that each node shares costs with.
    neighbours: Vec<BTreeSet<usize>>,
    /// The logarithm of the size of each node's table.
    sizes: Vec<u64>,
    /// The nodes that are left, smallest table first.
    by_size: BTreeSet<(u64, usize)>,
    /// The nodes that are left, most neighbours first.
    by_degree: BTreeSet<(Reverse<usize>, usize)>,
    /// Labels to look up entries of tables with.
    labels: Vec<usize>,
}

impl Elimination {
    /// The problem with these labels for each node.
    pub(super) fn of(problem: &Problem<'_>, useful: &[Vec<usize>]) -> Self {
        let count = problem.nodes.len();
        let choices: Vec<usize> = useful.iter().map(Vec::len).collect();
        let mut own: Vec<Vec<Cost>> = problem
            .nodes
            .iter()
            .zip(useful)
            .map(|(costs, labels)| labels.iter().map(|&label| costs[label]).collect())
            .collect();
        let mut elimination = Self {
            weights: choices.iter().map(|&number| logarithm(number)).collect(),
            choices,
            factors: Vec::new(),
            own: Vec::with_capacity(count),
            factors_of: vec![Vec::new(); count],
            neighbours: vec![BTreeSet::new(); count],
            sizes: vec![0; count],
            by_size: BTreeSet::new(),
            by_degree: BTreeSet::new(),
            labels: vec![0; count],
        };
        for (&(a, b), costs) in &problem.edges {
            let columns = &useful[b];
            let rows = useful[a].iter();
            let entries =
                rows.flat_map(|&row| columns.iter().map(move |&column| costs.at(row, column)));
            // With one label on one side it is a cost of the other alone.
            match (useful[a].len(), useful[b].len()) {
                (_, 1) => {
                    for (total, cost) in own[a].iter_mut().zip(entries) {
                        *total = total.saturating_add(cost);
                    }
                }
                (1, _) => {
                    for (total, cost) in own[b].iter_mut().zip(entries) {
                        *total = total.saturating_add(cost);
                    }
                }
                _ => {
                    elimination.neighbours[a].insert(b);
                    elimination.neighbours[b].insert(a);
                    let table = entries.collect();
                    elimination.add(Factor {
                        scope: vec![a, b],
                        table,
                    });
                }
            }
        }
        for (node, table) in own.into_iter().enumerate() {
            elimination.own.push(elimination.factors.len());
            elimination.add(Factor {
                scope: vec![node],
                table,
            });
            let around = elimination.neighbours[node].iter();
            elimination.sizes[node] = around.map(|&other| elimination.weights[other]).sum();
            let degree = elimination.neighbours[node].len();
            elimination.by_size.insert((elimination.sizes[node], node));
            elimination.by_degree.insert((Reverse(degree), node));
        }
        elimination
    }

    fn add(&mut self, factor: Factor) {
        for &node in &factor.scope {
            self.factors_of[node].push(self.factors.len());
        }
        self.factors.push(Some(factor));
    }

    /// Eliminates nodes for as long as that makes small tables.
    pub(super) fn eliminate_small(&mut self) -> Vec<(usize, Step)> {
        let mut steps = Vec::new();
        while let Some(&(size, node)) = self.by_size.first()
            && size <= logarithm(LARGEST_TABLE)
        {
            steps.push((node, self.eliminate(node)));
        }
        steps
    }

    /// The node with the most neighbours of those that are left.
    pub(super) fn widest(&self) -> Option<usize> {
        self.by_degree.first().map(|&(_, node)| node)
    }

    /// Removes all nodes that are left; answers whether none was fixed.
    pub(super) fn finish(&mut self, steps: &mut Vec<(usize, Step)>) -> bool {
        let mut none_fixed = true;
        loop {
            steps.append(&mut self.eliminate_small());
            let Some(node) = self.widest() else {
                return none_fixed;
            };
            none_fixed = false;
            steps.push((node, self.fix(node, None)));
        }
    }

    /// The labels of all nodes, the last removed first; `useful` are those that each node chose from.
    pub(super) fn labels(&self, steps: &[(usize, Step)], useful: &[Vec<usize>]) -> Vec<usize> {
        let mut chosen = vec![0; useful.len()];
        for (node, step) in steps.iter().rev() {
            chosen[*node] = match step {
                Step::Eliminated(factors) => {
                    best_label(*node, factors, &self.choices, &mut chosen).0
                }
                Step::Fixed(label) => *label,
            };
        }
        let labels = useful.iter().zip(chosen);
        labels.map(|(labels, chosen)| labels[chosen]).collect()
    }

    /// Changes the neighbours of a node that is left.
    fn change(&mut self, node: usize, change: impl FnOnce(&mut BTreeSet<usize>, &mut u64, &[u64])) {
        let degree = self.neighbours[node].len();
        self.by_size.remove(&(self.sizes[node], node));
        self.by_degree.remove(&(Reverse(degree), node));
        change(
            &mut self.neighbours[node],
            &mut self.sizes[node],
            &self.weights,
        );
        let degree = self.neighbours[node].len();
        self.by_size.insert((self.sizes[node], node));
        self.by_degree.insert((Reverse(degree), node));
    }

    /// Removes a node and the costs that depend on it from the problem.
    fn take(&mut self, node: usize) -> Vec<Factor> {
        let degree = self.neighbours[node].len();
        self.by_size.remove(&(self.sizes[node], node));
        self.by_degree.remove(&(Reverse(degree), node));
        for other in std::mem::take(&mut self.neighbours[node]) {
            self.change(other, |around, size, weights| {
                around.remove(&node);
                *size -= weights[node];
            });
        }
        let slots = std::mem::take(&mut self.factors_of[node]);
        let factors = slots.into_iter();
        factors
            .filter_map(|slot| self.factors[slot].take())
            .collect()
    }

    /// Replaces a node by a table over its neighbours.
    fn eliminate(&mut self, node: usize) -> Step {
        let scope: Vec<usize> = self.neighbours[node].iter().copied().collect();
        let factors = self.take(node);
        for &other in &scope {
            self.change(other, |around, size, weights| {
                for &third in scope.iter().filter(|&&third| third != other) {
                    if around.insert(third) {
                        *size += weights[third];
                    }
                }
            });
        }
        let entries: usize = scope.iter().map(|&other| self.choices[other]).product();
        let mut table = Vec::with_capacity(entries);
        let (choices, labels) = (&self.choices, &mut self.labels);
        for &other in &scope {
            labels[other] = 0;
        }
        for _ in 0..entries {
            table.push(best_label(node, &factors, choices, labels).1);
            // The next choice of labels, the last node first.
            for &other in scope.iter().rev() {
                labels[other] += 1;
                if labels[other] < choices[other] {
                    break;
                }
                labels[other] = 0;
            }
        }
        match scope[..] {
            [] => {}
            // Costs of a single node are kept in one table.
            [only] => {
                if let Some(own) = &mut self.factors[self.own[only]] {
                    for (total, cost) in own.table.iter_mut().zip(table) {
                        *total = total.saturating_add(cost);
                    }
                }
            }
            _ => self.add(Factor { scope, table }),
        }
        Step::Eliminated(Rc::new(factors))
    }

    /// Gives a node a label: this one, or the one that costs least.
    pub(super) fn fix(&mut self, node: usize, label: Option<usize>) -> Step {
        let factors = self.take(node);
        // For each factor and label, the least over the labels of the others.
        let least = |factor: &Factor, label: usize| {
            let left = factor.slice(node, label, &self.choices);
            left.table.into_iter().min().unwrap_or(0)
        };
        let cheapest = || {
            (0..self.choices[node]).min_by_key(|&label| {
                let costs = factors.iter().map(|factor| least(factor, label));
                costs.fold(0, Cost::saturating_add)
            })
        };
        let label = label.or_else(cheapest).unwrap_or(0);
        for factor in &factors {
            let left = factor.slice(node, label, &self.choices);
            if !left.scope.is_empty() {
                self.add(left);
            }
        }
        Step::Fixed(label)
    }
}
