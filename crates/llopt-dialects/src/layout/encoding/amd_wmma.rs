//! `#ttg.amd_wmma`: the result of AMD's WMMA instructions (RDNA and gfx1250, 32 lanes).

use llopt_layout::LinearLayout;
use llopt_target::matrix::{Axis, amdgpu};

use super::field::{matrix_order, verify_counts, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::threads::Threads;
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.amd_wmma`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdWmma {
    /// The generation: 1 RDNA3, 2 RDNA4, 3 gfx1250.
    pub version: u32,
    /// Whether the instruction is executed with exchanged operands, so that lanes hold pieces of rows.
    pub is_transposed: bool,
    /// Warps of a block along each dimension.
    pub warps_per_cta: Vec<u32>,
    /// Adjacent instruction tiles in one warp, per dimension; all 1 unless given.
    pub tiles_per_warp: Vec<u32>,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
    /// Rows, columns and k of the instruction; `[16, 16, 16]` unless given.
    pub instr_shape: Vec<u32>,
}

impl AmdWmma {
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

    /// Invariants: version 1 to 3 with an instruction that it has; powers of two for warps and tiles.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        let (valid, allowed): (&[[u32; 3]], _) = match self.version {
            1 => (&[[16, 16, 16]], "version 1 has 16x16x16"),
            2 => (
                &[[16, 16, 16], [16, 16, 32]],
                "version 2 has 16x16x16 and 16x16x32",
            ),
            3 => (
                &[[16, 16, 4], [16, 16, 32], [16, 16, 64], [16, 16, 128]],
                "version 3 has 16x16x4, 16x16x32, 16x16x64 and 16x16x128",
            ),
            value => {
                return Err(EncodingError::FieldValue {
                    field: "version",
                    value,
                    allowed: "1, 2 or 3",
                });
            }
        };
        if !valid.iter().any(|shape| shape[..] == self.instr_shape[..]) {
            return Err(EncodingError::InstructionShape {
                shape: self.instr_shape.clone(),
                allowed,
            });
        }
        verify_counts("warpsPerCTA", &self.warps_per_cta, self.rank())?;
        verify_counts("tilesPerWarp", &self.tiles_per_warp, self.rank())?;
        self.cga_layout.verify(self.rank())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let rank = self.rank();
        verify_rank("ttg.amd_wmma", rank, 2..=3, "2 or 3")?;
        let (m, n) = (rank - 2, rank - 1);
        let fragment = match self.version {
            1 => &amdgpu::WMMA_RDNA3_ACCUMULATOR,
            _ => &amdgpu::WMMA_ACCUMULATOR,
        };
        for dim in [m, n] {
            if shape[dim] != 1 && shape[dim] < 16 {
                return Err(EncodingError::ShapeTooSmall {
                    dim,
                    size: shape[dim],
                    least: 16,
                });
            }
        }
        let dim_of = |axis| {
            let axis = if self.is_transposed {
                amdgpu::transposed(axis)
            } else {
                axis
            };
            if axis == Axis::M { m } else { n }
        };
        Tile::distributed(&matrix_order(rank, true))?
            .fragment(fragment, 1, dim_of)?
            .warp_tiles(shape, 16, &self.tiles_per_warp, &self.warps_per_cta)?
            .on(shape, &self.cga_layout)
    }
}

impl Kind for AmdWmma {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let warps_per_cta = fields.list("warpsPerCTA");
        Ok(Self {
            version: fields.number("version"),
            is_transposed: fields.flag("isTranspose"),
            tiles_per_warp: fields.ones_or_list("tilesPerWarp", warps_per_cta.len()),
            cga_layout: fields.cga_layout(warps_per_cta.len())?,
            warps_per_cta,
            instr_shape: fields.list("instrShape"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("version", write.number(self.version)),
            ("isTranspose", write.flag(self.is_transposed)),
            ("warpsPerCTA", write.list(&self.warps_per_cta)),
            write.cga(&self.cga_layout),
            ("tilesPerWarp", write.list_unless_ones(&self.tiles_per_warp)),
            ("instrShape", write.list(&self.instr_shape)),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        Some(Threads::of_grid(32, &self.warps_per_cta, &self.cga_layout))
    }
}
