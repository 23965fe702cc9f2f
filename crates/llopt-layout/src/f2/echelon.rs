//! Gauss-Jordan elimination, one vector at a time, which remembers how each vector arose.
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
    /// The kept vectors in the order in which they came: each in the low half, its recipe in the
    /// high half.
    rows: [u64; WORD],
    /// At index `p` the row whose pivot is `p`.
    row_of: [u8; WORD],
    pivots: u32,
    /// All components that some row has.
    present: u32,
    inserted: u32,
}

impl Echelon {
    /// The empty set, which spans only the zero vector.
    pub const fn new() -> Self {
        Echelon {
            rows: [0; WORD],
            row_of: [0; WORD],
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

    /// The row with this pivot.
    #[inline]
    fn at(&self, pivot: u32) -> u64 {
        self.rows[usize::from(self.row_of[pivot as usize & (WORD - 1)]) & (WORD - 1)]
    }

    #[inline]
    fn reduce_word(&self, mut word: u64) -> u64 {
        let mut hits = word as u32 & self.pivots;
        while hits != 0 {
            word ^= self.at(hits.trailing_zeros());
            hits &= hits - 1;
        }
        word
    }

    /// Inserts the next vector.
    ///
    /// Ensures: `None` when the vector is independent of the earlier ones and was kept; otherwise
    /// the set of vectors, the new one included, whose sum is zero: a vector of the kernel.
    /// Requires at most 32 insertions; recipes of later ones are not recorded.
    #[inline]
    pub fn insert(&mut self, vector: u32) -> Option<u32> {
        let name = 1u64.checked_shl(self.inserted).unwrap_or(0) << 32;
        self.inserted += 1;
        let word = self.reduce_word(u64::from(vector) | name);
        if word as u32 == 0 {
            return Some((word >> 32) as u32);
        }
        let pivot = (word as u32).trailing_zeros();
        let rank = self.pivots.count_ones() as usize & (WORD - 1);
        // Most layouts permute bits: then no row has the new pivot.
        if self.present >> pivot & 1 == 1 {
            for row in &mut self.rows[..rank] {
                // All ones where the row has the new pivot; the compiler vectorises this.
                let hit = 0u64.wrapping_sub(*row >> pivot & 1);
                *row ^= word & hit;
            }
        }
        self.rows[rank] = word;
        self.row_of[pivot as usize] = rank as u8;
        self.pivots |= 1 << pivot;
        self.present |= word as u32;
        None
    }

    /// The remainder of `vector`: zero exactly when `vector` is in the span, equal for two vectors
    /// exactly when they differ by a vector of the span.
    #[inline]
    pub fn reduce(&self, vector: u32) -> u32 {
        self.reduce_word(u64::from(vector)) as u32
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
        let word = self.reduce_word(u64::from(vector));
        (word as u32 == 0).then_some((word >> 32) as u32)
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

    /// The kept vector with this pivot; zero when there is none.
    pub(crate) fn row(&self, pivot: u32) -> u32 {
        if self.pivots.checked_shr(pivot).unwrap_or(0) & 1 == 1 {
            self.at(pivot) as u32
        } else {
            0
        }
    }

    /// The kept vectors, in the order of their pivots.
    pub fn vectors(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.pivots).map(|p| self.at(p) as u32)
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
