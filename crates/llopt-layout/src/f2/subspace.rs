//! Subspaces and the operations between them.

use core::fmt;

use super::echelon::{Echelon, WORD, low_mask};
use crate::InlineList;

/// A subspace of F2^32, kept as its reduced echelon basis, which is unique.
#[derive(Clone, Copy, Default)]
pub struct Subspace {
    echelon: Echelon,
}

impl Subspace {
    /// The subspace of the zero vector.
    pub const ZERO: Subspace = Subspace {
        echelon: Echelon::new(),
    };

    /// All sums of `vectors`.
    pub fn span(vectors: &[u32]) -> Subspace {
        let mut result = Subspace::ZERO;
        for &v in vectors {
            result.add(v);
        }
        result
    }

    /// The vectors of `bits` components, `bits` up to 32.
    pub fn all(bits: u32) -> Subspace {
        let mut result = Subspace::ZERO;
        for bit in 0..bits.min(WORD as u32) {
            result.add(1 << bit);
        }
        result
    }

    /// Makes `vector` a member; whether it was not one before.
    #[inline]
    pub fn add(&mut self, vector: u32) -> bool {
        self.echelon.insert(vector).is_none()
    }

    /// Whether `vector` is a member.
    #[inline]
    pub fn contains(&self, vector: u32) -> bool {
        self.echelon.contains(vector)
    }

    /// Whether every member of `other` is one of `self`.
    pub fn contains_all(&self, other: &Subspace) -> bool {
        other.echelon.vectors().all(|v| self.contains(v))
    }

    /// The representative of `vector` modulo the subspace: equal for two vectors exactly when
    /// they differ by a member.
    #[inline]
    pub fn reduce(&self, vector: u32) -> u32 {
        self.echelon.reduce(vector)
    }

    /// The number of vectors in a basis.
    pub fn dimension(&self) -> u32 {
        self.echelon.rank()
    }

    /// The reduced echelon basis.
    pub fn basis(&self) -> InlineList<u32, WORD> {
        self.echelon.vectors().collect()
    }

    /// The smallest subspace with both inside.
    pub fn sum(&self, other: &Subspace) -> Subspace {
        let mut result = *self;
        for v in other.echelon.vectors() {
            result.add(v);
        }
        result
    }

    /// The dimension of that sum, in less time where both are spanned by unit vectors, as those of most layouts are.
    pub fn dimension_of_sum(&self, other: &Subspace) -> u32 {
        let units = [self, other].map(|space| space.echelon.units());
        match units {
            [Some(own), Some(others)] => (own | others).count_ones(),
            _ => self.sum(other).dimension(),
        }
    }

    /// The members of both.
    pub fn intersection(&self, other: &Subspace) -> Subspace {
        let own = self.basis();
        if own.len() + other.dimension() as usize > WORD {
            // Too many basis vectors to name in one recipe: by duality.
            return self.orthogonal().sum(&other.orthogonal()).orthogonal();
        }
        // A dependency between a basis of the one and a basis of the other is a vector of both.
        let mut both = Echelon::new();
        for &v in &own {
            let _ = both.insert(v);
        }
        let mut result = Subspace::ZERO;
        for v in other.echelon.vectors() {
            if let Some(recipe) = both.insert(v) {
                let mine = super::ones(recipe & low_mask(own.len() as u32));
                result.add(mine.fold(0, |acc, i| acc ^ own[i as usize]));
            }
        }
        result
    }

    /// The vectors of 32 components whose product with every member is zero.
    ///
    /// Ensures: the dimensions of both add to 32; doing it twice gives the subspace back.
    pub fn orthogonal(&self) -> Subspace {
        let pivots = self.echelon.pivots();
        let mut result = Subspace::ZERO;
        for free in super::ones(!pivots) {
            let mut vector = 1 << free;
            for (pivot, row) in super::ones(pivots).zip(self.echelon.vectors()) {
                vector |= (row >> free & 1) << pivot;
            }
            result.add(vector);
        }
        result
    }

    /// A subspace of `whole` that has only zero in common with `self` and spans `whole` with it.
    ///
    /// Requires `self` to be inside of `whole`; what is outside does not count.
    pub fn complement_in(&self, whole: &Subspace) -> Subspace {
        let mut sum = *self;
        let mut result = Subspace::ZERO;
        for v in whole.echelon.vectors() {
            if sum.add(v) {
                result.add(v);
            }
        }
        result
    }

    /// A subspace `s` of `whole` of the largest dimension that has only zero in common with `a`
    /// and only zero with `b`.
    ///
    /// Requires `a` and `b` to be inside of `whole`.
    /// Ensures: `dim s == dim whole - max(dim a, dim b)`. For `a` and `b` of one dimension this is
    /// a complement of both at once, which always exists, while for three subspaces it need not.
    ///
    /// The construction: vectors outside of `a + b` are free to take; beyond these, `a` and `b`
    /// differ by `dim a - dim(a & b)` and `dim b - dim(a & b)` directions, and the sum of the
    /// i-th direction of the one with the i-th of the other lies in neither.
    pub fn common_complement(a: &Subspace, b: &Subspace, whole: &Subspace) -> Subspace {
        let mut sum = a.sum(b);
        let mut result = Subspace::ZERO;
        for v in whole.echelon.vectors() {
            if sum.add(v) {
                result.add(v);
            }
        }
        let shared = a.intersection(b);
        let only_a = shared.complement_in(a);
        let only_b = shared.complement_in(b);
        for (x, y) in only_a.echelon.vectors().zip(only_b.echelon.vectors()) {
            result.add(x ^ y);
        }
        result
    }
}

impl PartialEq for Subspace {
    fn eq(&self, other: &Self) -> bool {
        self.echelon.pivots() == other.echelon.pivots()
            && self.echelon.vectors().eq(other.echelon.vectors())
    }
}

impl Eq for Subspace {}

impl fmt::Debug for Subspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.echelon.vectors()).finish()
    }
}
