//! Division: undoing a product, by a tile on the minor or on the major side.

use super::{Dims, LinearLayout, Rearrange};
use crate::f2::{WORD, low_mask};
use crate::{Dim, LayoutError, Side};

impl LinearLayout {
    /// The layout `c` with `tile * c == self`, if there is one.
    ///
    /// Ensures: `c` has the dimensions of `self` in their order, also those that shrink to size 1;
    /// `None` exactly when no such layout exists. Dimensions that `tile` lacks count as size 1.
    ///
    /// `self` is divisible when, after permuting dimensions, its matrix is
    /// `[[tile, 0], [0, c]]`.
    pub fn divide_left(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        self.divide(tile, Minor::Tile)
    }

    /// The layout `c` with `c * tile == self`, if there is one.
    ///
    /// Ensures: as [`LinearLayout::divide_left`], with `[[c, 0], [0, tile]]`.
    pub fn divide_right(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        self.divide(tile, Minor::Quotient)
    }

    fn divide(&self, tile: &LinearLayout, minor: Minor) -> Option<LinearLayout> {
        let ins = remaining(Side::Input, &self.ins, &tile.ins)?;
        let outs = remaining(Side::Output, &self.outs, &tile.outs)?;
        // The bits of the flattened output that belong to the tile, as the tile orders them.
        let tile_part = Fields::new(&self.outs, &tile.outs, &outs, minor);
        let mut result = LinearLayout {
            ins,
            outs,
            bases: [0; WORD],
        };
        let mut next = 0;
        for (dim, _, bits) in self.ins.fields() {
            let tile_bases = tile.flat_bases_of(dim);
            let split = match minor {
                Minor::Tile => tile_bases.len(),
                Minor::Quotient => bits as usize - tile_bases.len(),
            };
            let (low, high) = self.flat_bases_of(dim).split_at(split);
            let (of_tile, of_quotient) = match minor {
                Minor::Tile => (low, high),
                Minor::Quotient => (high, low),
            };
            for (&basis, &expected) in of_tile.iter().zip(tile_bases) {
                let (tile_value, rest) = tile_part.split(basis);
                if tile_value != expected || rest != 0 {
                    return None;
                }
            }
            for &basis in of_quotient {
                let (tile_value, rest) = tile_part.split(basis);
                if tile_value != 0 {
                    return None;
                }
                result.bases[next] = rest;
                next += 1;
            }
        }
        Some(result)
    }

    /// The layout without `dims` if it is the identity on them and they do not mix with others;
    /// see [`LinearLayout::is_trivial_over`].
    ///
    /// Ensures: `None` exactly when it is not trivial over them.
    pub fn quotient(&self, dims: &[Dim]) -> Option<LinearLayout> {
        if !self.is_trivial_over(dims) {
            return None;
        }
        let mut result = LinearLayout::empty();
        for (dim, _, bits) in self.outs.fields().filter(|f| !dims.contains(&f.0)) {
            result.outs.push(Side::Output, dim, bits).ok()?;
        }
        let rearrange = Rearrange::new(&self.outs, &result.outs);
        for (dim, _, bits) in self.ins.fields().filter(|f| !dims.contains(&f.0)) {
            let first = result.ins.bits() as usize;
            result.ins.push(Side::Input, dim, bits).ok()?;
            for (i, &basis) in self.flat_bases_of(dim).iter().enumerate() {
                result.bases[first + i] = rearrange.apply(basis);
            }
        }
        Some(result)
    }
}

/// Which factor of the product has the low bits.
#[derive(Clone, Copy)]
enum Minor {
    Tile,
    Quotient,
}

/// The dimensions of `whole` with the bits that `tile` leaves of each.
fn remaining(side: Side, whole: &Dims, tile: &Dims) -> Option<Dims> {
    if tile.names().iter().any(|&dim| !whole.contains(dim)) {
        return None;
    }
    let mut result = Dims::EMPTY;
    for (dim, _, bits) in whole.fields() {
        let left = bits.checked_sub(tile.log2(dim))?;
        let pushed: Result<(), LayoutError> = result.push(side, dim, left);
        pushed.ok()?;
    }
    Some(result)
}

/// Cuts a flattened output into the part of the tile and the part of the quotient.
struct Fields<'a> {
    whole: &'a Dims,
    tile: &'a Dims,
    quotient: &'a Dims,
    minor: Minor,
}

impl<'a> Fields<'a> {
    fn new(whole: &'a Dims, tile: &'a Dims, quotient: &'a Dims, minor: Minor) -> Self {
        Fields {
            whole,
            tile,
            quotient,
            minor,
        }
    }

    fn split(&self, word: u32) -> (u32, u32) {
        let (mut of_tile, mut of_quotient) = (0, 0);
        for (dim, shift, bits) in self.whole.fields() {
            let value = super::query::field(word, shift, bits);
            let (tile_at, tile_bits) = self.tile.field(dim);
            let (quotient_at, quotient_bits) = self.quotient.field(dim);
            let (tile_value, quotient_value) = match self.minor {
                Minor::Tile => (
                    value & low_mask(tile_bits),
                    value.checked_shr(tile_bits).unwrap_or(0),
                ),
                Minor::Quotient => {
                    let high = value.checked_shr(quotient_bits).unwrap_or(0);
                    (high, value & low_mask(quotient_bits))
                }
            };
            of_tile |= tile_value.checked_shl(tile_at).unwrap_or(0);
            of_quotient |= quotient_value.checked_shl(quotient_at).unwrap_or(0);
        }
        (of_tile, of_quotient)
    }
}
