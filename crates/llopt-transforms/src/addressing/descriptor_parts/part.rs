//! The parts of a tensor descriptor.

use llopt_dialects::tables::types::{Pointer, TensorDesc};
use llopt_dialects::tt::{MakeTensorDescOp, PaddingOption};
use llopt_mlir::ir::TypeExt;
use melior::Context;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike, Value};

use crate::loops::induction::constant;

/// One of them; dimensions are counted from the outermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// The address of the first element.
    Base,
    /// The number of elements along a dimension.
    Extent(usize),
    /// The distance of neighbours along a dimension, in elements.
    Stride(usize),
    /// Whether elements outside are NaN; otherwise they are zero.
    Padding,
}

/// What is known of a part without an access to memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known<'c, 'a> {
    Value(Value<'c, 'a>),
    Constant(i64),
}

impl Part {
    /// The parts of a descriptor, in the order in which launchers pass them (Triton 3.6, `_expand_signature` of
    /// `backends/amd/driver.py`).
    pub(super) fn all(descriptor: TensorDesc<'_>) -> Vec<Self> {
        let rank = descriptor.block().map_or(0, |block| block.rank());
        let mut parts = vec![Self::Base];
        parts.extend((0..rank).map(Self::Extent));
        parts.extend((0..rank).map(Self::Stride));
        parts.push(Self::Padding);
        parts
    }

    /// Whether an access through the descriptor may depend on it: what is outside of a tensor of integers is zero.
    pub(super) fn matters(self, descriptor: TensorDesc<'_>) -> bool {
        let element = descriptor.block().map(|block| block.element());
        self != Self::Padding || element.is_some_and(|element| element.is_float())
    }

    /// Its type, where `tt.make_tensor_descriptor` takes it.
    pub(super) fn r#type<'c>(self, context: &'c Context, descriptor: TensorDesc<'c>) -> Type<'c> {
        let integer = |bits| IntegerType::new(context, bits).into();
        match self {
            Self::Base => {
                let block = descriptor.signless_block();
                Pointer::get(block.map_or(integer(8), |block| block.element()), 1)
            }
            Self::Extent(_) => integer(32),
            Self::Stride(_) => integer(64),
            Self::Padding => integer(1),
        }
    }

    /// Its type as a parameter of a kernel: extents have 64 bits.
    pub(super) fn parameter_type<'c>(
        self,
        context: &'c Context,
        descriptor: TensorDesc<'c>,
    ) -> Type<'c> {
        match self {
            Self::Extent(_) => IntegerType::new(context, 64).into(),
            _ => self.r#type(context, descriptor),
        }
    }

    /// What divides the bytes or elements that a parameter counts, by what `tt.make_tensor_descriptor` promises.
    pub(super) fn divisor(self, descriptor: TensorDesc<'_>) -> Option<i64> {
        let block = descriptor.block()?;
        let bits = i64::from(block.element().bit_width()?);
        let divisor = match self {
            Self::Base => Some(ALIGNMENT),
            Self::Stride(dim) if dim + 1 < block.rank() => Some(8 * ALIGNMENT / bits),
            Self::Extent(_) | Self::Stride(_) | Self::Padding => None,
        };
        divisor.filter(|&divisor| divisor > 1)
    }

    /// What an op that makes a descriptor says of it.
    pub(super) fn made_by<'c: 'a, 'a>(self, maker: MakeTensorDescOp<'c, 'a>) -> Known<'c, 'a> {
        let value = match self {
            Self::Base => return Known::Value(maker.base()),
            Self::Extent(dim) => maker.shape()[dim],
            Self::Stride(dim) => maker.strides()[dim],
            Self::Padding => {
                return Known::Constant((maker.padding() == PaddingOption::Nan).into());
            }
        };
        constant(value).map_or(Known::Value(value), Known::Constant)
    }
}

/// The bytes by which the address of a tensor is divisible, and the distance of its neighbours along all dimensions
/// but the last.
const ALIGNMENT: i64 = 16;
