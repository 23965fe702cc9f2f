//! `CGALayout`: how the blocks of a cluster share a tensor.
//!
//! One basis vector per bit of the block's number within its cluster. A vector that is zero makes two blocks hold the
//! same data; one that is not splits a dimension. The vectors define the order of the pieces, not their size: `[[0,
//! 1]]` gives the second block the right half, whatever the shape.

use llopt_layout::{Dim, LinearLayout, MAX_DIMS};

use super::EncodingError;

/// The `CGALayout` of an encoding. One block is the empty list, which the IR does not print.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CgaLayout {
    rank: usize,
    bases: Vec<Vec<u32>>,
}

impl CgaLayout {
    /// A single block that has everything.
    #[must_use]
    pub fn single(rank: usize) -> Self {
        Self {
            rank,
            bases: Vec::new(),
        }
    }

    /// From basis vectors with one entry per dimension.
    ///
    /// # Errors
    /// [`EncodingError::CgaLayout`] when a vector has another number of entries, or the vectors do
    /// not reach every piece of what they split.
    pub fn from_bases(rank: usize, bases: Vec<Vec<u32>>) -> Result<Self, EncodingError> {
        let result = Self { rank, bases };
        result.layout()?;
        Ok(result)
    }

    /// `split[d]` pieces along each dimension and `per_dim[d] / split[d]` blocks with the same piece,
    /// dimension by dimension in the given order.
    ///
    /// # Errors
    /// When the numbers are not powers of two, do not divide, or the order is not a permutation.
    pub fn from_split(
        per_dim: &[u32],
        split: &[u32],
        order: &[u32],
    ) -> Result<Self, EncodingError> {
        let rank = order.len();
        super::field::verify_counts("CTAsPerCGA", per_dim, rank)?;
        super::field::verify_counts("CTASplitNum", split, rank)?;
        let mut bases = Vec::new();
        for dim in super::field::verify_order(order, rank)? {
            if split[dim] > per_dim[dim] {
                return Err(EncodingError::FieldValue {
                    field: "CTASplitNum",
                    value: split[dim],
                    allowed: "at most CTAsPerCGA of the dimension",
                });
            }
            for bit in 0..per_dim[dim].trailing_zeros() {
                let mut basis = vec![0; rank];
                if bit < split[dim].trailing_zeros() {
                    basis[dim] = 1 << bit;
                }
                bases.push(basis);
            }
        }
        Self::from_bases(rank, bases)
    }

    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The basis vectors, lowest bit of the block's number first.
    #[must_use]
    pub fn bases(&self) -> &[Vec<u32>] {
        &self.bases
    }

    /// Whether there is one block.
    pub(super) fn is_single(&self) -> bool {
        self.bases.is_empty()
    }

    /// The number of blocks in a cluster.
    #[must_use]
    pub fn num_blocks(&self) -> u32 {
        1 << self.bases.len().min(31)
    }

    /// The number of distinct pieces.
    #[must_use]
    pub fn num_pieces(&self) -> u32 {
        let pieces = self
            .bases
            .iter()
            .filter(|basis| basis.iter().any(|&entry| entry != 0));
        1 << pieces.count().min(31)
    }

    /// The number of pieces along each dimension.
    ///
    /// # Errors
    /// [`EncodingError::CgaLayout`] when the bases form no layout.
    pub fn split(&self) -> Result<Vec<u32>, EncodingError> {
        let layout = self.layout()?;
        let size = |dim| super::field::size_u32(layout.out_dim_size(Dim::tensor(dim)));
        Ok((0..self.rank).map(size).collect())
    }

    /// The same blocks, but all pieces along `dim` belong to every block.
    #[must_use]
    pub fn shared_along(&self, dim: usize) -> Self {
        let mut result = self.clone();
        for basis in &mut result.bases {
            if let Some(entry) = basis.get_mut(dim) {
                *entry = 0;
            }
        }
        result
    }

    /// The blocks of the tensor that loses `dim`; unchanged if there is no such dimension.
    #[must_use]
    pub fn without_dim(&self, dim: usize) -> Self {
        let mut result = self.clone();
        if dim >= result.rank {
            return result;
        }
        result.rank -= 1;
        for basis in &mut result.bases {
            basis.remove(dim);
        }
        result
    }

    /// The map from `block` to the pieces.
    pub(crate) fn layout(&self) -> Result<LinearLayout, EncodingError> {
        let outs: Vec<Dim> = (0..self.rank).map(Dim::tensor).collect();
        let bases: &[(Dim, &[Vec<u32>])] = &[(Dim::BLOCK, &self.bases)];
        LinearLayout::from_bases_surjective(bases, &outs).map_err(EncodingError::CgaLayout)
    }

    /// The map from `block` to the pieces of a shape, which may be too small for that many pieces.
    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let mut layout = self.layout()?;
        for (dim, &size) in shape.iter().enumerate() {
            if layout.out_dim_size(Dim::tensor(dim)) > size {
                layout = layout.resize_out(Dim::tensor(dim), super::field::size_u32(size))?;
            }
        }
        Ok(layout)
    }

    /// Whether the rank is the encoding's.
    pub(super) fn verify(&self, rank: usize) -> Result<(), EncodingError> {
        if self.rank != rank {
            return Err(EncodingError::FieldRank {
                field: "CGALayout",
                expected: rank,
                found: self.rank,
            });
        }
        // One block splits nothing, whatever the rank that a layout can have.
        match self.is_single() && rank <= MAX_DIMS {
            true => Ok(()),
            false => self.layout().map(|_| ()),
        }
    }

    /// The shape of the largest piece.
    ///
    /// # Errors
    /// [`EncodingError::CgaLayout`] when the bases form no layout.
    pub fn share(&self, shape: &[u64]) -> Result<Vec<u64>, EncodingError> {
        if self.is_single() && self.rank <= MAX_DIMS {
            return Ok(shape.to_vec());
        }
        let blocks = self.layout_on(shape)?;
        let share = |(dim, &size): (usize, &u64)| size / blocks.out_dim_size(Dim::tensor(dim));
        Ok(shape.iter().enumerate().map(share).collect())
    }
}
