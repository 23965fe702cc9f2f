//! What a skeleton computes: the functions of integers, as far as they are known, and the decisions about those that are
//! not.

use std::collections::HashMap;

use llopt_dialects::arith::CmpIPredicate;

use super::choices::{Bound, Choices, FAR};
use super::number::{Iteration, Number, Parts, Term, Terms, normalised};
use super::skeleton::Function;

/// Moduli above this one make too many states.
const LARGEST_MODULUS: i64 = 4096;

/// The function of a choice between two numbers that is not decided yet.
const CHOICE: u32 = 1 << 29 | 15;

/// How often a loop goes round.
pub(super) struct Extent {
    pub(super) iterations: i64,
    /// What this depends on; how many of its units each iteration takes, and how many it has besides.
    pub(super) bound: Bound,
    pub(super) units: i64,
    pub(super) besides: i64,
}

/// What was decided about unknown numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) bounds: HashMap<Parts, i64>,
    pub(super) conditions: HashMap<Parts, bool>,
}

/// A loop of which it is decided at its head whether it goes on.
#[derive(Clone, Debug)]
struct Opened {
    class: u32,
    lower: Number,
    upper: Number,
    step: i64,
}

/// The numbers of all executions, and the decisions of the present one.
#[derive(Debug)]
pub(super) struct Arithmetic {
    pub(super) terms: Terms,
    pub(super) choices: Choices,
    pub(super) facts: Facts,
    /// Whether a choice between unknown numbers is decided only when something depends on it.
    pub(super) defers: bool,
    opened: Vec<Opened>,
    /// The divisors through which induction variables determine buffers and phases.
    pub(super) modulus: i64,
    divisors: HashMap<usize, i64>,
    /// The last distance that each comparison found, by agent and instruction.
    distances: HashMap<(usize, usize), i64>,
    /// Comparisons so far, and the last of them that came nearer to another result.
    pub(super) compared: u64,
    pub(super) unsettled: u64,
}

/// Where a function is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) agent: usize,
    pub(super) instruction: usize,
    /// The loops, as bits, that run until their state recurs.
    pub(super) endless: u64,
}

impl Default for Arithmetic {
    fn default() -> Self {
        Self {
            terms: Terms::default(),
            choices: Choices::default(),
            facts: Facts::default(),
            defers: false,
            opened: Vec::new(),
            modulus: 1,
            divisors: HashMap::new(),
            distances: HashMap::new(),
            compared: 0,
            unsettled: 0,
        }
    }
}

impl Arithmetic {
    /// Begins an execution, in which this was decided already.
    pub(super) fn rewind(&mut self, facts: Facts) {
        self.choices.rewind();
        self.facts = facts;
        self.distances.clear();
        (self.compared, self.unsettled) = (0, 0);
    }

    pub(super) fn term(&mut self, function: u32, of: &[Number]) -> Number {
        let of = of
            .iter()
            .map(|number| (number.constant, number.parts.clone()));
        Number::term(self.terms.number(Term::Of(function, of.collect())))
    }

    /// The value of a number, where its unknown part is known to bound a loop.
    pub(super) fn resolve(&mut self, number: &Number) -> Option<i64> {
        if let Some(value) = number.value() {
            return Some(value);
        }
        let (parts, sign) = normalised(&number.parts);
        let value = match self.facts.bounds.get(&parts) {
            Some(&value) => value,
            None => {
                let (shape, turned) = normalised(&self.terms.shape(&parts));
                let unit = *self.choices.bounds.get(&shape)?;
                let chosen = self.choices.bound(Bound::Sum(shape), unit.abs());
                let value = chosen * unit.signum() * turned;
                self.facts.bounds.insert(parts, value);
                value
            }
        };
        Some(number.constant.wrapping_add(sign * value))
    }

    /// The value of a number, with choices decided on which it depends.
    pub(super) fn decide(&mut self, number: &Number) -> Option<i64> {
        let mut number = number.clone();
        loop {
            if let Some(value) = self.resolve(&number) {
                return Some(value);
            }
            let (term, factor, of) = number.parts.iter().find_map(|&(term, factor)| match self
                .terms
                .get(term)
            {
                Term::Of(CHOICE, of) => Some((term, factor, of.clone())),
                _ => None,
            })?;
            let [condition, x, y] = &of[..] else {
                return None;
            };
            let sum = |(constant, parts): &(i64, Parts)| Number {
                constant: *constant,
                parts: parts.clone(),
                drifts: 0,
            };
            let chosen = if self.holds(&sum(condition)) { x } else { y };
            number = number.plus(&Number::term(term), -factor);
            number = number.plus(&sum(chosen), factor);
        }
    }

    /// Whether it is decided that a condition holds.
    fn decided(&self, condition: &Number) -> Option<bool> {
        match condition.value() {
            Some(value) => Some(value != 0),
            None => self.facts.conditions.get(&condition.parts).copied(),
        }
    }

    /// The truth of a condition, decided if nothing determines it.
    pub(super) fn holds(&mut self, condition: &Number) -> bool {
        self.decided(condition).unwrap_or_else(|| {
            let holds = self.choices.condition();
            let parts = condition.parts.clone();
            self.facts.conditions.insert(parts, holds);
            holds
        })
    }

    /// The iterations of a loop, or `None` if an execution must begin anew, now that its bounds are known.
    pub(super) fn iterations(
        &mut self,
        lower: &Number,
        upper: &Number,
        step: &Number,
    ) -> Option<Extent> {
        let distance = upper.plus(lower, -1);
        let (distance, step) = match step.value() {
            Some(step) if step > 0 => (distance, step),
            // Equal bounds with equal steps are equally many iterations.
            _ => (self.term(u32::MAX, &[distance, step.clone()]), 1),
        };
        let (parts, sign) = normalised(&self.terms.shape(&distance.parts));
        let Some(value) = self.resolve(&distance) else {
            self.choices.bounds.insert(parts, sign * step);
            return None;
        };
        // Loops with other steps may have the same bound.
        let unit = self.choices.bounds.get(&parts).map_or(step, |of| of.abs());
        let unit = unit.max(1);
        let besides = distance.constant.saturating_neg().max(0) / unit;
        let units = step.saturating_add(unit - 1) / unit;
        let iterations = if value <= 0 {
            0
        } else {
            (value - 1) / step + 1
        };
        Some(Extent {
            iterations,
            bound: Bound::Sum(parts),
            units,
            besides,
        })
    }

    /// It is decided at the head of a loop with these bounds whether it goes on. `false` if that was not known before.
    pub(super) fn open(&mut self, class: u32, [lower, upper, step]: [&Number; 3]) -> bool {
        let Some(step) = step.value().filter(|step| *step > 0) else {
            return true;
        };
        let is_known = self.opened.iter().any(|of| of.class == class);
        if !is_known {
            let (lower, upper) = (lower.clone(), upper.clone());
            self.opened.push(Opened {
                class,
                lower,
                upper,
                step,
            });
        }
        is_known
    }

    /// Whether a loop has an iteration, decided if nothing determines it.
    pub(super) fn goes_on(&mut self, of: Iteration) -> bool {
        for (parts, &holds) in &self.facts.conditions {
            let [(term, _)] = parts[..] else {
                continue;
            };
            if let Term::GoesOn(other) = self.terms.get(term)
                && other.class == of.class
                && (holds && other.number >= of.number || !holds && other.number <= of.number)
            {
                return holds;
            }
        }
        let term = self.terms.number(Term::GoesOn(of));
        self.holds(&Number::term(term))
    }

    /// How a difference of integers compares with zero, if it is one to the end of a loop.
    fn compared_with_end(&mut self, predicate: CmpIPredicate, difference: &Number) -> Option<bool> {
        use CmpIPredicate as P;
        let counted = difference
            .parts
            .iter()
            .find_map(|&(term, _)| match self.terms.get(term) {
                Term::Counted(of) => Some((term, *of)),
                _ => None,
            });
        let opened = self.opened.iter().find_map(|of| {
            let (from, number) = match counted {
                Some((term, at)) if at.class == of.class => (Number::term(term), at.number),
                Some(_) => return None,
                None => (of.lower.clone(), 0),
            };
            // What is left of the loop is the sum of a known number and the parts of this one, or its negative.
            let left = of.upper.plus(&from, -1);
            let sign = [1, -1].into_iter().find(|sign| {
                !left.parts.is_empty() && difference.plus(&left, *sign).parts.is_empty()
            })?;
            let known = difference.plus(&left, sign).constant;
            Some((of.class, of.step, number, sign, known))
        });
        // The difference is `known - sign * left`.
        let (class, step, number, sign, known) = opened?;
        let mut is_left_above = |bound: i64| {
            let number = number + bound / step;
            let exists = bound % step == 0 && number >= 0;
            exists.then(|| self.goes_on(Iteration { class, number }))
        };
        let mut is_below = |bound: i64| match sign {
            1 => is_left_above(known - bound),
            _ => is_left_above(bound - known - 1).map(|above| !above),
        };
        Some(match predicate {
            P::Slt => is_below(0)?,
            P::Sge => !is_below(0)?,
            P::Sle => is_below(1)?,
            P::Sgt => !is_below(1)?,
            P::Eq => is_below(1)? && !is_below(0)?,
            P::Ne => !is_below(1)? || is_below(0)?,
            P::Ult | P::Ule | P::Ugt | P::Uge => return None,
        })
    }

    /// The iterations of a loop of which nothing is known.
    pub(super) fn any_iterations(&mut self, bound: &Bound) -> i64 {
        self.choices.bound(bound.clone(), 1).max(0)
    }

    /// Remembers how far a comparison is from another result.
    fn compare(&mut self, distance: i64, drifts: u64, at: At) {
        if distance.abs() >= FAR {
            self.choices.compared(distance.abs());
        } else if drifts & at.endless != 0 {
            self.compared += 1;
            let place = (at.agent, at.instruction);
            let last = self.distances.insert(place, distance);
            if last.is_some_and(|last| {
                last.signum() != distance.signum() || distance.abs() < last.abs()
            }) {
                self.unsettled = self.compared;
            }
        }
    }

    /// The result of a function.
    pub(super) fn apply(
        &mut self,
        function: Function,
        of: &[Number],
        at: At,
    ) -> Result<Number, String> {
        use Function as F;
        let drifts = of.iter().fold(0, |all, number| all | number.drifts);
        match (function, of) {
            (F::Other(number), _) => return Ok(self.term(number, of)),
            (F::Same, [x]) => return Ok(x.clone()),
            (F::Add, [x, y]) => return Ok(x.plus(y, 1)),
            (F::Sub, [x, y]) => return Ok(x.plus(y, -1)),
            (F::Mul, [x, y]) => {
                if let Some(factor) = y.value() {
                    return Ok(x.times(factor));
                }
                if let Some(factor) = x.value() {
                    return Ok(y.times(factor));
                }
            }
            (F::Compare(predicate), [x, y]) => {
                let difference = x.plus(y, -1);
                let values = self.resolve(x).zip(self.resolve(y));
                let values =
                    values.or_else(|| self.resolve(&difference).map(|distance| (distance, 0)));
                if let Some((x, y)) = values {
                    self.compare(x.wrapping_sub(y), drifts, at);
                    return Ok(Number::known(compared(predicate, x, y).into()).drifting(drifts));
                }
                if let Some(holds) = self.compared_with_end(predicate, &difference) {
                    return Ok(Number::known(holds.into()).drifting(drifts));
                }
                return Ok(self.term(1 << 30 | predicate as u32, &[difference]));
            }
            (F::Select, [condition, x, y])
                if self.defers
                    && self.decided(condition).is_none()
                    && (x.value().is_none() || y.value().is_none()) =>
            {
                return Ok(if x == y {
                    x.clone()
                } else {
                    self.term(CHOICE, of)
                });
            }
            (F::Select, [condition, x, y]) => {
                let chosen = if self.holds(condition) { x } else { y };
                return Ok(chosen.clone().drifting(condition.drifts));
            }
            (F::And | F::Or | F::Both | F::Either, [x, y]) => {
                // Conditions: both are decided only if the result depends on both.
                let absorbing = i64::from(matches!(function, F::Or | F::Either));
                let is_truth = |number: &Number| number.value().is_none_or(|value| value & !1 == 0);
                if is_truth(x) && is_truth(y) && (x.value().is_none() || y.value().is_none()) {
                    for (one, other) in [(x, y), (y, x)] {
                        match one.value() {
                            Some(value) if value == absorbing => {
                                return Ok(Number::known(absorbing));
                            }
                            Some(_) => return Ok(other.clone()),
                            None => {}
                        }
                    }
                }
            }
            _ => {}
        }
        let values: Option<Vec<i64>> = of.iter().map(|number| self.resolve(number)).collect();
        let Some(values) = values else {
            let number = self.number_of(function);
            return Ok(self.term(number, of));
        };
        let [x, y] = values[..] else {
            return Err("a function of integers has an unknown meaning".into());
        };
        let result =
            evaluated(function, x, y).ok_or("a buffer is chosen by an undefined integer")?;
        let left = self.divides(function, y, drifts & at.endless != 0, at.instruction)?;
        Ok(Number::known(result).drifting(if left { 0 } else { drifts }))
    }

    /// The number of a function for its terms.
    fn number_of(&self, function: Function) -> u32 {
        use Function as F;
        let number = match function {
            F::DivS => 0,
            F::DivU => 1,
            F::RemS => 2,
            F::RemU => 3,
            F::And | F::Both => 4,
            F::Or | F::Either => 5,
            F::Xor => 6,
            F::ShiftLeft => 7,
            F::ShiftRight => 8,
            F::MinS => 9,
            F::MaxS => 10,
            F::MinU => 11,
            F::MaxU => 12,
            F::Mul => 13,
            _ => 14,
        };
        1 << 29 | number
    }

    /// Remembers a divisor of an induction variable. Whether the result depends on the variable's remainder only.
    fn divides(
        &mut self,
        function: Function,
        by: i64,
        drifts: bool,
        at: usize,
    ) -> Result<bool, String> {
        use Function as F;
        let (divisor, is_remainder) = match function {
            F::RemS | F::RemU => (by, true),
            // Of truths it is none: comparisons remember themselves how they depend on the variable.
            F::And if by >= 0 && (by + 1) & by == 0 => (by + 1, true),
            F::DivS | F::DivU => (by, false),
            F::ShiftRight => (1 << by.clamp(0, 62), false),
            _ => return Ok(false),
        };
        if !drifts {
            return Ok(false);
        }
        if self.divisors.insert(at, divisor).is_none() {
            self.modulus = self.modulus.saturating_mul(divisor.abs().max(1));
            // What was seen before has another remainder.
            self.compared += 1;
            self.unsettled = self.compared;
        }
        if self.modulus > LARGEST_MODULUS {
            return Err("a counter is divided by too large numbers".into());
        }
        Ok(is_remainder)
    }
}

fn compared(predicate: CmpIPredicate, x: i64, y: i64) -> bool {
    use CmpIPredicate as P;
    match predicate {
        P::Eq => x == y,
        P::Ne => x != y,
        P::Slt => x < y,
        P::Sle => x <= y,
        P::Sgt => x > y,
        P::Sge => x >= y,
        P::Ult => (x as u64) < y as u64,
        P::Ule => x as u64 <= y as u64,
        P::Ugt => x as u64 > y as u64,
        P::Uge => x as u64 >= y as u64,
    }
}

fn evaluated(function: Function, x: i64, y: i64) -> Option<i64> {
    use Function as F;
    Some(match function {
        F::Mul => x.wrapping_mul(y),
        F::DivS | F::DivU => x.checked_div(y)?,
        F::RemS | F::RemU => x.checked_rem(y)?,
        F::And | F::Both => x & y,
        F::Or | F::Either => x | y,
        F::Xor => x ^ y,
        F::ShiftLeft => x.checked_shl(u32::try_from(y).ok()?)?,
        F::ShiftRight => x.checked_shr(u32::try_from(y).ok()?)?,
        F::MinS | F::MinU => x.min(y),
        F::MaxS | F::MaxU => x.max(y),
        _ => return None,
    })
}
