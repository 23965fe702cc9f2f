//! The parent of a derived encoding.

use llopt_layout::LinearLayout;
use melior::{Context, ir::Attribute};

use super::threads::Threads;
use super::{CgaLayout, EncodingError};

/// An encoding that others are derived from.
pub trait Parent: Sized {
    /// The encoding that an attribute is.
    ///
    /// # Errors
    /// The attribute is none, or its fields are inconsistent.
    fn from_attribute(attribute: Attribute<'_>) -> Result<Self, EncodingError>;

    /// The attribute that the encoding is.
    fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c>;

    /// The attribute's name in the IR.
    fn name(&self) -> &'static str;

    /// The rank of its tensors.
    fn rank(&self) -> usize;

    /// Whether it distributes a tensor over threads.
    fn is_distributed(&self) -> bool;

    /// How the blocks of a cluster share the tensor.
    fn cga_layout(&self) -> CgaLayout;

    /// Padding in memory: after every `.0` elements, `.1` are unused.
    fn pads(&self) -> &[(u32, u32)];

    /// Elements of memory for so many elements of a tensor, including the padding between them.
    fn elements_in_memory(&self, elements: u64) -> u64;

    /// The alignment in bytes of memory with this layout, if the layout requires one.
    fn memory_alignment(&self) -> Option<u32>;

    /// The threads over which it distributes a tensor.
    fn threads(&self) -> Option<Threads>;

    /// Whether the fields are consistent.
    ///
    /// # Errors
    /// The first field at fault.
    fn verify(&self) -> Result<(), EncodingError>;

    /// The linear layout on a tensor of the given shape.
    ///
    /// # Errors
    /// A shape that the encoding does not allow.
    fn linear_layout(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError>;
}
