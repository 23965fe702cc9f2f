//! Questions to a layout: dimensions, images, rank, kernel, contiguity.

use super::{LinearLayout, MAX_BITS, MAX_DIMS};
use crate::f2::{Echelon, low_mask, ones};
use crate::{Dim, InlineList, LayoutError, Side};

/// Coordinates or sizes by name, minor to major.
pub type Coordinates = InlineList<(Dim, u32), MAX_DIMS>;

impl Default for Dim {
    /// `register`; only there to fill unused places of inline lists.
    fn default() -> Self {
        Dim::REGISTER
    }
}

impl LinearLayout {
    /// The names of the input dimensions, minor to major.
    pub fn in_dims(&self) -> &[Dim] {
        self.ins.names()
    }

    /// The names of the output dimensions, minor to major.
    pub fn out_dims(&self) -> &[Dim] {
        self.outs.names()
    }

    /// Whether the layout has this input dimension, even of size 1.
    pub fn has_in_dim(&self, dim: Dim) -> bool {
        self.ins.contains(dim)
    }

    /// Whether the layout has this output dimension, even of size 1.
    pub fn has_out_dim(&self, dim: Dim) -> bool {
        self.outs.contains(dim)
    }

    /// The size of an input dimension as log2; 0 for one that is not there.
    pub fn in_dim_size_log2(&self, dim: Dim) -> u32 {
        self.ins.log2(dim)
    }

    /// The size of an output dimension as log2; 0 for one that is not there.
    pub fn out_dim_size_log2(&self, dim: Dim) -> u32 {
        self.outs.log2(dim)
    }

    /// The size of an input dimension; 1 for one that is not there.
    pub fn in_dim_size(&self, dim: Dim) -> u64 {
        1 << self.ins.log2(dim)
    }

    /// The size of an output dimension; 1 for one that is not there.
    pub fn out_dim_size(&self, dim: Dim) -> u64 {
        1 << self.outs.log2(dim)
    }

    /// The bits of all inputs together: the number of columns of the matrix.
    pub fn total_in_size_log2(&self) -> u32 {
        self.ins.bits()
    }

    /// The bits of all outputs together: the number of rows of the matrix.
    pub fn total_out_size_log2(&self) -> u32 {
        self.outs.bits()
    }

    /// The basis vector of `in_dim` at `bit`, that is the image of `in_dim = 2^bit`, one entry per
    /// output dimension in their order.
    ///
    /// `None` when there is no such dimension or bit.
    pub fn basis(&self, in_dim: Dim, bit: u32) -> Option<InlineList<u32, MAX_DIMS>> {
        let flat = *self.flat_bases_of(in_dim).get(bit as usize)?;
        Some(
            self.outs
                .fields()
                .map(|(_, shift, bits)| field(flat, shift, bits))
                .collect(),
        )
    }

    /// The entry of [`LinearLayout::basis`] for `out_dim`; 0 when one of them is not there.
    pub fn basis_entry(&self, in_dim: Dim, bit: u32, out_dim: Dim) -> u32 {
        let flat = self
            .flat_bases_of(in_dim)
            .get(bit as usize)
            .copied()
            .unwrap_or(0);
        let (shift, bits) = self.outs.field(out_dim);
        field(flat, shift, bits)
    }

    /// The image of a flattened input. Bits beyond the input's size do not count.
    #[inline]
    pub fn apply_flat(&self, input: u32) -> u32 {
        let columns = input & low_mask(self.ins.bits());
        ones(columns).fold(0, |acc, bit| acc ^ self.bases[bit as usize])
    }

    /// The image of a point.
    ///
    /// Requires every input dimension exactly once, in any order, with a coordinate below its
    /// size.
    /// Ensures: one coordinate per output dimension, in the order of the output dimensions;
    /// `apply(x ^ y) == apply(x) ^ apply(y)`.
    pub fn apply(&self, input: &[(Dim, u32)]) -> Result<Coordinates, LayoutError> {
        let flat = self.flatten_input(input)?;
        Ok(self.unflatten_output(self.apply_flat(flat)))
    }

    /// A point as one word, the first input dimension in the lowest bits.
    ///
    /// Requires what [`LinearLayout::apply`] does.
    pub fn flatten_input(&self, input: &[(Dim, u32)]) -> Result<u32, LayoutError> {
        let side = Side::Input;
        for (i, &(dim, _)) in input.iter().enumerate() {
            if !self.ins.contains(dim) {
                return Err(LayoutError::UnknownDim { side, dim });
            }
            if input[..i].iter().any(|&(d, _)| d == dim) {
                return Err(LayoutError::DuplicateDim { side, dim });
            }
        }
        let mut flat = 0;
        for (dim, shift, bits) in self.ins.fields() {
            let coordinate = input.iter().find(|&&(d, _)| d == dim);
            let &(_, value) = coordinate.ok_or(LayoutError::MissingDim { side, dim })?;
            let size = 1u64 << bits;
            if u64::from(value) >= size {
                return Err(LayoutError::CoordinateOutOfRange { dim, value, size });
            }
            flat |= value.checked_shl(shift).unwrap_or(0);
        }
        Ok(flat)
    }

    /// The coordinates of a flattened output, in the order of the output dimensions.
    pub fn unflatten_output(&self, flat: u32) -> Coordinates {
        self.outs
            .fields()
            .map(|(dim, shift, bits)| (dim, field(flat, shift, bits)))
            .collect()
    }

    /// The coordinates of a flattened input, in the order of the input dimensions.
    pub fn unflatten_input(&self, flat: u32) -> Coordinates {
        self.ins
            .fields()
            .map(|(dim, shift, bits)| (dim, field(flat, shift, bits)))
            .collect()
    }

    /// The rank of the matrix: log2 of the number of distinct images.
    pub fn rank(&self) -> u32 {
        Echelon::of(self.flat_bases()).rank()
    }

    /// Whether every output has an input that maps to it.
    pub fn is_surjective(&self) -> bool {
        self.rank() == self.outs.bits()
    }

    /// Whether no two inputs have the same output.
    pub fn is_injective(&self) -> bool {
        self.rank() == self.ins.bits()
    }

    /// Whether the layout is surjective and injective.
    pub fn is_invertible(&self) -> bool {
        self.ins.bits() == self.outs.bits() && self.is_surjective()
    }

    /// The first output bit, as dimension and bit inside it, whose unit vector is not in the
    /// image; `None` exactly when the layout is surjective.
    pub(crate) fn first_missing_output(&self) -> Option<(Dim, u32)> {
        let echelon = Echelon::of(self.flat_bases());
        (0..self.outs.bits())
            .find(|&bit| !echelon.contains(1 << bit))
            .map(|bit| self.outs.locate(bit))
    }

    /// The first input bit whose basis vector is a sum of earlier ones; `None` exactly when the
    /// layout is injective.
    pub(crate) fn first_dependent_input(&self) -> Option<(Dim, u32)> {
        let mut echelon = Echelon::new();
        (0..)
            .zip(self.flat_bases())
            .find(|&(_, &basis)| echelon.insert(basis).is_some())
            .map(|(bit, _)| self.ins.locate(bit))
    }

    /// A basis of the kernel: flattened inputs whose sums are exactly the inputs that map to 0.
    ///
    /// Ensures: one vector per free variable, whose highest bit is that variable.
    pub fn kernel(&self) -> InlineList<u32, MAX_BITS> {
        let mut echelon = Echelon::new();
        self.flat_bases()
            .iter()
            .filter_map(|&basis| echelon.insert(basis))
            .collect()
    }

    /// A basis of the image: the flattened basis vectors that are not sums of earlier ones.
    pub fn image(&self) -> InlineList<u32, MAX_BITS> {
        let mut echelon = Echelon::new();
        self.flat_bases()
            .iter()
            .copied()
            .filter(|&b| echelon.insert(b).is_none())
            .collect()
    }

    /// For each input dimension the mask of its *free* bits: those whose basis vectors are sums of
    /// earlier ones.
    ///
    /// Ensures: fixing all free bits at zero makes the layout injective without losing an output;
    /// the number of free bits is the number of input bits less the rank.
    ///
    /// ```
    /// use llopt_layout::{Dim, LinearLayout};
    /// let warps_repeat = &LinearLayout::identity_1d(4, Dim::LANE, Dim::tensor(0))?
    ///     * &LinearLayout::zeros_1d(2, Dim::WARP, Dim::tensor(0), 1)?;
    /// assert_eq!(&*warps_repeat.free_variable_masks(), &[(Dim::LANE, 0), (Dim::WARP, 1)]);
    /// # Ok::<(), llopt_layout::LayoutError>(())
    /// ```
    pub fn free_variable_masks(&self) -> Coordinates {
        self.unflatten_input(free_columns(self.flat_bases()))
    }

    /// That of one input dimension; 0 when it is not there.
    pub fn free_variable_mask(&self, dim: Dim) -> u32 {
        let (shift, bits) = self.ins.field(dim);
        field(free_columns(self.flat_bases()), shift, bits)
    }

    /// The largest `n` such that in every aligned group of `n` inputs of the first input dimension
    /// the outputs are consecutive in the first output dimension and equal elsewhere:
    /// `L(n*a + v, b, …) == L(n*a, b, …) + (v, 0, …)` for all `v < n`.
    ///
    /// Ensures: a power of two. Flatten the outputs first to see contiguity across dimensions.
    pub fn num_consecutive_in_out(&self) -> u32 {
        let (Some(&in_dim), Some(&out_dim)) = (self.in_dims().first(), self.out_dims().first())
        else {
            return 1;
        };
        let bases = self.flat_bases_of(in_dim);
        let out_bits = self.outs.log2(out_dim);
        let mut consecutive = (0..out_bits)
            .zip(bases)
            .take_while(|&(bit, &basis)| basis == 1 << bit)
            .count();
        // No other input may move the bits below.
        for (column, &basis) in self.flat_bases().iter().enumerate() {
            if column >= consecutive && basis != 0 {
                consecutive = consecutive.min(basis.trailing_zeros() as usize);
            }
        }
        1 << consecutive
    }

    /// The largest `n` such that the places which differ in `in_dim` only hold, together with every element, its
    /// whole aligned group of `n` elements along `out_dim`, in any order.
    ///
    /// Ensures: a power of two; 1 when a dimension is not there. With registers for `in_dim` it is
    /// how wide a vector one thread can move along `out_dim`.
    ///
    /// ```
    /// use llopt_layout::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_bases(
    ///     &[(Dim::REGISTER, &[[2], [8], [1]]), (Dim::LANE, &[[4], [16], [32]])],
    ///     &[(Dim::tensor(0), 64)],
    /// )?;
    /// assert_eq!(layout.contiguity(Dim::REGISTER, Dim::tensor(0)), 4);
    /// assert_eq!(layout.num_consecutive_in_out(), 1);
    /// # Ok::<(), llopt_layout::LayoutError>(())
    /// ```
    pub fn contiguity(&self, in_dim: Dim, out_dim: Dim) -> u64 {
        let span = Echelon::of(self.flat_bases_of(in_dim));
        let (shift, bits) = self.outs.field(out_dim);
        let contiguous = (0..bits)
            .take_while(|&bit| span.contains(1 << (shift + bit)))
            .count();
        1 << contiguous
    }

    /// Whether the entries from `in_dims` to `out_dims` are all zero.
    ///
    /// Dimensions that are not there have no entries.
    pub fn sublayout_is_zero(&self, in_dims: &[Dim], out_dims: &[Dim]) -> bool {
        let mask = self.out_mask(out_dims);
        in_dims.iter().all(|&dim| {
            self.flat_bases_of(dim)
                .iter()
                .all(|basis| basis & mask == 0)
        })
    }

    /// Whether the layout is the identity on `dims` and these do not mix with the others.
    ///
    /// That is: for each `d` of `dims` the input and the output of this name have the same size,
    /// `d` maps to itself, no other input maps to `d`, and `d` maps to no other output.
    /// A name that neither side has counts as a dimension of size 1.
    pub fn is_trivial_over(&self, dims: &[Dim]) -> bool {
        let mask = self.out_mask(dims);
        self.ins.fields().all(|(dim, _, bits)| {
            let bases = self.flat_bases_of(dim);
            if !dims.contains(&dim) {
                return bases.iter().all(|basis| basis & mask == 0);
            }
            let (shift, out_bits) = self.outs.field(dim);
            bits == out_bits && (shift..).zip(bases).all(|(bit, &basis)| basis == 1 << bit)
        }) && dims
            .iter()
            .all(|&dim| self.ins.log2(dim) == self.outs.log2(dim))
    }

    /// The bits of the flattened output that belong to `dims`.
    pub(crate) fn out_mask(&self, dims: &[Dim]) -> u32 {
        dims.iter()
            .map(|&dim| self.outs.field(dim))
            .fold(0, |acc, (shift, bits)| {
                acc | low_mask(bits).checked_shl(shift).unwrap_or(0)
            })
    }
}

/// The output dimension that has a bit of the flattened output: its position among the output dimensions, and
/// which bit of its coordinate it is. `None` for a bit that no dimension has.
pub fn out_bit(layout: &LinearLayout, flat: u32) -> Option<(usize, u32)> {
    let mut fields = layout.outs.fields().enumerate();
    let (position, (_, shift, _)) = fields.find(|(_, (_, shift, bits))| flat < shift + bits)?;
    Some((position, flat - shift))
}

/// The columns of a matrix that are sums of earlier ones, as a set.
fn free_columns(columns: &[u32]) -> u32 {
    // As long as all columns are single bits, no elimination is needed, and most layouts permute bits.
    let (mut free, mut reached) = (0, 0);
    for (number, &column) in columns.iter().enumerate() {
        if column & !reached == 0 {
            free |= 1 << number;
        } else if column.is_power_of_two() {
            reached |= column;
        } else {
            return free_columns_by_elimination(columns);
        }
    }
    free
}

fn free_columns_by_elimination(columns: &[u32]) -> u32 {
    let mut echelon = Echelon::new();
    columns
        .iter()
        .enumerate()
        .fold(0, |free, (number, &column)| {
            free | u32::from(echelon.insert(column).is_some()) << number
        })
}

/// The bits `shift .. shift + bits` of a word.
#[inline]
pub(crate) fn field(word: u32, shift: u32, bits: u32) -> u32 {
    word.checked_shr(shift).unwrap_or(0) & low_mask(bits)
}
