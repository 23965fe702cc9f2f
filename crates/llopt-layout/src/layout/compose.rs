//! Composition, inverses, and least-squares division.

use super::{Dims, LinearLayout, Rearrange};
use crate::f2::{Echelon, WORD};
use crate::{Dim, LayoutError, Side};

impl LinearLayout {
    /// The layout `x -> outer(self(x))`.
    ///
    /// Requires: the output dimensions of `self` are the input dimensions of `outer`, in any
    /// order, and none is larger than its counterpart.
    /// Ensures: the inputs of `self`, the outputs of `outer`; associative; surjective if both are
    /// and the sizes in between are equal.
    pub fn compose(&self, outer: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        require_same_names(Side::Input, &self.outs, &outer.ins)?;
        require_not_larger(Side::Output, &self.outs, &outer.ins)?;
        let rearrange = Rearrange::new(&self.outs, &outer.ins);
        let mut result = LinearLayout {
            ins: self.ins,
            outs: outer.outs,
            bases: [0; WORD],
        };
        for (image, &basis) in result.bases.iter_mut().zip(self.flat_bases()) {
            *image = outer.apply_flat(rearrange.apply(basis));
        }
        Ok(result)
    }

    /// The inverse: from outputs to inputs.
    ///
    /// Requires the layout to be invertible; the error names the output that is missed or the
    /// basis vector that is redundant.
    /// Ensures: both compositions with `self` are the identity.
    pub fn invert(&self) -> Result<LinearLayout, LayoutError> {
        let result = self.pseudo_invert()?;
        if self.ins.bits() == self.outs.bits() {
            return Ok(result);
        }
        // Surjective, with bits to spare.
        let (dim, bit) = self.first_dependent_input().unwrap_or((Dim::default(), 0));
        Err(LayoutError::NotInjective { dim, bit })
    }

    /// A right inverse: for each output an input that maps to it.
    ///
    /// Requires the layout to be surjective.
    /// Ensures: `result.compose(self)` is the identity; free bits of the input are zero, so that
    /// of all places of an element the one with the smallest free part is named.
    pub fn pseudo_invert(&self) -> Result<LinearLayout, LayoutError> {
        let echelon = Echelon::of(self.flat_bases());
        let mut result = LinearLayout {
            ins: self.outs,
            outs: self.ins,
            bases: [0; WORD],
        };
        for bit in 0..self.outs.bits() {
            result.bases[bit as usize] = echelon.solve(1 << bit).ok_or_else(|| {
                let (dim, bit) = self.outs.locate(bit);
                LayoutError::NotSurjective { dim, bit }
            })?;
        }
        Ok(result)
    }

    /// A layout `C` from the inputs of `self` to the inputs of `outer` with
    /// `outer(C(x)) == self(x)`: the conversion that says where, in `outer`, the element lies that
    /// `self` wants at `x`.
    ///
    /// Requires: the same output dimensions in any order, none of `self` larger than that of
    /// `outer`, and every basis vector of `self` in the image of `outer`.
    ///
    /// There may be many such maps. The one that is returned
    /// * is the identity on each input dimension on which the two layouts agree, so that a
    ///   conversion does not leave its lane, warp or block without need;
    /// * has minimal norm on the others: whenever `self` maps two inputs to the same element,
    ///   both read it from the same place, so that broadcasts have one source.
    ///
    /// For an invertible `outer` the map is unique and is `outer⁻¹ ∘ self`.
    pub fn invert_and_compose(&self, outer: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        require_same_names(Side::Output, &self.outs, &outer.outs)?;
        require_not_larger(Side::Output, &self.outs, &outer.outs)?;
        let rearrange = Rearrange::new(&self.outs, &outer.outs);
        let agreed = self.agreeing_inputs(outer, &rearrange);
        let mut result = LinearLayout {
            ins: self.ins,
            outs: outer.ins,
            bases: [0; WORD],
        };

        let outside = |column: usize| {
            let (dim, bit) = self.ins.locate(column as u32);
            LayoutError::OutsideImage { dim, bit }
        };
        if agreed.outer == 0 {
            let echelon = Echelon::of(outer.flat_bases());
            for (column, &basis) in self.flat_bases().iter().enumerate() {
                let recipe = echelon.solve(rearrange.apply(basis));
                result.bases[column] = recipe.ok_or_else(|| outside(column))?;
            }
            return Ok(result);
        }

        // Columns on which the layouts disagree come first, so that they are the sources wherever
        // that is possible; the agreed ones are there for layouts that need them.
        let mut order = [0u8; WORD];
        let mut count = 0;
        let mut echelon = Echelon::new();
        for last in [false, true] {
            for (column, &basis) in outer.flat_bases().iter().enumerate() {
                if (agreed.outer >> column & 1 == 1) == last {
                    let _ = echelon.insert(basis);
                    order[count] = column as u8;
                    count += 1;
                }
            }
        }
        for (column, &basis) in self.flat_bases().iter().enumerate() {
            result.bases[column] = if agreed.own >> column & 1 == 1 {
                let (dim, bit) = self.ins.locate(column as u32);
                1 << (outer.ins.field(dim).0 + bit)
            } else {
                let recipe = echelon.solve(rearrange.apply(basis));
                let recipe = recipe.ok_or_else(|| outside(column))?;
                crate::f2::ones(recipe).fold(0, |acc, i| acc | 1 << order[i as usize])
            };
        }
        Ok(result)
    }

    /// The columns of the input dimensions that map alike in both layouts.
    fn agreeing_inputs(&self, outer: &LinearLayout, rearrange: &Rearrange) -> Agreed {
        let mut agreed = Agreed { own: 0, outer: 0 };
        for (dim, shift, bits) in self.ins.fields() {
            let (there, there_bits) = outer.ins.field(dim);
            let alike = bits == there_bits
                && outer.ins.contains(dim)
                && self
                    .flat_bases_of(dim)
                    .iter()
                    .zip(outer.flat_bases_of(dim))
                    .all(|(&own, &other)| rearrange.apply(own) == other);
            if alike && bits > 0 {
                agreed.own |= crate::f2::low_mask(bits) << shift;
                agreed.outer |= crate::f2::low_mask(bits) << there;
            }
        }
        agreed
    }
}

/// Masks of columns in the two layouts.
struct Agreed {
    own: u32,
    outer: u32,
}

/// Both lists have the same names; the error is about the names of `a` and where `b` lacks one.
pub(crate) fn require_same_names(side: Side, a: &Dims, b: &Dims) -> Result<(), LayoutError> {
    if a.names() == b.names() {
        return Ok(());
    }
    if let Some(&dim) = a.names().iter().find(|&&dim| !b.contains(dim)) {
        return Err(LayoutError::UnknownDim { side, dim });
    }
    match b.names().iter().find(|&&dim| !a.contains(dim)) {
        Some(&dim) => Err(LayoutError::MissingDim { side, dim }),
        None => Ok(()),
    }
}

fn require_not_larger(side: Side, small: &Dims, large: &Dims) -> Result<(), LayoutError> {
    for (dim, _, bits) in small.fields() {
        let limit = large.log2(dim);
        if bits > limit {
            let (expected, found) = (1 << limit, 1 << bits);
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
