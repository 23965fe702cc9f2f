//! `#ttng.tensor_memory_encoding` and `#ttng.tensor_memory_scales_encoding`: layouts of the tensor memory
//! of NVIDIA's fifth-generation matrix instructions, 128 rows (lanes) by up to 512 columns of 32 bits.
//!
//! Inputs are `row` and `col`, the latter counted in elements. A zero basis vector of the top two row bits means that
//! the rows hold copies; any other zero basis vector means that nothing is defined there.
//!
//! PTX ISA, "Tensor Memory Data Path Layout Organization" and "Scale factor A/B layouts in tensor
//! memory".

use llopt_layout::{Dim, LinearLayout};

use super::field::{size_u32, verify_power_of_two};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::{CgaLayout, EncodingError};

/// The rows (lanes) of tensor memory.
pub const ROW: Dim = named("row");
/// The columns of tensor memory, counted in elements.
pub const COL: Dim = named("col");

const fn named(name: &str) -> Dim {
    match Dim::new(name) {
        Some(dim) => dim,
        None => panic!("a dimension's name is 1 to 10 characters of a-z, 0-9, _"),
    }
}

const M: Dim = Dim::tensor(0);
const N: Dim = Dim::tensor(1);

/// The fields of `#ttng.tensor_memory_encoding`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMemory {
    /// Rows of the tensor that one instruction writes: 64 or 128.
    pub block_m: u32,
    /// Columns of the tensor that one instruction writes.
    pub block_n: u32,
    /// Elements from one element of a row to the next: 1, 2 or 4.
    pub col_stride: u32,
    /// Blocks of the cluster that share the rows.
    pub cta_split_m: u32,
    /// Blocks of the cluster that share the columns.
    pub cta_split_n: u32,
    /// Whether two blocks execute the instruction together.
    pub two_ctas: bool,
}

impl TensorMemory {
    /// The rank of the tensors: 2.
    #[must_use]
    pub fn rank(&self) -> usize {
        2
    }

    /// One block: the columns of all blocks are numbered consecutively.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        CgaLayout::single(2)
    }

    /// Invariants: 64 or 128 rows; columns a power of two up to 512; a stride of 1, 2 or 4; splits
    /// that are powers of two.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        let field = |field, value, allowed| {
            Err(EncodingError::FieldValue {
                field,
                value,
                allowed,
            })
        };
        verify_power_of_two("CTASplitM", self.cta_split_m)?;
        verify_power_of_two("CTASplitN", self.cta_split_n)?;
        verify_power_of_two("blockN", self.block_n)?;
        if !matches!(self.block_m, 64 | 128) {
            return field("blockM", self.block_m, "64 or 128");
        }
        if self.block_n > 512 {
            return field("blockN", self.block_n, "at most 512");
        }
        if !matches!(self.col_stride, 1 | 2 | 4) {
            return field("colStride", self.col_stride, "1, 2 or 4");
        }
        Ok(())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let [rows, columns] = shape else {
            return Err(EncodingError::ShapeRank {
                expected: 2,
                found: shape.len(),
            });
        };
        let (rows, columns) = (*rows, *columns);
        let (split_m, split_n) = (u64::from(self.cta_split_m), u64::from(self.cta_split_n));
        // Two blocks that produce 64 rows each are laid out as one that produces 128: the second
        // block's rows are in the upper half of the rows, and half of the columns is the second
        // block's.
        let joint = self.cta_split_m > 1 && self.block_m == 64 && self.two_ctas;
        let (block_m, split_m) = if joint {
            (128, split_m / 2)
        } else {
            (u64::from(self.block_m), split_m)
        };
        for (dim, size, split) in [(0, rows, split_m), (1, columns, split_n)] {
            if size < split {
                return Err(EncodingError::ShapeTooSmall {
                    dim,
                    size,
                    least: split,
                });
            }
        }
        let one_block = self.one_block(rows / split_m, columns / split_n, block_m)?;
        let split = LinearLayout::identity_1d(size_u32(split_m), COL, M)?;
        let mut layout = one_block.product(&split)?;
        if joint {
            layout = exchange_top_bits(&layout)?;
        }
        let split = LinearLayout::identity_1d(size_u32(split_n), COL, N)?;
        Ok(layout.product(&split)?)
    }

    fn one_block(
        &self,
        rows: u64,
        columns: u64,
        block_m: u64,
    ) -> Result<LinearLayout, EncodingError> {
        let block_n = u64::from(self.block_n).min(columns);
        if rows < block_m {
            return Err(EncodingError::ShapeTooSmall {
                dim: 0,
                size: rows,
                least: block_m,
            });
        }
        let mut row: Vec<[u32; 2]> = (0..4).map(|bit| [1 << bit, 0]).collect();
        let (mut tile_m, mut tile_n) = (block_m, block_n);
        if block_m == 64 {
            // Sixteen rows of every 32 are another tile's, if there is one.
            row.push(if rows > block_m {
                tile_m *= 2;
                [64, 0]
            } else if columns > block_n {
                tile_n *= 2;
                [0, size_u32(block_n)]
            } else {
                [0, 0]
            });
            row.extend([[16, 0], [32, 0]]);
        } else {
            row.extend((4..block_m.trailing_zeros()).map(|bit| [1 << bit, 0]));
        }
        let mut col = vec![[0, 0]; self.col_stride.trailing_zeros() as usize];
        col.extend((0..block_n.trailing_zeros()).map(|bit| [0, 1 << bit]));
        let tile = LinearLayout::from_bases(
            &[(ROW, &row[..]), (COL, &col[..])],
            &[(M, size_u32(tile_m)), (N, size_u32(tile_n))],
        )?;
        let more_rows = LinearLayout::identity_1d(size_u32(rows / tile_m), COL, M)?;
        let more_columns = LinearLayout::identity_1d(size_u32(columns / tile_n), COL, N)?;
        Ok(tile.product(&more_rows)?.product(&more_columns)?)
    }
}

impl Kind for TensorMemory {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            block_m: fields.number("blockM"),
            block_n: fields.number("blockN"),
            col_stride: fields.number("colStride"),
            cta_split_m: fields.number("CTASplitM"),
            cta_split_n: fields.number("CTASplitN"),
            two_ctas: fields.flag("twoCTAs"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("blockM", write.number(self.block_m)),
            ("blockN", write.number(self.block_n)),
            ("colStride", write.number(self.col_stride)),
            ("CTASplitM", write.number(self.cta_split_m)),
            ("CTASplitN", write.number(self.cta_split_n)),
            ("twoCTAs", write.flag(self.two_ctas)),
        ]
    }
}

/// The layout with the images of the highest row bit and the highest column bit exchanged.
fn exchange_top_bits(layout: &LinearLayout) -> Result<LinearLayout, EncodingError> {
    let bases = |dim| -> Vec<Vec<u32>> {
        (0..layout.in_dim_size_log2(dim))
            .filter_map(|bit| layout.basis(dim, bit).map(|basis| basis.to_vec()))
            .collect()
    };
    let (mut row, mut col) = (bases(ROW), bases(COL));
    if let (Some(top_row), Some(top_col)) = (row.last_mut(), col.last_mut()) {
        std::mem::swap(top_row, top_col);
    }
    let outs = [M, N].map(|dim| (dim, size_u32(layout.out_dim_size(dim))));
    Ok(LinearLayout::from_bases(
        &[(ROW, &row[..]), (COL, &col[..])],
        &outs,
    )?)
}

/// The fields of `#ttng.tensor_memory_scales_encoding`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMemoryScales {
    /// Blocks of the cluster that share the rows.
    pub cta_split_m: u32,
    /// Blocks of the cluster that share the columns.
    pub cta_split_n: u32,
}

impl TensorMemoryScales {
    /// The rank of the tensors: 2.
    #[must_use]
    pub fn rank(&self) -> usize {
        2
    }

    /// One block: the columns of all blocks are numbered consecutively.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        CgaLayout::single(2)
    }

    /// Invariants: none; splits that are not powers of two are rejected by the conversion to a layout.
    ///
    /// # Errors
    /// None.
    pub fn verify(&self) -> Result<(), EncodingError> {
        Ok(())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        verify_power_of_two("CTASplitM", self.cta_split_m)?;
        verify_power_of_two("CTASplitN", self.cta_split_n)?;
        let splits = [self.cta_split_m, self.cta_split_n];
        let mut share = [1; 2];
        for (dim, &size) in shape.iter().enumerate().take(2) {
            let least = u64::from(splits[dim]);
            if size < least {
                return Err(EncodingError::ShapeTooSmall { dim, size, least });
            }
            share[dim] = size / least;
        }
        // Chunks of 32 rows by 4 columns, in four copies along the rows; the next 32 rows follow along the columns,
        // then all other rows, then the next four columns.
        let identity = |count: u64, holder, dim| {
            LinearLayout::identity_1d(size_u32(count.max(1)), holder, dim)
        };
        let chunk = identity(32, ROW, M)?
            .product(&LinearLayout::zeros_1d(4, ROW, M, 1)?)?
            .product(&identity(4, COL, N)?)?
            .product(&identity(2, COL, M)?)?;
        let mut layout = chunk
            .product(&identity(share[0] / 64, COL, M)?)?
            .product(&identity(share[1] / 4, COL, N)?)?;
        for (dim, size) in [(M, share[0]), (N, share[1])] {
            if layout.out_dim_size(dim) > size {
                layout = layout.resize_out(dim, size_u32(size))?;
            }
        }
        Ok(layout
            .product(&identity(u64::from(splits[0]), COL, M)?)?
            .product(&identity(u64::from(splits[1]), COL, N)?)?)
    }
}

impl Kind for TensorMemoryScales {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            cta_split_m: fields.number("CTASplitM"),
            cta_split_n: fields.number("CTASplitN"),
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("CTASplitM", write.number(self.cta_split_m)),
            ("CTASplitN", write.number(self.cta_split_n)),
        ]
    }
}
