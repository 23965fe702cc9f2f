//! The axis of a reduction in the numbers of elements: a field of their bits, as extents are powers of two.

use crate::tensor::TensorType;

/// The axis as a field of row-major numbers.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: u32,
    bits: u32,
}

impl Axis {
    /// Dimension `axis` of a tensor.
    pub fn of(tensor: &TensorType, axis: usize) -> Self {
        let (low, bits) = tensor.bits_of_dim(axis);
        Self { low, bits }
    }

    /// log2 of the extent.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The bits of a coordinate along the axis.
    pub(super) fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }

    /// The coordinate along the axis.
    pub fn along(self, element: u32) -> u32 {
        element >> self.low & self.mask()
    }

    /// The row-major number without the axis.
    pub fn rest(self, element: u32) -> u32 {
        let below = element & ((1 << self.low) - 1);
        below | element >> (self.low + self.bits) << self.low
    }
}
