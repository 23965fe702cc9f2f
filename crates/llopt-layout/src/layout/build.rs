//! Building layouts: empty, identity, strided, zeros, and from bases.

use alloc::vec::Vec;

use super::{Dims, LinearLayout, log2_of};
use crate::{Dim, LayoutError, MAX_BITS, MAX_DIMS, Side};

/// The layout with these dimensions, their sizes as log2, and the flattened image of each input bit.
///
/// Requires: distinct names on each side; one image for each bit of the inputs, none with a bit beyond the outputs.
/// Ensures: the layout of [`LinearLayout::from_bases`] whose bases have these flattened images.
pub fn from_flat_bases(
    ins: &[(Dim, u32)],
    outs: &[(Dim, u32)],
    bases: &[u32],
) -> Result<LinearLayout, LayoutError> {
    let mut layout = LinearLayout::empty();
    for &(dim, log2) in ins {
        layout.ins.push(Side::Input, dim, log2)?;
    }
    for &(dim, log2) in outs {
        layout.outs.push(Side::Output, dim, log2)?;
    }
    let bits = layout.ins.bits() as usize;
    if bases.len() != bits {
        return Err(LayoutError::BasisArity {
            dim: ins.last().map_or(Dim::REGISTER, |(dim, _)| *dim),
            bit: 0,
            expected: bits,
            found: bases.len(),
        });
    }
    let size = 1u64 << layout.outs.bits();
    for (column, &basis) in (0u32..).zip(bases) {
        if u64::from(basis) >= size {
            let (dim, bit) = layout.ins.locate(column);
            let out_dim = outs.last().map_or(Dim::REGISTER, |(dim, _)| *dim);
            return Err(LayoutError::BasisOutOfRange {
                dim,
                bit,
                out_dim,
                value: basis,
                size,
            });
        }
    }
    layout.bases[..bits].copy_from_slice(bases);
    Ok(layout)
}

impl LinearLayout {
    /// The layout without dimensions; it maps the only point to the only point.
    ///
    /// Ensures: the neutral element of the product.
    pub const fn empty() -> LinearLayout {
        LinearLayout {
            ins: Dims::EMPTY,
            outs: Dims::EMPTY,
            bases: [0; MAX_BITS],
        }
    }

    /// The map `x -> x` from `in_dim` to `out_dim`, both of size `size`.
    ///
    /// Requires `size` to be a power of two.
    /// Ensures: invertible.
    pub fn identity_1d(size: u32, in_dim: Dim, out_dim: Dim) -> Result<LinearLayout, LayoutError> {
        LinearLayout::strided_1d(size, 1, in_dim, out_dim)
    }

    /// The map `x -> stride * x` from `in_dim` of size `size` to `out_dim` of size
    /// `size * stride`.
    ///
    /// Requires `size` and `stride` to be powers of two and the product to fit in 32 bits.
    /// Ensures: injective; surjective exactly when `stride` is 1 or `size` is 1. A layout of size
    /// 1 has an output of size 1 whatever the stride.
    pub fn strided_1d(
        size: u32,
        stride: u32,
        in_dim: Dim,
        out_dim: Dim,
    ) -> Result<LinearLayout, LayoutError> {
        let log2 = log2_of(in_dim, size)?;
        let stride = log2_of(out_dim, stride)?;
        let mut layout = LinearLayout::empty();
        layout.ins.push(Side::Input, in_dim, log2)?;
        layout.outs.push(
            Side::Output,
            out_dim,
            if log2 == 0 { 0 } else { log2 + stride },
        )?;
        for bit in 0..log2 {
            layout.bases[bit as usize] = 1 << (bit + stride);
        }
        Ok(layout)
    }

    /// The map `x -> 0` from `in_dim` of size `size` to `out_dim` of size `out_size`.
    ///
    /// Requires both sizes to be powers of two.
    /// Ensures: surjective exactly when `out_size` is 1.
    pub fn zeros_1d(
        size: u32,
        in_dim: Dim,
        out_dim: Dim,
        out_size: u32,
    ) -> Result<LinearLayout, LayoutError> {
        let mut layout = LinearLayout::empty();
        layout
            .ins
            .push(Side::Input, in_dim, log2_of(in_dim, size)?)?;
        layout
            .outs
            .push(Side::Output, out_dim, log2_of(out_dim, out_size)?)?;
        Ok(layout)
    }

    /// The layout whose input dimension `d` maps `2^i` to the tuple `bases[d][i]`, one entry per
    /// output dimension.
    ///
    /// Requires: distinct names on each side, power-of-two output sizes, one entry per output
    /// dimension in every basis vector, entries below the size of their dimension.
    /// Does not require the layout to be surjective; see [`LinearLayout::require_surjective`].
    ///
    /// ```
    /// use llopt_layout::{Dim, LinearLayout};
    /// let swizzled = LinearLayout::from_bases(
    ///     &[
    ///         (Dim::LANE, &[[0, 1], [0, 2]]),
    ///         (Dim::WARP, &[[1, 1], [2, 2]]),
    ///     ],
    ///     &[(Dim::tensor(0), 4), (Dim::tensor(1), 4)],
    /// )?;
    /// let element = swizzled.apply(&[(Dim::LANE, 1), (Dim::WARP, 2)])?;
    /// assert_eq!(&*element, &[(Dim::tensor(0), 2), (Dim::tensor(1), 3)]);
    /// # Ok::<(), llopt_layout::LayoutError>(())
    /// ```
    pub fn from_bases<V: AsRef<[u32]>>(
        bases: &[(Dim, &[V])],
        out_dims: &[(Dim, u32)],
    ) -> Result<LinearLayout, LayoutError> {
        if bases.len() > MAX_DIMS {
            return Err(LayoutError::TooManyDims {
                side: Side::Input,
                count: bases.len(),
            });
        }
        if out_dims.len() > MAX_DIMS {
            return Err(LayoutError::TooManyDims {
                side: Side::Output,
                count: out_dims.len(),
            });
        }
        let mut layout = LinearLayout::empty();
        layout.outs = Dims::from_sizes(Side::Output, out_dims)?;
        let mut column = 0;
        for &(dim, vectors) in bases {
            let log2 = u32::try_from(vectors.len()).unwrap_or(u32::MAX);
            layout.ins.push(Side::Input, dim, log2)?;
            for (bit, vector) in (0..log2).zip(vectors) {
                layout.bases[column] = layout.flatten_basis(dim, bit, vector.as_ref())?;
                column += 1;
            }
        }
        Ok(layout)
    }

    /// As [`LinearLayout::from_bases`], with each output size inferred: the next power of two
    /// above the largest entry.
    ///
    /// Requires, besides what `from_bases` does, that the layout be surjective onto these sizes; otherwise the sizes
    /// are not determined by the bases and have to be given.
    pub fn from_bases_surjective<V: AsRef<[u32]>>(
        bases: &[(Dim, &[V])],
        out_dims: &[Dim],
    ) -> Result<LinearLayout, LayoutError> {
        let mut sizes: Vec<(Dim, u32)> = out_dims.iter().map(|&dim| (dim, 1)).collect();
        for &(dim, vectors) in bases {
            for (bit, vector) in (0..).zip(vectors) {
                for (&value, (out_dim, size)) in vector.as_ref().iter().zip(&mut sizes) {
                    // An entry v needs the size 2^(bits of v), which has to fit in 32 bits itself.
                    let needed = value
                        .checked_add(1)
                        .and_then(u32::checked_next_power_of_two);
                    let needed = needed.ok_or(LayoutError::BasisOutOfRange {
                        dim,
                        bit,
                        out_dim: *out_dim,
                        value,
                        size: 1 << 31,
                    })?;
                    *size = (*size).max(needed);
                }
            }
        }
        LinearLayout::from_bases(bases, &sizes)?.require_surjective()
    }

    /// The layout itself if it is surjective; otherwise the first output that nothing maps to.
    pub fn require_surjective(self) -> Result<LinearLayout, LayoutError> {
        match self.first_missing_output() {
            None => Ok(self),
            Some((dim, bit)) => Err(LayoutError::NotSurjective { dim, bit }),
        }
    }

    /// The layout itself if it is injective; otherwise the first basis vector that is a sum of the
    /// ones before it.
    pub fn require_injective(self) -> Result<LinearLayout, LayoutError> {
        match self.first_dependent_input() {
            None => Ok(self),
            Some((dim, bit)) => Err(LayoutError::NotInjective { dim, bit }),
        }
    }

    fn flatten_basis(&self, dim: Dim, bit: u32, vector: &[u32]) -> Result<u32, LayoutError> {
        if vector.len() != self.outs.len() {
            let (expected, found) = (self.outs.len(), vector.len());
            return Err(LayoutError::BasisArity {
                dim,
                bit,
                expected,
                found,
            });
        }
        let mut flat = 0;
        for (&value, (out_dim, shift, bits)) in vector.iter().zip(self.outs.fields()) {
            let size = 1u64 << bits;
            if u64::from(value) >= size {
                return Err(LayoutError::BasisOutOfRange {
                    dim,
                    bit,
                    out_dim,
                    value,
                    size,
                });
            }
            // A dimension without bits may start at bit 32.
            flat |= value.checked_shl(shift).unwrap_or(0);
        }
        Ok(flat)
    }
}
