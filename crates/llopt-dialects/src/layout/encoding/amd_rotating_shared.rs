//! `#ttg.amd_rotating_shared`: as `#ttg.swizzled_shared`, with the phases rotated from one group of
//! rows to the next, so that both reading along rows and along columns spread over the banks.
//!
//! A group is `perPhase * maxPhase` rows; the phase of a row is xored with the number of its group,
//! modulo `maxPhase`.

use llopt_layout::LinearLayout;

use super::field::{verify_order, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::swizzled_shared::{swizzled_rows, verify_swizzle};
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.amd_rotating_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdRotatingShared {
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

impl AmdRotatingShared {
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
            "ttg.amd_rotating_shared",
            self.rank(),
            1..=usize::MAX,
            "at least 1",
        )?;
        verify_order(&self.order, self.rank())?;
        self.cga_layout.verify(self.rank())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let (vec, per_phase, max_phase) = verify_swizzle(self.vec, self.per_phase, self.max_phase)?;
        swizzled_rows(shape, &self.order, &self.cga_layout, |row| {
            let phase = (row / per_phase) % max_phase;
            let group = (row / per_phase / max_phase) % max_phase;
            u64::from(vec) * u64::from(phase ^ group)
        })
    }
}

impl Kind for AmdRotatingShared {
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
}
