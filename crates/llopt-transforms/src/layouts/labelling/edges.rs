//! What pairs of labels cost, found when it is needed.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::cost::Cost;

/// A function of the labels of the smaller and of the larger node.
type Term<'f> = Rc<dyn Fn(usize, usize) -> Cost + 'f>;

/// The costs of an edge: the sum of its terms for each pair of labels.
#[derive(Clone)]
pub(super) struct EdgeCosts<'f> {
    terms: Vec<Term<'f>>,
    columns: usize,
    /// What is known, row by row.
    known: Vec<Cell<Option<Cost>>>,
}

impl<'f> EdgeCosts<'f> {
    /// Costs of zero for as many labels of the smaller node and of the larger one.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self {
            terms: Vec::new(),
            columns,
            known: vec![Cell::new(None); rows * columns],
        }
    }

    /// Adds a term.
    pub(super) fn add(&mut self, term: impl Fn(usize, usize) -> Cost + 'f) {
        self.terms.push(Rc::new(term));
        self.known.fill(Cell::new(None));
    }

    /// The cost for a label of the smaller node and one of the larger.
    pub(super) fn at(&self, row: usize, column: usize) -> Cost {
        let known = &self.known[row * self.columns + column];
        known.get().unwrap_or_else(|| {
            let terms = self.terms.iter().map(|term| term(row, column));
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
