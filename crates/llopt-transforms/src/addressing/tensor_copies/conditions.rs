//! Conditions on scalars under which copies read what loads read.
//!
//! A condition says that a polynomial in scalars is not negative. The code evaluates it with 64-bit numbers, so its
//! value must fit into them:
//!
//! - The operands of an op on 32-bit tensors are results of other such ops, or scalars of 32 bits. Under the conditions
//!   of those, they have 32 bits, so their sum and their product have at most 63.
//! - Any other polynomial is *short*: it fits for all scalars of 32 bits. Scalars of 64 bits have conditions of their
//!   own, by which they fit into 32.
//!
//! All conditions must hold, so it does not matter what one evaluates to if another one does not hold.

use super::exact::{Exact, Variable};

/// The least and the largest number of 32 bits.
pub(super) const LEAST: i64 = i32::MIN as i64;
pub(super) const MOST: i64 = i32::MAX as i64;

/// Conditions that hold together.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// Polynomials in scalars that are not negative.
    not_negative: Vec<Exact>,
}

impl Conditions {
    /// The conditions, each a polynomial without a constant term and the least number that it may be.
    pub(super) fn all(&self) -> impl Iterator<Item = (Exact, i64)> {
        self.not_negative.iter().filter_map(|polynomial| {
            let constant = polynomial.terms().find(|(_, factors)| factors.is_empty());
            let constant = constant.map_or(0, |(by, _)| by);
            let varying = polynomial.minus(&Exact::constant(constant))?;
            Some((varying, constant.checked_neg()?))
        })
    }

    /// Requires that a short polynomial is at least a number.
    pub(super) fn at_least(&mut self, polynomial: &Exact, least: i64) -> Result<(), String> {
        let difference = polynomial.minus(&Exact::constant(least));
        self.require_short(difference.ok_or(TOO_LARGE)?)
    }

    /// Requires that a short polynomial is at most a number.
    pub(super) fn at_most(&mut self, polynomial: &Exact, most: i64) -> Result<(), String> {
        let difference = Exact::constant(most).minus(polynomial);
        self.require_short(difference.ok_or(TOO_LARGE)?)
    }

    /// Requires that the results of an op on numbers of 32 bits, whose bounds these are, fit into 32 bits.
    pub(super) fn within_32_bits(&mut self, [least, most]: [&Exact; 2]) -> Result<(), String> {
        let above = least.minus(&Exact::constant(LEAST)).ok_or(TOO_LARGE)?;
        let below = Exact::constant(MOST).minus(most).ok_or(TOO_LARGE)?;
        self.require(above)?;
        self.require(below)
    }

    /// Requires that a scalar of 64 bits fits into 32 bits.
    pub(super) fn is_narrow(&mut self, scalar: &Exact) {
        let bounds = [
            scalar.minus(&Exact::constant(LEAST)),
            Exact::constant(MOST).minus(scalar),
        ];
        self.not_negative.extend(bounds.into_iter().flatten());
    }

    fn require_short(&mut self, polynomial: Exact) -> Result<(), String> {
        match is_short(&polynomial) {
            true => self.require(polynomial),
            false => Err(TOO_LARGE.to_owned()),
        }
    }

    fn require(&mut self, polynomial: Exact) -> Result<(), String> {
        let range = range(&polynomial);
        if range.is_some_and(|[least, _]| least >= 0) {
            return Ok(());
        }
        if range.is_some_and(|[_, most]| most < 0) {
            return Err("its indices never fit into 32 bits".to_owned());
        }
        let implies = |one: &Exact, other: &Exact| {
            let difference = other.minus(one).and_then(|more| more.as_constant());
            difference.is_some_and(|more| more >= 0)
        };
        let mut known = self.not_negative.iter();
        if !known.any(|known| implies(known, &polynomial)) {
            self.not_negative
                .retain(|known| !implies(&polynomial, known));
            self.not_negative.push(polynomial);
        }
        Ok(())
    }
}

/// The reason why a polynomial has no value of 64 bits.
pub(super) const TOO_LARGE: &str = "its indices have too many bits";

/// The least and the largest value of a polynomial over all scalars of 32 bits, `None` for one with products.
fn range(polynomial: &Exact) -> Option<[i128; 2]> {
    let mut range = [0i128; 2];
    for (by, factors) in polynomial.terms() {
        let [least, most] = match factors {
            [] => [1, 1],
            [_] => [LEAST, MOST],
            _ => return None,
        };
        let (by, least, most) = (i128::from(by), i128::from(least), i128::from(most));
        range[0] += (by * least).min(by * most);
        range[1] += (by * least).max(by * most);
    }
    Some(range)
}

/// Whether a polynomial fits into 64 bits for all variables of 32 bits.
pub(super) fn is_short(polynomial: &Exact) -> bool {
    let most = |(by, factors): (i64, &[Variable])| {
        let bits = u32::try_from(31 * factors.len()).unwrap_or(u32::MAX);
        i128::from(by.unsigned_abs()).checked_mul(1i128.checked_shl(bits)?)
    };
    let mut terms = polynomial.terms();
    let sum = terms.try_fold(0i128, |sum, term| sum.checked_add(most(term)?));
    sum.is_some_and(|sum| sum <= i128::from(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stronger_of_two_conditions_is_kept() {
        let x = Exact::variable(Variable::Scalar(0));
        let mut conditions = Conditions::default();
        conditions.at_least(&x, -3).unwrap();
        conditions.at_least(&x, 2).unwrap();
        conditions.at_least(&x, 1).unwrap();
        conditions.at_most(&x, 9).unwrap();
        conditions.at_most(&x, MOST).unwrap();
        conditions.at_least(&Exact::constant(4), 4).unwrap();
        let all: Vec<(Exact, i64)> = conditions.all().collect();
        let negative = Exact::constant(-1).times(&x).unwrap();
        assert_eq!(all, [(x.clone(), 2), (negative, -9)]);
        assert!(conditions.at_most(&Exact::constant(4), 3).is_err());
        assert!(conditions.at_least(&x, MOST + 1).is_err());
    }

    #[test]
    fn products_of_two_scalars_are_short_and_those_of_three_are_not() {
        let x = Exact::variable(Variable::Scalar(0));
        let square = x.times(&x).unwrap();
        assert!(is_short(&square));
        assert!(!is_short(&square.times(&Exact::constant(2)).unwrap()));
        assert!(!is_short(&square.times(&x).unwrap()));
        assert!(is_short(&x.times(&Exact::constant(1 << 20)).unwrap()));
    }
}
