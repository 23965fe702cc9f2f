//! `#ttg.dot_op`: the operands of a matrix product, as the encoding of its result requires them.
//!
//! The first operand is `[.., m, k]`, the second `[.., k, n]`. Every warp needs all of k for its rows
//! or columns, so warps that the parent spreads along the operand's k hold copies.

use llopt_layout::{Dim, LinearLayout};
use llopt_target::matrix::{Axis, amdgpu, nvptx};

use super::field::{matrix_order, size_u32, verify_order, verify_power_of_two, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::nvidia_mma::{WARP_GROUP_LEVEL, WARP_LEVEL};
use super::product::{Product, ProductParent};
use super::threads::Threads;
use super::tile::Tile;
use super::{AmdMfma, AmdWmma, Blocked, CgaLayout, EncodingError, NvidiaMma};

/// The fields of `#ttg.dot_op`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotOperand<P> {
    /// 0 for the first operand, 1 for the second.
    pub op_idx: u32,
    /// The encoding of the product: blocked, or of a matrix instruction.
    pub parent: Box<P>,
    /// Consecutive elements along k in one lane; 0 if the parent is blocked.
    pub k_width: u32,
}

impl<P: ProductParent> DotOperand<P> {
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.parent.rank()
    }

    /// The dimension that is summed over.
    ///
    /// Requires a rank of 2 or more.
    fn k_dim(&self) -> usize {
        let rank = self.rank();
        if self.op_idx == 0 { rank - 1 } else { rank - 2 }
    }

    /// The operand's other matrix dimension.
    fn free_dim(&self) -> usize {
        let rank = self.rank();
        if self.op_idx == 0 { rank - 2 } else { rank - 1 }
    }

    /// The blocks of the cluster: those of the parent, each with all of k.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        if self.rank() < 2 {
            return CgaLayout::single(self.rank());
        }
        self.parent.cga_layout().shared_along(self.k_dim())
    }

    /// Invariants: `opIdx` is 0 or 1; the parent is valid, and blocked or of a matrix instruction;
    /// `kWidth` is there exactly when the parent's instruction leaves it open, with a width that it
    /// can have; `wgmma` takes only its first operand from registers.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn verify(&self) -> Result<(), EncodingError> {
        let field = |field, value, allowed| {
            Err(EncodingError::FieldValue {
                field,
                value,
                allowed,
            })
        };
        if self.op_idx > 1 {
            return field("opIdx", self.op_idx, "0 or 1");
        }
        self.parent.verify()?;
        let width = self.k_width;
        match self.product()? {
            Product::Blocked(_) if width != 0 => {
                field("kWidth", width, "left out when the parent is blocked")
            }
            Product::Blocked(_) => Ok(()),
            Product::NvidiaMma(mma) => match mma.version_major {
                WARP_GROUP_LEVEL if self.op_idx != 0 => {
                    field("opIdx", self.op_idx, "0 when the parent has version 3")
                }
                WARP_LEVEL | WARP_GROUP_LEVEL if width == 0 => {
                    field("kWidth", width, "given when the parent has version 2 or 3")
                }
                WARP_LEVEL | WARP_GROUP_LEVEL => verify_power_of_two("kWidth", width),
                _ if width != 0 => field("kWidth", width, "given for versions 2 and 3 only"),
                _ => Ok(()),
            },
            Product::AmdMfma(_) if width == 0 => {
                field("kWidth", width, "given when the parent is MFMA")
            }
            Product::AmdMfma(_) => verify_power_of_two("kWidth", width),
            Product::AmdWmma(wmma) => match (wmma.version, width) {
                (1, 8 | 16) | (2, 4 | 8 | 16) | (3, 2 | 8 | 16) => Ok(()),
                (1, _) => field("kWidth", width, "8 or 16 for WMMA version 1"),
                (2, _) => field("kWidth", width, "4, 8 or 16 for WMMA version 2"),
                _ => field("kWidth", width, "2, 8 or 16 for WMMA version 3"),
            },
        }
    }

    /// The parent as the layout of a product.
    fn product(&self) -> Result<Product<'_>, EncodingError> {
        self.parent
            .as_product()
            .ok_or_else(|| EncodingError::Parent {
                encoding: "ttg.dot_op",
                parent: self.parent.name(),
                allowed: "blocked, nvidia_mma, amd_mfma or amd_wmma",
            })
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        verify_rank("ttg.dot_op", self.rank(), 2..=usize::MAX, "at least 2")?;
        match self.product()? {
            Product::Blocked(parent) => self.of_blocked(parent, shape),
            Product::NvidiaMma(parent) => self.of_nvidia_mma(parent, shape),
            Product::AmdMfma(parent) => self.of_amd_mfma(parent, shape),
            Product::AmdWmma(parent) => self.of_amd_wmma(parent, shape),
        }
    }

    /// k first, then the other matrix dimension, then batches from the last to the first.
    fn k_first(&self) -> Vec<usize> {
        matrix_order(self.rank(), self.op_idx == 0)
    }

    /// The tensor dimension of a fragment's index. Tables name the free index of an operand m,
    /// except those of NVIDIA's second operands.
    fn dim_of(&self, axis: Axis) -> usize {
        match axis {
            Axis::K => self.k_dim(),
            Axis::M | Axis::N => self.free_dim(),
        }
    }

    /// For products by fused multiply-add: a lane has all of k for its rows or columns.
    fn of_blocked(&self, parent: &Blocked, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let k = self.k_dim();
        let order = verify_order(&parent.order, parent.rank())?;
        let mut registers = parent.size_per_thread.clone();
        registers[k] = size_u32(shape[k]);
        Tile::distributed(&order)?
            .along_all(Dim::REGISTER, &registers, &order)?
            .along_all_but(Dim::LANE, &parent.threads_per_warp, &order, k)?
            .along_all_but(Dim::WARP, &parent.warps_per_cta, &order, k)?
            .on(shape, &self.cga_layout())
    }

    fn of_nvidia_mma(
        &self,
        parent: &NvidiaMma,
        shape: &[u64],
    ) -> Result<LinearLayout, EncodingError> {
        parent.verify_version()?;
        let fragment = match (parent.version_major, self.op_idx) {
            (WARP_GROUP_LEVEL, _) => &nvptx::WGMMA_A,
            (_, 0) => &nvptx::MMA_A,
            _ => &nvptx::MMA_B,
        };
        Tile::distributed(&self.k_first())?
            .fragment(fragment, self.k_width, |axis| self.dim_of(axis))?
            .along_all_but(
                Dim::WARP,
                &parent.warps_per_cta,
                &parent.warp_order(),
                self.k_dim(),
            )?
            .on(shape, &self.cga_layout())
    }

    fn of_amd_mfma(&self, parent: &AmdMfma, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        verify_rank("ttg.amd_mfma", self.rank(), 2..=3, "2 or 3")?;
        let (k, free) = (self.k_dim(), self.free_dim());
        let (m, n) = parent.shape();
        let rows = if self.op_idx == 0 { m } else { n };
        let fragment =
            amdgpu::mfma_operand(rows).ok_or_else(|| EncodingError::InstructionShape {
                shape: parent.instr_shape.clone(),
                allowed: "operands have 4, 16, 32 or 64 rows or columns",
            })?;
        let tile_k = u64::from(fragment.extent(Axis::K, self.k_width));
        Tile::distributed(&self.k_first())?
            .fragment(fragment, self.k_width, |axis| self.dim_of(axis))?
            .along(Dim::REGISTER, size_u32(shape[k] / tile_k), k)?
            .along(Dim::REGISTER, parent.tiles_per_warp[free], free)?
            // The registers have all of k already, so that warps along it wrap around to copies.
            .along_all(
                Dim::WARP,
                &parent.warps_per_cta,
                &matrix_order(self.rank(), true),
            )?
            .on(shape, &parent.cga_layout)
    }

    fn of_amd_wmma(&self, parent: &AmdWmma, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        verify_rank("ttg.amd_wmma", self.rank(), 2..=3, "2 or 3")?;
        let (k, free) = (self.k_dim(), self.free_dim());
        let fragment = match parent.version {
            1 => &amdgpu::WMMA_RDNA3_OPERAND,
            _ => &amdgpu::WMMA_OPERAND,
        };
        // Half-waves count twice along k even if they hold copies.
        let tile_k = 2 * self.k_width;
        let instr_k = parent.instr_shape.get(2).copied().unwrap_or(16);
        let tiles = parent.tiles_per_warp[free];
        // Several tiles in a warp come after all of k, not after one instruction's.
        let covered = if tiles > 1 {
            size_u32(shape[k]).max(instr_k)
        } else {
            instr_k
        };
        Tile::distributed(&self.k_first())?
            .fragment(fragment, self.k_width, |axis| self.dim_of(axis))?
            .along(Dim::REGISTER, covered / tile_k, k)?
            .along(Dim::REGISTER, tiles, free)?
            .along_all_but(
                Dim::WARP,
                &parent.warps_per_cta,
                &matrix_order(self.rank(), true),
                k,
            )?
            .on(shape, &parent.cga_layout)
    }
}

impl<P: ProductParent> Kind for DotOperand<P> {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            op_idx: fields.number("opIdx"),
            parent: fields.parent("parent")?,
            k_width: fields.number("kWidth"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("opIdx", write.number(self.op_idx)),
            ("parent", write.parent(&*self.parent)),
            ("kWidth", write.number(self.k_width)),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        self.parent.threads()
    }
}
