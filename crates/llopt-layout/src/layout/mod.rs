//! The layout itself: named dimensions and the packed matrix between them.
//!
//! # Representation
//!
//! Both sides are flattened to one word: the first dimension takes the lowest bits, the next one
//! the bits above, and so on (*minor to major*). `bases[i]` is the flattened image of the input
//! whose flattened form is `2^i`, that is, column `i` of the matrix. `L(x)` is then the xor of the
//! bases at the bits of `x`.
//!
//! # Conventions
//!
//! * The order of dimensions matters for flattening, reshaping and equality, and for nothing else.
//! * A dimension that a layout does not have behaves like one of size 1, wherever a *question* is
//!   asked of it (its size, its basis). *Operations* name the missing dimension in their error.
//! * Distributed layouts map (register, lane, warp, block) to (dim0, dim1, …), layouts of a memory
//!   map (offset, block). The direction is from place to element because an element may lie in
//!   several places, while a place holds one element.
//!
//! # Alternatives rejected
//!
//! Nested vectors of bases, one entry per output dimension, read well but cost an allocation per
//! basis vector and turn every xor into a loop. A matrix by rows makes `apply` a parity per output
//! bit; by columns it is one xor per set input bit, and most inputs that a compiler asks about
//! have few of them.

mod build;
mod compose;
mod divide;
mod product;
mod query;
mod reshape;
mod show;
mod tensor;

pub use build::from_flat_bases;
pub use query::{Coordinates, out_bit};
pub use reshape::retain_bits;

use core::hash::{Hash, Hasher};

use crate::f2::low_mask;
use crate::{Dim, InlineList, LayoutError, MAX_BITS, MAX_DIMS, Side};

/// The dimensions of one side: names with sizes as log2, minor to major.
#[derive(Clone, Copy)]
pub(crate) struct Dims {
    len: u8,
    bits: u8,
    names: [Dim; MAX_DIMS],
    log2: [u8; MAX_DIMS],
}

impl Dims {
    pub(crate) const EMPTY: Dims = Dims {
        len: 0,
        bits: 0,
        names: [Dim::REGISTER; MAX_DIMS],
        log2: [0; MAX_DIMS],
    };

    pub(crate) fn names(&self) -> &[Dim] {
        &self.names[..usize::from(self.len)]
    }

    pub(crate) fn log2s(&self) -> &[u8] {
        &self.log2[..usize::from(self.len)]
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The bits of all dimensions together.
    pub(crate) fn bits(&self) -> u32 {
        u32::from(self.bits)
    }

    pub(crate) fn position(&self, dim: Dim) -> Option<usize> {
        self.names().iter().position(|&d| d == dim)
    }

    pub(crate) fn contains(&self, dim: Dim) -> bool {
        self.position(dim).is_some()
    }

    pub(crate) fn log2(&self, dim: Dim) -> u32 {
        self.position(dim).map_or(0, |i| u32::from(self.log2[i]))
    }

    /// Name, first bit in the flattened word, and number of bits of each dimension.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Dim, u32, u32)> + '_ {
        self.names()
            .iter()
            .zip(self.log2s())
            .scan(0, |shift, (&dim, &log2)| {
                let first = *shift;
                *shift += u32::from(log2);
                Some((dim, first, u32::from(log2)))
            })
    }

    /// First bit and number of bits of `dim`; `(0, 0)` for a dimension that is not there.
    pub(crate) fn field(&self, dim: Dim) -> (u32, u32) {
        self.fields()
            .find(|f| f.0 == dim)
            .map_or((0, 0), |(_, shift, bits)| (shift, bits))
    }

    /// The dimension and the bit inside it to which bit `flat` of the flattened word belongs.
    pub(crate) fn locate(&self, flat: u32) -> (Dim, u32) {
        self.fields()
            .find(|&(_, shift, bits)| flat >= shift && flat - shift < bits)
            .map_or((Dim::REGISTER, flat), |(dim, shift, _)| (dim, flat - shift))
    }

    /// Appends a dimension; the errors name it.
    pub(crate) fn push(&mut self, side: Side, dim: Dim, log2: u32) -> Result<(), LayoutError> {
        if self.contains(dim) {
            return Err(LayoutError::DuplicateDim { side, dim });
        }
        let bits = self.bits().saturating_add(log2);
        if bits as usize > MAX_BITS {
            return Err(LayoutError::TooManyBits { side, dim, bits });
        }
        if self.len() == MAX_DIMS {
            return Err(LayoutError::TooManyDims {
                side,
                count: MAX_DIMS + 1,
            });
        }
        self.names[self.len()] = dim;
        self.log2[self.len()] = log2 as u8;
        self.len += 1;
        self.bits = bits as u8;
        Ok(())
    }

    /// Adds bits to a dimension; nothing happens if it is not there. Requires room for them.
    pub(crate) fn grow(&mut self, dim: Dim, log2: u32) {
        if let Some(position) = self.position(dim) {
            self.log2[position] += log2 as u8;
            self.bits += log2 as u8;
        }
    }

    /// The dimensions with the given sizes.
    pub(crate) fn from_sizes(side: Side, dims: &[(Dim, u32)]) -> Result<Dims, LayoutError> {
        let mut result = Dims::EMPTY;
        for &(dim, size) in dims {
            result.push(side, dim, log2_of(dim, size)?)?;
        }
        Ok(result)
    }
}

impl PartialEq for Dims {
    fn eq(&self, other: &Dims) -> bool {
        self.names() == other.names() && self.log2s() == other.log2s()
    }
}

impl Eq for Dims {}

impl Hash for Dims {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
        self.log2s().hash(state);
    }
}

/// The exponent of a size that must be a power of two.
pub(crate) fn log2_of(dim: Dim, size: u32) -> Result<u32, LayoutError> {
    if size.is_power_of_two() {
        Ok(size.trailing_zeros())
    } else {
        Err(LayoutError::NotPowerOfTwo {
            dim,
            size: u64::from(size),
        })
    }
}

/// Moves fields of a flattened word to where another order of the same dimensions has them.
#[derive(Clone, Copy)]
pub(crate) struct Rearrange {
    /// From, to, mask; nothing when every field stays.
    moves: Option<InlineList<(u8, u8, u32), MAX_DIMS>>,
}

impl Rearrange {
    /// From the order `from` to the order `to`. A dimension that only one side has, and bits that
    /// do not fit into a smaller dimension of `to`, are dropped.
    pub(crate) fn new(from: &Dims, to: &Dims) -> Rearrange {
        if from == to {
            return Rearrange { moves: None };
        }
        let mut moves = InlineList::new();
        for (dim, shift, bits) in from.fields() {
            let (target, target_bits) = to.field(dim);
            let mask = low_mask(bits.min(target_bits));
            if mask != 0 {
                moves.add((shift as u8, target as u8, mask));
            }
        }
        Rearrange { moves: Some(moves) }
    }

    #[inline]
    pub(crate) fn apply(&self, word: u32) -> u32 {
        match &self.moves {
            None => word,
            Some(moves) => moves.iter().fold(0, |acc, &(from, to, mask)| {
                acc | ((word >> from) & mask) << to
            }),
        }
    }
}

/// A linear map over F2 from named input dimensions to named output dimensions.
///
/// See the crate's page on linear layouts for what it is for. All sizes are powers of two; a side
/// has at most [`MAX_DIMS`] dimensions and [`MAX_BITS`] bits in total. The value is held inline;
/// cloning copies a few hundred bytes and allocates nothing.
#[derive(Clone)]
pub struct LinearLayout {
    pub(crate) ins: Dims,
    pub(crate) outs: Dims,
    pub(crate) bases: [u32; MAX_BITS],
}

impl LinearLayout {
    /// The columns of the matrix: the flattened image of each input bit.
    pub fn flat_bases(&self) -> &[u32] {
        &self.bases[..self.ins.bits() as usize]
    }

    /// The flattened images of the bits of one input dimension; empty when it is not there.
    pub fn flat_bases_of(&self, dim: Dim) -> &[u32] {
        let (shift, bits) = self.ins.field(dim);
        &self.bases[shift as usize..(shift + bits) as usize]
    }
}

impl PartialEq for LinearLayout {
    fn eq(&self, other: &Self) -> bool {
        self.ins == other.ins && self.outs == other.outs && self.flat_bases() == other.flat_bases()
    }
}

impl Eq for LinearLayout {}

impl Hash for LinearLayout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ins.hash(state);
        self.outs.hash(state);
        self.flat_bases().hash(state);
    }
}
