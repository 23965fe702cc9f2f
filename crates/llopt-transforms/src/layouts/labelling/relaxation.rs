//! Which labels and pairs of labels a labelling of least cost may have, by bounds of what pairs cost.
//!
//! # The bound
//!
//! A cost can be moved between a node and its edges: what is added to the cost of label `l` of a node and taken off the
//! costs of all pairs of `l` on one of its edges changes no labelling's sum. However costs are moved, no labelling is below
//!
//! ```text
//!   bound = sum over nodes of the least cost of a label + sum over edges of the least cost of a pair
//! ```
//!
//! and one with label `l` is not below the bound plus what `l` costs more than the cheapest label of its node; the same holds
//! for pairs. So with the cost of any labelling as a limit, labels and pairs above it are in no labelling of least cost. This
//! is the dual of the linear relaxation of the problem.
//!
//! # Moving costs
//!
//! Nodes are visited in their order, forward and backward in turns: a node collects what its edges make its labels cost, keeps
//! what they all have in common with the later nodes, an equal share for each, and sends it on. On a tree one pass in each
//! direction reaches the largest bound, which then is the least cost; on other graphs passes never lower it by more than
//! rounding, and graphs of programs are almost trees (sequential tree-reweighted message passing, Kolmogorov 2006, on
//! integers). On the way, each node takes the label that is cheapest for those before it: a labelling, whose cost is a limit.
//!
//! # Prices on demand
//!
//! All this holds for bounds of what pairs cost as well. Only the pairs that the bound rests on, and those of the labellings
//! that are found, are asked for their price, until there is nothing to ask for any more. With the limit at the bound, what is
//! left are the labellings of least cost, and the search among them ([`super`]) has little to do. A gap may remain, as labels
//! cannot be halved: then that search has more to do.
//!
//! # When passes end
//!
//! On most graphs tables of all labels that are left are small long before ([`super::order`] knows their size), and a pass takes
//! as long as some tables, and asks for more prices. So passes end as soon as the tables of a search take no longer than the
//! next two would. The search finds the labelling of least cost by what is known of pairs, asks for the prices of that labelling
//! alone, and computes the tables anew that depend on those ([`super::elimination`]), until it finds one whose prices are known.

use super::cost::{Cost, IMPOSSIBLE};
use super::edges::EdgeCosts;
use super::order::{MOST_ENTRIES, Order};
use super::problem::Problem;

/// Units that a cost has here: shares of costs are rounded to one of these.
const SCALE: i64 = 1 << 8;
/// The part of the distance between bound and limit by which a pass has to lessen it, or passes end.
const LEAST_PROGRESS: i64 = 64;
/// How many entries of tables may take the time of two passes over a pair: a search by tables of fewer takes no longer than the
/// passes that it replaces, and asks for fewer prices.
const ENTRIES_FOR_PASSES: usize = 20;
/// The part of all pairs that has to go before it is worth asking again how large tables would be.
const PART_OF_PAIRS: usize = 8;
/// An edge with what has been moved to its ends. Its vectors have an entry for each label that is left.
pub(super) struct Link<'p, 'f> {
    pub(super) ends: [usize; 2],
    pub(super) costs: &'p EdgeCosts<'f>,
    /// What pairs cost at least, row by row.
    pub(super) table: Vec<i64>,
    columns: usize,
    /// What each label of the smaller node and of the larger one has received from this edge.
    moved: [Vec<i64>; 2],
    /// What was left for each label of the smaller node and of the larger one at the last look.
    least: [Vec<i64>; 2],
    /// How many prices are asked for at once, when the bound rests on one that is not known: twice as many each time.
    at_once: usize,
}

impl Link<'_, '_> {
    /// What the pairs of a label of the smaller node cost, by the labels of the larger one.
    fn row(&self, row: usize) -> &[i64] {
        &self.table[row * self.columns..][..self.columns]
    }

    fn at(&self, row: usize, column: usize) -> i64 {
        self.table[row * self.columns + column]
    }

    /// What is left of the cost of a pair.
    fn left(&self, row: usize, column: usize) -> i64 {
        self.at(row, column) - self.moved[0][row] - self.moved[1][column]
    }

    /// Forgets the labels that are not kept.
    fn keep(&mut self, [rows, columns]: [&[bool]; 2]) {
        let numbered = columns.iter().enumerate();
        let numbered = numbered.filter(|(_, is_kept)| **is_kept);
        let left: Vec<usize> = numbered.map(|(column, _)| column).collect();
        let mut end = 0;
        for (row, _) in rows.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
            for column in &left {
                self.table[end] = self.table[row * self.columns + column];
                end += 1;
            }
        }
        self.table.truncate(end);
        let [of_rows, of_columns] = &mut self.moved;
        keep(of_rows, rows);
        keep(of_columns, columns);
        self.columns = left.len();
    }
}

/// Forgets the entries that are not kept.
fn keep<T>(entries: &mut Vec<T>, is_kept: &[bool]) {
    let mut is_kept = is_kept.iter();
    entries.retain(|_| is_kept.next() == Some(&true));
}

/// The bound of a problem, and what is known not to be in a labelling of least cost.
///
/// Labels are numbered by their position among those that are left, here and in labellings on their way, so that all
/// loops are over dense vectors, which become shorter with each pass.
pub(super) struct Relaxation<'p, 'f> {
    pub(super) problem: &'p Problem<'f>,
    /// What labels cost by themselves.
    pub(super) nodes: Vec<Vec<i64>>,
    /// What labels cost with what they have received from all edges.
    sums: Vec<Vec<i64>>,
    pub(super) links: Vec<Link<'p, 'f>>,
    /// For each node its edges to smaller nodes and to larger ones.
    links_of: Vec<[Vec<usize>; 2]>,
    /// The labels that are left, as the problem numbers them, in increasing order.
    pub(super) labels: Vec<Vec<usize>>,
    /// What larger costs count as, so that sums of all stay in range.
    most: i64,
    /// The largest bound so far.
    bound: i64,
    /// The bound by what has been moved now, and the part of it of each edge.
    now: i64,
    of_links: Vec<i64>,
    /// Room for what labels cost above the bound.
    excess: Vec<Vec<i64>>,
    /// The best labelling that was found within the limit, in the problem's labels, and its cost, or the most that is looked
    /// for.
    pub(super) best: Option<Vec<usize>>,
    pub(super) limit: Cost,
}

/// The label of least cost, the first of equal ones.
fn cheapest(costs: &[i64]) -> usize {
    let best = costs.iter().enumerate().min_by_key(|(_, cost)| **cost);
    best.map_or(0, |(label, _)| label)
}

impl<'p, 'f> Relaxation<'p, 'f> {
    pub(super) fn of(problem: &'p Problem<'f>) -> Self {
        Self::up_to(problem, IMPOSSIBLE)
    }

    /// One that looks for labellings of at most this cost.
    pub(super) fn up_to(problem: &'p Problem<'f>, limit: Cost) -> Self {
        let terms = (problem.nodes.len() + problem.edges.len() + 1) as i64;
        let most = i64::MAX / 8 / terms;
        let mut relaxation = Self {
            problem,
            nodes: Vec::with_capacity(problem.nodes.len()),
            sums: Vec::new(),
            links: Vec::with_capacity(problem.edges.len()),
            links_of: vec![Default::default(); problem.nodes.len()],
            labels: Vec::with_capacity(problem.nodes.len()),
            most,
            bound: 0,
            now: 0,
            of_links: vec![0; problem.edges.len()],
            excess: Vec::new(),
            best: None,
            limit,
        };
        for costs in &problem.nodes {
            let own = costs.iter().map(|&cost| relaxation.scaled(cost)).collect();
            relaxation.nodes.push(own);
            relaxation.labels.push((0..costs.len()).collect());
        }
        relaxation.sums.clone_from(&relaxation.nodes);
        for (number, (&(low, high), costs)) in problem.edges.iter().enumerate() {
            let (rows, columns) = (problem.nodes[low].len(), problem.nodes[high].len());
            let least = costs.all_least();
            let link = Link {
                ends: [low, high],
                costs,
                table: least.map(|cost| relaxation.scaled(cost)).collect(),
                columns,
                moved: [vec![0; rows], vec![0; columns]],
                least: Default::default(),
                at_once: 1,
            };
            relaxation.links.push(link);
            relaxation.links_of[low][1].push(number);
            relaxation.links_of[high][0].push(number);
        }
        relaxation
    }

    fn scaled(&self, cost: Cost) -> i64 {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.most / SCALE => cost * SCALE,
            _ => self.most,
        }
    }

    /// The limit, as costs are here.
    fn scaled_limit(&self) -> i64 {
        match i64::try_from(self.limit) {
            Ok(limit) if limit <= self.most / SCALE => limit * SCALE,
            _ => i64::MAX,
        }
    }

    /// The bound of the costs of all labellings.
    pub(super) fn bound(&self) -> Cost {
        self.unscaled(self.bound)
    }

    /// A bound in units of the problem: costs are whole, so it is rounded up.
    fn unscaled(&self, bound: i64) -> Cost {
        Cost::try_from(bound.saturating_add(SCALE - 1).div_euclid(SCALE)).unwrap_or(0)
    }

    /// Whether no labelling is within the limit.
    pub(super) fn is_refuted(&self) -> bool {
        self.bound() > self.limit || self.labels.iter().any(Vec::is_empty)
    }

    /// Moves costs and asks for prices until the bound is the cost of a labelling, or nothing is gained any more.
    pub(super) fn solve(mut self) -> Self {
        self.tighten(LEAST_PROGRESS);
        self
    }

    /// The same, where a pass gains something if it lessens the distance between bound and limit by this part.
    pub(super) fn tighten(&mut self, least_progress: i64) {
        let mut before = i64::MIN;
        let mut most_pairs = usize::MAX;
        loop {
            let mut priced = false;
            for is_forward in [true, false] {
                let mut labelling = self.pass(is_forward);
                self.improve(&mut labelling);
                priced |= self.price_labelling(&labelling);
            }
            priced |= self.take_bound();
            self.drop_labels();
            let gap = self.scaled_limit() - self.bound;
            let gained = self.bound.saturating_sub(before);
            let is_tight = self.limit <= self.bound();
            let is_stuck = !priced && gained < (gap / least_progress).max(SCALE);
            if self.is_refuted() || is_tight || is_stuck {
                return;
            }
            let pairs = self.pairs_left();
            if pairs <= most_pairs {
                if self.order_of_all(ENTRIES_FOR_PASSES).is_some() {
                    return;
                }
                most_pairs = pairs - pairs / PART_OF_PAIRS;
            }
            before = self.bound;
        }
    }

    /// Moves costs along the order of the nodes, or against it; the labelling found on the way.
    fn pass(&mut self, is_forward: bool) -> Vec<usize> {
        let count = self.nodes.len();
        let mut chosen = vec![0; count];
        let (before, after) = match is_forward {
            true => (0, 1),
            false => (1, 0),
        };
        let (mut collected, mut costs, mut least) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..count {
            let node = if is_forward { step } else { count - 1 - step };
            collected.clone_from(&self.sums[node]);
            // The label that is cheapest for those that the nodes before have, by what those after send.
            costs.clone_from(&collected);
            for &number in &self.links_of[node][before] {
                let link = &self.links[number];
                let other = chosen[link.ends[before]];
                for (label, (cost, moved)) in costs.iter_mut().zip(&link.moved[after]).enumerate() {
                    let (row, column) = if is_forward {
                        (other, label)
                    } else {
                        (label, other)
                    };
                    *cost += link.at(row, column) - moved;
                }
            }
            chosen[node] = cheapest(&costs);
            let [smaller, larger] = &self.links_of[node];
            let shares = smaller.len().max(larger.len()) as i64;
            if shares > 1 {
                for cost in &mut collected {
                    *cost = cost.div_euclid(shares);
                }
            }
            for position in 0..self.links_of[node][after].len() {
                let number = self.links_of[node][after][position];
                self.send(number, usize::from(!is_forward), &collected, &mut least);
            }
        }
        chosen
    }

    /// Sends a share of what each label of one end of an edge costs to those of the other end. The last argument is room for
    /// what pairs cost.
    fn send(&mut self, number: usize, from: usize, shares: &[i64], least: &mut Vec<i64>) {
        let link = &mut self.links[number];
        let sums = self.sums[link.ends[from]].iter_mut();
        for ((moved, sum), share) in link.moved[from].iter_mut().zip(sums).zip(shares) {
            *moved -= share;
            *sum -= share;
        }
        // All that pairs cost then goes on to the other end.
        least.clear();
        let rows = link.table.chunks_exact(link.columns.max(1));
        let moved = &link.moved[from];
        match from {
            0 => {
                least.resize(link.columns, i64::MAX);
                for (costs, moved) in rows.zip(moved) {
                    for (least, cost) in least.iter_mut().zip(costs) {
                        *least = (*least).min(cost - moved);
                    }
                }
            }
            _ => least.extend(rows.map(|costs| {
                let left = costs.iter().zip(moved).map(|(cost, moved)| cost - moved);
                left.fold(i64::MAX, i64::min)
            })),
        }
        let sums = self.sums[link.ends[1 - from]].iter_mut();
        for ((moved, sum), least) in link.moved[1 - from].iter_mut().zip(sums).zip(least) {
            *sum += *least - *moved;
            *moved = *least;
        }
    }

    /// Changes the labels of single nodes for as long as that lowers what the labelling costs at least.
    pub(super) fn improve(&self, labelling: &mut [usize]) {
        // Whether a neighbour has changed since the node took its best label.
        let mut is_open = vec![true; labelling.len()];
        let mut costs: Vec<i64> = Vec::new();
        loop {
            let mut changed = false;
            for node in 0..labelling.len() {
                if !std::mem::take(&mut is_open[node]) {
                    continue;
                }
                let [smaller, larger] = &self.links_of[node];
                costs.clone_from(&self.nodes[node]);
                for &number in smaller {
                    let link = &self.links[number];
                    let row = link.row(labelling[link.ends[0]]);
                    for (cost, more) in costs.iter_mut().zip(row) {
                        *cost += more;
                    }
                }
                for &number in larger {
                    let link = &self.links[number];
                    let column = labelling[link.ends[1]];
                    for (label, cost) in costs.iter_mut().enumerate() {
                        *cost += link.at(label, column);
                    }
                }
                let best = cheapest(&costs);
                if costs[best] < costs[labelling[node]] {
                    labelling[node] = best;
                    changed = true;
                    for (numbers, end) in [(smaller, 0), (larger, 1)] {
                        for &number in numbers {
                            is_open[self.links[number].ends[end]] = true;
                        }
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// A pair as the problem numbers its labels.
    pub(super) fn pair(&self, number: usize, row: usize, column: usize) -> (usize, usize) {
        let [low, high] = self.links[number].ends;
        (self.labels[low][row], self.labels[high][column])
    }

    /// Whether the price of a pair is known.
    fn is_known(&self, number: usize, row: usize, column: usize) -> bool {
        let pair = self.pair(number, row, column);
        self.links[number].costs.is_known(pair.0, pair.1)
    }

    /// Asks for the price of a pair; whether it was not known.
    pub(super) fn price(&mut self, number: usize, row: usize, column: usize) -> bool {
        if self.is_known(number, row, column) {
            return false;
        }
        let pair = self.pair(number, row, column);
        let cost = self.scaled(self.links[number].costs.at(pair.0, pair.1));
        let link = &mut self.links[number];
        link.table[row * link.columns + column] = cost;
        true
    }

    /// Asks for the prices of a labelling, which may lower the limit; whether one was not known. Passes come to rest sooner
    /// with prices of pairs that are chosen, so they are worth asking for even if the labelling cannot be the best one.
    pub(super) fn price_labelling(&mut self, labelling: &[usize]) -> bool {
        let mut priced = false;
        for number in 0..self.links.len() {
            let [low, high] = self.links[number].ends;
            priced |= self.price(number, labelling[low], labelling[high]);
        }
        self.offer(&self.numbered(labelling));
        priced
    }

    /// A labelling as the problem numbers labels.
    pub(super) fn numbered(&self, labelling: &[usize]) -> Vec<usize> {
        let labels = self.labels.iter().zip(labelling);
        labels.map(|(labels, &label)| labels[label]).collect()
    }

    /// The cost of a labelling in the problem's labels, which is kept if it is the best one so far.
    pub(super) fn offer(&mut self, labelling: &[usize]) -> Cost {
        let cost = self.problem.cost(labelling);
        let is_first = self.best.is_none() && cost <= self.limit;
        if is_first || cost < self.limit {
            self.limit = cost;
            self.best = Some(labelling.to_vec());
        }
        cost
    }

    /// Adds up the bound, and asks for the prices of the pairs that it rests on; whether one was not known.
    fn take_bound(&mut self) -> bool {
        let sums = self.sums.iter();
        let mut bound: i64 = sums.filter_map(|costs| costs.iter().min()).sum();
        let mut priced = false;
        for number in 0..self.links.len() {
            if let Some((least, row, column)) = self.look(number) {
                bound += least;
                self.of_links[number] = least;
                if !self.is_known(number, row, column) {
                    priced = true;
                    self.price_cheapest(number);
                    self.look(number);
                }
            }
        }
        self.now = bound;
        self.bound = self.bound.max(bound);
        priced
    }

    /// Asks for the prices of the pairs of an edge of which least is left, twice as many each time.
    pub(super) fn price_cheapest(&mut self, number: usize) {
        let at_once = self.links[number].at_once;
        let mut pairs: Vec<_> = self.pairs(number).collect();
        pairs.retain(|&(_, row, column)| !self.is_known(number, row, column));
        if pairs.len() > at_once {
            pairs.select_nth_unstable(at_once);
            pairs.truncate(at_once);
        }
        for &(_, row, column) in &pairs {
            self.price(number, row, column);
        }
        self.links[number].at_once *= 2;
    }

    /// Looks at what is left of the pairs of an edge: for each label, and the pair of which least is left, the first of
    /// equal ones.
    pub(super) fn look(&mut self, number: usize) -> Option<(i64, usize, usize)> {
        let link = &mut self.links[number];
        let [mut of_rows, mut of_columns] = std::mem::take(&mut link.least);
        of_rows.clear();
        of_columns.clear();
        of_columns.resize(link.columns, i64::MAX);
        let mut found: Option<(i64, usize, usize)> = None;
        let [moved_of_rows, moved_of_columns] = &link.moved;
        let rows = link.table.chunks_exact(link.columns.max(1));
        for (row, (costs, moved)) in rows.zip(moved_of_rows).enumerate() {
            let mut of_row = (i64::MAX, 0);
            let columns = costs.iter().zip(moved_of_columns).zip(&mut of_columns);
            for (column, ((cost, moved_of_column), of_column)) in columns.enumerate() {
                let left = cost - moved - moved_of_column;
                *of_column = left.min(*of_column);
                if left < of_row.0 {
                    of_row = (left, column);
                }
            }
            let (left, column) = of_row;
            of_rows.push(left);
            if found.is_none_or(|(least, ..)| left < least) {
                found = Some((left, row, column));
            }
        }
        link.least = [of_rows, of_columns];
        found
    }

    /// What is left of the costs of the pairs of an edge.
    fn pairs(&self, number: usize) -> impl Iterator<Item = (i64, usize, usize)> + '_ {
        let link = &self.links[number];
        let rows = 0..link.moved[0].len();
        rows.flat_map(move |row| {
            let columns = 0..link.columns;
            columns.map(move |column| (link.left(row, column), row, column))
        })
    }

    /// Drops the labels that only labellings above the limit have, by the last look at all edges.
    pub(super) fn drop_labels(&mut self) {
        let more = self.scaled_limit().saturating_sub(self.now);
        // What each label costs more than the cheapest one of its node, and its pairs more than the cheapest of their edge.
        let mut excess = std::mem::take(&mut self.excess);
        excess.clone_from(&self.sums);
        for costs in &mut excess {
            let least = costs.iter().copied().min().unwrap_or(0);
            costs.iter_mut().for_each(|cost| *cost -= least);
        }
        for (link, least) in self.links.iter().zip(&self.of_links) {
            for (end, of_labels) in link.ends.into_iter().zip(&link.least) {
                for (more, of_label) in excess[end].iter_mut().zip(of_labels) {
                    *more += of_label - least;
                }
            }
        }
        let mut loses = vec![false; excess.len()];
        let mut is_kept: Vec<Vec<bool>> = vec![Vec::new(); excess.len()];
        for (node, excess) in excess.iter().enumerate() {
            if excess.iter().any(|own| *own > more) {
                loses[node] = true;
                is_kept[node] = excess.iter().map(|own| *own <= more).collect();
                keep(&mut self.labels[node], &is_kept[node]);
                keep(&mut self.nodes[node], &is_kept[node]);
                keep(&mut self.sums[node], &is_kept[node]);
            }
        }
        self.excess = excess;
        let links = self.links.iter_mut();
        for link in links.filter(|link| link.ends.into_iter().any(|end| loses[end])) {
            for end in link.ends {
                if !loses[end] {
                    is_kept[end].resize(self.labels[end].len(), true);
                }
            }
            link.keep(link.ends.map(|end| &is_kept[end][..]));
        }
    }

    /// How many pairs of labels are left, of all edges.
    fn pairs_left(&self) -> usize {
        self.links.iter().map(|link| link.table.len()).sum()
    }

    /// The order in which to eliminate all nodes with all labels that are left, if tables have at most so many entries for each
    /// pair.
    pub(super) fn order_of_all(&self, entries_of_pair: usize) -> Option<Order> {
        let choices: Vec<usize> = self.labels.iter().map(Vec::len).collect();
        let links = self.links.iter().map(|link| link.ends);
        let open = links.filter(|ends| ends.iter().all(|&end| choices[end] > 1));
        let open: Vec<(usize, usize)> = open.map(|[low, high]| (low, high)).collect();
        let most = (entries_of_pair * self.pairs_left().max(1)) as u64;
        Order::of(&choices, &open, most.min(MOST_ENTRIES))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::layouts::labelling::{Known, Labelling};

    #[test]
    fn the_bound_of_a_tree_is_its_least_cost() {
        // Both leaves want label 1 and the root label 0, for less than what two conversions cost.
        let mut problem = Problem::new();
        let root = problem.add_node(vec![0, 7]);
        for _ in 0..2 {
            let leaf = problem.add_node(vec![9, 0]);
            problem.add_edge(root, leaf, |a, b| if a == b { 0 } else { 4 });
        }
        let relaxed = Relaxation::of(&problem).solve();
        assert_eq!((relaxed.bound(), relaxed.limit), (7, 7));
        assert_eq!(relaxed.labels, [[1], [1], [1]]);
    }

    #[test]
    fn pairs_far_above_the_least_cost_are_not_priced() {
        // A chain whose ends agree on label 0 of twenty.
        let asked = Rc::new(Cell::new(0));
        let mut problem = Problem::new();
        let nodes: Vec<usize> = (0..10)
            .map(|number| {
                let wants = |label: Cost| if number % 9 == 0 { 50 * label } else { 0 };
                problem.add_node((0..20).map(wants).collect())
            })
            .collect();
        for pair in nodes.windows(2) {
            let asked = Rc::clone(&asked);
            let known = |a: usize, b: usize| Known::AtLeast(if a == b { 0 } else { 20 });
            problem.add_edge_above(pair[0], pair[1], known, move |a, b| {
                asked.set(asked.get() + 1);
                if a == b {
                    0
                } else {
                    30 + a.abs_diff(b) as Cost
                }
            });
        }
        let solution = problem.solve();
        assert_eq!((solution.cost, solution.labels), (0, vec![0; 10]));
        assert!(asked.get() < 100, "{} of 3600 pairs", asked.get());
    }

    proptest! {
        /// A labelling of least cost survives, with its cost, and the bound is not above it.
        #[test]
        fn the_least_cost_stays(
            nodes in prop::collection::vec(prop::collection::vec(0..40u64, 1..4), 1..7),
            edges in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u64>()), 0..12),
        ) {
            let mut problem = Problem::new();
            for costs in &nodes {
                problem.add_node(costs.clone());
            }
            for (a, b, seed) in edges {
                let cost = move |x: usize, y: usize| {
                    let mixed = seed.wrapping_mul((3 * x + 7 * y + 1) as u64 | 1) >> 32;
                    if mixed % 11 == 0 { IMPOSSIBLE } else { mixed % 30 }
                };
                let known = move |x, y| match cost(x, y) % 7 {
                    0 => Known::Exactly(cost(x, y)),
                    more => Known::AtLeast(cost(x, y) - more),
                };
                problem.add_edge_above(a % nodes.len(), b % nodes.len(), known, cost);
            }
            let whole = problem.cost(&problem.optimum().unwrap());
            let relaxed = Relaxation::of(&problem).solve();
            prop_assert!(relaxed.bound() <= whole);
            prop_assert_eq!(relaxed.search().map(|found| found.cost), Some(whole));
            let solution = problem.solve();
            prop_assert_eq!(solution.cost, whole);
            prop_assert_eq!(problem.cost(&solution.labels), whole);
            // From any labelling the search for a cheaper one ends at one of least cost.
            let first = vec![0; nodes.len()];
            let known = Labelling { cost: problem.cost(&first), labels: first, is_optimal: false, bound: 0 };
            let best = problem.solve_below(&known);
            prop_assert_eq!((best.cost, best.bound), (whole, whole));
            prop_assert_eq!(problem.cost(&best.labels), best.cost);
            prop_assert_eq!(problem.solve_below(&best).labels, best.labels);
        }
    }
}
