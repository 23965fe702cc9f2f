//! Gauss-Jordan elimination, one vector at a time, which records the combination that gives each vector.
//!
//! The kept vectors are in reduced form: every kept vector has a *pivot*, a component that no
//! other kept vector has. To reduce a new vector it is then enough to read its components at the
//! pivots once; no step waits for the one before. Beside each kept vector lies its *recipe*, the
//! set of original vectors whose sum it is, which turns elimination into inversion.
//!
//! Vectors are inserted in the order of the columns of a matrix and a vector is kept exactly when
//! it is independent of the earlier ones. Recipes therefore only name the lexicographically first
//! basis of the span, and solutions read off from them have all free variables at zero.

/// The most components of a vector, and the most vectors that a recipe can name.
pub(crate) const WORD: usize = 32;

/// A growing set of vectors in reduced echelon form with the recipe of each.
#[derive(Clone, Copy)]
pub struct Echelon {
    /// At index `p` the kept vector whose pivot is `p`, zero if there is none.
    values: [u32; WORD],
    /// The recipe of each.
    recipes: [u32; WORD],
    pivots: u32,
    /// All components that some kept vector has.
    present: u32,
    inserted: u32,
}

impl Echelon {
    /// The empty set, which spans only the zero vector.
    pub const fn new() -> Self {
        Echelon {
            values: [0; WORD],
            recipes: [0; WORD],
            pivots: 0,
            present: 0,
            inserted: 0,
        }
    }

    /// Inserts the columns of a matrix in their order.
    ///
    /// Ensures: bit `i` of a recipe stands for `vectors[i]`. At most 32 vectors are taken.
    pub fn of(vectors: &[u32]) -> Self {
        let mut echelon = Echelon::new();
        for &v in vectors.iter().take(WORD) {
            let _ = echelon.insert(v);
        }
        echelon
    }

    /// The remainder of a vector, and the recipe of what was taken off.
    #[inline]
    fn reduce_with_recipe(&self, vector: u32) -> (u32, u32) {
        let mut hits = vector & self.pivots;
        let (mut value, mut recipe) = (vector, 0);
        while hits != 0 {
            let pivot = hits.trailing_zeros() as usize;
            value ^= self.values[pivot];
            recipe ^= self.recipes[pivot];
            hits &= hits - 1;
        }
        (value, recipe)
    }

    /// Inserts the next vector.
    ///
    /// Ensures: `None` when the vector is independent of the earlier ones and was kept; otherwise
    /// the set of vectors, the new one included, whose sum is zero: a vector of the kernel.
    /// Requires at most 32 insertions; recipes of later ones are not recorded.
    #[inline]
    pub fn insert(&mut self, vector: u32) -> Option<u32> {
        let name = 1u32.checked_shl(self.inserted).unwrap_or(0);
        self.inserted += 1;
        let (value, recipe) = self.reduce_with_recipe(vector);
        let recipe = recipe ^ name;
        if value == 0 {
            return Some(recipe);
        }
        let pivot = value.trailing_zeros();
        // Most layouts permute bits: then no row has the new pivot.
        if self.present >> pivot & 1 == 1 {
            let used = if self.pivots >> 16 == 0 {
                WORD / 2
            } else {
                WORD
            };
            let rows = self.values[..used]
                .iter_mut()
                .zip(&mut self.recipes[..used]);
            for (row, row_recipe) in rows {
                // All ones where the row has the new pivot; the compiler vectorises this.
                let hit = 0u32.wrapping_sub(*row >> pivot & 1);
                *row ^= value & hit;
                *row_recipe ^= recipe & hit;
            }
        }
        self.values[pivot as usize] = value;
        self.recipes[pivot as usize] = recipe;
        self.pivots |= 1 << pivot;
        self.present |= value;
        None
    }

    /// The remainder of `vector`: zero exactly when `vector` is in the span, equal for two vectors
    /// exactly when they differ by a vector of the span.
    #[inline]
    pub fn reduce(&self, vector: u32) -> u32 {
        self.reduce_with_recipe(vector).0
    }

    /// Whether `vector` is a sum of inserted vectors.
    #[inline]
    pub fn contains(&self, vector: u32) -> bool {
        self.reduce(vector) == 0
    }

    /// The set of inserted vectors whose sum is `vector`, out of the first independent ones.
    ///
    /// Ensures: `None` exactly when `vector` is not in the span. The solution is linear in
    /// `vector`, and zero for zero.
    #[inline]
    pub fn solve(&self, vector: u32) -> Option<u32> {
        if self.present == self.pivots {
            // All rows are unit vectors: the remainder is known without reading them.
            let recipes = ones(vector & self.pivots).map(|pivot| self.recipes[pivot as usize]);
            return (vector & !self.pivots == 0).then(|| recipes.fold(0, |acc, v| acc ^ v));
        }
        let (value, recipe) = self.reduce_with_recipe(vector);
        (value == 0).then_some(recipe)
    }

    /// The number of independent vectors inserted.
    pub fn rank(&self) -> u32 {
        self.pivots.count_ones()
    }

    /// The pivot components.
    ///
    /// Ensures: the unit vectors at the other components span a complement.
    pub fn pivots(&self) -> u32 {
        self.pivots
    }

    /// The components that vectors of the span have, if it is that of unit vectors.
    pub(crate) fn units(&self) -> Option<u32> {
        (self.present == self.pivots).then_some(self.pivots)
    }

    /// The kept vector with this pivot; zero when there is none.
    pub(crate) fn row(&self, pivot: u32) -> u32 {
        self.values.get(pivot as usize).copied().unwrap_or(0)
    }

    /// The kept vectors, in the order of their pivots.
    pub fn vectors(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.pivots).map(|p| self.row(p))
    }
}

impl Default for Echelon {
    fn default() -> Self {
        Self::new()
    }
}

/// The positions of the bits that are set, lowest first.
#[inline]
pub(crate) fn ones(mut word: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            bit
        })
    })
}

/// A word with the lowest `bits` bits set; `bits` up to 32.
#[inline]
pub(crate) const fn low_mask(bits: u32) -> u32 {
    match 1u32.checked_shl(bits) {
        Some(next) => next - 1,
        None => u32::MAX,
    }
}
