//! Reordering, regrouping, renaming, resizing, cutting and joining dimensions.

use super::compose::require_same_names;
use super::{Dims, LinearLayout, Rearrange, log2_of};
use crate::f2::WORD;
use crate::{Dim, LayoutError, MAX_DIMS, Side};

impl LinearLayout {
    /// The same map with its input dimensions in another order.
    ///
    /// Requires `order` to name every input dimension exactly once.
    pub fn transpose_ins(&self, order: &[Dim]) -> Result<LinearLayout, LayoutError> {
        let ins = reorder(Side::Input, &self.ins, order)?;
        let mut result = LinearLayout {
            ins,
            outs: self.outs,
            bases: [0; WORD],
        };
        for (dim, shift, bits) in ins.fields() {
            let target = &mut result.bases[shift as usize..(shift + bits) as usize];
            target.copy_from_slice(self.flat_bases_of(dim));
        }
        Ok(result)
    }

    /// The same map with its output dimensions in another order.
    ///
    /// Requires `order` to name every output dimension exactly once.
    pub fn transpose_outs(&self, order: &[Dim]) -> Result<LinearLayout, LayoutError> {
        let outs = reorder(Side::Output, &self.outs, order)?;
        Ok(self.with_outs_moved(outs))
    }

    /// The map with the outputs moved to the fields of the same name; outputs without such a field are dropped.
    fn with_outs_moved(&self, outs: Dims) -> LinearLayout {
        if outs == self.outs {
            return self.clone();
        }
        let rearrange = Rearrange::new(&self.outs, &outs);
        let mut result = LinearLayout {
            ins: self.ins,
            outs,
            bases: [0; WORD],
        };
        for (image, &basis) in result.bases.iter_mut().zip(self.flat_bases()) {
            *image = rearrange.apply(basis);
        }
        result
    }

    /// The inputs flattened, first dimension minor, and cut anew into `dims` (name, size).
    ///
    /// Requires power-of-two sizes with the same product as before, and distinct names.
    /// Ensures: `apply_flat` is unchanged.
    pub fn reshape_ins(&self, dims: &[(Dim, u32)]) -> Result<LinearLayout, LayoutError> {
        let ins = regroup(Side::Input, &self.ins, dims)?;
        Ok(LinearLayout {
            ins,
            ..self.clone()
        })
    }

    /// The outputs flattened, first dimension minor, and cut anew into `dims` (name, size).
    ///
    /// Requires power-of-two sizes with the same product as before, and distinct names.
    /// Ensures: `apply_flat` is unchanged.
    pub fn reshape_outs(&self, dims: &[(Dim, u32)]) -> Result<LinearLayout, LayoutError> {
        let outs = regroup(Side::Output, &self.outs, dims)?;
        Ok(LinearLayout {
            outs,
            ..self.clone()
        })
    }

    /// All inputs as one dimension with the name of the first; a layout without inputs stays.
    pub fn flatten_ins(&self) -> LinearLayout {
        LinearLayout {
            ins: flatten(&self.ins),
            ..self.clone()
        }
    }

    /// All outputs as one dimension with the name of the first; a layout without outputs stays.
    pub fn flatten_outs(&self) -> LinearLayout {
        LinearLayout {
            outs: flatten(&self.outs),
            ..self.clone()
        }
    }

    /// The map restricted to coordinates below `size` in one input dimension.
    ///
    /// Requires a power of two not above the present size.
    pub fn resize_in(&self, dim: Dim, size: u32) -> Result<LinearLayout, LayoutError> {
        let ins = shrink(Side::Input, &self.ins, dim, size)?;
        let mut result = LinearLayout {
            ins,
            outs: self.outs,
            bases: [0; WORD],
        };
        for (dim, shift, bits) in ins.fields() {
            let source = &self.flat_bases_of(dim)[..bits as usize];
            result.bases[shift as usize..(shift + bits) as usize].copy_from_slice(source);
        }
        Ok(result)
    }

    /// The map with one output coordinate taken modulo `size`.
    ///
    /// Requires a power of two not above the present size.
    pub fn resize_out(&self, dim: Dim, size: u32) -> Result<LinearLayout, LayoutError> {
        let outs = shrink(Side::Output, &self.outs, dim, size)?;
        Ok(self.with_outs_moved(outs))
    }

    /// The map with its output dimensions in another order, each coordinate taken modulo the size for its dimension; a
    /// size above the present one changes nothing.
    ///
    /// Requires `order` to name every output dimension exactly once, and powers of two.
    /// Ensures: what [`LinearLayout::resize_out`] for each dimension and [`LinearLayout::transpose_outs`] do, in one step.
    pub fn wrap_outs(
        &self,
        order: &[Dim],
        size_of: impl Fn(Dim) -> u64,
    ) -> Result<LinearLayout, LayoutError> {
        let side = Side::Output;
        let mut outs = Dims::EMPTY;
        for &dim in order {
            let size = size_of(dim);
            if !size.is_power_of_two() {
                return Err(LayoutError::NotPowerOfTwo { dim, size });
            }
            outs.push(side, dim, size.trailing_zeros().min(self.outs.log2(dim)))?;
        }
        require_same_names(side, &outs, &self.outs)?;
        Ok(self.with_outs_moved(outs))
    }

    /// The map with one output dimension declared larger; nothing maps to the new part.
    ///
    /// Requires a power of two not below the present size.
    pub fn extend_out(&self, dim: Dim, size: u32) -> Result<LinearLayout, LayoutError> {
        let side = Side::Output;
        let log2 = log2_of(dim, size)?;
        if !self.outs.contains(dim) {
            return Err(LayoutError::UnknownDim { side, dim });
        }
        let present = self.outs.log2(dim);
        if log2 < present {
            let (expected, found) = (1 << present, u64::from(size));
            return Err(LayoutError::SizeMismatch {
                side,
                dim,
                expected,
                found,
            });
        }
        let mut outs = Dims::EMPTY;
        for (name, _, bits) in self.outs.fields() {
            outs.push(side, name, if name == dim { log2 } else { bits })?;
        }
        Ok(self.with_outs_moved(outs))
    }

    /// The map with an input dimension renamed; its place in the order stays.
    ///
    /// Requires `from` to exist and `to` not to be the name of another.
    pub fn rename_in(&self, from: Dim, to: Dim) -> Result<LinearLayout, LayoutError> {
        Ok(LinearLayout {
            ins: rename(Side::Input, &self.ins, from, to)?,
            ..self.clone()
        })
    }

    /// The map with an output dimension renamed; its place in the order stays.
    ///
    /// Requires `from` to exist and `to` not to be the name of another.
    pub fn rename_out(&self, from: Dim, to: Dim) -> Result<LinearLayout, LayoutError> {
        Ok(LinearLayout {
            outs: rename(Side::Output, &self.outs, from, to)?,
            ..self.clone()
        })
    }

    /// Both layouts on one output: `(x, y) -> self(x) ^ other(y)`.
    ///
    /// Requires the same output dimensions with the same sizes, in any order, and distinct names
    /// of inputs.
    /// Ensures: the inputs of `self` come before those of `other`; the outputs are ordered as in
    /// `self`.
    pub fn concat_ins(&self, other: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        require_same_sizes(Side::Output, &self.outs, &other.outs)?;
        let mut result = self.clone();
        let rearrange = Rearrange::new(&other.outs, &self.outs);
        for (dim, _, bits) in other.ins.fields() {
            let first = result.ins.bits() as usize;
            result.ins.push(Side::Input, dim, bits)?;
            for (i, &basis) in other.flat_bases_of(dim).iter().enumerate() {
                result.bases[first + i] = rearrange.apply(basis);
            }
        }
        Ok(result)
    }

    /// Both layouts on one input: `x -> (self(x), other(x))`.
    ///
    /// Requires the same input dimensions with the same sizes, in any order, and distinct names
    /// of outputs.
    /// Ensures: the outputs of `self` come before those of `other`; the inputs are ordered as in
    /// `self`.
    pub fn concat_outs(&self, other: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        require_same_sizes(Side::Input, &self.ins, &other.ins)?;
        let mut result = self.clone();
        let first = self.outs.bits();
        for (dim, _, bits) in other.outs.fields() {
            result.outs.push(Side::Output, dim, bits)?;
        }
        let other = other.transpose_ins(self.ins.names())?;
        for (image, &basis) in result.bases.iter_mut().zip(other.flat_bases()) {
            *image |= basis.checked_shl(first).unwrap_or(0);
        }
        Ok(result)
    }

    /// The map with the zero basis vectors of one input dimension taken out, so that the dimension shrinks to the
    /// bits that change the output.
    ///
    /// Ensures: the same image. A dimension that is not there changes nothing.
    pub fn remove_zero_bases(&self, dim: Dim) -> LinearLayout {
        let bases = self.flat_bases_of(dim);
        retain_bits(self, dim, |bit| bases[bit] != 0)
    }

    /// The map without an input dimension of size 1.
    ///
    /// Requires the dimension to exist and to have size 1.
    pub fn squeeze_in(&self, dim: Dim) -> Result<LinearLayout, LayoutError> {
        Ok(LinearLayout {
            ins: squeeze(Side::Input, &self.ins, dim)?,
            ..self.clone()
        })
    }

    /// The map without an output dimension of size 1.
    ///
    /// Requires the dimension to exist and to have size 1.
    pub fn squeeze_out(&self, dim: Dim) -> Result<LinearLayout, LayoutError> {
        Ok(LinearLayout {
            outs: squeeze(Side::Output, &self.outs, dim)?,
            ..self.clone()
        })
    }

    /// The map from `in_dims` to `out_dims`: other inputs are 0, other outputs are dropped.
    ///
    /// Requires all names to exist.
    /// Ensures: sizes and the order of dimensions are those of `self`, whatever the order of the
    /// arguments.
    pub fn sublayout(
        &self,
        in_dims: &[Dim],
        out_dims: &[Dim],
    ) -> Result<LinearLayout, LayoutError> {
        for (side, dims, own) in [
            (Side::Input, in_dims, &self.ins),
            (Side::Output, out_dims, &self.outs),
        ] {
            if let Some(&dim) = dims.iter().find(|&&dim| !own.contains(dim)) {
                return Err(LayoutError::UnknownDim { side, dim });
            }
        }
        let mut result = LinearLayout::empty();
        for (dim, _, bits) in self.outs.fields().filter(|f| out_dims.contains(&f.0)) {
            result.outs.push(Side::Output, dim, bits)?;
        }
        let rearrange = Rearrange::new(&self.outs, &result.outs);
        for (dim, _, bits) in self.ins.fields().filter(|f| in_dims.contains(&f.0)) {
            let first = result.ins.bits() as usize;
            result.ins.push(Side::Input, dim, bits)?;
            for (i, &basis) in self.flat_bases_of(dim).iter().enumerate() {
                result.bases[first + i] = rearrange.apply(basis);
            }
        }
        Ok(result)
    }
}

/// The map without the bits of one input dimension that are not kept; those above them move down.
///
/// Ensures: the image of the inputs in which the others are 0. A dimension that is not there changes nothing.
pub fn retain_bits(
    layout: &LinearLayout,
    dim: Dim,
    is_kept: impl Fn(usize) -> bool,
) -> LinearLayout {
    let mut result = LinearLayout {
        ins: Dims::EMPTY,
        outs: layout.outs,
        bases: [0; WORD],
    };
    for (name, shift, bits) in layout.ins.fields() {
        let first = result.ins.bits() as usize;
        let mut count = 0;
        for bit in 0..bits as usize {
            if name != dim || is_kept(bit) {
                result.bases[first + count] = layout.bases[shift as usize + bit];
                count += 1;
            }
        }
        // Names are distinct and no dimension grew.
        let _ = result.ins.push(Side::Input, name, count as u32);
    }
    result
}

fn reorder(side: Side, dims: &Dims, order: &[Dim]) -> Result<Dims, LayoutError> {
    let mut result = Dims::EMPTY;
    for &dim in order {
        if !dims.contains(dim) {
            return Err(LayoutError::UnknownDim { side, dim });
        }
        result.push(side, dim, dims.log2(dim))?;
    }
    require_same_names(side, &result, dims)?;
    Ok(result)
}

fn regroup(side: Side, dims: &Dims, sizes: &[(Dim, u32)]) -> Result<Dims, LayoutError> {
    if sizes.len() > MAX_DIMS {
        return Err(LayoutError::TooManyDims {
            side,
            count: sizes.len(),
        });
    }
    let result = Dims::from_sizes(side, sizes)?;
    if result.bits() != dims.bits() {
        return Err(LayoutError::TotalSizeMismatch {
            side,
            expected_log2: dims.bits(),
            found_log2: result.bits(),
        });
    }
    Ok(result)
}

fn flatten(dims: &Dims) -> Dims {
    let mut result = Dims::EMPTY;
    if let Some(&first) = dims.names().first() {
        // One dimension with the bits that fitted before.
        let _ = result.push(Side::Input, first, dims.bits());
    }
    result
}

fn shrink(side: Side, dims: &Dims, dim: Dim, size: u32) -> Result<Dims, LayoutError> {
    let log2 = log2_of(dim, size)?;
    if !dims.contains(dim) {
        return Err(LayoutError::UnknownDim { side, dim });
    }
    if log2 > dims.log2(dim) {
        let (expected, found) = (1 << dims.log2(dim), u64::from(size));
        return Err(LayoutError::SizeMismatch {
            side,
            dim,
            expected,
            found,
        });
    }
    let mut result = Dims::EMPTY;
    for (name, _, bits) in dims.fields() {
        result.push(side, name, if name == dim { log2 } else { bits })?;
    }
    Ok(result)
}

fn rename(side: Side, dims: &Dims, from: Dim, to: Dim) -> Result<Dims, LayoutError> {
    if !dims.contains(from) {
        return Err(LayoutError::UnknownDim { side, dim: from });
    }
    let mut result = Dims::EMPTY;
    for (name, _, bits) in dims.fields() {
        result.push(side, if name == from { to } else { name }, bits)?;
    }
    Ok(result)
}

fn squeeze(side: Side, dims: &Dims, dim: Dim) -> Result<Dims, LayoutError> {
    if !dims.contains(dim) {
        return Err(LayoutError::UnknownDim { side, dim });
    }
    if dims.log2(dim) != 0 {
        let found = 1 << dims.log2(dim);
        return Err(LayoutError::SizeMismatch {
            side,
            dim,
            expected: 1,
            found,
        });
    }
    let mut result = Dims::EMPTY;
    for (name, _, bits) in dims.fields().filter(|f| f.0 != dim) {
        result.push(side, name, bits)?;
    }
    Ok(result)
}

fn require_same_sizes(side: Side, a: &Dims, b: &Dims) -> Result<(), LayoutError> {
    require_same_names(side, a, b)?;
    for (dim, _, bits) in a.fields() {
        if bits != b.log2(dim) {
            let (expected, found) = (1 << bits, 1 << b.log2(dim));
            return Err(LayoutError::SizeMismatch {
                side,
                dim,
                expected,
                found,
            });
        }
    }
    Ok(())
}
