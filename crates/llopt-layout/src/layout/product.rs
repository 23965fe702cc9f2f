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

use super::{Dims, LinearLayout};
use crate::{LayoutError, Side};

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
