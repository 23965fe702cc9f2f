//! Programs with layouts: which layouts stay, and how the others are removed.
//!
//! A tensor whose type has a layout keeps it. A pass that chooses layouts anew removes the old ones first
//! ([`release`]): the types of all tensors that it does not keep lose them, and conversions between them are removed,
//! because the engine inserts its own. The operand layouts of a kept op are recorded, since its operands' types may
//! be those of released ops now. The layouts of the other ops are recorded too and proposed, so that the original
//! program is one of the candidates, and no program that costs more is chosen.

use std::collections::HashMap;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{GatherOp, ReshapeOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk};
use melior::ir::{OperationRef, Value, ValueLike};

use super::constant::retype_constant;
use super::grid::Grid;
use super::relation::Relation;

/// Which ops keep their layouts when the others are chosen anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Accesses to global memory and matrix products.
    Anchors,
    /// Accesses to global memory.
    Accesses,
    /// Matrix products.
    Products,
    /// Loads from global memory, and matrix products.
    Loads,
}

impl Keep {
    /// Whether a pass keeps the layouts of an op, in a program of so many threads in a block.
    fn keeps(self, operation: OperationRef<'_, '_>, threads: u64) -> bool {
        let facts = OpFacts::of(operation);
        // Where there are fewer elements than threads, none has a neighbour to load, and nothing was coalesced.
        let is_wide = access_elements(operation).is_none_or(|elements| elements >= threads);
        let accesses = is_wide
            && match facts.anchor {
                Some(LayoutAnchor::Load) => self != Self::Products,
                Some(LayoutAnchor::Store | LayoutAnchor::Update | LayoutAnchor::CompareAndSwap) => {
                    matches!(self, Self::Anchors | Self::Accesses)
                }
                Some(LayoutAnchor::Buffer) | None => false,
            };
        let chosen = ReshapeOp::of(operation).is_some_and(ReshapeOp::efficient_layout)
            || GatherOp::of(operation).is_some_and(GatherOp::efficient_layout);
        accesses
            || chosen
            || match facts.layouts {
                Transfer::Unknown => true,
                Transfer::Product => self != Self::Accesses,
                Transfer::Same
                | Transfer::ExpandDims
                | Transfer::Transpose
                | Transfer::Reshape
                | Transfer::Join
                | Transfer::Split
                | Transfer::Unpack
                | Transfer::Reduce
                | Transfer::Gather
                | Transfer::Histogram => false,
            }
    }
}

/// The layouts that an op has.
#[derive(Clone, Debug, Default)]
pub(super) struct Pin {
    /// Whether they stay.
    pub(super) stays: bool,
    /// The op's label.
    pub(super) label: Option<Encoding>,
    /// The layouts of its operands, as far as they are tensors.
    pub(super) operands: Vec<Option<Encoding>>,
}

/// The layouts of ops, recorded before their tensors' types lost them.
#[derive(Default)]
pub(super) struct Pins(HashMap<usize, Pin>);

impl Pins {
    /// The recorded layouts of an op.
    pub(super) fn of(&self, operation: OperationRef<'_, '_>) -> Option<&Pin> {
        self.0.get(&key(operation))
    }

    /// The layout of an operand of an op with layouts of which nothing is recorded.
    pub(super) fn as_written(
        &self,
        operation: OperationRef<'_, '_>,
        operand: usize,
    ) -> Option<Encoding> {
        if self.of(operation).is_some() {
            return None;
        }
        let mut pin = Pin::of(operation);
        pin.label
            .is_some()
            .then(|| pin.operands.swap_remove(operand))?
    }

    /// The layouts of an op that stay, given the tensor that it is labelled with: the recorded ones, or those of its types. None if
    /// neither has any.
    pub(super) fn staying(
        &self,
        operation: OperationRef<'_, '_>,
        labelled: Option<RankedTensor<'_>>,
    ) -> Option<Pin> {
        match self.of(operation) {
            Some(pin) => pin.stays.then(|| pin.clone()),
            None => Pin::written(operation, labelled),
        }
    }
}

impl Pin {
    /// The layouts that the types of an op have that is labelled with this tensor; none if none has one.
    fn written(
        operation: OperationRef<'_, '_>,
        labelled: Option<RankedTensor<'_>>,
    ) -> Option<Self> {
        let operands = operation.operand_values().map(|value| value.r#type());
        let mut types = operands.chain(operation.result_types());
        let has_layout = |tensor: RankedTensor<'_>| tensor.encoding().is_some();
        let is_laid_out = types.any(|each| RankedTensor::of(each).is_some_and(has_layout));
        is_laid_out.then(|| Self::labelled(operation, labelled))
    }

    fn of(operation: OperationRef<'_, '_>) -> Self {
        let relation = Relation::of(operation);
        let labelled = relation.and_then(|relation| relation.labelled(operation));
        Self::labelled(operation, labelled)
    }

    fn labelled(operation: OperationRef<'_, '_>, labelled: Option<RankedTensor<'_>>) -> Self {
        Self {
            stays: true,
            label: labelled.and_then(encoding),
            operands: operation
                .operand_values()
                .map(|value| encoding(RankedTensor::of(value.r#type())?))
                .collect(),
        }
    }

    /// Whether the layouts of the operands are those that follow from the label.
    pub(super) fn fits(&self, operation: OperationRef<'_, '_>, relation: &Relation) -> bool {
        let labelled = relation.labelled(operation);
        let (Some(label), Some(tensor)) = (&self.label, labelled) else {
            return false;
        };
        let place = |encoding: &Encoding, shape: &[i64]| {
            encoding.linear_layout(&transfer::extents(shape)).ok()
        };
        let operands = operation.operand_values().zip(&self.operands).enumerate();
        let mut tensors = operands.filter_map(|(operand, (value, layout))| {
            let shape = RankedTensor::of(value.r#type())?.shape();
            Some((operand, shape, layout.as_ref()?))
        });
        tensors.all(|(operand, shape, layout)| {
            if relation.is_free(operand) {
                return true;
            }
            let wanted = relation.operand(label, &tensor.shape(), operand, &shape);
            wanted.is_some_and(|wanted| {
                *wanted == *layout || place(&wanted, &shape) == place(layout, &shape)
            })
        })
    }
}

/// The elements of the tensor of addresses that an op has first, if it has one.
fn access_elements(operation: OperationRef<'_, '_>) -> Option<u64> {
    let tensor = RankedTensor::of(operation.operand_value(0)?.r#type())?;
    Some(transfer::extents(&tensor.shape()).iter().product())
}

fn key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The layout of a type.
fn encoding(tensor: RankedTensor<'_>) -> Option<Encoding> {
    Encoding::from_attribute(tensor.encoding()?).ok()
}

/// Whether a conversion is only a conversion: no plan is forced.
fn is_plain(conversion: ConvertLayoutOp<'_, '_>) -> bool {
    conversion.operation().discardable_attrs().is_empty()
}

/// Removes the layouts of what is not kept, and the conversions; returns the layouts that the ops had.
pub(super) fn release(functions: &[OperationRef<'_, '_>], keep: Keep, grid: Grid) -> Pins {
    let threads = u64::from(grid.num_warps) * u64::from(grid.threads_per_warp);
    let mut pins = Pins::default();
    let mut operations = Vec::new();
    for function in functions {
        function.for_each_op(Walk::PreOrder, |operation| operations.push(operation));
    }
    for &operation in &operations {
        let computes = OpFacts::of(operation).control == Control::Computes;
        let mut pin = Pin::of(operation);
        pin.stays = computes && keep.keeps(operation, threads);
        if !pin.stays {
            pin.operands.clear();
        }
        pins.0.insert(key(operation), pin);
    }
    operations.retain(|operation| {
        let Some(conversion) = ConvertLayoutOp::of(*operation).filter(|op| is_plain(*op)) else {
            return true;
        };
        conversion.result().replace_all_uses(conversion.src());
        operation.erase();
        false
    });
    for &operation in &operations {
        if !pins.of(operation).is_some_and(|pin| pin.stays) {
            operation.result_values().for_each(take_off);
            retype_constant(operation);
        }
        for region in operation.region_refs() {
            for block in region.blocks() {
                block.argument_values().for_each(take_off);
            }
        }
    }
    pins
}

fn take_off(value: Value<'_, '_>) {
    if let Some(tensor) = RankedTensor::of(value.r#type()) {
        value.set_type(tensor.with_encoding(None));
    }
}
