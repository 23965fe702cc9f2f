//! What pairs of labels cost, found when it is needed.
//!
//! Many edges of a program begin with the same table of what is known, as their ends have the same layouts. They share it until
//! somebody finds out more about a pair of one of them.

use std::cell::{Ref, RefCell};
use std::fmt;
use std::rc::Rc;

use super::cost::{Certainty, Cost, Known};

/// A part of what pairs cost, by the labels of the smaller node and of the larger one.
pub(super) trait Term {
    /// The cost of a pair.
    fn cost(&self, row: usize, column: usize) -> Cost;

    /// What is known of all pairs now, row by row; nothing where no term keeps it but the edge.
    fn known(&self) -> Option<Ref<'_, [Known]>>;

    /// Finds out more about the cost of a pair: for some choice that may make it what it is the prices are asked for.
    fn refine(&self, row: usize, column: usize, asked: Asked) -> Refined;
}

/// Which prices of a choice are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All.
    All,
    /// Those that may be far from what is known, and the others only where there are none of these: then the choice most likely
    /// costs what is known of it.
    Doubtful,
}

/// What is known of a cost after more was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refined {
    pub(super) known: Known,
    /// What it is not above, if all prices were asked for.
    pub(super) most: Cost,
}

/// A cost that is known as soon as it is asked for.
impl<F: Fn(usize, usize) -> Cost> Term for F {
    fn cost(&self, row: usize, column: usize) -> Cost {
        self(row, column)
    }

    fn known(&self) -> Option<Ref<'_, [Known]>> {
        None
    }

    fn refine(&self, row: usize, column: usize, _: Asked) -> Refined {
        let cost = self(row, column);
        Refined {
            known: Known::Exactly(cost),
            most: cost,
        }
    }
}

/// The costs of another edge.
impl Term for &EdgeCosts<'_> {
    fn cost(&self, row: usize, column: usize) -> Cost {
        self.at(row, column)
    }

    fn known(&self) -> Option<Ref<'_, [Known]>> {
        Some(self.known_of_all())
    }

    fn refine(&self, row: usize, column: usize, asked: Asked) -> Refined {
        let most = EdgeCosts::refine(self, row, column, asked);
        let known = self.known_of(row, column);
        Refined { known, most }
    }
}

/// The costs of an edge: the sum of its terms for each pair of labels.
#[derive(Clone)]
pub(super) struct EdgeCosts<'f> {
    /// The only term of most edges, and what has been added to it.
    first: Option<Rc<dyn Term + 'f>>,
    others: Vec<Rc<dyn Term + 'f>>,
    columns: usize,
    /// What is known of all pairs, row by row.
    known: RefCell<Rc<[Known]>>,
}

impl<'f> EdgeCosts<'f> {
    /// Costs that are known, row by row.
    pub(super) fn of_table(columns: usize, costs: impl Iterator<Item = Cost>) -> Self {
        Self {
            first: None,
            others: Vec::new(),
            columns,
            known: RefCell::new(costs.map(Known::Exactly).collect()),
        }
    }

    /// The costs of a term, and what is known of them, row by row.
    pub(super) fn of_term(columns: usize, term: Rc<dyn Term + 'f>, known: Rc<[Known]>) -> Self {
        Self {
            first: Some(term),
            others: Vec::new(),
            columns,
            known: RefCell::new(known),
        }
    }

    /// The same costs as those of another edge, which is asked for them, with what is known of them now.
    pub(super) fn as_of(other: &'f EdgeCosts<'_>) -> Self {
        let known = Rc::clone(&other.known.borrow());
        Self::of_term(other.columns, Rc::new(other), known)
    }

    /// Adds a term, and what is known of it, row by row.
    pub(super) fn add(&mut self, term: Rc<dyn Term + 'f>, more: &[Known]) {
        let known = Rc::make_mut(self.known.get_mut());
        for (known, more) in known.iter_mut().zip(more) {
            *known = known.plus(*more);
        }
        self.others.push(term);
    }

    fn terms(&self) -> impl Iterator<Item = &Rc<dyn Term + 'f>> {
        self.first.iter().chain(&self.others)
    }

    /// How many labels the larger node has.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// What is known of all pairs, row by row.
    pub(super) fn known_of_all(&self) -> Ref<'_, [Known]> {
        Ref::map(self.known.borrow(), |known| &**known)
    }

    /// What is known of a pair.
    pub(super) fn known_of(&self, row: usize, column: usize) -> Known {
        self.known.borrow()[row * self.columns + column]
    }

    /// A cost that is known, or one that it is not below.
    pub(super) fn least(&self, row: usize, column: usize) -> Cost {
        self.known_of(row, column).least()
    }

    /// How well the cost for two labels is known.
    pub(super) fn certainty(&self, row: usize, column: usize) -> Certainty {
        self.known_of(row, column).certainty()
    }

    /// The cost for a label of the smaller node and one of the larger.
    pub(super) fn at(&self, row: usize, column: usize) -> Cost {
        let known = self.known_of(row, column);
        if let Known::Exactly(cost) = known {
            return cost;
        }
        let terms = self.terms().map(|term| term.cost(row, column));
        let cost = terms.fold(0, Cost::saturating_add);
        debug_assert!(known.least() <= cost, "known to be more");
        self.find_out(row * self.columns + column, Known::Exactly(cost));
        cost
    }

    /// Writes down what is known of a pair.
    fn find_out(&self, pair: usize, known: Known) {
        Rc::make_mut(&mut self.known.borrow_mut())[pair] = known;
    }

    /// Finds out more about a cost that is not known, and answers what it is not above if all prices of a choice are asked for.
    /// What that says of other pairs is known then as well.
    pub(super) fn refine(&self, row: usize, column: usize, asked: Asked) -> Cost {
        let pair = row * self.columns + column;
        let before = self.known_of(row, column);
        if let Known::Exactly(cost) = before {
            return cost;
        }
        let (mut now, mut most) = (Known::Exactly(0), 0);
        for term in self.terms() {
            let known = term.known().map(|known| known[pair]);
            let known = known.filter(|known| known.certainty() < before.certainty());
            let refined = match known {
                // That most likely is the price, which is asked for when nothing else is in doubt.
                Some(known) if asked == Asked::Doubtful => Refined {
                    known,
                    most: known.least(),
                },
                _ => term.refine(row, column, asked),
            };
            now = now.plus(refined.known);
            most = Cost::saturating_add(most, refined.most);
        }
        debug_assert!(before.least() <= now.least(), "known to be more");
        self.take_known_of_terms();
        self.find_out(pair, now);
        most
    }

    /// Takes over what terms know of all pairs, where all of them keep it.
    fn take_known_of_terms(&self) {
        let tables: Option<Vec<Ref<'_, [Known]>>> = self.terms().map(|term| term.known()).collect();
        let Some(tables) = tables else {
            return;
        };
        let mut known = self.known.borrow_mut();
        for (pair, known) in Rc::make_mut(&mut known).iter_mut().enumerate() {
            if known.certainty() > Certainty::Exact {
                let terms = tables.iter().map(|table| table[pair]);
                *known = terms.fold(Known::Exactly(0), Known::plus);
            }
        }
    }

    /// The costs for a label of the smaller node, by the labels of the larger.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Cost> + '_ {
        (0..self.columns).map(move |column| self.at(row, column))
    }
}

impl fmt::Debug for EdgeCosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.known.borrow().len() / self.columns.max(1);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_out_of_one_edge_is_not_known_of_another_that_began_with_the_same() {
        let known: Rc<[Known]> = [Known::AtLeast(1); 4].into();
        let edge = |cost: Cost| {
            let term = move |row: usize, column: usize| cost + (2 * row + column) as Cost;
            EdgeCosts::of_term(2, Rc::new(term), Rc::clone(&known))
        };
        let (mut one, other) = (edge(5), edge(7));
        assert_eq!(one.at(1, 0), 7);
        assert_eq!(other.known_of(1, 0), Known::AtLeast(1));
        assert_eq!(other.refine(1, 1, Asked::All), 10);
        assert_eq!(one.known_of(1, 1), Known::AtLeast(1));
        one.add(
            Rc::new(|_: usize, _: usize| -> Cost { 1 }),
            &[Known::Exactly(1); 4],
        );
        assert_eq!(one.known_of(1, 0), Known::Exactly(8));
        assert_eq!(one.at(0, 0), 6);
        assert_eq!(*known, [Known::AtLeast(1); 4]);
    }
}
