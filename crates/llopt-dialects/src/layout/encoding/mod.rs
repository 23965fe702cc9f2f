//! Encodings: the attributes that say how a tensor lies, and the one way from them to linear layouts.
//!
//! An *encoding* is what the IR writes, `#ttg.blocked<{...}>` and its kin: short, named after the
//! hardware, and in part independent of the tensor's shape. A *layout* is the linear map it stands for
//! on one shape. Everything behind this module sees layouts only; which kind of encoding they came
//! from is never asked again.
//!
//! # From an encoding to a layout
//!
//! All distributed encodings follow one plan, and so do the memory encodings that are no explicit
//! list of bases:
//!
//! 1. A *tile* is dealt out: its lowest bits to the registers of a lane, the next to lanes, and so on,
//!    with a matrix instruction's [fragment](llopt_target::matrix) in the place of the innermost part.
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
//! # Where the facts come from
//!
//! The bases equal those of Triton 3.6.0 for every row of the table in `tests/data`, which
//! `tools/oracle` writes by asking Triton itself.

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
mod linear;
pub(super) mod nvidia_mma;
mod nvmma_shared;
mod padded_shared;
mod shared_linear;
mod slice;
mod swizzled_shared;
mod tensor_memory;
mod tile;

use llopt_layout::LinearLayout;

pub use amd_mfma::AmdMfma;
pub use amd_rotating_shared::AmdRotatingShared;
pub use amd_wmma::AmdWmma;
pub use attribute::layout_of;
pub use blocked::Blocked;
pub use bulk_box::BulkBox;
pub use cga_layout::CgaLayout;
pub use dot_operand::DotOperand;
pub use error::EncodingError;
pub use linear::Linear;
pub use nvidia_mma::NvidiaMma;
pub use nvmma_shared::NvmmaShared;
pub use padded_shared::PaddedShared;
pub use shared_linear::SharedLinear;
pub use slice::Slice;
pub use swizzled_shared::SwizzledShared;
pub use tensor_memory::{COL, ROW, TensorMemory, TensorMemoryScales};

/// A layout attribute of any kind, as plain data.
///
/// A value may be built with any fields; [`Encoding::verify`] and [`Encoding::linear_layout`] refuse
/// those that mean nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `#ttg.blocked`
    Blocked(Blocked),
    /// `#ttg.slice`
    Slice(Slice),
    /// `#ttg.linear`
    Linear(Linear),
    /// `#ttg.nvidia_mma`
    NvidiaMma(NvidiaMma),
    /// `#ttg.amd_mfma`
    AmdMfma(AmdMfma),
    /// `#ttg.amd_wmma`
    AmdWmma(AmdWmma),
    /// `#ttg.dot_op`
    DotOperand(DotOperand),
    /// `#ttg.swizzled_shared`
    SwizzledShared(SwizzledShared),
    /// `#ttg.amd_rotating_shared`
    AmdRotatingShared(AmdRotatingShared),
    /// `#ttg.nvmma_shared`
    NvmmaShared(NvmmaShared),
    /// `#ttg.shared_linear`
    SharedLinear(SharedLinear),
    /// `#ttg.padded_shared`
    PaddedShared(PaddedShared),
    /// `#ttng.tensor_memory_encoding`
    TensorMemory(TensorMemory),
    /// `#ttng.tensor_memory_scales_encoding`
    TensorMemoryScales(TensorMemoryScales),
}

/// Calls a method that every kind has.
macro_rules! each_kind {
    ($self:expr, $encoding:ident => $call:expr) => {
        match $self {
            Encoding::Blocked($encoding) => $call,
            Encoding::Slice($encoding) => $call,
            Encoding::Linear($encoding) => $call,
            Encoding::NvidiaMma($encoding) => $call,
            Encoding::AmdMfma($encoding) => $call,
            Encoding::AmdWmma($encoding) => $call,
            Encoding::DotOperand($encoding) => $call,
            Encoding::SwizzledShared($encoding) => $call,
            Encoding::AmdRotatingShared($encoding) => $call,
            Encoding::NvmmaShared($encoding) => $call,
            Encoding::SharedLinear($encoding) => $call,
            Encoding::PaddedShared($encoding) => $call,
            Encoding::TensorMemory($encoding) => $call,
            Encoding::TensorMemoryScales($encoding) => $call,
        }
    };
}

impl Encoding {
    /// The attribute's name in the IR: `ttg.blocked`, `ttng.tensor_memory_encoding`, …
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Blocked(_) => "ttg.blocked",
            Self::Slice(_) => "ttg.slice",
            Self::Linear(_) => "ttg.linear",
            Self::NvidiaMma(_) => "ttg.nvidia_mma",
            Self::AmdMfma(_) => "ttg.amd_mfma",
            Self::AmdWmma(_) => "ttg.amd_wmma",
            Self::DotOperand(_) => "ttg.dot_op",
            Self::SwizzledShared(_) => "ttg.swizzled_shared",
            Self::AmdRotatingShared(_) => "ttg.amd_rotating_shared",
            Self::NvmmaShared(_) => "ttg.nvmma_shared",
            Self::SharedLinear(_) => "ttg.shared_linear",
            Self::PaddedShared(_) => "ttg.padded_shared",
            Self::TensorMemory(_) => "ttng.tensor_memory_encoding",
            Self::TensorMemoryScales(_) => "ttng.tensor_memory_scales_encoding",
        }
    }

    /// The rank of the tensors that the encoding is for.
    #[must_use]
    pub fn rank(&self) -> usize {
        each_kind!(self, encoding => encoding.rank())
    }

    /// Whether the encoding spreads a tensor over threads, as opposed to laying it out in a memory.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        match self {
            Self::Blocked(_)
            | Self::Slice(_)
            | Self::Linear(_)
            | Self::NvidiaMma(_)
            | Self::AmdMfma(_)
            | Self::AmdWmma(_)
            | Self::DotOperand(_) => true,
            Self::SwizzledShared(_)
            | Self::AmdRotatingShared(_)
            | Self::NvmmaShared(_)
            | Self::SharedLinear(_)
            | Self::PaddedShared(_)
            | Self::TensorMemory(_)
            | Self::TensorMemoryScales(_) => false,
        }
    }

    /// Elements that are left out in memory: after each `.0` elements, `.1`. Only padded layouts have such.
    #[must_use]
    pub fn pads(&self) -> &[(u32, u32)] {
        match self {
            Self::PaddedShared(padded) => padded.pads(),
            _ => &[],
        }
    }

    /// Elements of memory that so many of a tensor take, with those that are left out between them.
    #[must_use]
    pub fn elements_in_memory(&self, elements: u64) -> u64 {
        match self {
            Self::PaddedShared(padded) => padded.padded_size(elements),
            _ => elements,
        }
    }

    /// The bytes to which memory with this layout has to be aligned, if the layout asks for that: hardware swizzles
    /// address bits.
    #[must_use]
    pub fn memory_alignment(&self) -> Option<u32> {
        match self {
            Self::NvmmaShared(hardware) => Some(hardware.alignment()),
            Self::SharedLinear(linear) => Some(linear.alignment()),
            _ => None,
        }
    }

    /// The linear layout of an encoding that spells out its bases, and with them the shape that it is for.
    #[must_use]
    pub fn spelled_layout(&self) -> Option<&LinearLayout> {
        match self {
            Self::Linear(linear) => Some(linear.layout()),
            Self::SharedLinear(linear) => Some(linear.layout()),
            Self::PaddedShared(padded) => Some(padded.component()),
            _ => None,
        }
    }

    /// The layout of the product that an operand of a product is laid out for.
    #[must_use]
    pub fn product(&self) -> Option<&Self> {
        match self {
            Self::DotOperand(operand) => Some(&operand.parent),
            _ => None,
        }
    }

    /// Whether it is for no particular instruction: a tile for each thread.
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

    /// Whether the fields mean something together, for whatever shape.
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

    /// What one bulk copy moves of one block's share of a tensor; `None` if no bulk copy writes this
    /// layout. Boxes lie one after the other in memory.
    ///
    /// # Errors
    /// As [`Encoding::linear_layout`].
    pub fn bulk_box(&self, shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        match self {
            Self::NvmmaShared(encoding) => encoding.bulk_box(shape),
            Self::SwizzledShared(encoding) => encoding.bulk_box(shape),
            _ => Ok(None),
        }
    }
}
