//! The integers of a skeleton: known ones, and linear sums of unknown terms.
//!
//! Equal computations give equal terms (terms are hash-consed), so two partitions that compute the bound of the same
//! loop, or two conditions on the same number, see the same unknown.

use std::collections::HashMap;
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

/// What a term stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    /// A function of integers, by a number of the function.
    Of(u32, Vec<(i64, Parts)>),
    /// Something new each time: by slot, agent, and how many of these there were before.
    New(usize, usize, u64),
}

/// All terms by number.
#[derive(Debug, Default)]
pub(super) struct Terms {
    numbers: HashMap<Term, u32>,
}

impl Terms {
    pub(super) fn number(&mut self, term: Term) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(term).or_insert(next)
    }
}
