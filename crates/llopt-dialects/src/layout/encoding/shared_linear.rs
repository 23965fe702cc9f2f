//! `#ttg.shared_linear`: a layout of shared memory written out as its bases.

use llopt_layout::{Dim, LinearLayout};

use super::field::verify_power_of_two;
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::linear::{cga_layout_of, verify_explicit};
use super::{CgaLayout, EncodingError};

/// The bases and the alignment of `#ttg.shared_linear`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedLinear {
    layout: LinearLayout,
    alignment: u32,
}

impl SharedLinear {
    /// From a layout with the inputs `offset`, `block` and the outputs `dim0`, …, and the alignment
    /// of the memory in bytes.
    ///
    /// # Errors
    /// When a dimension is missing or out of place, the layout is not surjective, two offsets that
    /// differ by more than zero basis vectors hold the same element, or the alignment is not a power
    /// of two.
    pub fn new(layout: LinearLayout, alignment: u32) -> Result<Self, EncodingError> {
        verify_power_of_two("alignment", alignment)?;
        verify_explicit(&layout, &[Dim::OFFSET, Dim::BLOCK])?;
        let dense = layout
            .remove_zero_bases(Dim::OFFSET)
            .remove_zero_bases(Dim::BLOCK);
        dense.require_injective()?;
        Ok(Self { layout, alignment })
    }

    /// From basis vectors with `rank` entries each, as the IR writes them.
    ///
    /// # Errors
    /// As [`SharedLinear::new`], and when a vector has another number of entries.
    pub fn from_bases(
        rank: usize,
        offset: &[Vec<u32>],
        block: &[Vec<u32>],
        alignment: u32,
    ) -> Result<Self, EncodingError> {
        Self::new(memory_layout(rank, offset, block)?, alignment)
    }

    /// The layout as written.
    #[must_use]
    pub fn layout(&self) -> &LinearLayout {
        &self.layout
    }

    // Repeated because each encoding's file has all its accessors, and these read the layout of `linear`.
    /// The alignment of the memory in bytes.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.layout.out_dims().len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        cga_layout_of(&self.layout)
    }

    /// Invariants: those of [`SharedLinear::new`], which hold for every value.
    ///
    /// # Errors
    /// None.
    pub fn verify(&self) -> Result<(), EncodingError> {
        Ok(())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        exactly_on(&self.layout, shape)
    }
}

impl Kind for SharedLinear {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Self::from_bases(
            fields.rank_of_bases(&["offset", "block"]),
            &fields.bases("offset"),
            &fields.bases("block"),
            fields.number("alignment"),
        )
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("offset", write.bases_of(self.layout(), "offset")),
            ("block", write.bases_of(self.layout(), "block")),
            ("alignment", write.number(self.alignment())),
        ]
    }

    fn memory_alignment(&self) -> Option<u32> {
        Some(self.alignment())
    }

    fn spelled_layout(&self) -> Option<&LinearLayout> {
        Some(self.layout())
    }
}

/// A layout of a memory from its basis vectors.
pub(super) fn memory_layout(
    rank: usize,
    offset: &[Vec<u32>],
    block: &[Vec<u32>],
) -> Result<LinearLayout, EncodingError> {
    let outs: Vec<Dim> = (0..rank).map(Dim::tensor).collect();
    let ins = [(Dim::OFFSET, offset), (Dim::BLOCK, block)];
    Ok(LinearLayout::from_bases_surjective(&ins, &outs)?)
}

/// The layout, if it was written for this shape.
pub(super) fn exactly_on(
    layout: &LinearLayout,
    shape: &[u64],
) -> Result<LinearLayout, EncodingError> {
    for (dim, &size) in shape.iter().enumerate() {
        let expected = layout.out_dim_size(Dim::tensor(dim));
        if size != expected {
            return Err(EncodingError::ShapeFixed {
                dim,
                size,
                expected,
            });
        }
    }
    Ok(layout.clone())
}
