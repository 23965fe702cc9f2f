//! The two tensors of a gather, and how the numbers of their elements correspond.

use std::ops::Range;

use llopt_layout::Dim;

use crate::regroup::move_fields;
use crate::tensor::TensorType;

/// The source, the result, and how the numbers of their elements correspond.
pub struct Frame<'t> {
    pub(super) from: &'t TensorType,
    pub(super) to: &'t TensorType,
    low: u32,
    bits: u32,
    embed: Box<dyn Fn(u32) -> u32>,
}

impl<'t> Frame<'t> {
    /// For a gather along dimension `axis`.
    pub fn new(from: &'t TensorType, to: &'t TensorType, axis: usize) -> Self {
        let (low, bits) = from.bits_of_dim(axis);
        let fields = (0..to.shape.len())
            .filter(|dim| *dim != axis)
            .map(|dim| {
                let (at, bits) = to.bits_of_dim(dim);
                (at, from.bits_of_dim(dim).0, (1u32 << bits) - 1)
            })
            .collect();
        Self {
            from,
            to,
            low,
            bits,
            embed: move_fields(fields),
        }
    }

    /// The source's element with coordinate 0 along the axis at the position of the result's `element`.
    pub fn embed(&self, element: u32) -> u32 {
        (self.embed)(element)
    }

    /// The lowest bit of the axis in the source's numbers, and how many there are.
    pub fn axis(&self) -> (u32, u32) {
        (self.low, self.bits)
    }

    pub(super) fn axis_bits(&self) -> Range<u32> {
        self.low..self.low + self.bits
    }

    pub(super) fn source_bases(&self, dim: Dim) -> &[u32] {
        self.from.layout().flat_bases_of(dim)
    }

    pub(super) fn wanted_bases(&self, dim: Dim) -> Vec<u32> {
        let bases = self.to.layout().flat_bases_of(dim);
        bases.iter().map(|basis| self.embed(*basis)).collect()
    }

    /// What a place outside of registers and lanes wants in addition to what it holds itself.
    pub(super) fn missing(&self, dim: Dim) -> Vec<u32> {
        let (held, wanted) = (self.source_bases(dim), self.wanted_bases(dim));
        (0..held.len().max(wanted.len()))
            .map(|bit| held.get(bit).unwrap_or(&0) ^ wanted.get(bit).unwrap_or(&0))
            .collect()
    }

    /// What each bit of the thread's number adds to the wanted number with coordinate 0.
    pub fn wanted_by_threads(&self) -> Vec<u32> {
        let mut bases = self.wanted_bases(Dim::LANE);
        bases.extend(self.wanted_bases(Dim::WARP));
        bases
    }

    /// What each bit of the block's number adds to the wanted number, less what its own block holds.
    pub fn wanted_by_blocks(&self) -> Vec<u32> {
        self.missing(Dim::BLOCK)
    }

    pub(super) fn distinct_results(&self) -> u32 {
        (0..self.to.registers())
            .filter(|register| self.to.canonical(*register) == *register)
            .count() as u32
    }
}
