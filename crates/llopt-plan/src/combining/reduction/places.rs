//! The places of partial results in memory, where different warps or blocks hold parts of a result.
//!
//! What the steps in the thread and in the warp have combined of the axis is the space `S`. An element is at
//! `rest * 2^p + q`: `q` numbers the cosets of `S` along the axis, of which there are `2^p`, and `rest` the elements of the
//! result that a block holds. Both numbers are linear over F2, and so is the place: what an element adds to it is the sum
//! of what the bits of the register's, the thread's and the block's number add.
//!
//! - A coset is numbered by the coordinates that are no pivots of `S`: reduced modulo `S`, an element has only these.
//! - A rest is numbered by the pivots of all rests of the block, in an order in which lanes beside each other write beside
//!   each other. In the order of the tensor, the results of a thread would lie between them, and its lanes would write to
//!   few of the banks.

use llopt_layout::f2::Echelon;

use super::axis::Axis;
use super::warp::together;
use crate::tensor::TensorType;

/// The numbers of the elements of the result that a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestNumbers {
    /// The bits of an element's number in the result that tell apart the elements of one block.
    told_by: u32,
    /// The position of each of them in the number.
    order: Vec<u32>,
}

impl RestNumbers {
    /// Numbers for rests with these pivots, of which `lanes` have these.
    fn of(rests: &Echelon, lanes: impl Iterator<Item = u32>) -> Self {
        let told_by = rests.pivots();
        let lanes = lanes.map(|rest| together(rest, told_by));
        Self {
            told_by,
            order: order_of(lanes, rests.rank()),
        }
    }

    /// The number of a rest. Linear in the rest.
    pub(super) fn number(&self, rest: u32) -> u32 {
        let bits = (0..).zip(&self.order);
        let rest = together(rest, self.told_by);
        bits.fold(0, |all, (bit, place)| all | (rest >> bit & 1) << place)
    }
}

/// The positions of the bits that tell apart the elements of a result: those that single lanes change first.
fn order_of(lanes: impl Iterator<Item = u32>, bits: u32) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    let single = lanes.filter(|number| number.is_power_of_two());
    for bit in single.map(u32::trailing_zeros).chain(0..bits) {
        if !order.contains(&bit) {
            order.push(bit);
        }
    }
    let mut positions = vec![0; order.len()];
    for (position, bit) in (0..).zip(&order) {
        positions[*bit as usize] = position;
    }
    positions
}

/// The places of all partial results of a tensor.
pub(super) struct Places {
    axis: Axis,
    /// Elements whose sums are those that a block holds: what the bits of the register's number reach, then those of the
    /// thread's.
    within_block: Vec<u32>,
    /// The space `S`.
    combined: Echelon,
    /// The rests of the block's elements.
    rests: Echelon,
    /// How these are numbered.
    pub(super) numbers: RestNumbers,
}

/// The space that vectors span.
fn span(vectors: impl Iterator<Item = u32>) -> Echelon {
    let mut span = Echelon::new();
    for vector in vectors {
        span.insert(vector);
    }
    span
}

impl Places {
    /// The places for what the steps before have `combined` of the axis.
    pub(super) fn new(tensor: &TensorType, axis: Axis, combined: Echelon) -> Self {
        let thread_bases = tensor.thread_bases();
        let within_block: Vec<u32> = (0..tensor.registers().trailing_zeros())
            .map(|bit| tensor.element_in(1 << bit))
            .chain(thread_bases.iter().copied())
            .collect();
        let rests = span(within_block.iter().map(|element| axis.rest(*element)));
        let lanes = &thread_bases[..tensor.thread_bits().0 as usize];
        let lanes = lanes.iter().map(|element| axis.rest(*element));
        Self {
            axis,
            numbers: RestNumbers::of(&rests, lanes),
            within_block,
            combined,
            rests,
        }
    }

    /// log2 of the partial results per element.
    pub(super) fn partial_bits(&self) -> u32 {
        self.axis.bits() - self.combined.rank()
    }

    /// log2 of the elements of the result that a block holds.
    pub(super) fn rest_bits(&self) -> u32 {
        self.rests.rank()
    }

    /// The place of the partial result that an element is part of. Linear in the element.
    fn place(&self, element: u32) -> u32 {
        let free = self.axis.mask() & !self.combined.pivots();
        let coset = self.combined.reduce(self.axis.along(element));
        let rest = self.numbers.number(self.axis.rest(element));
        rest << self.partial_bits() | together(coset, free)
    }

    /// The places of these elements.
    pub(super) fn of_elements(&self, elements: &[u32]) -> Vec<u32> {
        elements
            .iter()
            .map(|element| self.place(*element))
            .collect()
    }

    /// What each key adds to the place. Keys are numbered as the sums of those with the numbers 1, 2, 4, and so on.
    pub(super) fn of_keys(&self, tensor: &TensorType, keys: &[(u32, Vec<usize>)]) -> Vec<u32> {
        let mut places = vec![0];
        while places.len() < keys.len() {
            let (_, registers) = &keys[places.len()];
            let added = self.place(tensor.element_in(registers[0]));
            for at in 0..places.len() {
                places.push(places[at] ^ added);
            }
        }
        places
    }

    /// Generators of the distances in the cluster at which partial results are exchanged: the complement `E`, in the space
    /// `D` of distances at which blocks hold the same rests, of those at which they only repeat what they hold.
    pub(super) fn exchanges(&self, blocks: &[u32]) -> Vec<u32> {
        let mut seen = span(self.within_block.iter().map(|element| self.place(*element)));
        let mut foreign = Echelon::new();
        let mut exchanges = Vec::new();
        for basis in blocks {
            // D: the relations among what blocks add to the rests.
            let rest = self.rests.reduce(self.axis.rest(*basis));
            let Some(distance) = foreign.insert(rest) else {
                continue;
            };
            let element = (0..blocks.len())
                .filter(|bit| distance >> bit & 1 == 1)
                .fold(0, |all, bit| all ^ blocks[bit]);
            if seen.insert(self.place(element)).is_none() {
                exchanges.push(distance);
            }
        }
        exchanges
    }
}
