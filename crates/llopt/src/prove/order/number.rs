//! The integers of a skeleton: known ones, and linear sums of unknown terms.
//!
//! Equal computations give equal terms (terms are hash-consed), so two partitions that compute the bound of the same
//! loop, or two conditions on the same number, see the same unknown.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Terms with their factors, in the order of their numbers.
pub(super) type Parts = Rc<[(u32, i64)]>;

/// An integer in an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The known part.
    pub(super) constant: i64,
    /// The unknown part.
    pub(super) parts: Parts,
    /// The loops, as bits, whose induction variables it depends on.
    pub(super) drifts: u64,
}

impl Number {
    pub(super) fn known(value: i64) -> Self {
        Self {
            constant: value,
            parts: Rc::from([]),
            drifts: 0,
        }
    }

    pub(super) fn term(term: u32) -> Self {
        Self {
            constant: 0,
            parts: Rc::from([(term, 1)]),
            drifts: 0,
        }
    }

    /// The value, if all of it is known.
    pub(super) fn value(&self) -> Option<i64> {
        self.parts.is_empty().then_some(self.constant)
    }

    pub(super) fn drifting(mut self, drifts: u64) -> Self {
        self.drifts |= drifts;
        self
    }

    /// `self + factor * other`
    pub(super) fn plus(&self, other: &Self, factor: i64) -> Self {
        let drifts = self.drifts | other.drifts;
        let constant = self
            .constant
            .wrapping_add(other.constant.wrapping_mul(factor));
        if other.parts.is_empty() {
            return Self {
                constant,
                parts: self.parts.clone(),
                drifts,
            };
        }
        let mut sum: Vec<(u32, i64)> = self.parts.to_vec();
        for &(term, times) in other.parts.iter() {
            let times = times.wrapping_mul(factor);
            match sum.binary_search_by_key(&term, |part| part.0) {
                Ok(at) => sum[at].1 = sum[at].1.wrapping_add(times),
                Err(at) => sum.insert(at, (term, times)),
            }
        }
        sum.retain(|part| part.1 != 0);
        Self {
            constant,
            parts: sum.into(),
            drifts,
        }
    }

    pub(super) fn times(&self, factor: i64) -> Self {
        Self::known(0).plus(self, factor)
    }
}

/// The unknown part with its first factor positive, and the sign by which it was multiplied.
pub(super) fn normalised(parts: &Parts) -> (Parts, i64) {
    match parts.first() {
        Some(&(_, factor)) if factor < 0 => {
            let negated: Vec<_> = parts.iter().map(|&(term, f)| (term, -f)).collect();
            (negated.into(), -1)
        }
        _ => (parts.clone(), 1),
    }
}

/// An iteration of a loop that goes on for as long as it is decided at its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Iteration {
    /// The term of the loop's bounds: loops with equal ones have the same iterations.
    pub(super) class: u32,
    pub(super) number: i64,
}

/// What a term stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    /// A function of integers, by a number of the function.
    Of(u32, Vec<(i64, Parts)>),
    /// Something new each time: by slot, agent, and how many of these there were before in the iteration.
    New {
        slot: usize,
        agent: usize,
        before: u64,
        of: Option<Iteration>,
    },
    /// What an iteration gets from the one before, in the order in which these values were first seen.
    Handed { index: u32, of: Iteration },
    /// The induction variable.
    Counted(Iteration),
    /// Whether there is such an iteration.
    GoesOn(Iteration),
}

/// By how much to count the iterations of some loops back.
pub(super) type Back = BTreeMap<u32, i64>;

/// All terms by number.
#[derive(Debug, Default)]
pub(super) struct Terms {
    numbers: HashMap<Term, u32>,
    terms: Vec<Term>,
    /// What a term depends on that belongs to an iteration.
    leaves: Vec<Rc<[u32]>>,
}

impl Terms {
    pub(super) fn number(&mut self, term: Term) -> u32 {
        if let Some(&number) = self.numbers.get(&term) {
            return number;
        }
        let number = self.terms.len() as u32;
        let leaves = match &term {
            Term::Of(_, of) => {
                let parts = of.iter().flat_map(|(_, parts)| parts.iter());
                let leaves = parts.flat_map(|part| self.leaves[part.0 as usize].iter());
                let leaves: BTreeSet<u32> = leaves.copied().collect();
                leaves.into_iter().collect()
            }
            Term::New { of: None, .. } => Rc::from([]),
            Term::New { .. } | Term::Handed { .. } | Term::Counted(_) | Term::GoesOn(_) => {
                Rc::from([number])
            }
        };
        self.terms.push(term.clone());
        self.leaves.push(leaves);
        self.numbers.insert(term, number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &Term {
        &self.terms[number as usize]
    }

    /// What a sum depends on that belongs to an iteration.
    pub(super) fn leaves<'t>(&'t self, parts: &'t Parts) -> impl Iterator<Item = u32> + 't {
        let of = parts.iter();
        of.flat_map(|part| self.leaves[part.0 as usize].iter().copied())
    }

    /// The iteration that a term belongs to itself.
    pub(super) fn iteration(&self, term: u32) -> Option<Iteration> {
        match &self.terms[term as usize] {
            Term::Of(..) => None,
            Term::New { of, .. } => *of,
            Term::Handed { of, .. } | Term::Counted(of) | Term::GoesOn(of) => Some(*of),
        }
    }

    /// A sum with iterations counted from others.
    pub(super) fn counted_from(&mut self, parts: &Parts, back: &Back) -> Parts {
        let moves = |of: Iteration| back.get(&of.class).is_some_and(|by| *by != 0);
        let moves = |leaf: u32| self.iteration(leaf).is_some_and(moves);
        if !self.leaves(parts).any(moves) {
            return parts.clone();
        }
        let sum = parts.iter();
        let mut sum: Vec<(u32, i64)> = sum
            .map(|&(term, factor)| (self.term_from(term, back), factor))
            .collect();
        sum.sort_unstable();
        sum.into()
    }

    fn term_from(&mut self, number: u32, back: &Back) -> u32 {
        let from = |of: Iteration| Iteration {
            number: of.number - back.get(&of.class).copied().unwrap_or(0),
            ..of
        };
        let term = match self.terms[number as usize].clone() {
            Term::Of(function, of) => {
                let of = of.into_iter();
                Term::Of(
                    function,
                    of.map(|(constant, parts)| (constant, self.counted_from(&parts, back)))
                        .collect(),
                )
            }
            Term::New {
                slot,
                agent,
                before,
                of,
            } => Term::New {
                slot,
                agent,
                before,
                of: of.map(from),
            },
            Term::Handed { index, of } => Term::Handed {
                index,
                of: from(of),
            },
            Term::Counted(of) => Term::Counted(from(of)),
            Term::GoesOn(of) => Term::GoesOn(from(of)),
        };
        self.number(term)
    }

    /// A sum as it is in all iterations, counted from the first that it depends on.
    pub(super) fn shape(&mut self, parts: &Parts) -> Parts {
        let mut back = Back::new();
        for of in self.leaves(parts).filter_map(|leaf| self.iteration(leaf)) {
            let first = back.entry(of.class).or_insert(of.number);
            *first = (*first).min(of.number);
        }
        self.counted_from(parts, &back)
    }
}
