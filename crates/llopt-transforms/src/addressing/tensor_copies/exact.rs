//! Polynomials with integer coefficients: what index arithmetic computes if nothing wraps.
//!
//! A polynomial is a sum of terms, a term a coefficient times a product of variables. Its *places* are variables that
//! stand for the element of a tile and for the iteration of a loop; all others are scalars of the program. Equal
//! polynomials have equal terms, so whether two computations agree for all inputs is a comparison.

use std::collections::BTreeMap;

/// A variable of a polynomial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Variable {
    /// A scalar of the program, by its number.
    Scalar(usize),
    /// The distance of the induction variable from its first number.
    Progress,
    /// The index of an element along a dimension of its tile.
    Index(usize),
    /// A remainder of an index, by its number.
    Remainder(usize),
}

impl Variable {
    /// Whether it depends on the element or on the iteration.
    pub(super) fn is_place(self) -> bool {
        !matches!(self, Self::Scalar(_))
    }
}

/// The factors of a term, in ascending order.
type Product = Vec<Variable>;

/// A polynomial: coefficients other than zero, by the factors of their terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Exact {
    terms: BTreeMap<Product, i64>,
}

impl Exact {
    pub(super) fn constant(value: i64) -> Self {
        let mut sum = Self::default();
        if value != 0 {
            sum.terms.insert(Vec::new(), value);
        }
        sum
    }

    pub(super) fn variable(variable: Variable) -> Self {
        Self {
            terms: BTreeMap::from([(vec![variable], 1)]),
        }
    }

    /// The terms: coefficient and factors.
    pub(super) fn terms(&self) -> impl Iterator<Item = (i64, &[Variable])> {
        self.terms
            .iter()
            .map(|(factors, &coefficient)| (coefficient, factors.as_slice()))
    }

    /// The number that it is, if it has no variables.
    pub(super) fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    fn add_term(&mut self, factors: Product, coefficient: i64) -> Option<()> {
        let sum = self.terms.get(&factors).copied().unwrap_or(0);
        match sum.checked_add(coefficient)? {
            0 => self.terms.remove(&factors),
            sum => self.terms.insert(factors, sum),
        };
        Some(())
    }

    /// The sum; `None` if a coefficient has more than 64 bits.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        for (factors, &coefficient) in &other.terms {
            sum.add_term(factors.clone(), coefficient)?;
        }
        Some(sum)
    }

    /// The difference; `None` if a coefficient has more than 64 bits.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Self::constant(-1))?)
    }

    /// The product; `None` if a coefficient has more than 64 bits.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (one, &x) in &self.terms {
            for (two, &y) in &other.terms {
                let mut factors = [&one[..], &two[..]].concat();
                factors.sort_unstable();
                product.add_term(factors, x.checked_mul(y)?)?;
            }
        }
        Some(product)
    }

    /// Whether a variable occurs.
    pub(super) fn has(&self, wanted: impl Fn(Variable) -> bool) -> bool {
        let mut variables = self.terms.keys().flatten();
        variables.any(|&variable| wanted(variable))
    }

    /// Its terms in groups of the same places: the places, and the polynomial in scalars that multiplies them.
    pub(super) fn by_places(&self) -> BTreeMap<Product, Self> {
        let mut groups: BTreeMap<Product, Self> = BTreeMap::new();
        for (factors, &coefficient) in &self.terms {
            let (places, scalars): (Product, Product) =
                factors.iter().partition(|variable| variable.is_place());
            groups
                .entry(places)
                .or_default()
                .terms
                .insert(scalars, coefficient);
        }
        groups
    }

    /// `quotient` and `rest` with `self = quotient·divisor + rest`, for a divisor of one term: all terms of which it is
    /// a factor are in the quotient.
    pub(super) fn divided(&self, divisor: &Self) -> Option<(Self, Self)> {
        let (by, &number) = divisor.terms.first_key_value()?;
        if divisor.terms.len() > 1 {
            return None;
        }
        let (mut quotient, mut rest) = (Self::default(), Self::default());
        for (factors, &coefficient) in &self.terms {
            let mut left = factors.clone();
            let has_all = by.iter().all(|variable| {
                let place = left.iter().position(|other| other == variable);
                place.map(|place| left.remove(place)).is_some()
            });
            match has_all && coefficient.checked_rem(number)? == 0 {
                true => quotient.add_term(left, coefficient / number)?,
                false => rest.add_term(factors.clone(), coefficient)?,
            }
        }
        Some((quotient, rest))
    }

    /// The polynomial with another variable for each.
    pub(super) fn renamed(&self, name: impl Fn(Variable) -> Variable) -> Self {
        let rename = |factors: &Product| {
            let mut factors: Product = factors.iter().map(|&variable| name(variable)).collect();
            factors.sort_unstable();
            factors
        };
        let terms = self.terms.iter();
        Self {
            terms: terms.map(|(factors, &of)| (rename(factors), of)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(of: &Exact, at: &[i64]) -> i64 {
        let number = |variable: &Variable| match *variable {
            Variable::Scalar(number) => at[number],
            Variable::Progress => at[3],
            Variable::Index(dim) => at[4 + dim],
            Variable::Remainder(_) => at[6],
        };
        let terms = of.terms();
        let terms = terms.map(|(by, factors)| by * factors.iter().map(number).product::<i64>());
        terms.sum()
    }

    fn any_variable() -> impl Strategy<Value = Variable> {
        prop_oneof![
            (0..3usize).prop_map(Variable::Scalar),
            Just(Variable::Progress),
            (0..2usize).prop_map(Variable::Index),
            Just(Variable::Remainder(0)),
        ]
    }

    fn any_polynomial() -> impl Strategy<Value = Exact> {
        let term = (-5..5i64, prop::collection::vec(any_variable(), 0..3));
        prop::collection::vec(term, 0..4).prop_map(|terms| {
            let of = |(by, factors): &(i64, Vec<Variable>)| {
                let factors = factors.iter().map(|&variable| Exact::variable(variable));
                factors.fold(Exact::constant(*by), |product, factor| {
                    product.times(&factor).unwrap()
                })
            };
            let sum = |sum: Exact, term| sum.plus(&of(term)).unwrap();
            terms.iter().fold(Exact::default(), sum)
        })
    }

    proptest! {
        #[test]
        fn polynomials_have_the_values_of_what_they_are_computed_from(
            x in any_polynomial(), y in any_polynomial(), at in prop::collection::vec(-9..9i64, 7)
        ) {
            let of = |polynomial: &Exact| value(polynomial, &at);
            prop_assert_eq!(of(&x.plus(&y).unwrap()), of(&x) + of(&y));
            prop_assert_eq!(of(&x.minus(&y).unwrap()), of(&x) - of(&y));
            prop_assert_eq!(of(&x.times(&y).unwrap()), of(&x) * of(&y));
            let groups = x.by_places();
            let sum: i64 = groups.iter().map(|(places, by)| {
                let places = places.iter().map(|&place| of(&Exact::variable(place)));
                places.product::<i64>() * of(by)
            }).sum();
            prop_assert_eq!(sum, of(&x));
            if let Some((quotient, rest)) = x.divided(&y) {
                prop_assert_eq!(of(&quotient) * of(&y) + of(&rest), of(&x));
            }
        }

        #[test]
        fn a_factor_divides_a_product(x in any_polynomial(), variable in any_variable(), by in 1..5i64) {
            let factor = Exact::variable(variable).times(&Exact::constant(by)).unwrap();
            let product = x.times(&factor).unwrap();
            prop_assert_eq!(product.divided(&factor), Some((x, Exact::default())));
        }
    }
}
