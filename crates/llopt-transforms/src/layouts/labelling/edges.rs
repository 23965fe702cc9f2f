//! What pairs of labels cost, found when it is needed.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::cost::{Cost, Known};

/// A part of what pairs cost, by the labels of the smaller node and of the larger one.
pub(super) trait Term {
    /// The cost of a pair.
    fn cost(&self, row: usize, column: usize) -> Cost;

    /// Finds out more about the cost of a pair: for some choice that may make it what it is the prices are asked for.
    fn refine(&self, row: usize, column: usize) -> Refined;
}

/// What is known of a cost after more was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refined {
    pub(super) known: Known,
    /// What it is not above.
    pub(super) most: Cost,
}

/// A cost that is known as soon as it is asked for.
impl<F: Fn(usize, usize) -> Cost> Term for F {
    fn cost(&self, row: usize, column: usize) -> Cost {
        self(row, column)
    }

    fn refine(&self, row: usize, column: usize) -> Refined {
        let cost = self(row, column);
        Refined {
            known: Known::Exactly(cost),
            most: cost,
        }
    }
}

/// The costs of an edge: the sum of its terms for each pair of labels.
#[derive(Clone)]
pub(super) struct EdgeCosts<'f> {
    terms: Vec<Rc<dyn Term + 'f>>,
    columns: usize,
    /// What pairs cost, or what they are known not to be below, row by row.
    costs: Vec<Cell<Cost>>,
    /// Which of these are costs.
    is_known: Vec<Cell<bool>>,
}

impl<'f> EdgeCosts<'f> {
    /// Costs of zero for as many labels of the smaller node and of the larger one.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self::of_table(columns, vec![0; rows * columns])
    }

    /// Costs that are known, row by row.
    pub(super) fn of_table(columns: usize, costs: Vec<Cost>) -> Self {
        Self {
            terms: Vec::new(),
            columns,
            is_known: vec![Cell::new(true); costs.len()],
            costs: costs.into_iter().map(Cell::new).collect(),
        }
    }

    /// The same costs as those of another edge, which is asked for them, with what is known of them now.
    pub(super) fn as_of(other: &'f EdgeCosts<'_>) -> Self {
        Self {
            terms: vec![Rc::new(|row: usize, column: usize| other.at(row, column))],
            columns: other.columns,
            costs: other.costs.clone(),
            is_known: other.is_known.clone(),
        }
    }

    /// Adds a term, and what is known of it for a label of the smaller node and one of the larger.
    pub(super) fn add(&mut self, term: Rc<dyn Term + 'f>, known: impl Fn(usize, usize) -> Known) {
        let columns = self.columns.max(1);
        let rows = self.costs.chunks_mut(columns);
        let rows = rows.zip(self.is_known.chunks_mut(columns)).enumerate();
        for (row, (costs, is_known)) in rows {
            for (column, (cost, is_known)) in costs.iter_mut().zip(is_known).enumerate() {
                let more = known(row, column);
                if let Known::AtLeast(_) = more {
                    is_known.set(false);
                }
                cost.set(cost.get().saturating_add(more.least()));
            }
        }
        self.terms.push(term);
    }

    /// A cost that is known, or one that it is not below.
    pub(super) fn least(&self, row: usize, column: usize) -> Cost {
        self.costs[row * self.columns + column].get()
    }

    /// What [`EdgeCosts::least`] is for all pairs, row by row.
    pub(super) fn all_least(&self) -> impl Iterator<Item = Cost> + '_ {
        self.costs.iter().map(Cell::get)
    }

    /// Whether the cost for two labels is known already.
    pub(super) fn is_known(&self, row: usize, column: usize) -> bool {
        self.is_known[row * self.columns + column].get()
    }

    /// The cost for a label of the smaller node and one of the larger.
    pub(super) fn at(&self, row: usize, column: usize) -> Cost {
        let pair = row * self.columns + column;
        if !self.is_known[pair].get() {
            let terms = self.terms.iter().map(|term| term.cost(row, column));
            let cost = terms.fold(0, Cost::saturating_add);
            debug_assert!(self.costs[pair].get() <= cost, "known to be more");
            self.costs[pair].set(cost);
            self.is_known[pair].set(true);
        }
        self.costs[pair].get()
    }

    /// Finds out more about a cost that is not known, and answers what it is not above.
    pub(super) fn refine(&self, row: usize, column: usize) -> Cost {
        let pair = row * self.columns + column;
        if self.is_known[pair].get() {
            return self.costs[pair].get();
        }
        let (mut least, mut most, mut is_known) = (0, 0, true);
        for term in &self.terms {
            let refined = term.refine(row, column);
            least = Cost::saturating_add(least, refined.known.least());
            most = Cost::saturating_add(most, refined.most);
            is_known &= matches!(refined.known, Known::Exactly(_));
        }
        debug_assert!(self.costs[pair].get() <= least, "known to be more");
        self.costs[pair].set(least);
        self.is_known[pair].set(is_known);
        most
    }

    /// The costs for a label of the smaller node, by the labels of the larger.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Cost> + '_ {
        (0..self.columns).map(move |column| self.at(row, column))
    }
}

impl fmt::Debug for EdgeCosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.costs.len() / self.columns.max(1);
        let rows = (0..rows).map(|row| self.row(row).collect::<Vec<_>>());
        f.debug_list().entries(rows).finish()
    }
}

/// An edge as one of its ends sees it.
#[derive(Clone, Copy)]
pub(super) struct Edge<'p, 'f> {
    pub(super) other: usize,
    /// Whether this end is the smaller node.
    pub(super) is_low: bool,
    pub(super) costs: &'p EdgeCosts<'f>,
}

impl Edge<'_, '_> {
    /// What it costs for a label of this end and one of the other.
    pub(super) fn at(&self, label: usize, of_other: usize) -> Cost {
        match self.is_low {
            true => self.costs.at(label, of_other),
            false => self.costs.at(of_other, label),
        }
    }
}
