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
//! whole numbers). On the way, each node takes the label that is cheapest for those before it: a labelling, whose cost is a limit.
//!
//! # Leaps
//!
//! Where the bound is far from the least cost each two passes gain the same part of what the two before did, some four fifths, and move
//! all costs in the same direction. So the rest of a geometric series is known after some passes, and how far costs will have gone
//! by its end: they are moved there at once. Whatever is moved there is a bound; the best one is kept. After a leap two passes find what it was
//! worth, and two more how much is gained now. If the bound has become lower, later leaps are half as far.
//!
//! # Prices on demand
//!
//! All this holds for bounds of what pairs cost as well. Only the pairs that the bound rests on, if what is known of them may be far
//! from their price, and those of the labellings that are found, are asked for it, until there is nothing to ask for any more. With the limit at the bound, what is
//! left are the labellings of least cost, and the search among them ([`super`]) has little to do. A gap may remain, as labels
//! cannot be halved: then that search has more to do.
//!
//! # When passes end
//!
//! On most graphs tables of all labels that are left are small long before ([`super::order`] knows their size), and a pass takes
//! as long as some tables, and asks for more prices. So passes end as soon as the tables of a search take no longer than the
//! next two would. Where passes gain little before tables are small, they go on for as long as to make those would take. The search finds the labelling of least cost by what is known of pairs, asks for the prices of that labelling
//! alone, and computes the tables anew that depend on those ([`super::elimination`]), until it finds one whose prices are known.

use super::cost::{Certainty, Cost, IMPOSSIBLE};
use super::edges::Asked;
use super::link::{Cheapest, Link};
use super::order::{MOST_ENTRIES, Order};
use super::per_label::PerLabel;
use super::problem::Problem;

/// Units that a cost has here, if sums of all allow it: shares of costs are rounded to one of these.
const FINEST: f64 = 256.0;
/// Whole numbers up to this are exact.
const EXACT: f64 = (1u64 << 53) as f64;
/// The part of the distance between bound and limit by which a pass has to lessen it, or passes end.
const LEAST_PROGRESS: f64 = 64.0;
/// How many entries of tables may take the time of two passes over a pair: a search by tables of fewer takes no longer than the
/// passes that it replaces, and asks for fewer prices.
const ENTRIES_FOR_PASSES: usize = 20;
/// The part of the distance by which a pass has to lessen it where tables are larger than that.
const LEAST_PROGRESS_OF_MANY: f64 = 2048.0;
/// How many times as far as by two passes a leap moves costs at most.
const FARTHEST: f64 = 8.0;
/// So many leaps move no more than the largest cost, each at most the distance between bound and limit, so that sums stay exact.
const MOST_LEAPS: f64 = 4096.0;
/// How many entries of tables, for each pair, take less time than to find the labels that others dominate.
pub(super) const ENTRIES_FOR_DOMINATED: usize = 64;
/// The part of all pairs that has to go before it is worth asking again how large tables would be.
const PART_OF_PAIRS: usize = 8;

/// How costs are written here: whole numbers of units, of which all sums are exact.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// How many units a cost of one has.
    scale: f64,
    /// What larger costs count as, impossible ones among them.
    most: f64,
}

impl Units {
    /// Those of a problem: as fine as its costs allow.
    fn of(problem: &Problem<'_>) -> Self {
        let mut sum = 0.0;
        for costs in &problem.nodes {
            sum += largest(costs.iter().copied());
        }
        for costs in problem.edges.values() {
            sum += largest(costs.known_of_all().iter().map(|known| known.least()));
        }
        let terms = (1 + problem.nodes.len() + problem.edges.len()) as f64;
        let most = (EXACT / 8.0 / terms).floor();
        let mut scale = FINEST;
        while scale > 1.0 && sum * scale > most {
            scale /= 2.0;
        }
        Self { scale, most }
    }

    /// A cost in units.
    fn scaled(self, cost: Cost) -> f64 {
        (cost as f64 * self.scale).min(self.most)
    }

    /// The same for a limit, which is infinite if costs are not told apart from it.
    fn limit(self, limit: Cost) -> f64 {
        match limit as f64 * self.scale {
            scaled if scaled <= self.most => scaled,
            _ => f64::INFINITY,
        }
    }

    /// A bound as a cost: costs are whole, so it is rounded up.
    fn bound(self, bound: f64) -> Cost {
        (bound / self.scale).ceil() as Cost
    }
}

/// The bound of a problem, and what is known not to be in a labelling of least cost.
///
/// Labels are numbered by their position among those that are left, here and in labellings on their way, so that all
/// loops are over dense vectors, which become shorter with each pass.
pub(super) struct Relaxation<'p, 'f> {
    pub(super) problem: &'p Problem<'f>,
    units: Units,
    /// What labels cost by themselves.
    nodes: PerLabel<f64>,
    /// What labels cost with what they have received from all edges.
    sums: PerLabel<f64>,
    pub(super) links: Vec<Link<'p, 'f>>,
    /// For each node its edges to smaller nodes and to larger ones.
    links_of: Vec<[Vec<usize>; 2]>,
    /// The labels that are left, as the problem numbers them, in increasing order.
    pub(super) labels: PerLabel<usize>,
    /// The largest bound so far.
    bound: f64,
    /// The bound by what has been moved now, and the part of it of each edge.
    now: f64,
    of_links: Vec<f64>,
    /// Room for what labels cost above the bound, and for which of them are kept.
    excess: PerLabel<f64>,
    is_kept: PerLabel<bool>,
    /// The best labelling that was found within the limit, in the problem's labels, and its cost, or the most that is looked
    /// for.
    pub(super) best: Option<Vec<usize>>,
    pub(super) limit: Cost,
}

/// The label of least cost, the first of equal ones.
fn cheapest(costs: &[f64]) -> usize {
    let mut best = (0, f64::INFINITY);
    for (label, &cost) in costs.iter().enumerate() {
        if cost < best.1 {
            best = (label, cost);
        }
    }
    best.0
}

/// The largest of these costs that is possible.
fn largest(costs: impl Iterator<Item = Cost>) -> f64 {
    let possible = costs.filter(|cost| *cost != IMPOSSIBLE);
    possible.max().unwrap_or(0) as f64
}

/// A whole number, rounded down.
fn whole(number: f64) -> f64 {
    let towards_zero = number as i64 as f64;
    match number < towards_zero {
        true => towards_zero - 1.0,
        false => towards_zero,
    }
}

/// When costs are moved further than passes do, and how far.
struct Leap {
    /// What the last two passes gained, if there was no leap before them.
    gained: Option<f64>,
    /// How many times as far as these two passes costs are moved at most.
    most: f64,
    /// Whether the next two passes begin behind a leap.
    is_behind: bool,
}

impl Leap {
    fn new() -> Self {
        Self {
            gained: None,
            most: FARTHEST,
            is_behind: false,
        }
    }

    /// How many times as far again costs are to be moved after two passes that gained so much, if at all.
    fn begin(&mut self, gained: f64) -> Option<f64> {
        if gained <= 0.0 || gained.is_infinite() {
            self.gained = None;
            return None;
        }
        let Some(before) = self.gained.take() else {
            self.gained = Some(gained);
            return None;
        };
        // The sum of a geometric series. Where more is gained than before there is none.
        let times = match gained < before {
            true => (gained / (before - gained)).round().min(self.most),
            false => self.most,
        };
        self.is_behind = times >= 1.0;
        if !self.is_behind {
            self.gained = Some(gained);
        }
        self.is_behind.then_some(times)
    }

    /// Whether the passes that end now began behind a leap. It was too far if the bound has become lower.
    fn end(&mut self, is_lower: bool) -> bool {
        let was_behind = std::mem::take(&mut self.is_behind);
        if was_behind && is_lower {
            self.most = (self.most / 2.0).floor();
        }
        was_behind
    }
}

impl<'p, 'f> Relaxation<'p, 'f> {
    pub(super) fn of(problem: &'p Problem<'f>) -> Self {
        Self::up_to(problem, IMPOSSIBLE)
    }

    /// One that looks for labellings of at most this cost.
    pub(super) fn up_to(problem: &'p Problem<'f>, limit: Cost) -> Self {
        let units = Units::of(problem);
        let mut relaxation = Self {
            problem,
            units,
            nodes: PerLabel::new(),
            sums: PerLabel::new(),
            links: Vec::with_capacity(problem.edges.len()),
            links_of: vec![Default::default(); problem.nodes.len()],
            labels: PerLabel::new(),
            bound: 0.0,
            now: 0.0,
            of_links: vec![0.0; problem.edges.len()],
            excess: PerLabel::new(),
            is_kept: PerLabel::new(),
            best: None,
            limit,
        };
        for costs in &problem.nodes {
            relaxation
                .nodes
                .push(costs.iter().map(|&cost| units.scaled(cost)));
            relaxation.labels.push(0..costs.len());
        }
        relaxation.sums = relaxation.nodes.clone();
        for (number, (&(low, high), costs)) in problem.edges.iter().enumerate() {
            let sizes = [low, high].map(|end| problem.nodes[end].len());
            let known = costs.known_of_all();
            let least = known.iter().map(|known| units.scaled(known.least()));
            let link = Link::new([low, high], costs, sizes, least);
            relaxation.links.push(link);
            relaxation.links_of[low][1].push(number);
            relaxation.links_of[high][0].push(number);
        }
        relaxation
    }

    /// The bound of the costs of all labellings.
    pub(super) fn bound(&self) -> Cost {
        self.units.bound(self.bound)
    }

    /// Whether no labelling is within the limit.
    pub(super) fn is_refuted(&self) -> bool {
        self.bound() > self.limit || self.labels.iter().any(<[_]>::is_empty)
    }

    /// Moves costs and asks for prices until the bound is the cost of a labelling, or nothing is gained any more.
    pub(super) fn solve(mut self) -> Self {
        self.tighten();
        self
    }

    /// Where little is gained and tables are still large, passes go on for as long as to make these tables would take.
    fn tighten(&mut self) {
        let mut before = f64::NEG_INFINITY;
        let mut most_pairs = usize::MAX;
        let mut labelling = Vec::new();
        // The time of passes that gained little, in entries of tables.
        let mut in_vain = 0;
        let mut leap = Leap::new();
        loop {
            let mut priced = false;
            for is_forward in [true, false] {
                self.pass(is_forward, &mut labelling);
                self.improve(&mut labelling);
                priced |= self.price_labelling(&labelling);
            }
            priced |= self.take_bound();
            self.drop_labels();
            let gap = self.units.limit(self.limit) - self.bound;
            let gained = self.bound - before;
            let is_tight = self.limit <= self.bound();
            let was_behind_leap = leap.end(self.now < before);
            let is_stuck = |progress: f64| {
                let is_little = gained < (gap / progress).floor().max(self.units.scale);
                is_little && !priced && !was_behind_leap
            };
            if self.is_refuted() || is_tight || is_stuck(LEAST_PROGRESS_OF_MANY) {
                return;
            }
            let pairs = self.pairs_left();
            if is_stuck(LEAST_PROGRESS) {
                let entries = self.order_of_all(usize::MAX).map(|order| order.entries);
                let few = (ENTRIES_FOR_DOMINATED * pairs) as u64;
                if entries.is_some_and(|entries| entries <= few.max(in_vain)) {
                    return;
                }
                in_vain += (ENTRIES_FOR_PASSES * pairs) as u64;
            }
            if pairs <= most_pairs {
                if self.order_of_all(ENTRIES_FOR_PASSES).is_some() {
                    return;
                }
                most_pairs = pairs - pairs / PART_OF_PAIRS;
            }
            let is_exact = gap <= self.units.most / MOST_LEAPS;
            if is_exact
                && !was_behind_leap
                && let Some(times) = leap.begin(gained)
            {
                self.move_on(times, gap);
            }
            self.links.iter_mut().for_each(Link::keep_moved);
            before = self.bound;
        }
    }

    /// Moves all costs so many times as far again as in the last two passes, but no label's by more than `most`.
    fn move_on(&mut self, times: f64, most: f64) {
        for link in &mut self.links {
            for (end, node) in link.ends.into_iter().enumerate() {
                link.move_on(end, times, most, &mut self.sums[node]);
            }
        }
    }

    /// Moves costs along the order of the nodes, or against it; finds a labelling on the way.
    fn pass(&mut self, is_forward: bool, chosen: &mut Vec<usize>) {
        let count = self.nodes.nodes();
        chosen.clear();
        chosen.resize(count, 0);
        let (before, after) = match is_forward {
            true => (0, 1),
            false => (1, 0),
        };
        let (mut collected, mut costs, mut room) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..count {
            let node = if is_forward { step } else { count - 1 - step };
            collected.clear();
            collected.extend_from_slice(&self.sums[node]);
            // The label that is cheapest for those that the nodes before have, by what those after send.
            costs.clone_from(&collected);
            let links_of = &self.links_of[node];
            for &number in &links_of[before] {
                let link = &self.links[number];
                link.subtract_moved(after, &mut costs);
                link.add_costs(before, chosen[link.ends[before]], &mut costs);
            }
            chosen[node] = cheapest(&costs);
            let [smaller, larger] = links_of;
            let shares = smaller.len().max(larger.len()) as f64;
            if shares > 1.0 {
                for cost in &mut collected {
                    *cost = whole(*cost / shares);
                }
            }
            for &number in &links_of[after] {
                let link = &mut self.links[number];
                let other = link.ends[after];
                link.take(before, &collected, &mut self.sums[node]);
                link.send(after, &mut self.sums[other], &mut room);
            }
        }
    }

    /// Changes the labels of single nodes for as long as that lowers what the labelling costs at least.
    pub(super) fn improve(&self, labelling: &mut [usize]) {
        // Whether a neighbour has changed since the node took its best label.
        let mut is_open = vec![true; labelling.len()];
        let mut costs: Vec<f64> = Vec::new();
        loop {
            let mut changed = false;
            for node in 0..labelling.len() {
                if !std::mem::take(&mut is_open[node]) {
                    continue;
                }
                costs.clear();
                costs.extend_from_slice(&self.nodes[node]);
                for (end, numbers) in self.links_of[node].iter().enumerate() {
                    for &number in numbers {
                        let link = &self.links[number];
                        link.add_costs(end, labelling[link.ends[end]], &mut costs);
                    }
                }
                let best = cheapest(&costs);
                if costs[best] < costs[labelling[node]] {
                    labelling[node] = best;
                    changed = true;
                    for (end, numbers) in self.links_of[node].iter().enumerate() {
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

    /// How well the price of a pair is known.
    pub(super) fn certainty(&self, number: usize, row: usize, column: usize) -> Certainty {
        let pair = self.pair(number, row, column);
        self.links[number].costs.certainty(pair.0, pair.1)
    }

    /// Asks for what is in doubt about the price of a pair; whether anything was.
    pub(super) fn price(&mut self, number: usize, row: usize, column: usize) -> bool {
        self.priced(number, row, column, Asked::Doubtful).1
    }

    /// Asks for the price of a pair, or for what is in doubt about it: what it is not above in the first case, and whether it was
    /// not known.
    fn priced(&mut self, number: usize, row: usize, column: usize, asked: Asked) -> (Cost, bool) {
        let pair = self.pair(number, row, column);
        let link = &mut self.links[number];
        if link.costs.certainty(pair.0, pair.1) == Certainty::Exact {
            return (link.costs.least(pair.0, pair.1), false);
        }
        let most = link.costs.refine(pair.0, pair.1, asked);
        // What is known now may say something of other pairs.
        let [rows, columns] = link.ends.map(|end| &self.labels[end]);
        for (row, &of_low) in rows.iter().enumerate() {
            for (column, &of_high) in columns.iter().enumerate() {
                let least = self.units.scaled(link.costs.least(of_low, of_high));
                link.set(row, column, least);
            }
        }
        (most, true)
    }

    /// Asks for the prices of a labelling, which may lower the limit; whether one was not known. Passes come to rest sooner
    /// with prices of pairs that are chosen, so they are worth asking for even if the labelling cannot be the best one.
    pub(super) fn price_labelling(&mut self, labelling: &[usize]) -> bool {
        let mut cost = self.of_nodes(labelling);
        let mut was_unknown = false;
        for number in 0..self.links.len() {
            let [low, high] = self.links[number].ends;
            let (most, is_new) = self.priced(number, labelling[low], labelling[high], Asked::All);
            cost = cost.saturating_add(most);
            was_unknown |= is_new;
        }
        self.offer(labelling, cost);
        was_unknown
    }

    /// What the labels of a labelling cost by themselves.
    fn of_nodes(&self, labelling: &[usize]) -> Cost {
        let nodes = self
            .problem
            .nodes
            .iter()
            .zip(self.labels.iter())
            .zip(labelling);
        let costs = nodes.map(|((costs, labels), &label)| costs[labels[label]]);
        costs.fold(0, Cost::saturating_add)
    }

    /// The cost of a labelling of which all prices are known.
    pub(super) fn cost(&self, labelling: &[usize]) -> Cost {
        let links = self.links.iter().enumerate();
        let pairs = links.map(|(number, link)| {
            let [low, high] = link.ends;
            let (row, column) = self.pair(number, labelling[low], labelling[high]);
            link.costs.at(row, column)
        });
        pairs.fold(self.of_nodes(labelling), Cost::saturating_add)
    }

    /// A labelling as the problem numbers labels.
    pub(super) fn numbered(&self, labelling: &[usize]) -> Vec<usize> {
        let labels = self.labels.iter().zip(labelling);
        labels.map(|(labels, &label)| labels[label]).collect()
    }

    /// Keeps a labelling that costs so much at most, if it is the best one so far.
    pub(super) fn offer(&mut self, labelling: &[usize], cost: Cost) {
        let is_first = self.best.is_none() && cost <= self.limit;
        if is_first || cost < self.limit {
            self.limit = cost;
            self.best = Some(self.numbered(labelling));
        }
    }

    /// Adds up the bound, and asks for the prices of the pairs that it rests on; whether one was not known.
    fn take_bound(&mut self) -> bool {
        let sums = self.sums.iter();
        let least = sums.filter_map(|costs| costs.get(cheapest(costs)));
        let mut bound: f64 = least.sum();
        let mut priced = false;
        for number in 0..self.links.len() {
            if let Some(cheapest) = self.links[number].look() {
                bound += cheapest.left;
                self.of_links[number] = cheapest.left;
                if self.certainty(number, cheapest.row, cheapest.column) == Certainty::Open {
                    priced = true;
                    self.price_cheapest(number);
                    self.links[number].look();
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
        let mut pairs: Vec<_> = self.links[number].all_left().collect();
        pairs.retain(|pair| self.certainty(number, pair.row, pair.column) == Certainty::Open);
        if pairs.len() > at_once {
            pairs.select_nth_unstable_by(at_once, |one, other| {
                let place = |pair: &Cheapest| (pair.row, pair.column);
                one.left
                    .total_cmp(&other.left)
                    .then(place(one).cmp(&place(other)))
            });
            pairs.truncate(at_once);
        }
        for pair in &pairs {
            self.price(number, pair.row, pair.column);
        }
        self.links[number].at_once *= 2;
    }

    /// Drops the labels that only labellings above the limit have, by the last look at all edges.
    pub(super) fn drop_labels(&mut self) {
        let more = self.units.limit(self.limit) - self.now;
        // What each label costs more than the cheapest one of its node, and its pairs more than the cheapest of their edge.
        self.excess.clone_from(&self.sums);
        for node in 0..self.excess.nodes() {
            let costs = &mut self.excess[node];
            let least = costs.get(cheapest(costs)).copied().unwrap_or(0.0);
            costs.iter_mut().for_each(|cost| *cost -= least);
        }
        for (link, least) in self.links.iter().zip(&self.of_links) {
            for (end, node) in link.ends.into_iter().enumerate() {
                for (more, of_label) in self.excess[node].iter_mut().zip(link.least(end)) {
                    *more += of_label - least;
                }
            }
        }
        if self.excess.all().iter().all(|own| *own <= more) {
            return;
        }
        self.is_kept.fill_like(&self.excess, true);
        let mut loses = vec![false; self.excess.nodes()];
        for (node, loses) in loses.iter_mut().enumerate() {
            for (is_kept, own) in self.is_kept[node].iter_mut().zip(&self.excess[node]) {
                *is_kept = *own <= more;
                *loses |= !*is_kept;
            }
        }
        self.labels.retain(&self.is_kept);
        self.nodes.retain(&self.is_kept);
        self.sums.retain(&self.is_kept);
        for link in &mut self.links {
            if link.ends.into_iter().any(|end| loses[end]) {
                link.retain(link.ends.map(|end| &self.is_kept[end]));
            }
        }
    }

    /// Looks at all edges, after prices that were asked for.
    pub(super) fn look(&mut self) {
        for link in &mut self.links {
            link.look();
        }
    }

    /// How many pairs of labels are left, of all edges.
    fn pairs_left(&self) -> usize {
        self.links.iter().map(Link::pairs).sum()
    }

    /// The order in which to eliminate all nodes with all labels that are left, if tables have at most so many entries for each
    /// pair.
    pub(super) fn order_of_all(&self, entries_of_pair: usize) -> Option<Order> {
        let choices: Vec<usize> = self.labels.iter().map(<[_]>::len).collect();
        let links = self.links.iter().map(|link| link.ends);
        let open = links.filter(|ends| ends.iter().all(|&end| choices[end] > 1));
        let open: Vec<(usize, usize)> = open.map(|[low, high]| (low, high)).collect();
        let most = entries_of_pair.saturating_mul(self.pairs_left().max(1)) as u64;
        Order::of(&choices, &open, most.min(MOST_ENTRIES))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::layouts::labelling::problem::drawn;
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
        assert_eq!(relaxed.labels.all(), [1, 1, 1]);
    }

    #[test]
    fn a_leap_ends_where_a_geometric_series_does() {
        let mut leap = Leap::new();
        assert_eq!(leap.begin(f64::INFINITY), None);
        // What is left of 100, 80, 64 … is four times 80.
        assert_eq!(leap.begin(100.0), None);
        assert_eq!(leap.begin(80.0), Some(4.0));
        assert!(leap.end(false));
        assert_eq!(leap.begin(10.0), None);
        assert!(!leap.end(true));
        assert_eq!(leap.begin(20.0), Some(FARTHEST));
        // The bound has become lower.
        assert!(leap.end(true));
        assert_eq!(
            (leap.begin(5.0), leap.begin(5.0)),
            (None, Some(FARTHEST / 2.0))
        );
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
            let problem = drawn(&nodes, edges);
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
