//! The arithmetic that makes factors of what is loaded: whether the matrix units still take longest where it is done twice.
//!
//! Beside a product of matrices arithmetic is free as long as the matrix units are what takes longest ([`super::cost`]). Weights of
//! few bits are unpacked, converted, scaled and shifted before they are multiplied, four to six instructions for each. A product of
//! 64 rows takes a unit half an instruction of a thread for each weight and row of 32. In a layout in which several
//! warps hold the same weights each of them computes all of that; four warps that did took twice the time of the whole
//! kernel (`docs/performance/packages.md`). So where computing each element of the factors twice, the least that any
//! repetition takes, would take longer than the matrix units, arithmetic has its full price.
//!
//! What follows from another product, as the exponentials of attention, does not count: its layout is that of a result, which
//! hardly any two threads share.

use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::elementwise;
use llopt_plan::product::UNITS;
use llopt_target::Target;
use melior::ir::{OperationRef, ValueLike};
use rustc_hash::FxHashSet;

use super::products::Product;
use super::relation::{element_bits, is_cheap, only_renames};
use crate::products::is_product;

/// How often each element is computed in a layout that repeats any.
const REPEATED: f32 = 2.0;

/// Whether computing the factors of a product of the same block would take longer than the product if it were repeated.
pub(super) fn takes_longest(
    operation: OperationRef<'_, '_>,
    product: &Product,
    target: Target,
) -> bool {
    let sums: u64 = product.shape.iter().product();
    let units = (sums * product.depth) as f32 * product.busy_for_one() / UNITS;
    cycles(operation, target).is_some_and(|cycles| REPEATED * cycles > units)
}

/// The cycles of a multiprocessor for what is computed for the factors of a product in its block, each element once; `None`
/// if anything of it follows from another product.
fn cycles(product: OperationRef<'_, '_>, target: Target) -> Option<f32> {
    let block = product.parent_block()?;
    let mut queue: Vec<_> = product.operand_values().take(2).collect();
    let mut seen = FxHashSet::default();
    let mut instructions = 0.0;
    while let Some(value) = queue.pop() {
        let maker = value.defining_op();
        let maker = maker.filter(|maker| maker.parent_block() == Some(block));
        let Some(maker) = maker.filter(|maker| seen.insert(maker.to_raw().ptr as usize)) else {
            continue;
        };
        let facts = OpFacts::of(maker);
        if is_product(maker) {
            return None;
        }
        if facts.anchor == Some(LayoutAnchor::Load) {
            continue;
        }
        queue.extend(maker.operand_values());
        let computes = matches!(facts.layouts, Transfer::Same | Transfer::Unpack);
        let tensor = RankedTensor::of(value.r#type());
        if let Some(tensor) = tensor.filter(|_| computes)
            && !is_cheap(maker)
            && !only_renames(maker)
        {
            let elements: i64 = tensor.extents().iter().product();
            let words = element_bits(tensor).div_ceil(u32::BITS);
            let of_each = elementwise::instructions_on(maker, target) * words as f32;
            instructions += elements as f32 / target.warp_size() as f32 * of_each;
        }
    }
    Some(instructions * target.machine().costs.arithmetic)
}
