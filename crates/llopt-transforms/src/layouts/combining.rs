//! Reductions and scans as their plans see them: the combination, the layout, and the price.

use std::rc::Rc;

use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::LinearLayout;
use llopt_mlir::ir::OperationExt;
use llopt_plan::element::Element;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::tensor::TensorType;
use llopt_plan::{reduction, scan, types};
use llopt_target::Target;
use melior::ir::{OperationRef, ValueLike};
use rustc_hash::FxHashMap;

use super::catalog::MapId;

/// The approximate cost per register of a scan in a layout without a plan: two conversions.
const WITHOUT_PLAN: f32 = 16.0;

/// A reduction or a scan of tensors of a shape, whatever their layout. A program has few different ones.
#[derive(PartialEq)]
pub(super) struct Combined {
    shape: Vec<u64>,
    axis: usize,
    elements: Vec<Element>,
    pub(super) combination: Combination,
}

/// The number of a reduction or scan among those that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CombinedId(usize);

/// A reduction or a scan of tensors in a layout.
pub(super) struct Combining {
    number: CombinedId,
    of: Rc<Combined>,
    map: MapId,
    layout: Rc<LinearLayout>,
}

/// Reductions and scans, and what reductions cost. All ops and forms of a program that ask for the same share one plan.
#[derive(Default)]
pub(super) struct Reductions {
    different: Vec<Rc<Combined>>,
    prices: FxHashMap<(CombinedId, MapId), (f32, u32)>,
}

impl Reductions {
    /// The number of a reduction or scan.
    pub(super) fn number(&mut self, combined: Combined) -> CombinedId {
        let mut known = self.different.iter();
        let known = known.position(|known| **known == combined);
        CombinedId(known.unwrap_or_else(|| {
            self.different.push(Rc::new(combined));
            self.different.len() - 1
        }))
    }

    /// One of them in a layout.
    pub(super) fn in_layout(
        &self,
        number: CombinedId,
        map: MapId,
        layout: Rc<LinearLayout>,
    ) -> Combining {
        Combining {
            number,
            of: Rc::clone(&self.different[number.0]),
            map,
            layout,
        }
    }

    /// The cost of a reduction, and its barriers; infinite if it is not possible in this layout.
    pub(super) fn price(&mut self, of: &Combining, target: Target) -> (f32, u32) {
        let price = self.prices.entry((of.number, of.map));
        *price.or_insert_with(|| of.reduction(target).unwrap_or((f32::INFINITY, 0)))
    }
}

impl Combined {
    /// That of an op.
    pub(super) fn of(operation: OperationRef<'_, '_>) -> Option<Self> {
        let combination = Combination::of(operation.region_ref(0)?);
        let tensors = operation.operand_values();
        let tensors = tensors.map(|value| RankedTensor::of(value.r#type()));
        let tensors: Vec<RankedTensor> = tensors.collect::<Option<_>>()?;
        let elements = tensors
            .iter()
            .map(|tensor| types::element(tensor.element()));
        let elements: Vec<Element> = elements.collect::<Option<_>>()?;
        elements.first()?;
        Some(Self {
            shape: transfer::extents(tensors.first()?.extents()),
            axis: dimensions::axis(operation)?,
            elements,
            combination,
        })
    }

    /// 32-bit words of one element, all operands together.
    pub(super) fn words(&self) -> u32 {
        let words = self.elements.iter().map(|e| e.memory_bits().div_ceil(32));
        words.sum()
    }
}

impl Combining {
    /// What is combined.
    pub(super) fn of(&self) -> &Combined {
        &self.of
    }

    fn tensor(&self) -> Option<TensorType> {
        let element = *self.of.elements.first()?;
        tensor_type(element, &self.of.shape, &self.layout)
    }

    /// Its cost as a reduction, and the barriers of the block in it.
    fn reduction(&self, target: Target) -> Option<(f32, u32)> {
        let Combined {
            axis,
            elements,
            combination,
            ..
        } = &*self.of;
        let price = reduction::price(&self.tensor()?, *axis, elements, combination, target);
        Some((price.cost, price.block_barriers))
    }

    /// Its cost as a scan, and the barriers; infinite if it is not possible in this layout. Where there is no plan, the operands are
    /// converted to a layout that has one, and back.
    pub(super) fn scan(&self, reverse: bool, target: Target) -> (f32, u32) {
        let Combined {
            axis,
            elements,
            combination,
            ..
        } = &*self.of;
        let Some(tensor) = self.tensor() else {
            return (f32::INFINITY, 0);
        };
        let price = scan::price(&tensor, *axis, reverse, elements, combination, target);
        let without_plan = (WITHOUT_PLAN * tensor.registers() as f32, 0);
        price.map_or(without_plan, |price| (price.cost, price.block_barriers))
    }
}

/// A tensor of these elements in a layout.
pub(super) fn tensor_type(
    element: Element,
    shape: &[u64],
    layout: &LinearLayout,
) -> Option<TensorType> {
    let shape: Option<Vec<u32>> = shape.iter().map(|e| u32::try_from(*e).ok()).collect();
    TensorType::new(element, shape?, layout).ok()
}
