//! Axis facts: what is known, at compile time, about the integers and addresses that a tensor holds along each
//! of its dimensions. An analysis finds them; plans of memory accesses rely on them.
//!
//! Let `x` be a tensor of integers (or of addresses, counted in bytes), `i` an index and `e_d` the unit vector
//! of dimension `d`. Three powers of two describe dimension `d`:
//!
//! - **constancy** `k`: `x` is the same throughout every aligned run of `k` positions along `d`.
//! - **contiguity** `c`: throughout every aligned run of `c` positions along `d`, `x[i + j·e_d] = x[i] + j·s`,
//!   where the *step* `s` is 1 for integers and the size of the pointee in bytes for addresses.
//! - **divisibility** `v`: `v` divides the first element of each of those runs of `c` positions; with `c = 1`, it
//!   divides every element.

use std::ffi::c_void;
use std::fmt;

use melior::ir::ValueLike;
use rustc_hash::FxHashMap;

/// A power of two from `2^0` to `2^62`, kept as its exponent.
///
/// The greatest common divisor of two of them is the smaller ([`Ord::min`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pow2(u8);

impl Pow2 {
    /// `2^0`: nothing is known.
    pub const ONE: Self = Self(0);
    /// `2^62`, the largest one represented; zero counts as a multiple of every power of two and
    /// is given this one.
    pub const MAX: Self = Self(62);

    /// `2^exponent`, saturating at [`Pow2::MAX`].
    pub const fn from_log2(exponent: u32) -> Self {
        if exponent > 62 {
            Self::MAX
        } else {
            Self(exponent as u8)
        }
    }

    /// The largest power of two that divides `value`; [`Pow2::MAX`] for zero.
    pub const fn dividing(value: u64) -> Self {
        Self::from_log2(value.trailing_zeros())
    }

    /// The largest power of two that is not above `value`; [`Pow2::ONE`] for zero.
    pub const fn at_most(value: u64) -> Self {
        match value.checked_ilog2() {
            Some(exponent) => Self::from_log2(exponent),
            None => Self::ONE,
        }
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        1 << self.0
    }

    /// The exponent.
    pub const fn log2(self) -> u32 {
        self.0 as u32
    }

    /// The product, saturating at [`Pow2::MAX`]: a claim of divisibility may always be weakened.
    pub const fn times(self, other: Self) -> Self {
        Self::from_log2(self.log2() + other.log2())
    }

    /// The quotient, [`Pow2::ONE`] where `other` is the larger.
    pub const fn over(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Pow2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl fmt::Debug for Pow2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2^{}", self.0)
    }
}

/// What is known along one dimension; the [module](self) defines the three terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DimFacts {
    /// Length, in positions, of the runs of consecutive values.
    pub contiguity: Pow2,
    /// A divisor of the first element of each run of `contiguity` positions (bytes for addresses).
    pub divisibility: Pow2,
    /// Length, in positions, of the runs of equal values.
    pub constancy: Pow2,
}

impl DimFacts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        contiguity: Pow2::ONE,
        divisibility: Pow2::ONE,
        constancy: Pow2::ONE,
    };

    /// A divisor of every element at a position that is a multiple of `run`, where neighbouring
    /// elements of a contiguous run lie `step` apart.
    pub fn divisibility_at(self, run: Pow2, step: Pow2) -> Pow2 {
        if run >= self.contiguity {
            self.divisibility
        } else {
            self.divisibility.min(run.times(step))
        }
    }

    /// The length of runs that are contiguous *and* start at a multiple of their own length, in
    /// positions: what a memory access may rely on.
    pub fn aligned_contiguity(self, step: Pow2) -> Pow2 {
        self.contiguity.min(self.divisibility.over(step))
    }
}

/// What is known about one value, a tensor or a scalar (which counts as a tensor of shape `[1]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisFacts {
    /// One entry for each dimension.
    pub dims: Vec<DimFacts>,
    /// Distance between neighbours of a contiguous run: 1 for integers, the pointee's size in
    /// bytes for addresses.
    pub step: Pow2,
    /// The value of all elements, zero-extended to 64 bits, if they are one known integer.
    pub constant: Option<u64>,
    /// Whether every element is known to be at least zero as a signed number.
    pub non_negative: bool,
}

impl AxisFacts {
    /// The bottom of the lattice: nothing is known of a value with this many dimensions.
    pub fn unknown(rank: usize, step: Pow2) -> Self {
        Self {
            dims: vec![DimFacts::UNKNOWN; rank],
            step,
            constant: None,
            non_negative: false,
        }
    }

    /// A value that is never looked at (`ub.poison`): every claim holds of it.
    pub fn poison(shape: &[u64], step: Pow2) -> Self {
        let everything = |&size: &u64| DimFacts {
            contiguity: Pow2::dividing(size),
            divisibility: Pow2::MAX,
            constancy: Pow2::dividing(size),
        };
        Self {
            dims: shape.iter().map(everything).collect(),
            step,
            constant: None,
            non_negative: true,
        }
    }

    /// The tensor of this shape (or, with shape `[1]`, the scalar) whose elements all are
    /// `value`, an integer of `width` bits of which the higher bits are ignored.
    pub fn constant(value: u64, width: u32, shape: &[u64]) -> Self {
        let value = value & mask(width);
        let dim = |&size: &u64| DimFacts {
            contiguity: Pow2::ONE,
            divisibility: Pow2::dividing(value),
            constancy: Pow2::dividing(size),
        };
        Self {
            dims: shape.iter().map(dim).collect(),
            step: Pow2::ONE,
            constant: Some(value),
            non_negative: signed(value, width) >= 0,
        }
    }

    /// What is known along a dimension; a scalar is the same along all.
    #[must_use]
    pub fn along(&self, dim: usize) -> DimFacts {
        let known = self.dims.get(dim).or(self.dims.first());
        known.copied().unwrap_or(DimFacts::UNKNOWN)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// A divisor of the elements at the positions along `dim` that are multiples of `run`.
    pub fn divisibility_at(&self, dim: usize, run: Pow2) -> Pow2 {
        self.dims[dim].divisibility_at(run, self.step)
    }

    /// A divisor of every element. A claim about all positions along any one dimension is a claim about all elements,
    /// so the best dimension gives the answer.
    pub fn divisor(&self) -> Pow2 {
        (0..self.rank())
            .map(|dim| self.divisibility_at(dim, Pow2::ONE))
            .max()
            .unwrap_or(Pow2::ONE)
    }

    /// What holds of a value that is one of the two.
    ///
    /// Runs shrink to those that both have; their first elements are divisible by what divides
    /// both at that run length. Facts of different rank or step share nothing.
    pub fn meet(&self, other: &Self) -> Self {
        if self.rank() != other.rank() || self.step != other.step {
            return Self::unknown(self.rank(), self.step);
        }
        let dims = (0..self.rank())
            .map(|d| self.meet_dim(other, d, Pow2::MAX))
            .collect();
        Self {
            dims,
            step: self.step,
            constant: self.constant.filter(|_| self.constant == other.constant),
            non_negative: self.non_negative && other.non_negative,
        }
    }

    /// What holds along `dim` of a value that follows `self` or `other`, and changes from one to
    /// the other only between aligned runs of `switch` positions.
    pub fn meet_dim(&self, other: &Self, dim: usize, switch: Pow2) -> DimFacts {
        let (a, b) = (self.dims[dim], other.dims[dim]);
        let contiguity = a.contiguity.min(b.contiguity).min(switch);
        DimFacts {
            contiguity,
            divisibility: self
                .divisibility_at(dim, contiguity)
                .min(other.divisibility_at(dim, contiguity)),
            constancy: a.constancy.min(b.constancy).min(switch),
        }
    }

    /// The facts with the promises of `tt.contiguity`, `tt.divisibility` and `tt.constancy`
    /// added. A promise is taken for a further truth here ([`ValueFacts::proven`] says for what it is none), so of it and
    /// the inferred fact the stronger stays; a divisor that is not a power of two contributes the power of two in it. An empty slice
    /// promises nothing, a single number speaks for the first dimension, and entries beyond the
    /// rank are ignored.
    pub fn with_promises(
        mut self,
        contiguity: &[u64],
        divisibility: &[u64],
        constancy: &[u64],
    ) -> Self {
        for (dim, facts) in self.dims.iter_mut().enumerate() {
            let raise = |known: &mut Pow2, promised: &[u64]| {
                if let Some(&promised) = promised.get(dim).filter(|&&promised| promised != 0) {
                    *known = (*known).max(Pow2::dividing(promised));
                }
            };
            raise(&mut facts.contiguity, contiguity);
            raise(&mut facts.divisibility, divisibility);
            raise(&mut facts.constancy, constancy);
        }
        self
    }
}

/// Axis facts of the values of a module, as it was when they were found.
///
/// The facts are kept by the identity of the values: changing the module makes those about changed values stale.
#[derive(Debug)]
pub struct ValueFacts {
    indices: FxHashMap<*const c_void, usize>,
    facts: Vec<Option<AxisFacts>>,
    /// The facts that hold whatever ops promise, where these are others.
    proven: Option<Vec<Option<AxisFacts>>>,
    unknown: AxisFacts,
}

impl Default for ValueFacts {
    /// Nothing is known of any value.
    fn default() -> Self {
        Self::new(FxHashMap::default(), Vec::new())
    }
}

impl ValueFacts {
    /// The facts about the value with an index; values without index, and those without facts, are unknown.
    #[must_use]
    pub fn new(indices: FxHashMap<*const c_void, usize>, facts: Vec<Option<AxisFacts>>) -> Self {
        Self {
            indices,
            facts,
            proven: None,
            unknown: AxisFacts::unknown(1, Pow2::ONE),
        }
    }

    /// These facts, with those that hold whatever ops promise; they have the same indices.
    #[must_use]
    pub fn with_proven(self, proven: Vec<Option<AxisFacts>>) -> Self {
        Self {
            proven: Some(proven),
            ..self
        }
    }

    /// What is known about a value even if what ops promise is not true. Programs say of the rows `i % m` of a tile that they
    /// are contiguous, and rely on it that those which are not are never stored: a promise is one about what a single access
    /// moves, and nothing else may be concluded from it.
    pub fn proven<'c>(&self, value: impl ValueLike<'c>) -> Option<&AxisFacts> {
        let index = self.indices.get(&value.to_raw().ptr)?;
        let facts = self.proven.as_ref().unwrap_or(&self.facts);
        facts.get(*index)?.as_ref()
    }

    /// What is known about a value.
    pub fn of<'c>(&self, value: impl ValueLike<'c>) -> Option<&AxisFacts> {
        let index = self.indices.get(&value.to_raw().ptr)?;
        self.facts.get(*index)?.as_ref()
    }

    /// What is known about a value, if only that nothing is, along however many dimensions.
    pub fn or_unknown<'c>(&self, value: impl ValueLike<'c>) -> &AxisFacts {
        self.of(value).unwrap_or(&self.unknown)
    }
}

impl fmt::Display for AxisFacts {
    /// `contiguity = [1, 4], divisibility = [1, 16], constancy = [8, 1], constant_value = <none>`,
    /// the form in which Triton prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type Component = fn(&DimFacts) -> Pow2;
        let components: [(&str, Component); 3] = [
            ("contiguity", |dim| dim.contiguity),
            ("divisibility", |dim| dim.divisibility),
            ("constancy", |dim| dim.constancy),
        ];
        for (name, component) in components {
            write!(f, "{name} = [")?;
            for (index, dim) in self.dims.iter().enumerate() {
                let separator = if index == 0 { "" } else { ", " };
                write!(f, "{separator}{}", component(dim))?;
            }
            write!(f, "], ")?;
        }
        match self.constant {
            Some(value) => write!(f, "constant_value = {value}"),
            None => write!(f, "constant_value = <none>"),
        }
    }
}

/// The `width` low bits set.
pub const fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// The signed number that the `width` low bits of `bits` stand for.
pub const fn signed(bits: u64, width: u32) -> i64 {
    if width == 0 || width >= 64 {
        bits as i64
    } else {
        ((bits << (64 - width)) as i64) >> (64 - width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_values_that_no_analysis_has_met() {
        let context = melior::Context::new();
        let block = melior::ir::Block::new(&[(
            melior::ir::r#type::IntegerType::new(&context, 32).into(),
            melior::ir::Location::unknown(&context),
        )]);
        let value = melior::ir::BlockLike::argument(&block, 0).unwrap();
        assert_eq!(
            ValueFacts::default().or_unknown(value).along(3),
            DimFacts::UNKNOWN
        );
        let index = FxHashMap::from_iter([(value.to_raw().ptr, 0)]);
        let facts = AxisFacts::constant(8, 32, &[1]);
        let table = ValueFacts::new(index, vec![Some(facts.clone())]);
        assert_eq!(table.of(value), Some(&facts));
        assert_eq!(table.or_unknown(value).along(3).divisibility.get(), 8);
    }
}
