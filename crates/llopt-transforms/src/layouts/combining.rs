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

/// The approximate cost per register of a scan in a layout without a plan: two conversions.
const WITHOUT_PLAN: f32 = 16.0;

/// The combination of a reduction or a scan.
pub(super) struct Combining {
    tensor: TensorType,
    axis: usize,
    elements: Vec<Element>,
    pub(super) combination: Combination,
}

impl Combining {
    /// That of an op whose operands have this layout.
    pub(super) fn of(
        operation: OperationRef<'_, '_>,
        combination: Combination,
        layout: &LinearLayout,
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
        })
    }

    /// Its cost as a reduction, and the barriers of the block in it.
    pub(super) fn reduction(&self, target: Target) -> (f32, u32) {
        let (elements, combination) = (&self.elements[..], &self.combination);
        let price = reduction::price(&self.tensor, self.axis, elements, combination, target);
        (price.cost, price.block_barriers)
    }

    /// The same as a scan. Where there is no plan, the operands are converted to a layout that has one, and back.
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
