//! `#ttg.nvidia_mma`: the result of NVIDIA's matrix instructions that leave it in registers.
//!
//! Version 2 is `mma.sync`, whose warps are counted rows first over columns; version 3 is `wgmma`, whose
//! four warps of a group stack their rows, so warps are counted columns over rows. Version 1 (Volta)
//! has no instruction on supported targets, and version 5 (`tcgen05`) leaves its result in tensor
//! memory.

use llopt_layout::{Dim, LinearLayout};
use llopt_target::matrix::{Axis, nvptx};

use super::field::{matrix_order, verify_counts, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::threads::Threads;
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.nvidia_mma`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NvidiaMma {
    /// The generation: 2 for `mma.sync`, 3 for `wgmma`.
    pub version_major: u32,
    /// A variant within the generation; layouts do not depend on it.
    pub version_minor: u32,
    /// Warps of a block along each dimension.
    pub warps_per_cta: Vec<u32>,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
    /// Version 2: the tile of one instruction per dimension, `[.., 16, 8]`. Version 3: the rows of
    /// one warp, the columns, and k, `[16, n, k]`.
    pub instr_shape: Vec<u32>,
}

/// The version of `mma.sync`.
pub(super) const WARP_LEVEL: u32 = 2;
/// The version of `wgmma`.
pub(in crate::layout) const WARP_GROUP_LEVEL: u32 = 3;

impl NvidiaMma {
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.warps_per_cta.len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.cga_layout.clone()
    }

    /// Invariants: powers of two for the warps, a cluster of the same rank. The conversion to a layout checks rank
    /// and instruction against the version, since attributes of versions without one are valid IR.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        verify_counts("warpsPerCTA", &self.warps_per_cta, self.rank())?;
        self.cga_layout.verify(self.rank())
    }

    /// The dimensions from the one along which warps are counted first.
    pub(super) fn warp_order(&self) -> Vec<usize> {
        matrix_order(self.rank(), self.version_major != WARP_GROUP_LEVEL)
    }

    /// An error if the version has no layout. Operands of version 3 have one of any rank; of its result see
    /// [`Self::layout_on`].
    pub(super) fn verify_version(&self) -> Result<(), EncodingError> {
        let no_layout = |reason| EncodingError::NoLayout {
            encoding: "ttg.nvidia_mma",
            reason,
        };
        match self.version_major {
            WARP_LEVEL | WARP_GROUP_LEVEL => {
                verify_rank("ttg.nvidia_mma", self.rank(), 2..=usize::MAX, "at least 2")
            }
            1 => Err(no_layout("no supported target has version 1")),
            5 => Err(no_layout("version 5 leaves its result in tensor memory")),
            value => Err(EncodingError::FieldValue {
                field: "versionMajor",
                value,
                allowed: "2 or 3",
            }),
        }
    }

    /// Rows and columns of one warp's instruction.
    fn tile_shape(&self) -> Result<(u32, u32), EncodingError> {
        let error = |allowed| EncodingError::InstructionShape {
            shape: self.instr_shape.clone(),
            allowed,
        };
        let (m, n) = if self.version_major == WARP_GROUP_LEVEL {
            match self.instr_shape[..] {
                [m, n, ..] => (m, n),
                _ => return Err(error("version 3 has [16, n, k]")),
            }
        } else {
            match self.instr_shape[..] {
                [ref batch @ .., m, n]
                    if batch.len() + 2 == self.rank() && batch.iter().all(|&b| b == 1) =>
                {
                    (m, n)
                }
                _ => return Err(error("version 2 has one entry per dimension, [.., 16, 8]")),
            }
        };
        if m == 16 && n >= 8 && n.is_power_of_two() {
            Ok((m, n))
        } else {
            Err(error("rows must be 16, columns a power of two from 8 on"))
        }
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        self.verify_version()?;
        let rank = self.rank();
        if self.version_major == WARP_GROUP_LEVEL {
            verify_rank("ttg.nvidia_mma", rank, 2..=2, "2 when versionMajor is 3")?;
        }
        let fragment = match self.version_major {
            WARP_GROUP_LEVEL => &nvptx::WGMMA_ACCUMULATOR,
            _ => &nvptx::MMA_ACCUMULATOR,
        };
        let (_, n) = self.tile_shape()?;
        let dim_of = |axis| if axis == Axis::M { rank - 2 } else { rank - 1 };
        Tile::distributed(&matrix_order(rank, true))?
            .fragment(fragment, 1, dim_of)?
            .along(Dim::REGISTER, n / fragment.extent(Axis::N, 1), rank - 1)?
            .along_all(Dim::WARP, &self.warps_per_cta, &self.warp_order())?
            .on(shape, &self.cga_layout)
    }
}

impl Kind for NvidiaMma {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let warps_per_cta = fields.list("warpsPerCTA");
        Ok(Self {
            version_major: fields.number("versionMajor"),
            version_minor: fields.number("versionMinor"),
            cga_layout: fields.cga_layout(warps_per_cta.len())?,
            warps_per_cta,
            instr_shape: fields.list("instrShape"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("versionMajor", write.number(self.version_major)),
            ("versionMinor", write.number(self.version_minor)),
            ("warpsPerCTA", write.list(&self.warps_per_cta)),
            write.cga(&self.cga_layout),
            ("instrShape", write.list(&self.instr_shape)),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        Some(Threads::of_grid(32, &self.warps_per_cta, &self.cga_layout))
    }
}
