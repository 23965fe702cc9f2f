//! `#ttg.amd_mfma`: the result of AMD's MFMA instructions (CDNA, 64 lanes).

use llopt_layout::LinearLayout;
use llopt_target::matrix::{Axis, Fragment, amdgpu};

use super::field::{matrix_order, verify_counts, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::threads::Threads;
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.amd_mfma`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdMfma {
    /// The generation: 1 gfx908, 2 gfx90a, 3 gfx942, 4 gfx950. Layouts do not depend on it.
    pub version: u32,
    /// Warps of a block along each dimension.
    pub warps_per_cta: Vec<u32>,
    /// Rows, columns and k of the instruction.
    pub instr_shape: Vec<u32>,
    /// Whether the instruction is executed with exchanged operands, so that lanes hold pieces of rows.
    pub is_transposed: bool,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
    /// Adjacent instruction tiles in one warp, per dimension; all 1 unless given.
    pub tiles_per_warp: Vec<u32>,
    /// Bits of an element of the result: 32, or 64 for f64.
    pub element_bit_width: u32,
}

impl AmdMfma {
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

    /// Invariants: version 0 to 4; an instruction of 32x32, 16x16, 64x4 or 4x64; 32 or 64 bits;
    /// powers of two for warps and tiles.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        if self.version > 4 {
            return Err(EncodingError::FieldValue {
                field: "version",
                value: self.version,
                allowed: "0 to 4",
            });
        }
        if !matches!(self.shape(), (32, 32) | (16, 16) | (64, 4) | (4, 64)) {
            return Err(EncodingError::InstructionShape {
                shape: self.instr_shape.clone(),
                allowed: "rows and columns must be 32x32, 16x16, 64x4 or 4x64",
            });
        }
        if !matches!(self.element_bit_width, 32 | 64) {
            return Err(EncodingError::FieldValue {
                field: "elementBitWidth",
                value: self.element_bit_width,
                allowed: "32 or 64",
            });
        }
        verify_counts("warpsPerCTA", &self.warps_per_cta, self.rank())?;
        verify_counts("tilesPerWarp", &self.tiles_per_warp, self.rank())?;
        self.cga_layout.verify(self.rank())
    }

    /// Rows and columns of the instruction.
    pub(super) fn shape(&self) -> (u32, u32) {
        match self.instr_shape[..] {
            [m, n, ..] => (m, n),
            _ => (0, 0),
        }
    }

    /// The result's fragment; that of the transposed product for exchanged operands.
    fn fragment(&self) -> Result<&'static Fragment, EncodingError> {
        let (m, n) = self.shape();
        let (m, n) = if self.is_transposed { (n, m) } else { (m, n) };
        amdgpu::mfma_accumulator(m, n, self.element_bit_width).ok_or_else(|| {
            EncodingError::InstructionShape {
                shape: self.instr_shape.clone(),
                allowed: "64-bit results come from 16x16",
            }
        })
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let rank = self.rank();
        verify_rank("ttg.amd_mfma", rank, 2..=3, "2 or 3")?;
        let (m, n) = (rank - 2, rank - 1);
        let dim_of = |axis| {
            let axis = if self.is_transposed {
                amdgpu::transposed(axis)
            } else {
                axis
            };
            if axis == Axis::M { m } else { n }
        };
        Tile::distributed(&matrix_order(rank, true))?
            .fragment(self.fragment()?, 1, dim_of)?
            .warp_tiles(
                shape,
                self.shape().1,
                &self.tiles_per_warp,
                &self.warps_per_cta,
            )?
            .on(shape, &self.cga_layout)
    }
}

impl Kind for AmdMfma {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let warps_per_cta = fields.list("warpsPerCTA");
        Ok(Self {
            version: fields.number("version"),
            tiles_per_warp: fields.ones_or_list("tilesPerWarp", warps_per_cta.len()),
            cga_layout: fields.cga_layout(warps_per_cta.len())?,
            warps_per_cta,
            instr_shape: fields.list("instrShape"),
            is_transposed: fields.flag("isTransposed"),
            element_bit_width: fields.number("elementBitWidth"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("version", write.number(self.version)),
            ("warpsPerCTA", write.list(&self.warps_per_cta)),
            ("instrShape", write.list(&self.instr_shape)),
            ("isTransposed", write.flag(self.is_transposed)),
            write.cga(&self.cga_layout),
            ("tilesPerWarp", write.list_unless_ones(&self.tiles_per_warp)),
            ("elementBitWidth", write.number(self.element_bit_width)),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        Some(Threads::of_grid(64, &self.warps_per_cta, &self.cga_layout))
    }
}
