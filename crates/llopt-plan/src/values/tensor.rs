//! The type of a value as plans and emission see it: an element type, and for tensors the layout of its registers.
//!
//! The layout is kept with its outputs flattened row-major (the last tensor dimension in the lowest bits),
//! so that an element is one number. Then the shape ops are maps of numbers, linear over F2 like the layout
//! itself: `reshape`, `expand_dims` and layout conversions are the identity, `trans` permutes bits, `broadcast`
//! drops bits, `join` and `split` shift by one.

use std::collections::HashMap;
use std::rc::Rc;

use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LinearLayout};

use crate::element::Element;

/// A tensor's element type, shape and layout.
#[derive(Clone, Debug)]
pub struct TensorType {
    /// What each register holds.
    pub element: Element,
    /// The extents, powers of two.
    pub shape: Vec<u32>,
    /// From register, lane, warp and block to the element's row-major number.
    layout: LinearLayout,
    register_bits: u32,
    lane_bits: u32,
    warp_bits: u32,
    /// For each register the first one that holds the same element.
    canonical: Vec<u32>,
    free_registers: u32,
    free_lanes: u32,
    free_warps: u32,
    free_blocks: u32,
}

/// One input dimension of distributed layouts, other than registers.
pub const PLACES: [Dim; 3] = [Dim::LANE, Dim::WARP, Dim::BLOCK];

impl TensorType {
    /// A tensor type from its distributed layout with outputs `dim0`, `dim1`, ….
    ///
    /// # Errors
    /// The layout's own message, when its dimensions are not those of `shape`.
    pub fn new(
        element: Element,
        shape: Vec<u32>,
        layout: &LinearLayout,
    ) -> Result<Self, llopt_layout::LayoutError> {
        let row_major: Vec<Dim> = (0..shape.len()).rev().map(Dim::tensor).collect();
        let layout = layout.transpose_outs(&row_major)?;
        let bits = |dim| layout.in_dim_size_log2(dim);
        let (register_bits, lane_bits, warp_bits) =
            (bits(Dim::REGISTER), bits(Dim::LANE), bits(Dim::WARP));
        let canonical = first_of_equals(layout.flat_bases_of(Dim::REGISTER));
        let masks = layout.free_variable_masks();
        let free = |dim| {
            masks
                .iter()
                .find(|(name, _)| *name == dim)
                .map_or(0, |(_, mask)| *mask)
        };
        Ok(Self {
            element,
            shape,
            register_bits,
            lane_bits,
            warp_bits,
            canonical,
            free_registers: free(Dim::REGISTER),
            free_lanes: free(Dim::LANE),
            free_warps: free(Dim::WARP),
            free_blocks: free(Dim::BLOCK),
            layout,
        })
    }

    /// A tensor type from the row-major number that each bit of each input dimension adds.
    ///
    /// # Errors
    /// The layout's own message, for a number outside of `shape`.
    pub fn from_numbers(
        element: Element,
        shape: Vec<u32>,
        numbers: &[(Dim, Vec<u32>)],
    ) -> Result<Self, llopt_layout::LayoutError> {
        let coordinates = |number: &u32| -> Vec<u32> {
            let mut above = *number;
            let mut coordinates: Vec<u32> = shape
                .iter()
                .enumerate()
                .rev()
                .map(|(dim, extent)| {
                    let coordinate = above & (extent - 1);
                    above >>= extent.trailing_zeros();
                    // A remainder lies outside of the shape: the layout rejects it.
                    if dim == 0 {
                        coordinate | above << extent.trailing_zeros()
                    } else {
                        coordinate
                    }
                })
                .collect();
            coordinates.reverse();
            coordinates
        };
        let vectors: Vec<(Dim, Vec<Vec<u32>>)> = numbers
            .iter()
            .map(|(dim, numbers)| (*dim, numbers.iter().map(coordinates).collect()))
            .collect();
        let bases: Vec<(Dim, &[Vec<u32>])> = vectors
            .iter()
            .map(|(dim, vectors)| (*dim, vectors.as_slice()))
            .collect();
        let outs: Vec<(Dim, u32)> = shape
            .iter()
            .enumerate()
            .map(|(dim, extent)| (Dim::tensor(dim), *extent))
            .collect();
        let layout = LinearLayout::from_bases(&bases, &outs)?;
        Self::new(element, shape, &layout)
    }

    /// The layout, its outputs in row-major order (last tensor dimension first).
    #[must_use]
    pub fn layout(&self) -> &LinearLayout {
        &self.layout
    }

    /// How many registers each thread has.
    #[must_use]
    pub fn registers(&self) -> usize {
        1 << self.register_bits
    }

    /// The row-major number of the element in `register` of lane 0, warp 0, block 0.
    #[must_use]
    pub fn element_in(&self, register: usize) -> u32 {
        self.layout.apply_flat(register as u32)
    }

    /// What each bit of the thread's number in its block adds to the element's number: lanes, then warps.
    #[must_use]
    pub fn thread_bases(&self) -> Vec<u32> {
        let mut bases = self.layout.flat_bases_of(Dim::LANE).to_vec();
        bases.extend_from_slice(self.layout.flat_bases_of(Dim::WARP));
        bases
    }

    /// What each bit of the block's number in its cluster adds.
    #[must_use]
    pub fn block_bases(&self) -> &[u32] {
        self.layout.flat_bases_of(Dim::BLOCK)
    }

    /// The first register that holds what `register` holds.
    #[must_use]
    pub fn canonical(&self, register: usize) -> usize {
        self.canonical[register] as usize
    }

    /// Whether `register` holds an element that no lower register holds.
    #[must_use]
    pub fn is_canonical(&self, register: usize) -> bool {
        register as u32 & self.free_registers == 0
    }

    /// For each register the first one whose element lies in the same aligned run of `runs[d]` elements
    /// along every dimension `d`, in all threads alike; `None` if each register is its own.
    ///
    /// `runs` are powers of two, one for each dimension. Two registers' elements differ by the same bits in
    /// every thread (the layout is linear), and a run is what its low bits may change.
    #[must_use]
    pub fn first_of_runs(&self, runs: &[u64]) -> Option<Vec<usize>> {
        if runs.len() != self.shape.len() {
            return None;
        }
        let inside = (0..runs.len()).fold(0, |inside, dim| {
            let (low, bits) = self.bits_of_dim(dim);
            let bits = bits.min(runs[dim].trailing_zeros());
            inside | ((1u32 << bits) - 1) << low
        });
        if inside == 0 {
            return None;
        }
        let bases = self.layout.flat_bases_of(Dim::REGISTER).iter();
        let outside: Vec<u32> = bases.map(|basis| basis & !inside).collect();
        let of_run = first_of_equals(&outside).into_iter();
        let of_run: Vec<usize> = of_run.map(|register| register as usize).collect();
        let repeats = |(register, first): (usize, &usize)| register != *first;
        of_run.iter().enumerate().any(repeats).then_some(of_run)
    }

    /// How far the element of each register lies behind that of the register that `first` names, in elements along the
    /// dimensions with `counts` and within aligned runs of `runs[d]` elements; `None` if that differs among threads.
    ///
    /// Places are sums modulo two. Where no thread's number changes a bit that a register's number changes, the bits of
    /// both add up like integers, and what registers are apart is the same in all threads.
    #[must_use]
    pub fn distances_in_runs(
        &self,
        first: &[usize],
        runs: &[u64],
        counts: &[bool],
    ) -> Option<Vec<i64>> {
        let of_registers = self.layout.flat_bases_of(Dim::REGISTER).iter();
        let by_registers = of_registers.fold(0, |all, basis| all | basis);
        let of_threads = PLACES
            .iter()
            .flat_map(|place| self.layout.flat_bases_of(*place));
        let by_threads = of_threads.fold(0, |all, basis| all | basis);
        let mut distances = vec![0; first.len()];
        for (dim, run) in runs.iter().enumerate() {
            let (low, bits) = self.bits_of_dim(dim);
            let inside = ((1u32 << bits.min(run.trailing_zeros())) - 1) << low;
            if !counts[dim] {
                continue;
            }
            if by_registers & by_threads & inside != 0 {
                return None;
            }
            let place = |register: usize| i64::from((self.element_in(register) & inside) >> low);
            for (register, first) in first.iter().enumerate() {
                distances[register] += place(register) - place(*first);
            }
        }
        Some(distances)
    }

    /// The bits of the thread's number whose setting only repeats other threads' elements.
    #[must_use]
    pub fn free_threads(&self) -> u32 {
        self.free_lanes | self.free_warps << self.lane_bits
    }

    /// The bits of the block's number whose setting only repeats other blocks' elements.
    #[must_use]
    pub fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Generators of the distances between blocks that hold the same elements: masks of the block's number.
    #[must_use]
    pub fn block_copies(&self) -> Vec<u32> {
        let mut in_block = Echelon::of(self.layout.flat_bases_of(Dim::REGISTER));
        for basis in self.thread_bases() {
            in_block.insert(basis);
        }
        let mut told_apart = Echelon::new();
        let blocks = self.block_bases().iter();
        blocks
            .filter_map(|basis| told_apart.insert(in_block.reduce(*basis)))
            .collect()
    }

    /// log2 of the lanes of a warp, and of the warps of a block, that the layout counts.
    #[must_use]
    pub fn thread_bits(&self) -> (u32, u32) {
        (self.lane_bits, self.warp_bits)
    }

    /// The row-major number's bits that belong to dimension `dim`: lowest bit, and how many.
    #[must_use]
    pub fn bits_of_dim(&self, dim: usize) -> (u32, u32) {
        let log2 = |extent: u32| extent.trailing_zeros();
        let low = self.shape[dim + 1..]
            .iter()
            .map(|extent| log2(*extent))
            .sum();
        (low, log2(self.shape[dim]))
    }

    /// The registers of `to` as registers of `self`, where `map` takes an element of `to` to the element
    /// of `self` that it is; `None` when some element lies in another thread. `map` must be linear.
    #[must_use]
    pub fn rename_to(&self, to: &Self, map: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
        for place in PLACES {
            let (from, to) = (
                self.layout.flat_bases_of(place),
                to.layout.flat_bases_of(place),
            );
            let moves = |bit: usize| {
                from.get(bit).copied().unwrap_or(0) != to.get(bit).map_or(0, |basis| map(*basis))
            };
            if (0..from.len().max(to.len())).any(moves) {
                return None;
            }
        }
        let holders: HashMap<u32, u32> = (0..self.registers() as u32)
            .rev()
            .map(|register| (self.layout.apply_flat(register), register))
            .collect();
        (0..to.registers())
            .map(|register| holders.get(&map(to.element_in(register))).copied())
            .collect()
    }
}

/// For each number the first one that a linear map takes to the same value; `bases` are the values of the single
/// bits.
///
/// A bit whose value is the sum of those of lower bits is replaced by these; a number without such bits is the least
/// of all that are equal.
fn first_of_equals(bases: &[u32]) -> Vec<u32> {
    let mut span = Echelon::new();
    let mut first = Vec::with_capacity(1 << bases.len());
    first.push(0);
    for (bit, basis) in bases.iter().enumerate() {
        let name = 1 << bit;
        let instead = span.insert(*basis).map_or(name, |kernel| kernel ^ name);
        first.extend_from_within(..);
        for number in &mut first[name as usize..] {
            *number ^= instead;
        }
    }
    first
}

/// A scalar's or a tensor's type.
#[derive(Clone, Debug)]
pub enum ValueType {
    /// One value, the same for the whole program.
    Scalar(Element),
    /// One value per register.
    Tensor(Rc<TensorType>),
}

impl ValueType {
    /// The generators of the distances between blocks of a cluster that hold the same elements.
    #[must_use]
    pub fn block_copies(&self, blocks_per_cluster: u32) -> Vec<u32> {
        match self {
            Self::Scalar(_) => (0..blocks_per_cluster.ilog2())
                .map(|bit| 1 << bit)
                .collect(),
            Self::Tensor(tensor) => tensor.block_copies(),
        }
    }

    /// The type of an element.
    #[must_use]
    pub fn element(&self) -> Element {
        match self {
            Self::Scalar(element) => *element,
            Self::Tensor(tensor) => tensor.element,
        }
    }

    /// How many LLVM values carry a value of this type.
    #[must_use]
    pub fn registers(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Tensor(tensor) => tensor.registers(),
        }
    }

    /// The registers that hold different elements: the first of each element.
    pub fn distinct_registers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.registers()).filter(|register| match self {
            Self::Scalar(_) => true,
            Self::Tensor(tensor) => tensor.canonical(*register) == *register,
        })
    }

    /// All registers from the [distinct ones](Self::distinct_registers).
    #[must_use]
    pub fn spread<T: Copy>(&self, distinct: &[T]) -> Rc<[T]> {
        match self {
            Self::Tensor(tensor) if distinct.len() < tensor.registers() => {
                let mut place = HashMap::new();
                (0..tensor.registers())
                    .map(|register| {
                        let next = place.len();
                        distinct[*place.entry(tensor.canonical(register)).or_insert(next)]
                    })
                    .collect()
            }
            Self::Scalar(_) | Self::Tensor(_) => distinct.into(),
        }
    }

    /// The tensor, if it is one.
    #[must_use]
    pub fn tensor(&self) -> Option<&Rc<TensorType>> {
        match self {
            Self::Scalar(_) => None,
            Self::Tensor(tensor) => Some(tensor),
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;

    /// A tensor of `f32` in one block, by the row-major numbers that the bits of registers, lanes and warps add.
    pub(crate) fn tensor(
        shape: &[u32],
        registers: &[u32],
        lanes: &[u32],
        warps: &[u32],
    ) -> TensorType {
        let numbers = [
            (Dim::REGISTER, registers.to_vec()),
            (Dim::LANE, lanes.to_vec()),
            (Dim::WARP, warps.to_vec()),
            (Dim::BLOCK, Vec::new()),
        ];
        TensorType::from_numbers(Element::F32, shape.to_vec(), &numbers).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 registers x 4 lanes x 2 warps over 8 x 4: registers along the columns.
    fn rows() -> TensorType {
        let bases = [
            (Dim::REGISTER, vec![vec![0, 1], vec![0, 2]]),
            (Dim::LANE, vec![vec![1, 0], vec![2, 0]]),
            (Dim::WARP, vec![vec![4, 0]]),
            (Dim::BLOCK, vec![]),
        ];
        layout(&[8, 4], &bases)
    }

    fn layout(shape: &[u32], bases: &[(Dim, Vec<Vec<u32>>)]) -> TensorType {
        let outs: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(i, size)| (Dim::tensor(i), *size))
            .collect();
        let bases: Vec<(Dim, &[Vec<u32>])> = bases
            .iter()
            .map(|(dim, vectors)| (*dim, vectors.as_slice()))
            .collect();
        let layout = LinearLayout::from_bases(&bases, &outs).unwrap();
        TensorType::new(Element::F32, shape.to_vec(), &layout).unwrap()
    }

    #[test]
    fn elements_are_numbered_row_major() {
        let tensor = rows();
        assert_eq!(
            (0..4).map(|r| tensor.element_in(r)).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert_eq!(tensor.thread_bases(), [4, 8, 16]);
        assert_eq!(tensor.bits_of_dim(0), (2, 3));
        assert_eq!(tensor.bits_of_dim(1), (0, 2));
    }

    #[test]
    fn equal_numbers_have_the_same_first_one() {
        // The third bit is the sum of the first two, the fifth is zero.
        let bases = [1, 2, 3, 8, 0];
        let value = |number: u32| {
            let bits = (0..5).filter(|bit| number >> bit & 1 == 1);
            bits.fold(0, |sum, bit| sum ^ bases[bit])
        };
        for (number, first) in (0u32..).zip(first_of_equals(&bases)) {
            let expected = (0..=number).find(|other| value(*other) == value(number));
            assert_eq!(Some(first), expected);
        }
    }

    #[test]
    fn a_run_has_one_register() {
        let tensor = rows();
        assert_eq!(tensor.first_of_runs(&[1, 2]), Some(vec![0, 0, 2, 2]));
        assert_eq!(tensor.first_of_runs(&[8, 4]), Some(vec![0, 0, 0, 0]));
        // Along the rows each thread holds one element.
        assert_eq!(tensor.first_of_runs(&[8, 1]), None);
    }

    #[test]
    fn registers_of_a_run_are_apart() {
        let tensor = rows();
        let first = tensor.first_of_runs(&[1, 4]).unwrap();
        let distances = |counts: [bool; 2]| tensor.distances_in_runs(&first, &[1, 4], &counts);
        assert_eq!(distances([false, true]), Some(vec![0, 1, 2, 3]));
        assert_eq!(distances([false, false]), Some(vec![0; 4]));
        // Odd lanes have the elements of a pair the other way round.
        let swapped = TensorType::from_numbers(
            tensor.element,
            vec![8],
            &[(Dim::REGISTER, vec![1]), (Dim::LANE, vec![3, 4])],
        );
        let swapped = swapped.unwrap();
        let first = swapped.first_of_runs(&[2]).unwrap();
        assert_eq!(swapped.distances_in_runs(&first, &[2], &[true]), None);
    }

    #[test]
    fn renaming_fails_when_an_element_changes_threads() {
        let tensor = rows();
        assert_eq!(tensor.rename_to(&tensor, |x| x), Some(vec![0, 1, 2, 3]));
        assert_eq!(
            tensor.rename_to(&tensor, |x| x ^ (x & 3).reverse_bits() >> 30 ^ (x & 3)),
            Some(vec![0, 2, 1, 3])
        );
        assert_eq!(tensor.rename_to(&tensor, |x| x >> 1), None);
    }

    #[test]
    fn repeated_elements_have_one_register_and_one_thread() {
        let bases = [
            (Dim::REGISTER, vec![vec![0], vec![1]]),
            (Dim::LANE, vec![vec![2], vec![0]]),
            (Dim::WARP, vec![vec![0]]),
            (Dim::BLOCK, vec![]),
        ];
        let tensor = layout(&[4], &bases);
        assert_eq!(
            (0..4).map(|r| tensor.canonical(r)).collect::<Vec<_>>(),
            [0, 0, 2, 2]
        );
        assert_eq!(
            (0..4)
                .filter(|r| tensor.is_canonical(*r))
                .collect::<Vec<_>>(),
            [0, 2]
        );
        assert_eq!(tensor.free_threads(), 0b110);
        let of = ValueType::Tensor(Rc::new(tensor));
        assert_eq!(of.distinct_registers().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(*of.spread(&['a', 'b']), ['a', 'a', 'b', 'b']);
        assert_eq!(*ValueType::Scalar(Element::F32).spread(&['a']), ['a']);
    }

    #[test]
    fn copies_in_other_blocks_lie_at_distances() {
        let bases = [
            (Dim::REGISTER, vec![vec![1]]),
            (Dim::LANE, vec![vec![2]]),
            (Dim::WARP, vec![]),
            // The first two are the same; the last holds what its lanes hold in another order.
            (Dim::BLOCK, vec![vec![4], vec![4], vec![2]]),
        ];
        let tensor = layout(&[8], &bases);
        assert_eq!(tensor.block_copies(), [0b011, 0b100]);
        assert_eq!(tensor.free_blocks(), 0b110);
    }
}
