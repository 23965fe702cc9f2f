//! The order in which nodes are eliminated, and what that takes, known before any table is made.
//!
//! The node with the smallest table goes first, the smaller node among equals. The size of a table is kept as a sum of
//! logarithms: removing one of the `d` neighbours of a node changes that sum by one term. Of a graph whose elimination
//! would take too much, this is known as soon as the smallest table is too large, after a time that depends on the
//! neighbours of nodes alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries of all tables of a search, and of what they are made from: some ten milliseconds.
pub(in crate::layouts) const MOST_ENTRIES: u64 = 1 << 22;
/// Which node is eliminated when, with the nodes that its table depends on, in increasing order.
pub(super) struct Order {
    pub(super) steps: Vec<(usize, Vec<usize>)>,
    /// Entries of all tables and of what they are made from.
    pub(super) entries: u64,
}

impl Order {
    /// The order for nodes with so many choices each and these edges, or `None` if tables and what they are made from would have
    /// more than `most` entries.
    pub(super) fn of(choices: &[usize], edges: &[(usize, usize)], most: u64) -> Option<Self> {
        let mut rest = Rest::of(choices, edges);
        let mut steps = Vec::with_capacity(choices.len());
        let mut left = most;
        while let Some((_, node)) = rest.smallest() {
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
        Some(Self {
            steps,
            entries: most - left,
        })
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
    while let Some((size, node)) = rest.smallest() {
        if size <= logarithm(largest) {
            rest.remove(node, true);
            continue;
        }
        let left = (0..choices.len()).filter(|&node| rest.is_left[node]);
        let rank = |node: &usize| (times[*node], Reverse(rest.neighbours[*node].len()), *node);
        let obstacle = left.min_by_key(rank).unwrap_or(node);
        rest.remove(obstacle, false);
        obstacles.push(obstacle);
    }
    obstacles
}

/// The nodes that are left during elimination.
struct Rest {
    is_left: Vec<bool>,
    /// The logarithm of how many choices each node has.
    weights: Vec<u64>,
    /// The nodes that each node shares costs with, in increasing order.
    neighbours: Vec<Vec<usize>>,
    /// The logarithm of the size of each node's table.
    sizes: Vec<u64>,
    /// The sizes of nodes, those that they had before among them.
    by_size: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Rest {
    fn of(choices: &[usize], edges: &[(usize, usize)]) -> Self {
        let most = choices.iter().copied().max().unwrap_or(0);
        let logarithms: Vec<u64> = (0..=most).map(|number| logarithm(number.max(1))).collect();
        let weights: Vec<u64> = choices.iter().map(|&number| logarithms[number]).collect();
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); choices.len()];
        for &(a, b) in edges {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        for around in &mut neighbours {
            around.sort_unstable();
            around.dedup();
        }
        let sizes = neighbours.iter();
        let sizes = sizes.map(|around| around.iter().map(|&other| weights[other]).sum());
        let sizes: Vec<u64> = sizes.collect();
        let numbered = sizes.iter().enumerate();
        Self {
            is_left: vec![true; choices.len()],
            by_size: numbered
                .map(|(node, &size)| Reverse((size, node)))
                .collect(),
            weights,
            neighbours,
            sizes,
        }
    }

    /// The smallest table, and its node.
    fn smallest(&mut self) -> Option<(u64, usize)> {
        loop {
            let &Reverse((size, node)) = self.by_size.peek()?;
            if self.is_left[node] && self.sizes[node] == size {
                return Some((size, node));
            }
            self.by_size.pop();
        }
    }

    /// Removes a node, and makes its neighbours those of each other if it gets a table over them; the neighbours.
    fn remove(&mut self, node: usize, has_table: bool) -> Vec<usize> {
        self.is_left[node] = false;
        let scope = std::mem::take(&mut self.neighbours[node]);
        for &other in &scope {
            let around = &mut self.neighbours[other];
            if let Ok(position) = around.binary_search(&node) {
                around.remove(position);
            }
            self.sizes[other] -= self.weights[node];
            if has_table {
                for &third in scope.iter().filter(|&&third| third != other) {
                    if let Err(position) = around.binary_search(&third) {
                        around.insert(position, third);
                        self.sizes[other] += self.weights[third];
                    }
                }
            }
            self.by_size.push(Reverse((self.sizes[other], other)));
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
