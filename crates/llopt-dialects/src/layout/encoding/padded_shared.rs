//! `#ttg.padded_shared`: a permutation of whole rows (or pieces of rows), and unused elements at regular intervals,
//! which move the following rows to other banks.
//!
//! Padding is not linear over F2, so the layout is that of the permutation alone: its `offset` counts
//! elements without the padding. [`PaddedShared::padded_offset`] adds it.

use llopt_layout::{Dim, LinearLayout};

use super::field::{size_u32, verify_order, verify_power_of_two};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::linear::{cga_layout_of, verify_explicit};
use super::shared_linear::{exactly_on, memory_layout};
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.padded_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PaddedShared {
    /// Pairs (interval, padding) in elements: after every `interval` elements, `padding` are unused.
    pads: Vec<(u32, u32)>,
    component: LinearLayout,
}

impl PaddedShared {
    /// From pairs (interval, padding) in elements, and the permutation: a layout with the inputs
    /// `offset`, `block` and the outputs `dim0`, …
    ///
    /// # Errors
    /// When there is no pair, an interval appears twice, a number is not a power of two, or the
    /// layout is anything but a permutation of the tensor's bits.
    pub fn new(pads: Vec<(u32, u32)>, component: LinearLayout) -> Result<Self, EncodingError> {
        let result = Self { pads, component };
        result.verify()?;
        Ok(result)
    }

    /// From pairs and basis vectors with `rank` entries each, as the IR writes them.
    ///
    /// # Errors
    /// As [`PaddedShared::new`], and when a vector has another number of entries.
    pub fn from_bases(
        pads: Vec<(u32, u32)>,
        rank: usize,
        offset: &[Vec<u32>],
        block: &[Vec<u32>],
    ) -> Result<Self, EncodingError> {
        Self::new(pads, memory_layout(rank, offset, block)?)
    }

    /// The short form of the IR: rows one after the other, in the given order of dimensions.
    ///
    /// # Errors
    /// As [`PaddedShared::new`], and when order and shape do not fit together.
    pub fn identity(
        pads: Vec<(u32, u32)>,
        order: &[u32],
        shape: &[u64],
    ) -> Result<Self, EncodingError> {
        super::field::verify_shape(order.len(), shape)?;
        let order = verify_order(order, shape.len())?;
        let single = CgaLayout::single(shape.len());
        Self::new(pads, Tile::memory(&order)?.on(shape, &single)?)
    }

    /// Pairs (interval, padding), in elements.
    #[must_use]
    pub fn pads(&self) -> &[(u32, u32)] {
        &self.pads
    }

    /// The permutation, without the padding.
    #[must_use]
    pub fn component(&self) -> &LinearLayout {
        &self.component
    }

    /// The memory position of the element with the given offset in the layout, both in elements.
    #[must_use]
    pub fn padded_offset(&self, offset: u64) -> u64 {
        self.pads.iter().fold(offset, |sum, &(interval, padding)| {
            sum.saturating_add((offset / u64::from(interval)).saturating_mul(u64::from(padding)))
        })
    }

    /// Elements of memory that a block needs for a share of `elements`, without padding at the end.
    #[must_use]
    pub fn padded_size(&self, elements: u64) -> u64 {
        elements
            .checked_sub(1)
            .map_or(0, |last| self.padded_offset(last) + 1)
    }

    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.component.out_dims().len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        cga_layout_of(&self.component)
    }

    /// Invariants: those of [`PaddedShared::new`].
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn verify(&self) -> Result<(), EncodingError> {
        if self.pads.is_empty() {
            return Err(EncodingError::FieldRank {
                field: "intervals",
                expected: 1,
                found: 0,
            });
        }
        for (i, &(interval, padding)) in self.pads.iter().enumerate() {
            verify_power_of_two("interval", interval)?;
            verify_power_of_two("padding", padding)?;
            if self.pads[..i]
                .iter()
                .any(|&(earlier, _)| earlier == interval)
            {
                return Err(EncodingError::FieldValue {
                    field: "interval",
                    value: interval,
                    allowed: "given once",
                });
            }
        }
        verify_explicit(&self.component, &[Dim::OFFSET, Dim::BLOCK])?;
        for &dim in self.component.in_dims() {
            for bit in 0..self.component.in_dim_size_log2(dim) {
                let basis = self.component.basis(dim, bit).unwrap_or_default();
                let problem = if basis.iter().filter(|&&entry| entry != 0).count() != 1 {
                    "does not move along exactly one dimension"
                } else if basis
                    .iter()
                    .any(|&entry| entry & entry.wrapping_sub(1) != 0)
                {
                    "does not move by a power of two"
                } else {
                    continue;
                };
                return Err(EncodingError::Basis { dim, bit, problem });
            }
        }
        self.component.clone().require_injective()?;
        Ok(())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        exactly_on(&self.component, shape)
    }
}

impl Kind for PaddedShared {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let intervals = fields.list("intervals");
        Self::from_bases(
            intervals.into_iter().zip(fields.list("paddings")).collect(),
            fields.list("shape").len(),
            &fields.bases("offset"),
            &fields.bases("block"),
        )
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        let (intervals, paddings): (Vec<u32>, Vec<u32>) = self.pads().iter().copied().unzip();
        let component = self.component();
        let shape: Vec<u32> = component
            .out_dims()
            .iter()
            .map(|&dim| size_u32(component.out_dim_size(dim)))
            .collect();
        vec![
            ("intervals", write.list(&intervals)),
            ("paddings", write.list(&paddings)),
            ("offset", write.bases_of(component, "offset")),
            ("block", write.bases_of(component, "block")),
            ("shape", write.list(&shape)),
        ]
    }

    fn pads(&self) -> &[(u32, u32)] {
        self.pads()
    }

    fn elements_in_memory(&self, elements: u64) -> u64 {
        self.padded_size(elements)
    }

    fn spelled_layout(&self) -> Option<&LinearLayout> {
        Some(self.component())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paddings_add_up() {
        let padded = PaddedShared::identity(vec![(2, 1), (4, 2)], &[0], &[8]).unwrap();
        let offsets: Vec<u64> = (0..8).map(|i| padded.padded_offset(i)).collect();
        assert_eq!(offsets, [0, 1, 3, 4, 8, 9, 11, 12]);
        assert_eq!(padded.padded_size(8), 13);
        assert_eq!(padded.padded_size(0), 0);
    }

    #[test]
    fn errors_name_the_basis_vector() {
        let swizzled = [vec![0, 1], vec![1, 1]];
        let error = PaddedShared::from_bases(vec![(2, 1)], 2, &swizzled, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "basis vector 1 of `offset` does not move along exactly one dimension"
        );
    }
}
