//! Encodings: the attributes that describe where a tensor's elements are, and their conversion to linear layouts.
//!
//! An *encoding* is an attribute of the IR, such as `#ttg.blocked<{...}>`: short, named after the hardware, and in
//! part independent of the tensor's shape. A *layout* is the linear map that it stands for on one shape. All users of
//! this module see only layouts, and never ask for the kind of encoding.
//!
//! # From an encoding to a layout
//!
//! All distributed encodings follow one scheme, and so do the memory encodings that are not an explicit list of
//! bases:
//!
//! 1. A *tile* is distributed: its lowest bits to the registers of a lane, the next to lanes, and so on, with a
//!    matrix instruction's [fragment](llopt_target::matrix) in the place of the innermost part.
//! 2. The *share* of one block is the shape divided by what the blocks of a cluster split.
//! 3. Where the tile is smaller than the share, it is repeated: the first input dimension (`register`
//!    or `offset`) takes the missing bits, dimension by dimension in the encoding's order.
//! 4. Where it is larger, it wraps around: the index is taken modulo the share, so that several
//!    places hold the same element.
//! 5. The blocks of the cluster go on top.
//!
//! The result maps (`register`, `lane`, `warp`, `block`) or (`offset`, `block`) to `dim0`, `dim1`, …,
//! in these orders; tensor memory has (`row`, `col`).
//!
//! ```
//! use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
//!
//! let blocked = Encoding::Blocked(Blocked {
//!     size_per_thread: vec![1, 2],
//!     threads_per_warp: vec![4, 8],
//!     warps_per_cta: vec![2, 1],
//!     order: vec![1, 0],
//!     cga_layout: CgaLayout::single(2),
//! });
//! let layout = blocked.linear_layout(&[16, 16])?;
//! assert_eq!(
//!     layout.to_string(),
//!     "register=1 -> (0, 1)\nregister=2 -> (8, 0)\n\
//!      lane=1 -> (0, 2)\nlane=2 -> (0, 4)\nlane=4 -> (0, 8)\nlane=8 -> (1, 0)\nlane=16 -> (2, 0)\n\
//!      warp=1 -> (4, 0)\nblock has size 1\n\
//!      out: dim0 (size 16), dim1 (size 16)"
//! );
//! # Ok::<(), llopt_dialects::layout::encoding::EncodingError>(())
//! ```
//!
//! # Verification
//!
//! The bases equal those of Triton 3.6.0 for every row of the table in `tests/data`, which `tools/oracle` generates
//! with Triton itself.

mod amd_mfma;
mod amd_rotating_shared;
mod amd_wmma;
mod attribute;
mod blocked;
mod bulk_box;
mod cga_layout;
mod dot_operand;
mod error;
mod field;
mod fields;
mod kind;
mod linear;
pub(super) mod nvidia_mma;
mod nvmma_shared;
mod padded_shared;
mod parent;
mod partitioned_shared;
mod product;
mod shared_linear;
mod slice;
mod swizzled_shared;
mod tensor_memory;
mod threads;
mod tile;

use llopt_layout::LinearLayout;
use melior::{Context, ir::Attribute};

pub use amd_mfma::AmdMfma;
pub use amd_rotating_shared::AmdRotatingShared;
pub use amd_wmma::AmdWmma;
pub use attribute::layout_of;
pub use blocked::Blocked;
pub use bulk_box::BulkBox;
pub use cga_layout::CgaLayout;
pub use error::EncodingError;
use fields::{Field, Fields, Writer};
use kind::Kind;
pub use linear::Linear;
pub use nvidia_mma::NvidiaMma;
pub use nvmma_shared::NvmmaShared;
pub use padded_shared::PaddedShared;
use parent::Parent;
use product::{Product, ProductParent};
pub use shared_linear::SharedLinear;
pub use swizzled_shared::SwizzledShared;
pub use tensor_memory::{COL, ROW, TensorMemory, TensorMemoryScales};
pub use threads::Threads;

/// `#ttg.slice` of any encoding.
pub type Slice = slice::Slice<Encoding>;

/// `#ttg.dot_op` of any encoding.
pub type DotOperand = dot_operand::DotOperand<Encoding>;

/// `#ttg.partitioned_shared` with pieces of any encoding.
pub type PartitionedShared = partitioned_shared::PartitionedShared<Encoding>;

include!(concat!(env!("OUT_DIR"), "/encodings.rs"));

impl Encoding {
    /// The rank of the tensors that the encoding is for.
    #[must_use]
    pub fn rank(&self) -> usize {
        each_kind!(self, encoding => encoding.rank())
    }

    /// Padding in memory: after every `.0` elements, `.1` are unused. Only padded layouts have padding.
    #[must_use]
    pub fn pads(&self) -> &[(u32, u32)] {
        each_kind!(self, encoding => Kind::pads(encoding))
    }

    /// Elements of memory for so many elements of a tensor, including the padding between them.
    #[must_use]
    pub fn elements_in_memory(&self, elements: u64) -> u64 {
        each_kind!(self, encoding => encoding.elements_in_memory(elements))
    }

    /// The alignment in bytes of memory with this layout, if the layout requires one: hardware swizzles address bits.
    #[must_use]
    pub fn memory_alignment(&self) -> Option<u32> {
        each_kind!(self, encoding => encoding.memory_alignment())
    }

    /// The linear layout of an encoding that spells out its bases, and with them the shape that it is for.
    #[must_use]
    pub fn spelled_layout(&self) -> Option<&LinearLayout> {
        each_kind!(self, encoding => encoding.spelled_layout())
    }

    /// The layout of the product for which an operand has its layout.
    #[must_use]
    pub fn product(&self) -> Option<&Self> {
        match self {
            Self::DotOperand(operand) => Some(&operand.parent),
            _ => None,
        }
    }

    /// Whether it is for no matrix instruction: each thread has a tile.
    #[must_use]
    pub fn is_of_threads(&self) -> bool {
        matches!(self, Self::Blocked(_))
    }

    /// How the blocks of a cluster share the tensor. Tensor memory is always one block's own part
    /// and reports one block.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        each_kind!(self, encoding => encoding.cga_layout())
    }

    /// Whether the fields are consistent, for any shape.
    ///
    /// # Errors
    /// The first field at fault, with its value.
    pub fn verify(&self) -> Result<(), EncodingError> {
        each_kind!(self, encoding => encoding.verify())
    }

    /// The linear layout on a tensor of the given shape.
    ///
    /// Inputs (`register`, `lane`, `warp`, `block`), (`offset`, `block`) or (`row`, `col`), outputs
    /// `dim0`, `dim1`, … of the shape's sizes.
    ///
    /// # Errors
    /// What [`Encoding::verify`] finds; a shape of the wrong rank, with a size that is no power of
    /// two, or smaller than the encoding can be on.
    pub fn linear_layout(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        self.verify()?;
        field::verify_shape(self.rank(), shape)?;
        each_kind!(self, encoding => encoding.layout_on(shape))
    }

    /// The same, where layouts of other encodings are found by `of_parent`, which may know them: that of a slice follows from
    /// its parent's.
    ///
    /// # Errors
    /// As [`Encoding::linear_layout`].
    pub fn linear_layout_by(
        &self,
        shape: &[u64],
        of_parent: impl FnOnce(&Self, &[u64]) -> Result<LinearLayout, EncodingError>,
    ) -> Result<LinearLayout, EncodingError> {
        let Self::Slice(slice) = self else {
            return self.linear_layout(shape);
        };
        slice.verify()?;
        field::verify_shape(slice.rank(), shape)?;
        let parent = of_parent(&slice.parent, &slice.parent_shape(shape))?;
        slice.cut(&parent, shape)
    }

    /// The box of one bulk copy of one block's share of a tensor; `None` if no bulk copy writes this layout. Boxes
    /// lie one after the other in memory.
    ///
    /// # Errors
    /// As [`Encoding::linear_layout`].
    pub fn bulk_box(&self, shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        each_kind!(self, encoding => encoding.bulk_box(shape))
    }

    /// The threads over which a distributed encoding distributes a tensor; `None` for layouts of memory.
    #[must_use]
    pub fn threads(&self) -> Option<Threads> {
        each_kind!(self, encoding => encoding.threads())
    }

    /// The fields as parameters of the attribute.
    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        each_kind!(self, encoding => encoding.write(write))
    }
}

impl Parent for Encoding {
    fn from_attribute(attribute: Attribute<'_>) -> Result<Self, EncodingError> {
        Self::from_attribute(attribute)
    }

    fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        self.to_attribute(context)
    }

    fn name(&self) -> &'static str {
        self.name()
    }

    fn rank(&self) -> usize {
        self.rank()
    }

    fn is_distributed(&self) -> bool {
        self.is_distributed()
    }

    fn cga_layout(&self) -> CgaLayout {
        self.cga_layout()
    }

    fn pads(&self) -> &[(u32, u32)] {
        self.pads()
    }

    fn elements_in_memory(&self, elements: u64) -> u64 {
        self.elements_in_memory(elements)
    }

    fn memory_alignment(&self) -> Option<u32> {
        self.memory_alignment()
    }

    fn threads(&self) -> Option<Threads> {
        self.threads()
    }

    fn verify(&self) -> Result<(), EncodingError> {
        self.verify()
    }

    fn linear_layout(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        self.linear_layout(shape)
    }
}

impl ProductParent for Encoding {
    fn as_product(&self) -> Option<Product<'_>> {
        match self {
            Self::Blocked(blocked) => Some(Product::Blocked(blocked)),
            Self::NvidiaMma(mma) => Some(Product::NvidiaMma(mma)),
            Self::AmdMfma(mfma) => Some(Product::AmdMfma(mfma)),
            Self::AmdWmma(wmma) => Some(Product::AmdWmma(wmma)),
            _ => None,
        }
    }
}
