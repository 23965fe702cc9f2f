//! Matrices by columns: a layout without its names.

use super::echelon::{Echelon, WORD, low_mask, ones};
use crate::InlineList;

/// A matrix of up to 32 columns, each a vector of up to 32 components.
///
/// The number of components is not stored: a matrix maps into all of F2^32, and its image says
/// how much of that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Matrix {
    columns: InlineList<u32, WORD>,
}

impl Matrix {
    /// The matrix with these columns; those beyond the 32nd are not taken.
    pub fn from_columns(columns: &[u32]) -> Matrix {
        Matrix {
            columns: columns.iter().copied().take(WORD).collect(),
        }
    }

    /// The identity on vectors of `size` components, `size` up to 32.
    pub fn identity(size: u32) -> Matrix {
        Matrix {
            columns: (0..size.min(WORD as u32)).map(|bit| 1 << bit).collect(),
        }
    }

    /// The columns.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The product with a vector. Components beyond the number of columns do not count.
    #[inline]
    pub fn apply(&self, vector: u32) -> u32 {
        let valid = low_mask(self.columns.len() as u32);
        ones(vector & valid).fold(0, |acc, i| acc ^ self.columns[i as usize])
    }

    /// The matrix product: `self.multiply(m).apply(x) == self.apply(m.apply(x))`.
    pub fn multiply(&self, right: &Matrix) -> Matrix {
        Matrix {
            columns: right
                .columns
                .iter()
                .map(|&column| self.apply(column))
                .collect(),
        }
    }

    /// The transpose, with one column per component below `rows` (up to 32).
    pub fn transpose(&self, rows: u32) -> Matrix {
        let row = |r: u32| {
            self.columns
                .iter()
                .enumerate()
                .fold(0, |acc, (i, &column)| acc | (column >> r & 1) << i)
        };
        Matrix {
            columns: (0..rows.min(WORD as u32)).map(row).collect(),
        }
    }

    /// The number of independent columns.
    pub fn rank(&self) -> u32 {
        Echelon::of(&self.columns).rank()
    }

    /// A basis of the vectors that map to zero.
    pub fn kernel(&self) -> InlineList<u32, WORD> {
        let mut echelon = Echelon::new();
        self.columns
            .iter()
            .filter_map(|&column| echelon.insert(column))
            .collect()
    }

    /// The inverse of a square matrix whose columns span the vectors of as many components;
    /// `None` for every other matrix.
    pub fn inverse(&self) -> Option<Matrix> {
        let echelon = Echelon::of(&self.columns);
        let size = self.columns.len() as u32;
        if self
            .columns
            .iter()
            .any(|&column| column & !low_mask(size) != 0)
        {
            return None;
        }
        let mut columns = InlineList::new();
        for bit in 0..size {
            columns.add(echelon.solve(1 << bit)?);
        }
        Some(Matrix { columns })
    }

    /// A matrix `x` with `self * x == right`, all free variables zero; `None` when a column of
    /// `right` is not in the image of `self`.
    ///
    /// Ensures: equal columns of `right` give equal columns of the solution.
    pub fn solve(&self, right: &Matrix) -> Option<Matrix> {
        let echelon = Echelon::of(&self.columns);
        let mut columns = InlineList::new();
        for &column in &right.columns {
            columns.add(echelon.solve(column)?);
        }
        Some(Matrix { columns })
    }
}
