//! Removing nodes one by one, each with a table of what it costs at least for the labels of those around it.

use super::cost::{Cost, IMPOSSIBLE};
use super::order::Order;
use super::problem::Problem;

/// Costs that depend on the labels of some nodes.
#[derive(Clone, Debug)]
struct Factor {
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

    /// How far apart two entries are whose labels of a node are neighbours; nothing if the costs do not depend on it.
    fn stride(&self, node: usize, choices: &[usize]) -> usize {
        let position = self.scope.iter().position(|&other| other == node);
        position.map_or(0, |position| {
            let inner = self.scope[position + 1..].iter();
            inner.map(|&other| choices[other]).product()
        })
    }

    /// The same costs, with a node of the scope as the last one.
    fn with_last(mut self, node: usize, choices: &[usize]) -> Self {
        let (inner, count) = (self.stride(node, choices), choices[node]);
        if inner > 1 {
            let blocks = self.table.chunks(inner * count);
            let table = blocks.flat_map(|block| {
                (0..inner).flat_map(move |offset| block[offset..].iter().step_by(inner).copied())
            });
            self.table = table.collect();
        }
        self.scope.retain(|&other| other != node);
        self.scope.push(node);
        self
    }
}

/// The costs of a problem during elimination.
struct Elimination {
    /// How many labels each node has.
    choices: Vec<usize>,
    /// The costs, `None` once they are replaced by others.
    factors: Vec<Option<Factor>>,
    /// The costs of each node alone.
    own: Vec<usize>,
    /// The costs that depend on each node; replaced ones may be among them.
    factors_of: Vec<Vec<usize>>,
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
    let mut elimination = Elimination::of(problem, useful);
    let steps: Vec<(usize, Vec<Factor>)> = order
        .steps
        .into_iter()
        .map(|(node, scope)| (node, elimination.eliminate(node, scope)))
        .collect();
    // The node that was removed last finds all those that its costs depend on.
    let mut chosen = vec![0; useful.len()];
    for (node, factors) in steps.iter().rev() {
        chosen[*node] = best_label(*node, factors, &elimination.choices, &mut chosen);
    }
    let labels = useful.iter().zip(chosen);
    labels.map(|(labels, chosen)| labels[chosen]).collect()
}

/// The cheapest label of a node, by these costs, for the labels of the others.
fn best_label(node: usize, factors: &[Factor], choices: &[usize], labels: &mut [usize]) -> usize {
    let mut best = (0, IMPOSSIBLE);
    for label in 0..choices[node] {
        labels[node] = label;
        let costs = factors.iter().map(|factor| factor.at(labels, choices));
        let total = costs.fold(0, Cost::saturating_add);
        if total < best.1 {
            best = (label, total);
        }
    }
    best.0
}

impl Elimination {
    /// The problem with these labels for each node.
    fn of(problem: &Problem<'_>, useful: &[Vec<usize>]) -> Self {
        let count = problem.nodes.len();
        let mut own: Vec<Vec<Cost>> = problem
            .nodes
            .iter()
            .zip(useful)
            .map(|(costs, labels)| labels.iter().map(|&label| costs[label]).collect())
            .collect();
        let mut elimination = Self {
            choices: useful.iter().map(Vec::len).collect(),
            factors: Vec::new(),
            own: Vec::with_capacity(count),
            factors_of: vec![Vec::new(); count],
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
        }
        elimination
    }

    fn add(&mut self, factor: Factor) {
        for &node in &factor.scope {
            self.factors_of[node].push(self.factors.len());
        }
        self.factors.push(Some(factor));
    }

    /// Replaces a node by a table over these neighbours; the costs that depended on it.
    fn eliminate(&mut self, node: usize, scope: Vec<usize>) -> Vec<Factor> {
        let slots = std::mem::take(&mut self.factors_of[node]).into_iter();
        let factors = slots.filter_map(|slot| self.factors[slot].take());
        let factors = factors.map(|factor| factor.with_last(node, &self.choices));
        let factors: Vec<Factor> = factors.collect();
        if scope.is_empty() {
            return factors;
        }
        let table = self.least(node, &scope, &factors);
        match scope[..] {
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
        factors
    }

    /// What a node costs at least for each choice of labels of the others that its costs depend on. It is the last one of
    /// each of these.
    fn least(&self, node: usize, scope: &[usize], factors: &[Factor]) -> Vec<Cost> {
        let (choices, count) = (&self.choices, self.choices[node]);
        // By the position of a neighbour: the factors that it is the last one of, and those that depend on it, with strides.
        let mut ending: Vec<Vec<usize>> = vec![Vec::new(); scope.len()];
        let mut strides: Vec<Vec<(usize, usize)>> = vec![Vec::new(); scope.len()];
        // The sum of what depends on the first neighbours alone, by their number, for each label of the node.
        let mut sums: Vec<Vec<Cost>> = vec![vec![0; count]; scope.len() + 1];
        for (number, factor) in factors.iter().enumerate() {
            let mut last = None;
            for (position, &other) in scope.iter().enumerate() {
                let stride = factor.stride(other, choices);
                if stride > 0 {
                    strides[position].push((number, stride));
                    last = Some(position);
                }
            }
            match last {
                Some(last) => ending[last].push(number),
                None => add(&mut sums[0], &factor.table),
            }
        }
        let entries = scope.iter().map(|&other| choices[other]).product();
        let mut table = Vec::with_capacity(entries);
        let mut offsets = vec![0; factors.len()];
        let mut labels = vec![0; scope.len()];
        let mut changed = 0;
        loop {
            for position in changed..scope.len() {
                let (before, after) = sums.split_at_mut(position + 1);
                after[0].copy_from_slice(&before[position]);
                for &number in &ending[position] {
                    let costs = &factors[number].table[offsets[number]..];
                    add(&mut after[0], &costs[..count]);
                }
            }
            let totals = sums[scope.len()].iter();
            table.push(totals.copied().min().unwrap_or(IMPOSSIBLE));
            // The next choice of labels, the last neighbour first.
            changed = scope.len();
            loop {
                let Some(position) = changed.checked_sub(1) else {
                    return table;
                };
                changed = position;
                labels[position] += 1;
                let is_last = labels[position] == choices[scope[position]];
                for &(number, stride) in &strides[position] {
                    match is_last {
                        true => offsets[number] -= stride * (labels[position] - 1),
                        false => offsets[number] += stride,
                    }
                }
                if !is_last {
                    break;
                }
                labels[position] = 0;
            }
        }
    }
}

fn add(sums: &mut [Cost], costs: &[Cost]) {
    for (sum, cost) in sums.iter_mut().zip(costs) {
        *sum = sum.saturating_add(*cost);
    }
}
