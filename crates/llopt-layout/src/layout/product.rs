//! The product of layouts: a block-diagonal matrix, by dimension.
//!
//! In `a * b`, `a` is the minor part. An input dimension of both gets `a`'s bits below `b`'s; so
//! does an output dimension. For two layouts with one input and one output each there are four
//! cases, by which names they share:
//!
//! | inputs | outputs | result |
//! |---|---|---|
//! | differ | differ | `(x, y) -> (a(x), b(y))` |
//! | differ | same | `(x, y) -> a(x) + size_a * b(y)` |
//! | same | differ | `x + size_a * y -> (a(x), b(y))` |
//! | same | same | `x + size_a * y -> a(x) + size_a' * b(y)` |
//!
//! The product is associative and not commutative; [`LinearLayout::empty`] is neutral.

use core::ops::Mul;

use super::{Dims, LinearLayout, log2_of};
use crate::f2::low_mask;
use crate::{Dim, LayoutError, MAX_BITS, MAX_DIMS, Side};

impl LinearLayout {
    /// The product with `outer`, whose bits come above those of `self`.
    ///
    /// Requires names that both have to be in the same relative order on each side.
    /// Ensures: the dimensions of `self` keep their order and those of `outer` theirs, with the
    /// earliest possible place for those of `self`; surjective if both are, injective if both are.
    pub fn product(&self, outer: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        let mut result = LinearLayout::empty();
        result.ins = merge(Side::Input, &self.ins, &outer.ins)?;
        result.outs = merge(Side::Output, &self.outs, &outer.outs)?;
        for (part, above) in [(self, None), (outer, Some(self))] {
            for (dim, shift, bits) in part.ins.fields() {
                let first = result.ins.field(dim).0 + above.map_or(0, |a| a.ins.log2(dim));
                for bit in 0..bits {
                    let basis = part.bases[(shift + bit) as usize];
                    result.bases[(first + bit) as usize] =
                        place(basis, &part.outs, &result.outs, above.map(|a| &a.outs));
                }
            }
        }
        Ok(result)
    }

    /// The product with [`LinearLayout::identity_1d`], in place: a layout that is built up step by step is not copied for
    /// each of them.
    ///
    /// Requires and ensures what the product does; the layout is unchanged after an error.
    pub fn times_identity(
        &mut self,
        size: u32,
        in_dim: Dim,
        out_dim: Dim,
    ) -> Result<(), LayoutError> {
        let log2 = log2_of(in_dim, size)?;
        if !self.has_room(log2, in_dim, out_dim) {
            *self = self.product(&LinearLayout::identity_1d(size, in_dim, out_dim)?)?;
            return Ok(());
        }
        // Fields above the one that grows move up.
        let (shift, bits) = self.outs.field(out_dim);
        let top = shift + bits;
        let below = low_mask(top);
        let used = self.ins.bits() as usize;
        for basis in &mut self.bases[..used] {
            let above = (*basis & !below).checked_shl(log2).unwrap_or(0);
            *basis = *basis & below | above;
        }
        self.outs.grow(out_dim, log2);
        let first = self.insert_inputs(in_dim, log2);
        for bit in 0..log2 {
            self.bases[first + bit as usize] = 1 << (top + bit);
        }
        Ok(())
    }

    /// The product with [`LinearLayout::zeros_1d`] whose output has size 1, in place: `size` times as many inputs that
    /// change nothing.
    ///
    /// Requires and ensures what the product does; the layout is unchanged after an error.
    pub fn times_zeros(&mut self, size: u32, in_dim: Dim, out_dim: Dim) -> Result<(), LayoutError> {
        let log2 = log2_of(in_dim, size)?;
        if !self.has_room(log2, in_dim, out_dim) {
            *self = self.product(&LinearLayout::zeros_1d(size, in_dim, out_dim, 1)?)?;
            return Ok(());
        }
        let first = self.insert_inputs(in_dim, log2);
        self.bases[first..first + log2 as usize].fill(0);
        Ok(())
    }

    /// Whether the output is there, and both dimensions may have so many bits more.
    fn has_room(&self, log2: u32, in_dim: Dim, out_dim: Dim) -> bool {
        let fits = |dims: &Dims| dims.bits().saturating_add(log2) as usize <= MAX_BITS;
        let has_input = self.ins.contains(in_dim) || self.ins.len() < MAX_DIMS;
        has_input && self.outs.contains(out_dim) && fits(&self.ins) && fits(&self.outs)
    }

    /// Makes room for the bases of so many bits above those of a dimension, the last one if it is not there yet; returns
    /// the column of the first.
    fn insert_inputs(&mut self, dim: Dim, log2: u32) -> usize {
        let used = self.ins.bits() as usize;
        if !self.ins.contains(dim) {
            // There is room for it.
            let _ = self.ins.push(Side::Input, dim, log2);
            return used;
        }
        let (shift, bits) = self.ins.field(dim);
        let first = (shift + bits) as usize;
        self.bases.copy_within(first..used, first + log2 as usize);
        self.ins.grow(dim, log2);
        first
    }
}

/// Moves the fields of `word` from `from` to `to`, each above the field that `below` has there.
fn place(word: u32, from: &Dims, to: &Dims, below: Option<&Dims>) -> u32 {
    from.fields().fold(0, |acc, (dim, shift, bits)| {
        let value = super::query::field(word, shift, bits);
        let target = to.field(dim).0 + below.map_or(0, |b| b.log2(dim));
        acc | value.checked_shl(target).unwrap_or(0)
    })
}

/// The shortest list that has both lists in their order; the first list is preferred where the
/// order is free. Sizes of names in both multiply.
fn merge(side: Side, a: &Dims, b: &Dims) -> Result<Dims, LayoutError> {
    let mut merged = Dims::EMPTY;
    let mut done_b = 0;
    for &dim in a.names() {
        if let Some(position) = b.position(dim) {
            // Everything that b has before this name comes first; a must not have it later.
            for &earlier in &b.names()[done_b..position] {
                if a.contains(earlier) {
                    return Err(LayoutError::OrderConflict {
                        side,
                        first: dim,
                        second: earlier,
                    });
                }
                merged.push(side, earlier, b.log2(earlier))?;
            }
            done_b = position + 1;
        }
        merged.push(side, dim, a.log2(dim) + b.log2(dim))?;
    }
    for &dim in &b.names()[done_b..] {
        merged.push(side, dim, b.log2(dim))?;
    }
    Ok(merged)
}

impl Mul for &LinearLayout {
    type Output = LinearLayout;

    /// [`LinearLayout::product`] for operands that are known to fit.
    ///
    /// # Panics
    ///
    /// When the product does not exist. Use `product` wherever sizes or orders of dimensions come
    /// from outside.
    fn mul(self, outer: &LinearLayout) -> LinearLayout {
        match self.product(outer) {
            Ok(layout) => layout,
            Err(error) => panic!("product of layouts: {error}"),
        }
    }
}

impl Mul for LinearLayout {
    type Output = LinearLayout;

    /// As the product of references.
    fn mul(self, outer: LinearLayout) -> LinearLayout {
        &self * &outer
    }
}
