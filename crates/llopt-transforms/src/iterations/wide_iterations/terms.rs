//! Terms over the real numbers in a normal form, with sums and maxima along an axis, for the question whether two programs
//! compute the same.
//!
//! # The objects
//!
//! A *term* is a sum of *monomials*, each a number times powers of *atoms* times a power of two whose exponent is a term:
//!
//! ```text
//! t = Σ c · a^i · b^j · … · 2^t'
//! ```
//!
//! An atom is what the algebra does not look into: a value of the program, the coordinate on an axis, the result of an
//! unknown function of terms, or one of
//!
//! - `Σ_axis t`, the sum of a term over the coordinates on an axis,
//! - `max_axis t`, the greatest,
//! - `max {t, …}`, the greatest of some terms,
//! - `1 / t`.
//!
//! Each atom is a function of the coordinates on some axes (its *axes*). Truth values are the numbers zero and one, so a
//! choice is `c·x + (1 - c)·y`.
//!
//! # The laws
//!
//! Sums and products are those of polynomials, and besides
//!
//! ```text
//! 2^s · 2^t       = 2^(s + t)                   c · c = c                       for truth values
//! Σ_k u·t         = u · Σ_k t                   max_k (u + t) = u + max_k t     for u that does not depend on k
//! max {t, max M}  = max ({t} ∪ M)               max {u + s, u + t} = u + max {s, t}
//! f · max {s, t}  = max {f·s, f·t}              for f ≥ 0
//! ```
//!
//! Each is applied in one direction only, so equal terms of this fragment become the same object. The last one is applied
//! inside of another maximum, and only if `f` is a product of powers of two, positive numbers and values that do not
//! change in the loop. That these are not negative is an *assumption*, which the program must check. So is that a counter is
//! far from the greatest number of its type, where a sum with it is extended to a wider one.
//!
//! An infinity is a number without a value: what holds for each large number holds for it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

/// The most monomials of a term.
const MOST_MONOMIALS: usize = 64;
/// The most steps of all computations together.
const MOST_STEPS: usize = 20_000;
/// A bound on the coordinates on an axis, and on how far sums of them and constants may be from a counter.
const MOST_COORDINATES: f64 = 1_048_576.0;
pub(super) const FAR: i64 = 1 << 27;
/// Sums of integers are exact below it.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A term is too large to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// A number, ordered by its bits.
#[derive(Clone, Copy, Debug)]
struct Number(f64);

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The number of an atom.
type AtomId = usize;
/// The number of an axis.
pub(super) type Axis = usize;

/// Powers of atoms and a power of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Monomial {
    /// The power of each atom, none of them zero.
    factors: BTreeMap<AtomId, i32>,
    exponent: Term,
}

/// A sum of monomials with factors that are not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term(BTreeMap<Monomial, Number>);

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// It is a number of floating point that is there before the loop.
    Fixed,
    /// It is an integer that grows by a constant in each iteration.
    Counter,
    /// Nothing.
    Other,
}

/// What an atom stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// A value of the program, by its key.
    Value {
        /// The key.
        key: usize,
        /// The axes of its dimensions.
        axes: Vec<Axis>,
        /// What is known of it.
        kind: Kind,
    },
    /// The coordinate on an axis.
    Coordinate(Axis),
    /// A result of an operation, by its key, of these operands: the same wherever all of them are.
    Result {
        /// The key of the result.
        key: usize,
        /// The operands.
        of: Vec<Term>,
        /// The axes of its dimensions.
        axes: Vec<Axis>,
        /// Whether it is zero or one.
        is_truth: bool,
    },
    /// A sum along an axis.
    Sum(Axis, Term),
    /// The greatest along an axis.
    GreatestAlong(Axis, Term),
    /// The greatest of some terms.
    Greatest(Vec<Term>),
    /// The inverse of a sum.
    Inverse(Term),
    /// A number above all others.
    Infinity,
}

impl Term {
    fn of(monomial: Monomial, number: f64) -> Self {
        let mut term = Self::default();
        term.put(monomial, number);
        term
    }

    /// A number.
    pub(super) fn number(number: f64) -> Self {
        Self::of(Monomial::default(), number)
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a multiple of a monomial.
    fn put(&mut self, monomial: Monomial, number: f64) {
        let sum = self.0.get(&monomial).map_or(0.0, |own| own.0) + number;
        if sum == 0.0 {
            self.0.remove(&monomial);
        } else {
            self.0.insert(monomial, Number(sum));
        }
    }

    /// The sum of two terms.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        for (monomial, number) in &other.0 {
            sum.put(monomial.clone(), number.0);
        }
        sum
    }

    /// A multiple.
    pub(super) fn times(&self, number: f64) -> Self {
        let mut product = Self::default();
        for (monomial, own) in &self.0 {
            product.put(monomial.clone(), own.0 * number);
        }
        product
    }

    /// The difference of two terms.
    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.times(-1.0))
    }

    /// Whether its numbers are integers that are computed with exactly.
    pub(super) fn is_exact(&self) -> bool {
        self.0.values().all(|number| number.0.abs() < EXACT)
    }

    /// The only monomial.
    fn single(&self) -> Option<(&Monomial, f64)> {
        let mut all = self.0.iter();
        let (monomial, number) = all.next()?;
        all.next().is_none().then_some((monomial, number.0))
    }
}

/// The atoms of terms, and what was assumed to bring terms into the normal form.
#[derive(Default)]
pub(super) struct Algebra {
    atoms: Vec<Atom>,
    /// The axes on which each atom depends.
    axes: Vec<BTreeSet<Axis>>,
    ids: HashMap<Atom, AtomId>,
    /// The keys of values that are assumed not to be negative.
    assumed: BTreeSet<usize>,
    /// The keys of counters that are assumed to be far from the greatest number of their type.
    far: BTreeSet<usize>,
    steps: usize,
}

impl Algebra {
    /// The keys of the values that were assumed not to be negative.
    pub(super) fn assumed(&self) -> impl Iterator<Item = usize> + '_ {
        self.assumed.iter().copied()
    }

    /// The keys of the counters that were assumed to stay farther than [`FAR`] below the greatest number of their type.
    pub(super) fn far(&self) -> impl Iterator<Item = usize> + '_ {
        self.far.iter().copied()
    }

    fn id(&mut self, atom: Atom) -> AtomId {
        if let Some(id) = self.ids.get(&atom) {
            return *id;
        }
        let axes = match &atom {
            Atom::Value { axes, .. } => axes.iter().copied().collect(),
            Atom::Coordinate(axis) => BTreeSet::from([*axis]),
            Atom::Result { of, axes, .. } => {
                // A function of what is the same everywhere on an axis is the same there.
                let needed: BTreeSet<Axis> =
                    of.iter().flat_map(|term| self.axes_of(term)).collect();
                axes.iter()
                    .copied()
                    .filter(|axis| needed.contains(axis))
                    .collect()
            }
            Atom::Sum(axis, of) | Atom::GreatestAlong(axis, of) => {
                let mut axes = self.axes_of(of);
                axes.remove(axis);
                axes
            }
            Atom::Greatest(of) => of.iter().flat_map(|term| self.axes_of(term)).collect(),
            Atom::Inverse(of) => self.axes_of(of),
            Atom::Infinity => BTreeSet::new(),
        };
        self.atoms.push(atom.clone());
        self.axes.push(axes);
        self.ids.insert(atom, self.atoms.len() - 1);
        self.atoms.len() - 1
    }

    /// An atom as a term.
    pub(super) fn atom(&mut self, atom: Atom) -> Term {
        let id = self.id(atom);
        self.power(id, 1)
    }

    fn power(&self, id: AtomId, power: i32) -> Term {
        let monomial = Monomial {
            factors: BTreeMap::from([(id, power)]),
            exponent: Term::default(),
        };
        Term::of(monomial, 1.0)
    }

    /// The axes on which a term depends.
    pub(super) fn axes_of(&self, term: &Term) -> BTreeSet<Axis> {
        let of_monomials = term
            .0
            .keys()
            .map(|monomial| self.axes_of_monomial(monomial));
        of_monomials.flatten().collect()
    }

    fn axes_of_monomial(&self, monomial: &Monomial) -> BTreeSet<Axis> {
        let mut axes = self.axes_of(&monomial.exponent);
        for id in monomial.factors.keys() {
            axes.extend(&self.axes[*id]);
        }
        axes
    }

    fn is_truth(&self, id: AtomId) -> bool {
        matches!(self.atoms[id], Atom::Result { is_truth: true, .. })
    }

    fn product_of(&self, x: &Monomial, y: &Monomial) -> Monomial {
        let mut factors = x.factors.clone();
        for (&id, &power) in &y.factors {
            let own = factors.entry(id).or_insert(0);
            *own += power;
            if *own > 1 && self.is_truth(id) {
                *own = 1;
            }
            if *own == 0 {
                factors.remove(&id);
            }
        }
        Monomial {
            factors,
            exponent: x.exponent.plus(&y.exponent),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), TooLarge> {
        self.steps += steps;
        match self.steps > MOST_STEPS {
            true => Err(TooLarge),
            false => Ok(()),
        }
    }

    /// The product of two terms.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn product(&mut self, x: &Term, y: &Term) -> Result<Term, TooLarge> {
        self.spend(x.0.len() * y.0.len())?;
        let mut product = Term::default();
        for (one, of_one) in &x.0 {
            for (other, of_other) in &y.0 {
                product.put(self.product_of(one, other), of_one.0 * of_other.0);
            }
        }
        match product.0.len() > MOST_MONOMIALS {
            true => Err(TooLarge),
            false => Ok(product),
        }
    }

    /// One divided by a term.
    pub(super) fn inverse(&mut self, of: &Term) -> Term {
        if let Some((monomial, number)) = of.single()
            && !monomial.factors.keys().any(|id| self.is_truth(*id))
        {
            let factors = monomial.factors.iter().map(|(id, power)| (*id, -power));
            let inverse = Monomial {
                factors: factors.collect(),
                exponent: monomial.exponent.times(-1.0),
            };
            return Term::of(inverse, 1.0 / number);
        }
        self.atom(Atom::Inverse(of.clone()))
    }

    /// Two to the power of a term.
    pub(super) fn power_of_two(of: &Term) -> Term {
        let monomial = Monomial {
            factors: BTreeMap::new(),
            exponent: of.clone(),
        };
        Term::of(monomial, 1.0)
    }

    /// A choice between two terms by a truth value.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn choice(&mut self, truth: &Term, x: &Term, y: &Term) -> Result<Term, TooLarge> {
        Ok(self.product(truth, &x.minus(y))?.plus(y))
    }

    /// The sum of a term over so many coordinates on an axis.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn sum(&mut self, axis: Axis, extent: i64, of: &Term) -> Result<Term, TooLarge> {
        self.spend(of.0.len())?;
        let mut sum = Term::default();
        for (monomial, number) in &of.0 {
            let (mut inside, mut outside) = (Monomial::default(), Monomial::default());
            for (&id, &power) in &monomial.factors {
                let part = match self.axes[id].contains(&axis) {
                    true => &mut inside,
                    false => &mut outside,
                };
                part.factors.insert(id, power);
            }
            let (dependent, independent) = self.split(axis, &monomial.exponent);
            (inside.exponent, outside.exponent) = (dependent, independent);
            if inside == Monomial::default() {
                sum.put(outside, number.0 * extent as f64);
            } else {
                let id = self.id(Atom::Sum(axis, Term::of(inside, 1.0)));
                let factor = Monomial {
                    factors: BTreeMap::from([(id, 1)]),
                    exponent: Term::default(),
                };
                sum.put(self.product_of(&outside, &factor), number.0);
            }
        }
        Ok(sum)
    }

    /// The monomials that depend on an axis, and the others.
    fn split(&self, axis: Axis, of: &Term) -> (Term, Term) {
        let (mut dependent, mut independent) = (Term::default(), Term::default());
        for (monomial, number) in &of.0 {
            let part = match self.axes_of_monomial(monomial).contains(&axis) {
                true => &mut dependent,
                false => &mut independent,
            };
            part.put(monomial.clone(), number.0);
        }
        (dependent, independent)
    }

    /// The greatest value of a term on an axis.
    pub(super) fn greatest_along(&mut self, axis: Axis, of: &Term) -> Term {
        let (dependent, independent) = self.split(axis, of);
        match dependent.is_zero() {
            true => independent,
            false => self
                .atom(Atom::GreatestAlong(axis, dependent))
                .plus(&independent),
        }
    }

    /// The greatest of some terms.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn greatest(&mut self, of: Vec<Term>) -> Result<Term, TooLarge> {
        let (mut left, mut flat) = (of, BTreeSet::new());
        while let Some(term) = left.pop() {
            self.spend(1 + term.0.len())?;
            match self.elements(&term)? {
                Some(elements) => left.extend(elements),
                None => {
                    flat.insert(term);
                }
            }
        }
        let mut terms = flat.iter();
        let Some(mut common) = terms.next().cloned() else {
            return Ok(Term::default());
        };
        for term in terms {
            common
                .0
                .retain(|monomial, number| term.0.get(monomial) == Some(number));
        }
        if flat.len() == 1 {
            return Ok(common);
        }
        let rest: BTreeSet<Term> = flat.iter().map(|term| term.minus(&common)).collect();
        Ok(self
            .atom(Atom::Greatest(rest.into_iter().collect()))
            .plus(&common))
    }

    /// The terms of the counter and of the rest in a term of integers that is a counter and coordinates, or coordinates
    /// alone. Such a sum does not wrap where counters are far from the greatest number, and is the same in a wider type.
    pub(super) fn counter_and_rest(&mut self, of: &Term) -> Option<(Term, Term)> {
        let (mut counter, mut rest) = (Term::default(), Term::default());
        let mut farthest = 0.0;
        for (monomial, &Number(number)) in &of.0 {
            if *monomial == Monomial::default() {
                farthest += number;
                rest.put(monomial.clone(), number);
                continue;
            }
            let mut factors = monomial.factors.iter();
            let (Some((id, 1)), None) = (factors.next(), factors.next()) else {
                return None;
            };
            match self.atoms[*id] {
                Atom::Coordinate(_) => {
                    farthest += number * MOST_COORDINATES;
                    rest.put(monomial.clone(), number);
                }
                Atom::Value {
                    key,
                    kind: Kind::Counter,
                    ..
                } if number == 1.0 && counter.is_zero() => {
                    counter.put(monomial.clone(), 1.0);
                    self.far.insert(key);
                }
                _ => return None,
            }
            if number < 0.0 || !monomial.exponent.is_zero() {
                return None;
            }
        }
        let constant = of.0.get(&Monomial::default());
        let is_positive = constant.is_none_or(|constant| constant.0 >= 0.0);
        (is_positive && farthest <= FAR as f64).then_some((counter, rest))
    }

    /// The terms of which a term is the greatest, if it is known to be that of several.
    fn elements(&mut self, of: &Term) -> Result<Option<Vec<Term>>, TooLarge> {
        for (monomial, &Number(number)) in &of.0 {
            let greatest = monomial.factors.iter().find_map(|(id, power)| {
                let terms = match &self.atoms[*id] {
                    Atom::Greatest(terms) if *power == 1 => terms.clone(),
                    _ => return None,
                };
                Some((*id, terms))
            });
            let Some((id, terms)) = greatest.filter(|_| number > 0.0) else {
                continue;
            };
            let mut factor = monomial.clone();
            factor.factors.remove(&id);
            let Some(assumed) = self.not_negative_if(&factor) else {
                continue;
            };
            let mut rest = of.clone();
            rest.0.remove(monomial);
            let factor = Term::of(factor, number);
            let mut elements = Vec::new();
            for term in terms {
                elements.push(self.product(&factor, &term)?.plus(&rest));
            }
            self.assumed.extend(assumed);
            return Ok(Some(elements));
        }
        Ok(None)
    }

    /// The values that must not be negative for a monomial not to be negative.
    fn not_negative_if(&self, of: &Monomial) -> Option<Vec<usize>> {
        let mut assumed = Vec::new();
        for (id, power) in &of.factors {
            match self.atoms[*id] {
                _ if power % 2 == 0 => {}
                Atom::Result { is_truth: true, .. } => {}
                Atom::Value {
                    key,
                    kind: Kind::Fixed,
                    ..
                } => assumed.push(key),
                _ => return None,
            }
        }
        Some(assumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: Axis = 0;
    const R: Axis = 1;

    struct Softmax {
        algebra: Algebra,
        scale: Term,
    }

    impl Softmax {
        fn new() -> Self {
            let mut algebra = Algebra::default();
            let scale = algebra.atom(Atom::Value {
                key: 1,
                axes: Vec::new(),
                kind: Kind::Fixed,
            });
            Self { algebra, scale }
        }

        fn carried(&mut self, key: usize) -> Term {
            self.algebra.atom(Atom::Value {
                key,
                axes: vec![R],
                kind: Kind::Other,
            })
        }

        /// The scores of a half of the keys.
        fn scores(&mut self, half: f64) -> Term {
            let place = self.algebra.atom(Atom::Coordinate(K));
            self.algebra.atom(Atom::Result {
                key: 9,
                of: vec![place.plus(&Term::number(64.0 * half)), self.scale.clone()],
                axes: vec![R, K],
                is_truth: false,
            })
        }

        /// The maximum and the sum after the keys of some halves.
        fn step(&mut self, m: &Term, l: &Term, halves: &[f64]) -> Result<[Term; 2], TooLarge> {
            let scores: Vec<Term> = halves.iter().map(|half| self.scores(*half)).collect();
            let of_halves = scores.iter().map(|s| self.algebra.greatest_along(K, s));
            let of_halves = of_halves.collect();
            let row = self.algebra.greatest(of_halves)?;
            let scaled = self.algebra.product(&self.scale.clone(), &row)?;
            let next = self.algebra.greatest(vec![m.clone(), scaled])?;
            let alpha = Algebra::power_of_two(&m.minus(&next));
            let mut sum = self.algebra.product(l, &alpha)?;
            for s in scores {
                let s = self.algebra.product(&self.scale.clone(), &s)?;
                let weight = Algebra::power_of_two(&s.minus(&next));
                sum = sum.plus(&self.algebra.sum(K, 64, &weight)?);
            }
            Ok([next, sum])
        }
    }

    #[test]
    fn two_steps_of_a_softmax_are_one_if_its_scale_is_not_negative() {
        let mut softmax = Softmax::new();
        let (m, l) = (softmax.carried(2), softmax.carried(3));
        let step = |softmax: &mut Softmax, [m, l]: [Term; 2], halves: &[f64]| {
            softmax.step(&m, &l, halves).expect("it is small")
        };
        let first = step(&mut softmax, [m.clone(), l.clone()], &[0.0]);
        let narrow = step(&mut softmax, first, &[1.0]);
        let wide = step(&mut softmax, [m.clone(), l.clone()], &[0.0, 1.0]);
        assert_eq!(narrow, wide);
        assert_eq!(softmax.algebra.assumed().collect::<Vec<_>>(), [1]);
        let others = step(&mut softmax, [m, l], &[0.0, 2.0]);
        assert_ne!(narrow, others);
    }

    #[test]
    fn what_does_not_depend_on_an_axis_leaves_sums_and_maxima() {
        let mut softmax = Softmax::new();
        let (row, other) = (softmax.carried(2), softmax.carried(3));
        let scores = softmax.scores(0.0);
        let algebra = &mut softmax.algebra;
        assert_eq!(algebra.sum(K, 64, &row), Ok(row.times(64.0)));
        let shifted = algebra.greatest_along(K, &scores.plus(&row));
        let unshifted = algebra.greatest_along(K, &scores);
        assert_eq!(shifted, unshifted.plus(&row));
        let both = algebra.greatest(vec![scores.plus(&row), other.plus(&row)]);
        let factored = algebra.greatest(vec![scores, other]);
        assert_eq!(both, factored.map(|term| term.plus(&row)));
    }

    #[test]
    fn a_negative_factor_does_not_move_into_a_maximum() {
        let mut softmax = Softmax::new();
        let (x, y, z) = (softmax.carried(2), softmax.carried(3), softmax.carried(4));
        let algebra = &mut softmax.algebra;
        let both = algebra
            .greatest(vec![x.clone(), y.clone()])
            .expect("it is small");
        let negated = algebra.greatest(vec![z.clone(), both.times(-1.0)]);
        let moved = algebra.greatest(vec![z.clone(), x.times(-1.0), y.times(-1.0)]);
        assert_ne!(negated, moved);
        let doubled = algebra.greatest(vec![z.clone(), both.times(2.0)]);
        let moved = algebra.greatest(vec![z, x.times(2.0), y.times(2.0)]);
        assert_eq!(doubled, moved);
    }
}
