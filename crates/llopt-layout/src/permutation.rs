//! Renaming registers: a permutation of the bits of one input dimension.

use crate::MAX_BITS;
use crate::f2::low_mask;
use crate::{Dim, InlineList, LayoutError, LinearLayout, Side};

/// A selection and reordering of the bits of one input dimension: bit `i` afterwards is bit
/// `order[i]` before.
///
/// It acts on a layout, by reordering its basis vectors, and on the values held in the registers,
/// by reordering them alike, so that a layout and its values stay in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitPermutation {
    dim: Dim,
    bits: u32,
    order: InlineList<u8, MAX_BITS>,
}

impl BitPermutation {
    /// The selection of bits `order` of `dim`, which has `bits` bits before.
    ///
    /// Requires entries below `bits`, none repeated; the error names the entry at fault.
    pub fn new(dim: Dim, bits: u32, order: &[u8]) -> Result<BitPermutation, LayoutError> {
        if bits as usize > MAX_BITS {
            return Err(LayoutError::TooManyBits {
                side: Side::Input,
                dim,
                bits,
            });
        }
        for (i, &bit) in order.iter().enumerate() {
            if u32::from(bit) >= bits {
                let (value, size) = (u32::from(bit), u64::from(bits));
                return Err(LayoutError::CoordinateOutOfRange { dim, value, size });
            }
            if order[..i].contains(&bit) {
                return Err(LayoutError::NotInjective {
                    dim,
                    bit: u32::from(bit),
                });
            }
        }
        Ok(BitPermutation {
            dim,
            bits,
            order: order.iter().copied().collect(),
        })
    }

    /// The permutation that changes nothing.
    ///
    /// Requires `bits` up to 32; more count as 32.
    pub fn identity(dim: Dim, bits: u32) -> BitPermutation {
        let bits = bits.min(MAX_BITS as u32);
        BitPermutation {
            dim,
            bits,
            order: (0..bits as u8).collect(),
        }
    }

    /// The dimension whose bits are permuted.
    pub fn dim(&self) -> Dim {
        self.dim
    }

    /// For each bit afterwards the bit before.
    pub fn order(&self) -> &[u8] {
        &self.order
    }

    /// Whether every bit stays.
    pub fn is_identity(&self) -> bool {
        self.order.len() == self.bits as usize
            && self
                .order
                .iter()
                .enumerate()
                .all(|(i, &bit)| i == usize::from(bit))
    }

    /// The index before the permutation of the value that has `index` after it.
    ///
    /// Ensures: `apply_to(layout)` maps `index` to what `layout` maps `source(index)` to.
    pub fn source(&self, index: u32) -> u32 {
        self.order
            .iter()
            .enumerate()
            .fold(0, |acc, (i, &bit)| acc | (index >> i & 1) << bit)
    }

    /// The layout with its basis vectors selected and reordered.
    ///
    /// Requires the dimension to have as many bits as the permutation expects.
    pub fn apply_to(&self, layout: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        let found = layout.in_dim_size(self.dim);
        if found != 1 << self.bits {
            let (side, dim, expected) = (Side::Input, self.dim, 1 << self.bits);
            return Err(LayoutError::SizeMismatch {
                side,
                dim,
                expected,
                found,
            });
        }
        layout.select_bases(self.dim, &self.order)
    }

    /// The permutation that undoes this one; `None` when this one drops bits.
    pub fn inverse(&self) -> Option<BitPermutation> {
        if self.order.len() != self.bits as usize {
            return None;
        }
        let mut order = self.order;
        for (i, &bit) in self.order.iter().enumerate() {
            order[usize::from(bit)] = i as u8;
        }
        Some(BitPermutation { order, ..*self })
    }

    /// First this one, then `next`.
    ///
    /// Requires `next` to expect what this one leaves.
    pub fn then(&self, next: &BitPermutation) -> Result<BitPermutation, LayoutError> {
        if next.bits as usize != self.order.len() {
            let (side, dim) = (Side::Input, self.dim);
            let (expected, found) = (1 << self.order.len(), 1 << next.bits);
            return Err(LayoutError::SizeMismatch {
                side,
                dim,
                expected,
                found,
            });
        }
        let order = next
            .order
            .iter()
            .map(|&bit| self.order[usize::from(bit)])
            .collect();
        Ok(BitPermutation { order, ..*self })
    }
}

impl LinearLayout {
    /// The permutation of the bits of `dim` that drops every basis vector which is a sum of the
    /// others kept: applied to the layout, `dim` holds no element twice.
    ///
    /// Ensures: the kept bits are those whose basis vectors are no sums of earlier ones of `dim`.
    pub fn without_repeats(&self, dim: Dim) -> BitPermutation {
        let mut echelon = crate::f2::Echelon::new();
        let bases = self.flat_bases_of(dim);
        let kept = (0u8..)
            .zip(bases)
            .filter(|&(_, &basis)| echelon.insert(basis).is_none());
        BitPermutation {
            dim,
            bits: bases.len() as u32,
            order: kept.map(|(bit, _)| bit).collect(),
        }
    }

    /// A permutation of the registers after which the layout is divisible by `tile` on the left,
    /// with the quotient: generalised vectorisation.
    ///
    /// Ensures: `None` exactly when no permutation of the register bits makes it divisible. The
    /// bits that are not in the tile keep their order.
    ///
    /// ```
    /// use llopt_layout::{Dim, LinearLayout};
    /// // The registers run over rows first, but two neighbours of a row are there, too.
    /// let layout = LinearLayout::from_bases(
    ///     &[(Dim::REGISTER, &[[8], [1]]), (Dim::LANE, &[[2], [4]])],
    ///     &[(Dim::tensor(0), 16)],
    /// )?;
    /// let pair = LinearLayout::identity_1d(2, Dim::REGISTER, Dim::tensor(0))?;
    /// assert_eq!(layout.divide_left(&pair), None);
    /// let (permutation, quotient) = layout.divide_left_permuted(&pair).unwrap();
    /// assert_eq!(permutation.order(), &[1, 0]);
    /// assert_eq!(&pair * &quotient, permutation.apply_to(&layout)?);
    /// # Ok::<(), llopt_layout::LayoutError>(())
    /// ```
    pub fn divide_left_permuted(
        &self,
        tile: &LinearLayout,
    ) -> Option<(BitPermutation, LinearLayout)> {
        let dim = Dim::REGISTER;
        let wanted = tile.flat_bases_of(dim);
        let own = self.flat_bases_of(dim);
        let mut order: InlineList<u8, MAX_BITS> = InlineList::new();
        let mut taken = 0u32;
        for bit in 0..wanted.len() as u32 {
            // A basis vector of the tile, as it has to look in the product.
            let expected = |out: Dim| tile.basis_entry(dim, bit, out);
            let matches = |candidate: u32| {
                self.out_dims()
                    .iter()
                    .all(|&out| self.basis_entry(dim, candidate, out) == expected(out))
            };
            let found = (0..own.len() as u32).find(|&c| taken >> c & 1 == 0 && matches(c))?;
            taken |= 1 << found;
            order.add(found as u8);
        }
        for bit in crate::f2::ones(low_mask(own.len() as u32) & !taken) {
            order.add(bit as u8);
        }
        let permutation = BitPermutation {
            dim,
            bits: own.len() as u32,
            order,
        };
        let quotient = permutation.apply_to(self).ok()?.divide_left(tile)?;
        Some((permutation, quotient))
    }
}
