//! What pairs of labels cost, found when it is needed.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::cost::Cost;

/// A function of the labels of the smaller and of the larger node.
type OfPair<'f> = Rc<dyn Fn(usize, usize) -> Cost + 'f>;

/// What a term of an edge costs, and what it costs at least, which is found in a fraction of the time.
#[derive(Clone)]
pub(super) struct Term<'f> {
    pub(super) cost: OfPair<'f>,
    pub(super) least: OfPair<'f>,
}

/// The costs of an edge: the sum of its terms for each pair of labels.
#[derive(Clone)]
pub(super) struct EdgeCosts<'f> {
    terms: Vec<Term<'f>>,
    columns: usize,
    /// What is known, row by row.
    known: Vec<Cell<Option<Cost>>>,
    /// What costs are known not to be below.
    bounds: Vec<Cell<Option<Cost>>>,
}

impl<'f> EdgeCosts<'f> {
    /// Costs of zero for as many labels of the smaller node and of the larger one.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self {
            terms: Vec::new(),
            columns,
            known: vec![Cell::new(None); rows * columns],
            bounds: vec![Cell::new(None); rows * columns],
        }
    }

    /// Costs that are known, row by row.
    pub(super) fn of_table(columns: usize, costs: Vec<Cost>) -> Self {
        Self {
            terms: Vec::new(),
            columns,
            bounds: vec![Cell::new(None); costs.len()],
            known: costs.into_iter().map(Some).map(Cell::new).collect(),
        }
    }

    /// Adds a term.
    pub(super) fn add(&mut self, term: Term<'f>) {
        self.terms.push(term);
        self.known.fill(Cell::new(None));
        self.bounds.fill(Cell::new(None));
    }

    /// A cost that is known, or one that it is not below.
    pub(super) fn least(&self, row: usize, column: usize) -> Cost {
        let bound = &self.bounds[row * self.columns + column];
        self.known_at(row, column)
            .or(bound.get())
            .unwrap_or_else(|| {
                let terms = self.terms.iter().map(|term| (term.least)(row, column));
                let least = terms.fold(0, Cost::saturating_add);
                bound.set(Some(least));
                least
            })
    }

    /// The cost for two labels, if it is known already.
    pub(super) fn known_at(&self, row: usize, column: usize) -> Option<Cost> {
        self.known[row * self.columns + column].get()
    }

    /// The cost for a label of the smaller node and one of the larger.
    pub(super) fn at(&self, row: usize, column: usize) -> Cost {
        let known = &self.known[row * self.columns + column];
        known.get().unwrap_or_else(|| {
            let terms = self.terms.iter().map(|term| (term.cost)(row, column));
            let cost = terms.fold(0, Cost::saturating_add);
            known.set(Some(cost));
            cost
        })
    }

    /// The costs for a label of the smaller node, by the labels of the larger.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Cost> + '_ {
        (0..self.columns).map(move |column| self.at(row, column))
    }
}

impl fmt::Debug for EdgeCosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.known.len() / self.columns.max(1);
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
