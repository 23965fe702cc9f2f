//! The choices of an execution, all of which are taken in turn.
//!
//! An execution asks for the truth of a condition that nothing determines, and for the value of an unknown sum that
//! bounds a loop. Executions are repeated from the start, with the choices of the last one up to the last that has an
//! alternative left.
//!
//! # How many iterations are enough
//!
//! A loop is first executed without an end. Its state recurs, or that of a loop inside or beside it does, and what comes
//! after was seen before. An execution in which the loop ends is another one only if it ends earlier: after no more
//! iterations than the loop had begun by then, or after so many that a comparison that looks ahead noticed the end. These numbers belong
//! to the bound of a loop: loops with the same bound end together, but one inside another one has a bound of its own. Where a
//! loop has three different iterations and one inside has ten, it is enough to take each number up to three with each up to ten.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::number::Parts;

/// Iterations of a loop that is to run until its state recurs.
const ENDLESS: u32 = 30;
/// Numbers of at least this size come from an endless loop.
pub(super) const FAR: i64 = 1 << 20;
/// Iterations that may be left at least for a loop to count as endless.
pub(super) const MANY: i64 = 1 << 18;

/// What the iterations of a loop depend on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bound {
    /// An unknown sum, counted from the first iteration of the outer loops that it belongs to.
    Sum(Parts),
    /// A condition of which nothing is known. No value depends on the number of iterations of this loop.
    Loop(usize),
}

/// Numbers of iterations, by bounds.
pub(super) type Iterations = BTreeMap<Bound, i64>;

#[derive(Clone, Debug)]
enum Kind {
    Condition,
    /// A bound of loops; alternatives after the endless one are -1, 0, … `limit`, in units.
    Bound {
        bound: Bound,
        unit: i64,
        limit: i64,
    },
}

#[derive(Clone, Debug)]
struct Choice {
    kind: Kind,
    taken: i64,
}

/// The choices of one execution, and what was learned from those before.
#[derive(Debug, Default)]
pub(super) struct Choices {
    path: Vec<Choice>,
    next: usize,
    /// The unknown sums that bound loops, with the steps of the loops; negative ones for sums that count downwards.
    pub(super) bounds: HashMap<Parts, i64>,
    /// The steps of all these.
    units: BTreeSet<i64>,
    /// Iterations up to which loops are executed with every number of them, and up to which that is necessary.
    pub(super) least: Iterations,
    pub(super) required: Iterations,
}

impl Choices {
    /// Begins the next execution.
    pub(super) fn rewind(&mut self) {
        self.next = 0;
    }

    /// Forgets the choices, since a sum was found to be a bound.
    pub(super) fn restart(&mut self) {
        self.path.clear();
        self.next = 0;
    }

    fn choose(&mut self, kind: Kind) -> Choice {
        if self.next == self.path.len() {
            self.path.push(Choice { kind, taken: 0 });
        }
        self.next += 1;
        self.path[self.next - 1].clone()
    }

    /// The truth of a condition that nothing determines.
    pub(super) fn condition(&mut self) -> bool {
        self.choose(Kind::Condition).taken == 0
    }

    /// The value of a bound of loops with this step.
    pub(super) fn bound(&mut self, bound: Bound, unit: i64) -> i64 {
        self.units.insert(unit);
        let limit = self.least.get(&bound).copied().unwrap_or(1).max(1);
        let choice = self.choose(Kind::Bound { bound, unit, limit });
        match choice.taken {
            0 => unit << ENDLESS,
            taken => (taken - 2) * unit,
        }
    }

    /// Loops with these bounds must also be executed with all numbers of iterations up to these.
    pub(super) fn require(&mut self, begun: &Iterations) {
        for (bound, &iterations) in begun {
            let required = self.required.entry(bound.clone()).or_default();
            *required = iterations.max(*required);
        }
        for choice in &mut self.path[..self.next] {
            if let (Kind::Bound { bound, limit, .. }, 0) = (&mut choice.kind, choice.taken) {
                *limit = (*limit).max(begun.get(bound).copied().unwrap_or(0));
            }
        }
    }

    /// A comparison found this distance. If it is one to the end of an endless loop, then the last iterations may see the
    /// end: they must be executed with it.
    pub(super) fn compared(&mut self, distance: i64) {
        for &unit in &self.units {
            let Some(before) = before_end(unit, distance) else {
                continue;
            };
            for parts in self.bounds.keys() {
                let required = self.required.entry(Bound::Sum(parts.clone())).or_default();
                *required = before.max(*required);
            }
        }
        for choice in &mut self.path[..self.next] {
            if let (Kind::Bound { bound, unit, limit }, 0) = (&mut choice.kind, choice.taken)
                && matches!(bound, Bound::Sum(_))
                && let Some(before) = before_end(*unit, distance)
            {
                *limit = (*limit).max(before);
            }
        }
    }

    /// Takes over what is necessary as what is executed; `false` if that is nothing new.
    pub(super) fn extend(&mut self) -> bool {
        let mut is_new = false;
        for (bound, &required) in &self.required {
            let least = self.least.entry(bound.clone()).or_insert(1);
            is_new |= required > *least;
            *least = required.max(*least);
        }
        is_new
    }

    /// Takes the next alternative; `false` if there is none.
    pub(super) fn advance(&mut self) -> bool {
        self.path.truncate(self.next);
        while let Some(last) = self.path.last_mut() {
            let alternatives = match last.kind {
                Kind::Condition => 2,
                Kind::Bound { limit, .. } => limit + 3,
            };
            last.taken += 1;
            if last.taken < alternatives {
                return true;
            }
            self.path.pop();
        }
        false
    }
}

/// How many of the last iterations of an endless loop see its end, if they are at this distance from it.
fn before_end(unit: i64, distance: i64) -> Option<i64> {
    let before = ((unit << ENDLESS) - distance).div_euclid(unit) + 1;
    (0..MANY).contains(&before).then_some(before)
}
