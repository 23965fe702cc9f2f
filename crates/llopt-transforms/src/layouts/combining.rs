//! Reductions and scans as their plans see them: the combination, the layout, and the price.

use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::LinearLayout;
use llopt_mlir::ir::{AttributeExt, OperationExt};
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

/// The combination of a reduction or a scan.
pub(super) struct Combining {
    tensor: TensorType,
    axis: usize,
    elements: Vec<Element>,
    pub(super) combination: Combination,
    map: MapId,
}

/// The price of a reduction of such elements, with the barriers of the block in it.
struct Reduced {
    combination: Combination,
    elements: Vec<Element>,
    price: (f32, u32),
}

/// Prices of reductions: by layout and axis, then by what is combined and how.
#[derive(Default)]
pub(super) struct Reductions {
    prices: FxHashMap<(MapId, usize), Vec<Reduced>>,
}

impl Reductions {
    /// The cost of a reduction, and its barriers. All ops and forms of a program that ask for the same share one plan.
    pub(super) fn price(&mut self, of: &Combining, target: Target) -> (f32, u32) {
        let known = self.prices.entry((of.map, of.axis)).or_default();
        let is_same =
            |known: &&Reduced| known.combination == of.combination && known.elements == of.elements;
        if let Some(known) = known.iter().find(is_same) {
            return known.price;
        }
        let price = of.reduction(target);
        known.push(Reduced {
            combination: of.combination,
            elements: of.elements.clone(),
            price,
        });
        price
    }
}

impl Combining {
    /// That of an op whose operands have this layout.
    pub(super) fn of(
        operation: OperationRef<'_, '_>,
        combination: Combination,
        (map, layout): (MapId, &LinearLayout),
    ) -> Option<Self> {
        let tensors = operation.operand_values();
        let tensors = tensors.map(|value| RankedTensor::of(value.r#type()));
        let tensors: Vec<RankedTensor> = tensors.collect::<Option<_>>()?;
        let elements = tensors
            .iter()
            .map(|tensor| types::element(tensor.element()));
        let elements: Vec<Element> = elements.collect::<Option<_>>()?;
        let shape = transfer::extents(&tensors.first()?.shape());
        Some(Self {
            tensor: tensor_type(*elements.first()?, &shape, layout)?,
            axis: operation.attr("axis")?.as_int()?,
            elements,
            combination,
            map,
        })
    }

    /// Its cost as a reduction, and the barriers of the block in it.
    fn reduction(&self, target: Target) -> (f32, u32) {
        let (elements, combination) = (&self.elements[..], &self.combination);
        let price = reduction::price(&self.tensor, self.axis, elements, combination, target);
        (price.cost, price.block_barriers)
    }

    /// Its cost as a scan, and the barriers. Where there is no plan, the operands are converted to a layout that has one, and back.
    pub(super) fn scan(&self, reverse: bool, target: Target) -> (f32, u32) {
        let (elements, combination) = (&self.elements[..], &self.combination);
        let price = scan::price(
            &self.tensor,
            self.axis,
            reverse,
            elements,
            combination,
            target,
        );
        let without_plan = (WITHOUT_PLAN * self.tensor.registers() as f32, 0);
        price.map_or(without_plan, |price| (price.cost, price.block_barriers))
    }

    /// 32-bit words of one element, all operands together.
    pub(super) fn words(&self) -> u32 {
        let words = self.elements.iter().map(|e| e.memory_bits().div_ceil(32));
        words.sum()
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
