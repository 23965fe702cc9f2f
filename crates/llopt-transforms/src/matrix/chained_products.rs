//! Two products of a loop in a chain, before there are layouts: whether the first is likely to run ahead of the second.
//!
//! In attention the second product takes what is computed from the first. [The pipeline](crate::pipelining) lets the first one of
//! the next iteration run beside the work between the two, where copies have a warp of their own and no other block works while
//! this one waits. Layouts are chosen before that is decided, and depend on it.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::DotOp;
use llopt_mlir::ir::TypeExt;
use llopt_target::{Feature, Target};
use melior::ir::{Value, ValueLike};

use crate::loops::needs::needs;
use crate::loops::view::For;

/// Registers of a thread in addition to accumulators, scores and weights where a product runs ahead: addresses, and
/// rows of maxima and sums.
pub(crate) const BESIDE: u32 = 24;

/// Whether the first product of a loop is likely to run ahead of the second: the second one takes what is computed from the
/// first, copies can have a warp of their own, and only one block of so many threads has room for its registers.
pub(crate) fn may_run_ahead(of: For<'_, '_>, threads: u32, target: Target) -> bool {
    let products: Vec<DotOp> = of.operations().into_iter().filter_map(DotOp::of).collect();
    let [first, second] = products[..] else {
        return false;
    };
    let words = |value: Value<'_, '_>| {
        let tensor = RankedTensor::of(value.r#type());
        let bits = tensor.map_or(0, |tensor| {
            let elements: i64 = tensor.shape().iter().product();
            elements as u64 * u64::from(tensor.element().bit_width().unwrap_or(u32::BITS))
        });
        bits.div_ceil(u64::from(threads * u32::BITS)) as u32
    };
    let registers = words(first.d()) + words(second.d()) + 2 * words(second.a()) + BESIDE;
    let has_copies = target.has(Feature::TransactionBarrier) && target.has(Feature::BulkTensorCopy);
    has_copies
        && needs(of, second.operation()).contains(&first.operation())
        && target.resident_blocks(threads, registers, 0) <= 1
}
