//! The scheme that encodings share: distribute a tile, repeat it or wrap it around, put the blocks on top.

use llopt_layout::{Dim, LinearLayout};
use llopt_target::matrix::{Axis, Fragment};

use super::field::size_u32;
use super::{CgaLayout, EncodingError};

/// One block's tile during its distribution, lowest bits first.
pub(super) struct Tile {
    layout: LinearLayout,
    /// The input dimension for the registers or offsets that a larger shape adds.
    repeat_in: Dim,
}

impl Tile {
    /// A tile of one element, spread over the registers, lanes and warps that will be named.
    ///
    /// `order` says which dimension is repeated first when the shape is larger.
    pub(super) fn distributed(order: &[usize]) -> Result<Self, EncodingError> {
        Self::single(&[Dim::REGISTER, Dim::LANE, Dim::WARP], order)
    }

    /// A tile of one element in a memory, repeated in the given order of dimensions.
    pub(super) fn memory(order: &[usize]) -> Result<Self, EncodingError> {
        Self::single(&[Dim::OFFSET], order)
    }

    fn single(ins: &[Dim], order: &[usize]) -> Result<Self, EncodingError> {
        let no_bases: &[[u32; 0]] = &[];
        let bases: Vec<_> = ins.iter().map(|&dim| (dim, no_bases)).collect();
        let outs: Vec<_> = order.iter().map(|&dim| (Dim::tensor(dim), 1)).collect();
        Ok(Self {
            layout: LinearLayout::from_bases(&bases, &outs)?,
            repeat_in: ins[0],
        })
    }

    /// A tile of a memory with given bases, one entry per dimension of `order` in that order.
    pub(super) fn memory_bases(
        bases: &[Vec<u32>],
        sizes: &[(usize, u32)],
    ) -> Result<Self, EncodingError> {
        let outs: Vec<_> = sizes
            .iter()
            .map(|&(dim, size)| (Dim::tensor(dim), size))
            .collect();
        Ok(Self {
            layout: LinearLayout::from_bases(&[(Dim::OFFSET, bases)], &outs)?,
            repeat_in: Dim::OFFSET,
        })
    }

    /// A tile that is already a layout of one block.
    pub(super) fn of(layout: LinearLayout, repeat_in: Dim) -> Self {
        Self { layout, repeat_in }
    }

    /// Assigns the next bits of tensor dimension `dim` to `count` holders. None are assigned for 0 or 1.
    pub(super) fn along(
        mut self,
        holder: Dim,
        count: u32,
        dim: usize,
    ) -> Result<Self, EncodingError> {
        if count > 1 {
            self.layout
                .times_identity(count, holder, Dim::tensor(dim))?;
        }
        Ok(self)
    }

    /// As `along`, and the tile has the dimension afterwards even if nothing is assigned.
    pub(super) fn along_or_unit(
        mut self,
        holder: Dim,
        count: u32,
        dim: usize,
    ) -> Result<Self, EncodingError> {
        self.layout
            .times_identity(count.max(1), holder, Dim::tensor(dim))?;
        Ok(self)
    }

    /// Makes `count` holders hold copies.
    pub(super) fn copies(
        mut self,
        holder: Dim,
        count: u32,
        dim: usize,
    ) -> Result<Self, EncodingError> {
        if count > 1 {
            self.layout.times_zeros(count, holder, Dim::tensor(dim))?;
        }
        Ok(self)
    }

    /// Assigns `counts[dim]` along each dimension, in the given order.
    pub(super) fn along_all(
        mut self,
        holder: Dim,
        counts: &[u32],
        order: &[usize],
    ) -> Result<Self, EncodingError> {
        for &dim in order {
            self = self.along(holder, counts[dim], dim)?;
        }
        Ok(self)
    }

    /// As `along_all`, with copies along the dimension `summed`, which every warp (or lane) needs completely.
    pub(super) fn along_all_but(
        mut self,
        holder: Dim,
        counts: &[u32],
        order: &[usize],
        summed: usize,
    ) -> Result<Self, EncodingError> {
        for &dim in order {
            self = if dim == summed {
                self.copies(holder, counts[dim], dim)?
            } else {
                self.along(holder, counts[dim], dim)?
            };
        }
        Ok(self)
    }

    /// Distributes a matrix instruction's fragment.
    pub(super) fn fragment(
        mut self,
        fragment: &Fragment,
        width: u32,
        dim_of: impl Fn(Axis) -> usize,
    ) -> Result<Self, EncodingError> {
        for (holder, axis, count) in fragment.deal(width) {
            self = match axis {
                Some(axis) => self.along(holder.dim(), count, dim_of(axis))?,
                None => self.copies(holder.dim(), count, dim_of(Axis::K))?,
            };
        }
        Ok(self)
    }

    /// Distributes the results of AMD's matrix instructions, `width` columns wide, over a warp's registers and over
    /// the warps.
    ///
    /// A warp's tiles are numbered along the columns through the whole tensor, before the next row of tiles; the
    /// matrix product's lowering counts on it.
    pub(super) fn warp_tiles(
        self,
        shape: &[u64],
        width: u32,
        tiles_per_warp: &[u32],
        warps_per_cta: &[u32],
    ) -> Result<Self, EncodingError> {
        let (m, n) = (shape.len() - 2, shape.len() - 1);
        let columns = [width, warps_per_cta[n], tiles_per_warp[n]]
            .iter()
            .fold(1, |size: u64, &count| size.saturating_mul(count.into()));
        let tile = self
            .along(Dim::REGISTER, tiles_per_warp[n], n)?
            .along(Dim::WARP, warps_per_cta[n], n)?
            .along(Dim::REGISTER, size_u32(shape[n] / columns), n)?
            .along(Dim::REGISTER, tiles_per_warp[m], m)?
            .along(Dim::WARP, warps_per_cta[m], m)?;
        match shape.len() {
            3 => tile.along(Dim::WARP, warps_per_cta[0], 0),
            _ => Ok(tile),
        }
    }

    /// Repeats the tile until it has at least the given size along each dimension.
    pub(super) fn repeat_to(self, size_of: impl Fn(Dim) -> u64) -> Result<Self, EncodingError> {
        let dims = self.layout.out_dims().to_vec();
        self.repeat_along(dims, size_of)
    }

    /// The same, one dimension after the other as they are given.
    pub(super) fn repeat_along(
        mut self,
        dims: impl IntoIterator<Item = Dim>,
        size_of: impl Fn(Dim) -> u64,
    ) -> Result<Self, EncodingError> {
        for dim in dims {
            let missing = size_of(dim) / self.layout.out_dim_size(dim);
            if missing > 1 {
                let missing = u32::try_from(missing).unwrap_or(u32::MAX);
                self.layout.times_identity(missing, self.repeat_in, dim)?;
            }
        }
        Ok(self)
    }

    /// The tile as it is.
    pub(super) fn into_layout(self) -> LinearLayout {
        self.layout
    }

    /// The layout of the whole shape: each block's share repeated or wrapped, the blocks on top.
    pub(super) fn on(
        self,
        shape: &[u64],
        cga_layout: &CgaLayout,
    ) -> Result<LinearLayout, EncodingError> {
        // One block has everything, and its number no bits.
        let blocks = match cga_layout.is_single() {
            true => None,
            false => Some(cga_layout.layout_on(shape)?),
        };
        let share = |dim: Dim| {
            let size = dim.tensor_index().map_or(1, |index| shape[index]);
            let pieces = blocks
                .as_ref()
                .map_or(0, |blocks| blocks.out_dim_size_log2(dim));
            (size >> pieces).max(1)
        };
        let standard: Vec<Dim> = (0..shape.len()).map(Dim::tensor).collect();
        let repeated = self.repeat_to(share)?.layout;
        let mut layout = repeated.wrap_outs(&standard, share)?;
        match &blocks {
            None => layout.times_identity(1, Dim::BLOCK, Dim::tensor(0))?,
            Some(blocks) => layout = layout.product(blocks)?,
        }
        Ok(layout)
    }
}
