//! `#ttg.nvmma_shared`: the layouts of shared memory that NVIDIA's warp-group and fifth-generation
//! matrix instructions read, and that the tensor memory accelerator (TMA) writes.
//!
//! The tensor is divided into boxes, one for each bulk copy: at most 256 along each dimension, and exactly
//! `swizzlingByteWidth` bytes along the contiguous one. Boxes lie one after the other. Inside a box the rows follow
//! each other, with groups of 16 bytes exchanged by an xor with the row's number (over 1, 2 or 4, for 128, 64 or 32
//! bytes), a pattern that repeats every eight rows.
//!
//! PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Tensor Swizzling Modes"; for
//! `fp4Padded`, "Packing format used for matrix A and B by .kind::mxf8f6f4 in Shared Memory".

use llopt_layout::{Dim, LinearLayout};

use super::field::{size_u32, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::tile::Tile;
use super::{BulkBox, CgaLayout, EncodingError};

/// The fields of `#ttg.nvmma_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NvmmaShared {
    /// Bytes of a row over which the swizzle runs: 32, 64 or 128; 0 for none.
    pub swizzling_byte_width: u32,
    /// Whether the first dimension is the contiguous one, instead of the last.
    pub transposed: bool,
    /// Bits of an element.
    pub element_bit_width: u32,
    /// Whether each byte holds two 4-bit values, spread out with as many unused bytes between groups
    /// of eight.
    pub fp4_padded: bool,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
}

/// The most elements that a bulk copy moves along one dimension.
pub(super) const MAX_BOX: u64 = 256;
/// Rows after which the swizzle's pattern repeats.
const PATTERN_ROWS: u32 = 8;
/// Bits of a group that the swizzle moves as a whole.
const GROUP_BITS: u32 = 128;

impl NvmmaShared {
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.cga_layout.rank()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.cga_layout.clone()
    }

    /// The alignment in bytes that the hardware's address pattern requires.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        128 * (self.swizzling_byte_width / 16).max(1)
    }

    /// Invariants: the cluster's rank is at least 1. The conversion to a layout checks the numbers, since attributes
    /// with a width of 0 bits are valid IR.
    ///
    /// # Errors
    /// When the rank is 0.
    pub fn verify(&self) -> Result<(), EncodingError> {
        verify_rank(
            "ttg.nvmma_shared",
            self.rank(),
            1..=usize::MAX,
            "at least 1",
        )?;
        self.cga_layout.verify(self.rank())
    }

    fn verify_numbers(&self) -> Result<(), EncodingError> {
        let field = |field, value, allowed| {
            Err(EncodingError::FieldValue {
                field,
                value,
                allowed,
            })
        };
        if !matches!(self.swizzling_byte_width, 0 | 32 | 64 | 128) {
            return field(
                "swizzlingByteWidth",
                self.swizzling_byte_width,
                "0, 32, 64 or 128",
            );
        }
        if !matches!(self.element_bit_width, 8 | 16 | 32 | 64) {
            return field("elementBitWidth", self.element_bit_width, "8, 16, 32 or 64");
        }
        if self.fp4_padded && self.element_bit_width != 8 {
            return field(
                "elementBitWidth",
                self.element_bit_width,
                "8 when fp4Padded is set",
            );
        }
        if self.swizzling_byte_width != 0 {
            verify_rank(
                "ttg.nvmma_shared",
                self.rank(),
                2..=usize::MAX,
                "at least 2 to swizzle",
            )?;
        }
        Ok(())
    }

    /// Elements of a row of one box, as they count in the tensor.
    fn row_elements(&self) -> u64 {
        let bytes = u64::from(self.swizzling_byte_width);
        let elements = 8 * bytes / u64::from(self.element_bit_width);
        if self.fp4_padded {
            elements / 2
        } else {
            elements
        }
    }

    /// The box of one bulk copy, for one block's share of the tensor.
    fn box_shape(&self, share: &[u64]) -> Result<Vec<u64>, EncodingError> {
        let contiguous = if self.transposed { 0 } else { share.len() - 1 };
        let packing = if self.fp4_padded { 2 } else { 1 };
        let mut shape = share.to_vec();
        for (dim, size) in shape.iter_mut().enumerate() {
            let limit = if dim == contiguous {
                MAX_BOX / packing
            } else {
                MAX_BOX
            };
            *size = (*size).min(limit);
        }
        if self.swizzling_byte_width != 0 {
            let least = self.row_elements();
            if shape[contiguous] < least {
                return Err(EncodingError::ShapeTooSmall {
                    dim: contiguous,
                    size: share[contiguous],
                    least,
                });
            }
            shape[contiguous] = least;
        }
        Ok(shape)
    }

    /// The pattern of eight rows, from offsets to row (dimension 0) and column (dimension 1).
    fn pattern(&self) -> Result<Tile, EncodingError> {
        let group = GROUP_BITS / self.element_bit_width;
        let rows_per_phase = 128 / self.swizzling_byte_width;
        let phases = self.swizzling_byte_width / 16;
        // Padded rows have groups of 8 elements at every 16 offsets.
        let element = |offset: u32| {
            if self.fp4_padded {
                offset / 16 * 8 + offset % 8
            } else {
                offset
            }
        };
        let row_offsets = 8 * self.swizzling_byte_width / self.element_bit_width;
        let mut bases = Vec::new();
        for bit in 0..row_offsets.trailing_zeros() {
            bases.push(vec![0, element(1 << bit)]);
        }
        for bit in 0..PATTERN_ROWS.trailing_zeros() {
            let phase = ((1 << bit) / rows_per_phase) % phases;
            bases.push(vec![1 << bit, element(group * phase)]);
        }
        Tile::memory_bases(
            &bases,
            &[(0, PATTERN_ROWS), (1, size_u32(self.row_elements()))],
        )
    }

    /// One box: the pattern repeated over the box seen as a matrix, its dimensions taken apart again.
    fn swizzled_box(&self, box_shape: &[u64]) -> Result<Tile, EncodingError> {
        let rank = box_shape.len();
        let last = box_shape[rank - 1];
        let others: u64 = box_shape[..rank - 1].iter().product();
        let (rows, columns) = if self.transposed {
            (last, others)
        } else {
            (others, last)
        };
        let (rows_dim, columns_dim) = if self.transposed {
            (rank - 1, 0)
        } else {
            (0, rank - 1)
        };
        if rows < u64::from(PATTERN_ROWS) {
            return Err(EncodingError::ShapeTooSmall {
                dim: rows_dim,
                size: rows,
                least: u64::from(PATTERN_ROWS),
            });
        }
        if columns < self.row_elements() {
            return Err(EncodingError::ShapeTooSmall {
                dim: columns_dim,
                size: columns,
                least: self.row_elements(),
            });
        }
        let matrix = self
            .pattern()?
            .repeat_to(|dim| if dim == Dim::tensor(0) { rows } else { columns })?
            .into_layout();
        // Flattened with the columns minor, then cut into the box's dimensions from the contiguous
        // one outwards. A transposed box has its first dimension as the contiguous one.
        let minor_to_major: Vec<usize> = if self.transposed {
            std::iter::once(0).chain((1..rank).rev()).collect()
        } else {
            (0..rank).rev().collect()
        };
        let cut: Vec<(Dim, u32)> = minor_to_major
            .iter()
            .map(|&dim| (Dim::tensor(dim), size_u32(box_shape[dim])))
            .collect();
        let standard: Vec<Dim> = (0..rank).map(Dim::tensor).collect();
        let layout = matrix
            .transpose_outs(&[Dim::tensor(1), Dim::tensor(0)])?
            .reshape_outs(&cut)?
            .transpose_outs(&standard)?;
        Ok(Tile::of(layout, Dim::OFFSET))
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        self.verify_numbers()?;
        let share = self.cga_layout.share(shape)?;
        let box_shape = self.box_shape(&share)?;
        let tile = if self.swizzling_byte_width == 0 {
            let standard: Vec<usize> = (0..shape.len()).collect();
            let counts: Vec<u32> = box_shape.iter().map(|&size| size_u32(size)).collect();
            let last_first: Vec<usize> = standard.iter().rev().copied().collect();
            Tile::memory(&standard)?.along_all(Dim::OFFSET, &counts, &last_first)?
        } else {
            self.swizzled_box(&box_shape)?
        };
        tile.on(shape, &self.cga_layout)
    }
}

impl Kind for NvmmaShared {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            swizzling_byte_width: fields.number("swizzlingByteWidth"),
            transposed: fields.flag("transposed"),
            element_bit_width: fields.number("elementBitWidth"),
            fp4_padded: fields.flag("fp4Padded"),
            cga_layout: fields.cga_layout(fields.number("rank") as usize)?,
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            (
                "swizzlingByteWidth",
                write.number(self.swizzling_byte_width),
            ),
            ("transposed", write.flag(self.transposed)),
            ("elementBitWidth", write.number(self.element_bit_width)),
            ("fp4Padded", write.flag(self.fp4_padded)),
            write.cga(&self.cga_layout),
            ("rank", write.number(self.rank() as u32)),
        ]
    }

    fn memory_alignment(&self) -> Option<u32> {
        Some(self.alignment())
    }

    /// The box of one bulk copy of a tensor in this layout; `None` if no bulk copy writes it: the unit's fastest
    /// dimension is the last. A single dimension is first and last, so transposing it changes nothing.
    fn bulk_box(&self, shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        self.verify_numbers()?;
        if self.transposed && shape.len() > 1 {
            return Ok(None);
        }
        Ok(Some(BulkBox {
            shape: self.box_shape(&self.cga_layout.share(shape)?)?,
            swizzle_bytes: self.swizzling_byte_width,
            fp4_padded: self.fp4_padded,
        }))
    }
}
