//! How the layouts of an op's operands and results are related.
//!
//! Each op has one layout to be chosen, its *label*: that of the tensor it works on. The layouts of all its operands
//! and results follow from the label, and the label from the layout of any of them
//! ([`llopt_dialects::layout::transfer`] is the algebra). An op whose operands and results all have one layout is
//! labelled with that; a shape op with the layout of its result; a reduction with the layout of its operands; a
//! matrix product with the layout of its result, from which the layouts of its factors follow. Some operands are
//! *free*: the op takes them in any layout (the source of a gather, the input of a histogram), so the label does not
//! follow from their layouts, nor their layouts from the label.

use std::borrow::Cow;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::{product, transfer};
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{Integers, Meaning, OpFacts, Transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::DotScaledOp;
use llopt_dialects::{arith, ub};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt};
use melior::ir::{OperationRef, Value, ValueLike};

/// How an op relates layouts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Relation {
    /// All tensors have the label.
    Same,
    /// The result has the label; the operand is it without an axis.
    ExpandDims { axis: i64 },
    /// The result has the label; the operand's axes are permuted.
    Transpose { order: Vec<i32> },
    /// The result has the label; the operand has another shape.
    Reshape,
    /// The result has the label; the operands are its halves.
    Join,
    /// The operand has the label; the results are its halves.
    Split,
    /// The operand has the label; the result has two elements for each along an axis.
    Unpack { axis: i64 },
    /// The operands have the label; the results are without an axis.
    Reduce { axis: i64 },
    /// The result and the indices have the label; the source is free.
    Gather,
    /// The result has the label; the operands are free.
    Histogram,
    /// The result and the accumulator have the label; it determines the layouts of the factors, whose elements have
    /// this many bits, and of their scales.
    Dot {
        bits: [u32; 2],
        scales: [Option<Scales>; 2],
    },
}

/// The scales of a factor of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scales {
    /// Its position among the operands.
    operand: usize,
    /// Elements along k of the factor's tensor that share one.
    group: u32,
}

impl Scales {
    /// The scales of both factors of an op.
    fn of(operation: OperationRef<'_, '_>) -> [Option<Self>; 2] {
        let Some(dot) = DotScaledOp::of(operation) else {
            return [None; 2];
        };
        let extents = |value: Value| Some(RankedTensor::of(value.r#type())?.shape());
        let sides = [(dot.a(), dot.a_scale(), 0), (dot.b(), dot.b_scale(), 1)];
        sides.map(|(factor, scale, side)| {
            let (factor, groups) = (extents(factor)?, *extents(scale?)?.last()?);
            let along_k = *factor.get(factor.len().checked_sub(1 + side)?)?;
            // The scales of the second factor come after those of the first, if there are any.
            let operand = FACTORS + 1 + usize::from(side == 1 && dot.a_scale().is_some());
            let group = u32::try_from(along_k.checked_div(groups)?).ok()?;
            Some(Self { operand, group })
        })
    }
}

/// Factors of a matrix product.
const FACTORS: usize = 2;

impl Relation {
    /// The relation of an op; `None` for one that is not analysed.
    pub(super) fn of(operation: OperationRef<'_, '_>) -> Option<Self> {
        let axis = || i64::try_from(dimensions::axis(operation)?).ok();
        Some(match OpFacts::of(operation).layouts {
            Transfer::Unknown => return None,
            Transfer::Same => Self::Same,
            Transfer::ExpandDims => Self::ExpandDims { axis: axis()? },
            Transfer::Transpose => Self::Transpose {
                order: operation
                    .attr("order")?
                    .as_integers()?
                    .into_iter()
                    .map(|dim| i32::try_from(dim).ok())
                    .collect::<Option<_>>()?,
            },
            Transfer::Reshape => Self::Reshape,
            Transfer::Join => Self::Join,
            Transfer::Split => Self::Split,
            Transfer::Unpack => Self::Unpack { axis: axis()? },
            Transfer::Reduce => Self::Reduce { axis: axis()? },
            Transfer::Gather => Self::Gather,
            Transfer::Histogram => Self::Histogram,
            Transfer::Product => {
                let bits = |index| {
                    let operand = operation.operand_value(index)?;
                    RankedTensor::of(operand.r#type()).map(element_bits)
                };
                Self::Dot {
                    bits: [bits(0)?, bits(1)?],
                    scales: Scales::of(operation),
                }
            }
        })
    }

    /// Whether the label is of pairs of elements along the last axis, which one thread must hold.
    pub(super) fn pairs_elements(&self) -> bool {
        matches!(self, Self::Join | Self::Split)
    }

    /// Whether the op takes this operand in any layout.
    pub(super) fn is_free(&self, operand: usize) -> bool {
        match self {
            Self::Gather => operand == 0,
            Self::Histogram => true,
            _ => false,
        }
    }

    /// Whether this operand is a factor of a matrix product, which may be in shared memory.
    pub(super) fn is_factor(&self, operand: usize) -> bool {
        matches!(self, Self::Dot { .. } if operand < FACTORS)
    }

    /// Whether it is a matrix product of scaled factors, in which the position of an element along k matters.
    pub(super) fn scales_factors(&self) -> bool {
        matches!(self, Self::Dot { scales, .. } if scales.iter().any(Option::is_some))
    }

    /// The layout that an operand of this shape must have; `None` if there is none. For a factor it is the one in
    /// registers.
    pub(super) fn operand<'l>(
        &self,
        label: &'l Encoding,
        label_shape: &[i64],
        operand: usize,
        shape: &[i64],
    ) -> Option<Cow<'l, Encoding>> {
        let found = match self {
            Self::Same
            | Self::Split
            | Self::Unpack { .. }
            | Self::Reduce { .. }
            | Self::Gather
            | Self::Histogram => return Some(Cow::Borrowed(label)),
            Self::ExpandDims { axis } => transfer::slice(label, *axis).ok(),
            Self::Transpose { order } => {
                transfer::trans(label, label_shape, &transfer::inverse(order)).ok()
            }
            Self::Reshape => transfer::reshape(label, label_shape, shape).ok(),
            Self::Join => transfer::split(label, label_shape).ok(),
            Self::Dot { bits, scales } => {
                let factor = |side: usize| {
                    let width = transfer::elements_along_k(label, bits[side])?;
                    transfer::dot_operand(label, u32::try_from(side).ok()?, width).ok()
                };
                let of = |scales: &Option<Scales>| scales.is_some_and(|of| of.operand == operand);
                match scales.iter().position(of) {
                    Some(side) => {
                        let group = scales[side]?.group;
                        product::scales(&factor(side)?, side, transfer::extents(shape), group)
                    }
                    None if operand < FACTORS => factor(operand),
                    None => return Some(Cow::Borrowed(label)),
                }
            }
        };
        found.map(Cow::Owned)
    }

    /// The label from the layout of an operand of this shape.
    pub(super) fn label_of_operand<'l>(
        &self,
        layout: &'l Encoding,
        shape: &[i64],
        operand: usize,
        label_shape: &[i64],
    ) -> Option<Cow<'l, Encoding>> {
        let found = match self {
            Self::Same
            | Self::Split
            | Self::Unpack { .. }
            | Self::Reduce { .. }
            | Self::Gather
            | Self::Histogram => return Some(Cow::Borrowed(layout)),
            Self::ExpandDims { axis } => transfer::expand_dims(layout, shape, *axis).ok(),
            Self::Transpose { order } => transfer::trans(layout, shape, order).ok(),
            Self::Reshape => transfer::reshape(layout, shape, label_shape).ok(),
            Self::Join => transfer::join(layout, shape).ok(),
            // The product determines the layouts of factors; their present layouts do not determine the label.
            Self::Dot { .. } => return (operand == FACTORS).then_some(Cow::Borrowed(layout)),
        };
        found.map(Cow::Owned)
    }

    /// The layout of a result.
    pub(super) fn result<'l>(
        &self,
        label: &'l Encoding,
        label_shape: &[i64],
    ) -> Option<Cow<'l, Encoding>> {
        let found = match self {
            Self::Same
            | Self::ExpandDims { .. }
            | Self::Transpose { .. }
            | Self::Reshape
            | Self::Join
            | Self::Gather
            | Self::Histogram
            | Self::Dot { .. } => return Some(Cow::Borrowed(label)),
            Self::Split => transfer::split(label, label_shape).ok(),
            Self::Unpack { axis } => transfer::unpack(label, label_shape, *axis).ok(),
            Self::Reduce { axis } => transfer::slice(label, *axis).ok(),
        };
        found.map(Cow::Owned)
    }

    /// The label from the layout of a result of this shape.
    pub(super) fn label_of_result<'l>(
        &self,
        result: &'l Encoding,
        shape: &[i64],
    ) -> Option<Cow<'l, Encoding>> {
        let found = match self {
            Self::Same
            | Self::ExpandDims { .. }
            | Self::Transpose { .. }
            | Self::Reshape
            | Self::Join
            | Self::Gather
            | Self::Histogram
            | Self::Dot { .. } => return Some(Cow::Borrowed(result)),
            Self::Split => transfer::join(result, shape).ok(),
            Self::Unpack { axis } => transfer::pack(result, shape, *axis).ok(),
            Self::Reduce { axis } => transfer::expand_dims(result, shape, *axis).ok(),
        };
        found.map(Cow::Owned)
    }

    /// The tensor that the label is the layout of; `None` if the op has no tensors.
    pub(super) fn labelled<'c>(&self, operation: OperationRef<'c, '_>) -> Option<RankedTensor<'c>> {
        let operands = operation.operand_values().map(|value| value.r#type());
        let results = operation.result_types();
        let first = |mut types: Box<dyn Iterator<Item = melior::ir::Type<'c>> + '_>| {
            types.find_map(RankedTensor::of)
        };
        match self {
            Self::Split | Self::Unpack { .. } | Self::Reduce { .. } => first(Box::new(operands)),
            _ => first(Box::new(results)).or_else(|| first(Box::new(operands))),
        }
    }
}

/// Whether an op creates a tensor at the price of a move or less.
pub(super) fn is_cheap(operation: OperationRef<'_, '_>) -> bool {
    let tensor = operation
        .result_value(0)
        .is_some_and(|value| RankedTensor::of(value.r#type()).is_some());
    let of_cheap = || {
        operation
            .operand_value(0)
            .and_then(ValueExt::defining_op)
            .is_some_and(is_cheap)
    };
    tensor
        && match OpFacts::of(operation).integers {
            Integers::Range | Integers::Splat => true,
            Integers::ExpandDims | Integers::Broadcast => of_cheap(),
            Integers::Unknown
            | Integers::Same
            | Integers::Bits
            | Integers::Elementwise
            | Integers::IfPure
            | Integers::Read
            | Integers::Program
            | Integers::Element
            | Integers::Transpose
            | Integers::Reshape
            | Integers::Join
            | Integers::Split
            | Integers::Concatenate
            | Integers::Address => {
                arith::ConstantOp::of(operation).is_some() || ub::PoisonOp::of(operation).is_some()
            }
        }
}

/// Whether an op gives registers other names: what it computes is where its operands were.
pub(super) fn only_renames(operation: OperationRef<'_, '_>) -> bool {
    let facts = OpFacts::of(operation);
    facts.meaning == Meaning::Shape
        && match facts.layouts {
            Transfer::Same
            | Transfer::ExpandDims
            | Transfer::Transpose
            | Transfer::Reshape
            | Transfer::Join
            | Transfer::Split => true,
            Transfer::Unknown
            | Transfer::Unpack
            | Transfer::Reduce
            | Transfer::Gather
            | Transfer::Histogram
            | Transfer::Product => false,
        }
}

/// Bits of one element as it lies in a register; addresses take 64.
pub(super) fn element_bits(tensor: RankedTensor<'_>) -> u32 {
    tensor.element().bit_width().unwrap_or(64).max(8)
}
