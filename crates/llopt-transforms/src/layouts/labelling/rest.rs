//! The search among the labels that bounds leave, with prices that are asked for on the way.
//!
//! Where tables of all labels are small, nothing else is needed: the labelling of least cost by what is known of pairs is found,
//! its pairs are asked for their prices, and what follows from these in the tables is computed anew, until all prices of the
//! labelling that is found are known. No other labelling costs less then, as what others are known to cost is not more than
//! what they do. So the only prices asked for are those of labellings that were the best ones by what was known. Of each labelling
//! the prices come first that may be far from what is known: if one is, another labelling is the best one, and those that most
//! likely are what is known need not be asked for.
//!
//! Where they are larger, labels that others dominate are dropped first, which depends on what is known of all pairs and so has
//! to be found each time; and where they are too large then, most nodes choose together and some keep their labels.

use super::cost::{Certainty, Cost};
use super::edges::EdgeCosts;
use super::elimination::Elimination;
use super::order::Order;
use super::problem::{Labelling, Problem};
use super::relaxation::{ENTRIES_FOR_DOMINATED, Relaxation};

/// How often only the prices of the best labelling are asked for. After that others of the same edges are, twice as many each
/// time, so that no search is repeated as often as there are pairs.
const MOST_BY_ONE: usize = 64;
/// How many searches of a dense graph there are at most, and how many may find nothing before the last one.
const MOST_SEARCHES: usize = 16;
const MOST_IN_VAIN: usize = 2;

impl<'f> Relaxation<'_, 'f> {
    /// The labelling of least cost among those that are left: that of the problem in which pairs without a price cost what
    /// they do at least, found anew until it has prices for all its pairs. No other labelling costs less then, as
    /// what the others cost at least is not less. `None` if no labelling is within the limit.
    pub(super) fn search(mut self) -> Option<Labelling> {
        loop {
            if self.is_refuted() {
                return None;
            }
            if let Some(order) = self.order_of_all(ENTRIES_FOR_DOMINATED) {
                return Some(self.search_among_all(order));
            }
            let Some(found) = self.rest().optimum() else {
                return self.search_beside_obstacles();
            };
            if !self.price_around(&found) {
                return Some(self.optimal(&found));
            }
            self.drop_after_prices();
        }
    }

    /// The labelling of least cost among all labels that are left, with tables that are kept from one labelling to the next.
    fn search_among_all(mut self, order: Order) -> Labelling {
        let own = self.problem.nodes.iter().zip(self.labels.iter());
        let own = own.map(|(costs, labels)| labels.iter().map(|&label| costs[label]).collect());
        let edges = self.links.iter().map(|link| {
            let [rows, columns] = link.ends.map(|end| &self.labels[end]);
            let at = |row: usize, column: usize| link.costs.least(rows[row], columns[column]);
            (link.ends, at)
        });
        let mut elimination = Elimination::of(own.collect(), edges, order);
        let mut repeated = 0;
        loop {
            let found = elimination.best();
            // What most likely is the price is asked for when nothing else of the labelling is in doubt.
            let links = self.links.iter().enumerate();
            let certainties = links.map(|(number, link)| {
                let [row, column] = link.ends.map(|end| found[end]);
                self.certainty(number, row, column)
            });
            let worst = certainties.max().unwrap_or(Certainty::Exact);
            if worst == Certainty::Exact {
                return self.optimal(&found);
            }
            for number in 0..self.links.len() {
                let [low, high] = self.links[number].ends;
                let (row, column) = (found[low], found[high]);
                if self.certainty(number, row, column) < worst {
                    continue;
                }
                self.price(number, row, column);
                if repeated >= MOST_BY_ONE {
                    self.price_cheapest(number);
                }
                for row in 0..self.labels[low].len() {
                    for column in 0..self.labels[high].len() {
                        let least = self.least(number, row, column);
                        elimination.change(number, [row, column], least);
                    }
                }
            }
            repeated += 1;
        }
    }

    /// A labelling of least cost, of which all prices are known.
    fn optimal(&self, found: &[usize]) -> Labelling {
        let cost = self.cost(found);
        Labelling {
            labels: self.numbered(found),
            cost,
            is_optimal: true,
            bound: cost,
        }
    }

    /// What is known of a pair.
    fn least(&self, number: usize, row: usize, column: usize) -> Cost {
        let (row, column) = self.pair(number, row, column);
        self.links[number].costs.least(row, column)
    }

    /// The best labelling that is found by letting most nodes choose at once, and some others each time, for as long as that
    /// lowers the cost.
    fn search_beside_obstacles(mut self) -> Option<Labelling> {
        let mut times = vec![0; self.labels.nodes()];
        let mut in_vain = 0;
        for _ in 0..MOST_SEARCHES {
            if self.is_refuted() {
                break;
            }
            let known = |node: usize| self.best.as_ref().map_or(0, |best| best[node]);
            let labels = self.labels.iter().enumerate();
            let of_best = labels.map(|(node, own)| own.binary_search(&known(node)).unwrap_or(0));
            let of_best: Vec<usize> = of_best.collect();
            let before = times.clone();
            let found = self.rest().optimum_beside_obstacles(&of_best, &mut times);
            let Some(mut found) = found else {
                break;
            };
            let limit = self.limit;
            let priced = self.price_around(&found);
            self.improve(&mut found);
            self.price_labelling(&found);
            self.drop_after_prices();
            match (self.limit < limit, priced) {
                (true, _) => in_vain = 0,
                // With these prices the same nodes may choose other labels.
                (false, true) => times = before,
                (false, false) => in_vain += 1,
            }
            if in_vain > MOST_IN_VAIN || self.limit <= self.bound() {
                break;
            }
        }
        let bound = self.bound();
        let Some(labels) = self.best.take() else {
            // Nothing within the limit was found, and there may be something.
            let labels = vec![0; self.labels.nodes()];
            let cost = self.problem.cost(&labels);
            return (!self.is_refuted()).then_some(Labelling {
                is_optimal: false,
                bound: bound.min(cost),
                cost,
                labels,
            });
        };
        Some(Labelling {
            is_optimal: self.limit <= bound,
            bound: bound.min(self.limit),
            cost: self.limit,
            labels,
        })
    }

    /// Drops labels by prices that were asked for after the last pass.
    fn drop_after_prices(&mut self) {
        self.look();
        self.drop_labels();
    }

    /// Asks for the prices of a labelling, and for those that come next on the edges where one was not known; whether there
    /// are such.
    fn price_around(&mut self, labelling: &[usize]) -> bool {
        let mut was_unknown = false;
        for number in 0..self.links.len() {
            let [low, high] = self.links[number].ends;
            if self.price(number, labelling[low], labelling[high]) {
                self.price_cheapest(number);
                was_unknown = true;
            }
        }
        self.price_labelling(labelling);
        was_unknown
    }

    /// The problem with the labels that are left, and what pairs are known to cost at least.
    fn rest(&self) -> Problem<'_> {
        let mut rest = Problem::new();
        for (costs, labels) in self.problem.nodes.iter().zip(self.labels.iter()) {
            rest.add_node(labels.iter().map(|&label| costs[label]).collect());
        }
        for link in &self.links {
            let [low, high] = link.ends;
            let (rows, columns) = (&self.labels[low], &self.labels[high]);
            let pairs = rows.iter().flat_map(|&row| {
                let pairs = columns.iter();
                pairs.map(move |&column| link.costs.least(row, column))
            });
            let costs = EdgeCosts::of_table(columns.len(), pairs);
            rest.edges.insert((low, high), costs);
        }
        rest
    }
}
