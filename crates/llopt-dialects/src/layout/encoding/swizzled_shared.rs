//! `#ttg.swizzled_shared`: rows one after the other in memory, with groups of `vec` elements exchanged
//! within the row by an xor with the row's *phase*.
//!
//! The phase is the row's number over `perPhase`, modulo `maxPhase`. Rows and columns are the second
//! and the first dimension of `order`; the other dimensions stack matrices.

use llopt_layout::LinearLayout;

use super::field::{size_u32, verify_order, verify_power_of_two, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::nvmma_shared::MAX_BOX;
use super::tile::Tile;
use super::{BulkBox, CgaLayout, EncodingError};

/// The fields of `#ttg.swizzled_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SwizzledShared {
    /// Elements that stay together.
    pub vec: u32,
    /// Rows with the same phase.
    pub per_phase: u32,
    /// The number of phases.
    pub max_phase: u32,
    /// Dimensions from the fastest-varying to the slowest.
    pub order: Vec<u32>,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
}

impl SwizzledShared {
    // Repeated because each encoding's file has all its accessors, and these fields are also `amd_rotating_shared`'s.
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.order.len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.cga_layout.clone()
    }

    /// Invariants: rank at least 1, the order is a permutation, the cluster has the same rank.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        verify_rank(
            "ttg.swizzled_shared",
            self.rank(),
            1..=usize::MAX,
            "at least 1",
        )?;
        verify_order(&self.order, self.rank())?;
        self.cga_layout.verify(self.rank())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let (vec, per_phase, max_phase) = verify_swizzle(self.vec, self.per_phase, self.max_phase)?;
        let phase = |row: u32| (row / per_phase) % max_phase;
        swizzled_rows(shape, &self.order, &self.cga_layout, |row| {
            u64::from(vec) * u64::from(phase(row))
        })
    }
}

impl Kind for SwizzledShared {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let ([vec, per_phase, max_phase], order, cga_layout) = fields.swizzle()?;
        Ok(Self {
            vec,
            per_phase,
            max_phase,
            order,
            cga_layout,
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        let numbers = [self.vec, self.per_phase, self.max_phase];
        write.swizzle(numbers, &self.order, &self.cga_layout)
    }

    /// The box of one bulk copy of a tensor in this layout; `None` if it is swizzled, or the last dimension is not
    /// the fastest.
    fn bulk_box(&self, shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        let row_major = self
            .order
            .iter()
            .rev()
            .copied()
            .eq(0..self.order.len() as u32);
        if (self.vec, self.per_phase, self.max_phase) != (1, 1, 1) || !row_major {
            return Ok(None);
        }
        let share = self.cga_layout.share(shape)?;
        Ok(Some(BulkBox {
            shape: share.into_iter().map(|size| size.min(MAX_BOX)).collect(),
            swizzle_bytes: 0,
            fp4_padded: false,
        }))
    }
}

/// The three numbers of a swizzle, if they are powers of two.
pub(super) fn verify_swizzle(
    vec: u32,
    per_phase: u32,
    max_phase: u32,
) -> Result<(u32, u32, u32), EncodingError> {
    verify_power_of_two("vec", vec)?;
    verify_power_of_two("perPhase", per_phase)?;
    verify_power_of_two("maxPhase", max_phase)?;
    Ok((vec, per_phase, max_phase))
}

/// Rows one after the other, row `r` with its columns xored with `xor(r)` (modulo the row's length),
/// where `r` is a power of two; matrices stacked.
pub(super) fn swizzled_rows(
    shape: &[u64],
    order: &[u32],
    cga_layout: &CgaLayout,
    xor: impl Fn(u32) -> u64,
) -> Result<LinearLayout, EncodingError> {
    let order = verify_order(order, shape.len())?;
    let share = cga_layout.share(shape)?;
    let [col, row, others @ ..] = &order[..] else {
        return Tile::memory(&order)?.on(shape, cga_layout);
    };
    let (columns, rows) = (share[*col], share[*row]);
    let mut bases = Vec::new();
    for bit in 0..columns.trailing_zeros() {
        bases.push(vec![0, 1 << bit]);
    }
    for bit in 0..rows.trailing_zeros() {
        let offset = (xor(1 << bit) % columns) as u32;
        bases.push(vec![1 << bit, offset]);
    }
    let mut tile =
        Tile::memory_bases(&bases, &[(*row, size_u32(rows)), (*col, size_u32(columns))])?;
    for &dim in others {
        tile = tile.along_or_unit(llopt_layout::Dim::OFFSET, size_u32(share[dim]), dim)?;
    }
    tile.on(shape, cga_layout)
}
