//! What an encoding that is derived from another has to know of that one.

use llopt_layout::LinearLayout;
use melior::{Context, ir::Attribute};

use super::threads::Threads;
use super::{CgaLayout, EncodingError};

/// An encoding that others are derived from.
pub trait Parent: Sized {
    /// The encoding that an attribute is.
    ///
    /// # Errors
    /// The attribute is none, or its fields mean nothing together.
    fn from_attribute(attribute: Attribute<'_>) -> Result<Self, EncodingError>;

    /// The attribute that the encoding is.
    fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c>;

    /// The attribute's name in the IR.
    fn name(&self) -> &'static str;

    /// The rank of its tensors.
    fn rank(&self) -> usize;

    /// Whether it spreads a tensor over threads.
    fn is_distributed(&self) -> bool;

    /// How the blocks of a cluster share the tensor.
    fn cga_layout(&self) -> CgaLayout;

    /// Elements that are left out in memory: after each `.0` elements, `.1`.
    fn pads(&self) -> &[(u32, u32)];

    /// Elements of memory that so many of a tensor take, with those that are left out between them.
    fn elements_in_memory(&self, elements: u64) -> u64;

    /// The bytes to which memory with this layout has to be aligned, if the layout asks for that.
    fn memory_alignment(&self) -> Option<u32>;

    /// The threads that it spreads a tensor over.
    fn threads(&self) -> Option<Threads>;

    /// Whether the fields mean something together.
    ///
    /// # Errors
    /// The first field at fault.
    fn verify(&self) -> Result<(), EncodingError>;

    /// The linear layout on a tensor of the given shape.
    ///
    /// # Errors
    /// A shape that the encoding cannot be on.
    fn linear_layout(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError>;
}
