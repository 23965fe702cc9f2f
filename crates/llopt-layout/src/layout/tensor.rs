//! Shape operations: the layout of the result when no element moves.
//!
//! The outputs are the dimensions of a row-major tensor, `dim0`, `dim1`, … in this order, the last
//! one varying fastest in memory order. For each operation the layout of its result exists within
//! the family such that every (register, lane, warp, block) keeps its element; the family is
//! closed under shape operations. Operations that make new elements (join, broadcast) take them
//! into new registers.

use super::{Dims, LinearLayout};
use crate::f2::WORD;
use crate::{Dim, InlineList, LayoutError, MAX_DIMS, Side};

impl LinearLayout {
    /// The rank of the tensor.
    ///
    /// Requires the outputs to be `dim0`, `dim1`, … in this order, as all operations of this file
    /// do.
    pub fn tensor_rank(&self) -> Result<usize, LayoutError> {
        for (position, &dim) in self.out_dims().iter().enumerate() {
            if dim != Dim::tensor(position) {
                return Err(LayoutError::NotTensorDims { dim, position });
            }
        }
        Ok(self.out_dims().len())
    }

    /// The layout after `trans`: axis `i` of the result is axis `order[i]` of the operand.
    ///
    /// Requires `order` to be a permutation of the axes.
    pub fn permute_axes(&self, order: &[usize]) -> Result<LinearLayout, LayoutError> {
        let rank = self.tensor_rank()?;
        if order.len() > MAX_DIMS {
            return Err(LayoutError::TooManyDims {
                side: Side::Output,
                count: order.len(),
            });
        }
        for (i, &axis) in order.iter().enumerate() {
            if axis >= rank || order[..i].contains(&axis) {
                return Err(LayoutError::BadAxis { axis, rank });
            }
        }
        let names: InlineList<Dim, MAX_DIMS> =
            order.iter().map(|&axis| Dim::tensor(axis)).collect();
        Ok(self.transpose_outs(&names)?.with_tensor_names())
    }

    /// The layout after `reshape` to `shape`, in row-major order of the elements.
    ///
    /// Requires power-of-two extents with the same product as before.
    /// Ensures: the element at row-major position `p` before is the one at `p` after.
    pub fn reshape_tensor(&self, shape: &[u32]) -> Result<LinearLayout, LayoutError> {
        self.tensor_rank()?;
        if shape.len() > MAX_DIMS {
            return Err(LayoutError::TooManyDims {
                side: Side::Output,
                count: shape.len(),
            });
        }
        let minor_first: InlineList<(Dim, u32), MAX_DIMS> = shape
            .iter()
            .enumerate()
            .rev()
            .map(|(i, &size)| (Dim::tensor(i), size))
            .collect();
        let major_first: InlineList<Dim, MAX_DIMS> = (0..shape.len()).map(Dim::tensor).collect();
        self.row_major()?
            .reshape_outs(&minor_first)?
            .transpose_outs(&major_first)
    }

    /// The layout with the outputs in row-major order of the flattened word: the last dimension
    /// takes the lowest bits, so that the flattened output is the position in memory order.
    pub fn row_major(&self) -> Result<LinearLayout, LayoutError> {
        self.tensor_rank()?;
        let reversed: InlineList<Dim, MAX_DIMS> = self.out_dims().iter().rev().copied().collect();
        self.transpose_outs(&reversed)
    }

    /// The layout after `join` of two tensors of this layout: a new last axis of extent 2, along
    /// which the lowest register bit selects the operand.
    pub fn join(&self) -> Result<LinearLayout, LayoutError> {
        let rank = self.tensor_rank()?;
        let pair = LinearLayout::identity_1d(2, Dim::REGISTER, Dim::tensor(rank))?;
        let joined = pair.product(self)?;
        let mut order: InlineList<Dim, MAX_DIMS> = self.out_dims().iter().copied().collect();
        order.add(Dim::tensor(rank));
        let ins: InlineList<Dim, MAX_DIMS> = if self.has_in_dim(Dim::REGISTER) {
            self.in_dims()
        } else {
            joined.in_dims()
        }
        .iter()
        .copied()
        .collect();
        joined.transpose_ins(&ins)?.transpose_outs(&order)
    }

    /// The layout after `split` along the last axis, which has extent 2, and the register bit that
    /// tells the two results apart.
    ///
    /// Requires one register bit to map to the last axis alone and nothing else to it; otherwise the two halves lie
    /// in different threads, and the error names the basis vector that prevents the split. Ensures: the layout has
    /// one axis and that register bit less.
    pub fn split(&self) -> Result<(LinearLayout, u32), LayoutError> {
        let rank = self.tensor_rank()?;
        let last = match rank.checked_sub(1) {
            Some(i) => Dim::tensor(i),
            None => return Err(LayoutError::BadAxis { axis: 0, rank }),
        };
        if self.out_dim_size_log2(last) != 1 {
            let found = self.out_dim_size(last);
            return Err(LayoutError::SizeMismatch {
                side: Side::Output,
                dim: last,
                expected: 2,
                found,
            });
        }
        let mask = self.out_mask(&[last]);
        let mut selector = None;
        for (column, &basis) in (0..).zip(self.flat_bases()) {
            if basis & mask != 0 {
                let (dim, bit) = self.ins.locate(column);
                if basis != mask || dim != Dim::REGISTER || selector.is_some() {
                    return Err(LayoutError::NotSeparable {
                        dim,
                        bit,
                        out_dim: last,
                    });
                }
                selector = Some(bit);
            }
        }
        let bit = selector.ok_or(LayoutError::NotSurjective { dim: last, bit: 0 })?;
        let kept: InlineList<u8, WORD> = (0..self.in_dim_size_log2(Dim::REGISTER))
            .filter(|&b| b != bit)
            .map(|b| b as u8)
            .collect();
        let half = self
            .select_bases(Dim::REGISTER, &kept)?
            .resize_out(last, 1)?;
        Ok((half.squeeze_out(last)?, bit))
    }

    /// The layout after `expand_dims`: a new axis of extent 1 at position `axis`.
    ///
    /// Requires `axis` up to the rank.
    pub fn expand_axis(&self, axis: usize) -> Result<LinearLayout, LayoutError> {
        let rank = self.tensor_rank()?;
        if axis > rank {
            return Err(LayoutError::BadAxis { axis, rank });
        }
        let mut outs = Dims::EMPTY;
        for i in 0..=rank {
            let log2 = match i {
                i if i < axis => self.out_dim_size_log2(Dim::tensor(i)),
                i if i == axis => 0,
                i => self.out_dim_size_log2(Dim::tensor(i - 1)),
            };
            outs.push(Side::Output, Dim::tensor(i), log2)?;
        }
        // An axis of extent 1 takes no bits: the flattened outputs stay as they are.
        Ok(LinearLayout {
            outs,
            ..self.clone()
        })
    }

    /// The layout after `broadcast` to `shape`: each axis of extent 1 that grows takes new
    /// registers above the present ones, which all hold the one element that is there.
    ///
    /// Requires `shape` to have the rank of the tensor and to equal it on axes that do not have
    /// extent 1.
    /// Ensures: dropping the new register bits and [`LinearLayout::collapse_axis`] on the grown
    /// axes give the operand's layout back.
    pub fn broadcast(&self, shape: &[u32]) -> Result<LinearLayout, LayoutError> {
        let rank = self.tensor_rank()?;
        if shape.len() != rank {
            return Err(LayoutError::BadAxis {
                axis: shape.len(),
                rank,
            });
        }
        let mut result = self.clone();
        for (i, &size) in shape.iter().enumerate() {
            let dim = Dim::tensor(i);
            let found = self.out_dim_size(dim);
            if found == u64::from(size) {
                continue;
            }
            if found != 1 {
                let expected = u64::from(size);
                return Err(LayoutError::SizeMismatch {
                    side: Side::Output,
                    dim,
                    expected,
                    found,
                });
            }
            result = result.product(&LinearLayout::identity_1d(size, Dim::REGISTER, dim)?)?;
        }
        Ok(result)
    }

    /// The layout after `reduce` along `axis` with the axis kept at extent 1: places that differed
    /// along the axis only now hold the same element.
    ///
    /// Requires `axis` below the rank.
    pub fn collapse_axis(&self, axis: usize) -> Result<LinearLayout, LayoutError> {
        let rank = self.tensor_rank()?;
        if axis >= rank {
            return Err(LayoutError::BadAxis { axis, rank });
        }
        self.resize_out(Dim::tensor(axis), 1)
    }

    /// The layout after `reduce` along `axis`: [`LinearLayout::collapse_axis`] without the axis.
    ///
    /// Requires `axis` below the rank.
    pub fn reduce_axis(&self, axis: usize) -> Result<LinearLayout, LayoutError> {
        let collapsed = self.collapse_axis(axis)?.squeeze_out(Dim::tensor(axis))?;
        Ok(collapsed.with_tensor_names())
    }

    /// The layout with the bits `order` of `dim` only, in this order.
    ///
    /// Requires bits that exist; none may be repeated beyond the capacity of a layout.
    pub(crate) fn select_bases(&self, dim: Dim, order: &[u8]) -> Result<LinearLayout, LayoutError> {
        let side = Side::Input;
        if !self.ins.contains(dim) && !order.is_empty() {
            return Err(LayoutError::UnknownDim { side, dim });
        }
        let mut result = LinearLayout {
            ins: Dims::EMPTY,
            outs: self.outs,
            bases: [0; WORD],
        };
        for (name, _, bits) in self.ins.fields() {
            let first = result.ins.bits() as usize;
            let bases = self.flat_bases_of(name);
            if name == dim {
                result.ins.push(side, name, order.len() as u32)?;
                for (i, &bit) in order.iter().enumerate() {
                    result.bases[first + i] = bases[usize::from(bit)];
                }
            } else {
                result.ins.push(side, name, bits)?;
                result.bases[first..first + bases.len()].copy_from_slice(bases);
            }
        }
        Ok(result)
    }

    /// The layout with the outputs named `dim0`, `dim1`, … in the order that they have.
    fn with_tensor_names(mut self) -> LinearLayout {
        for i in 0..self.outs.len() {
            self.outs.names[i] = Dim::tensor(i);
        }
        self
    }
}
