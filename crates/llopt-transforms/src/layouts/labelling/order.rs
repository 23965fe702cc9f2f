//! The order in which nodes are eliminated, and what that takes, known before any table is made.
//!
//! The node with the smallest table goes first, the smaller node among equals. The size of a table is kept as a sum of
//! logarithms: removing one of the `d` neighbours of a node changes that sum by one term. Of a graph whose elimination
//! would take too much, this is known as soon as the smallest table is too large, after a time that depends on the
//! neighbours of nodes alone.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Which node is eliminated when, with the nodes that its table depends on, in increasing order.
pub(super) struct Order {
    pub(super) steps: Vec<(usize, Vec<usize>)>,
}

impl Order {
    /// The order for nodes with so many choices each and these edges, or `None` if tables and what they are made from would have
    /// more than `most` entries.
    pub(super) fn of(choices: &[usize], edges: &[(usize, usize)], most: u64) -> Option<Self> {
        let mut rest = Rest::of(choices, edges);
        let mut steps = Vec::with_capacity(choices.len());
        let mut left = most;
        while let Some((_, node)) = rest.by_size.first().copied() {
            let scope = rest.remove(node, true);
            let entries = scope
                .iter()
                .chain([&node])
                .try_fold(1u64, |entries, &other| {
                    entries.checked_mul(choices[other] as u64)
                });
            left = left.checked_sub(entries?)?;
            steps.push((node, scope));
        }
        Some(Self { steps })
    }
}

/// Nodes without which no table has more than `largest` entries: where all would, the node goes that was among
/// such nodes least often, and of these the one with the most neighbours.
pub(super) fn obstacles(
    choices: &[usize],
    edges: &[(usize, usize)],
    largest: usize,
    times: &[usize],
) -> Vec<usize> {
    let mut rest = Rest::of(choices, edges);
    let mut obstacles = Vec::new();
    while let Some(&(size, node)) = rest.by_size.first() {
        if size <= logarithm(largest) {
            rest.remove(node, true);
            continue;
        }
        let left = rest.by_size.iter().map(|&(_, node)| node);
        let rank = |node: &usize| (times[*node], Reverse(rest.neighbours[*node].len()), *node);
        let obstacle = left.min_by_key(rank).unwrap_or(node);
        rest.remove(obstacle, false);
        obstacles.push(obstacle);
    }
    obstacles
}

/// The nodes that are left during elimination.
struct Rest {
    /// The logarithm of how many choices each node has.
    weights: Vec<u64>,
    /// The nodes that each node shares costs with.
    neighbours: Vec<BTreeSet<usize>>,
    /// The logarithm of the size of each node's table.
    sizes: Vec<u64>,
    by_size: BTreeSet<(u64, usize)>,
}

impl Rest {
    fn of(choices: &[usize], edges: &[(usize, usize)]) -> Self {
        let weights: Vec<u64> = choices.iter().map(|&number| logarithm(number)).collect();
        let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); choices.len()];
        for &(a, b) in edges {
            neighbours[a].insert(b);
            neighbours[b].insert(a);
        }
        let sizes = neighbours.iter();
        let sizes = sizes.map(|around| around.iter().map(|&other| weights[other]).sum());
        let sizes: Vec<u64> = sizes.collect();
        let numbered = sizes.iter().enumerate();
        Self {
            by_size: numbered.map(|(node, &size)| (size, node)).collect(),
            weights,
            neighbours,
            sizes,
        }
    }

    /// Removes a node, and makes its neighbours those of each other if it gets a table over them; the neighbours.
    fn remove(&mut self, node: usize, has_table: bool) -> Vec<usize> {
        self.by_size.remove(&(self.sizes[node], node));
        let around = std::mem::take(&mut self.neighbours[node]);
        let scope: Vec<usize> = around.into_iter().collect();
        for &other in &scope {
            self.by_size.remove(&(self.sizes[other], other));
            self.neighbours[other].remove(&node);
            self.sizes[other] -= self.weights[node];
            if has_table {
                for &third in scope.iter().filter(|&&third| third != other) {
                    if self.neighbours[other].insert(third) {
                        self.sizes[other] += self.weights[third];
                    }
                }
            }
            self.by_size.insert((self.sizes[other], other));
        }
        scope
    }
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
