//! The registers of a thread that a loop without products holds.
//!
//! # Streams and exchanges
//!
//! An assembler orders instructions so that each element goes all the way before the next one begins: a tensor that is computed
//! elementwise never exists as a whole. What breaks this stream is an *exchange*, an op that needs data of other threads: a
//! reduction over lanes or warps, a scan, a conversion that moves data. All elements must have come as far before anything
//! behind it begins, so whatever is used behind it is held meanwhile:
//!
//! ```text
//! x = load …            all of x arrives at once
//! y = f(x)              streamed: some registers, however many elements there are
//! m = reduce y          an exchange; z needs y, which is held
//! z = y - m
//! ```
//!
//! Thus a thread holds, beside what it carries from iteration to iteration, the larger of two: what it has loaded, before the
//! work begins, and what is held during an exchange.
//!
//! What is loaded ahead of the work is held meanwhile, in addition: assemblers issue these loads first.
//!
//! [`super::live_registers`] is an upper bound, for loops that are bound by products, whose values exist as a whole.

use llopt_dialects::meaning::facts::{LayoutAnchor, Meaning, OpFacts, Transfer};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_layout::Dim;
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt};
use llopt_plan::late_operands::is_elementwise;
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value, ValueLike};

use super::live_registers::{across, renames, users, words};
use super::ring;
use crate::loops::view::For;

/// Whether threads need data of others for an operation.
fn exchanges_data(operation: OperationRef<'_, '_>, plans: &Plans) -> bool {
    let facts = OpFacts::of(operation);
    if let Some(conversion) = ConvertLayoutOp::of(operation) {
        return !renames(conversion, plans);
    }
    if facts.layouts == Transfer::Reduce && !combines_lanes(operation, plans) {
        return false;
    }
    let is_access = matches!(facts.anchor, Some(LayoutAnchor::Load | LayoutAnchor::Store));
    let moves = facts.meaning == Meaning::Shape && facts.layouts != Transfer::Reduce;
    let makes_tensors = operation.result_types().any(TypeExt::is_tensor);
    let takes_tensors = operation
        .operand_values()
        .any(|value| value.r#type().is_tensor());
    (makes_tensors || takes_tensors) && !is_access && !moves && !is_elementwise(operation)
}

/// Whether lanes or warps hold different elements along the axis of a reduction. True if that is not known.
fn combines_lanes(reduce: OperationRef<'_, '_>, plans: &Plans) -> bool {
    let axis = reduce.attr("axis").and_then(AttributeExt::as_int::<u32>);
    let tensor = reduce
        .operand_value(0)
        .and_then(|operand| ring::tensor(plans, operand.r#type()));
    let (Some(axis), Some(tensor)) = (axis, tensor) else {
        return true;
    };
    let layout = tensor.layout();
    [Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter().any(|dim| {
        (0..layout.in_dim_size_log2(dim))
            .any(|bit| layout.basis_entry(dim, bit, Dim::tensor(axis as usize)) != 0)
    })
}

/// The registers of a thread that a loop holds, given its loads, which are not ahead.
pub(super) fn held<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[OperationRef<'c, 'a>],
    plans: &Plans,
) -> u32 {
    let operations = of.operations();
    let size = |maker: OperationRef<'c, 'a>, value: Value<'c, 'a>| match loads.contains(&maker) {
        true => ring::words(value, plans),
        false => words(value, plans),
    };
    // What is yielded takes the place of what is carried.
    let place = |user: OperationRef<'c, 'a>| operations.iter().position(|own| user.is_within(*own));
    let mut values = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        for value in operation.result_values() {
            let last = users(value, plans).into_iter().filter_map(place).max();
            values.extend(last.map(|last| (at, last, size(*operation, value))));
        }
    }
    let exchanges = operations.iter().enumerate();
    let exchanges = exchanges.filter(|(_, operation)| exchanges_data(**operation, plans));
    let during = exchanges.map(|(at, _)| {
        let held = values
            .iter()
            .filter(|(first, last, _)| *first < at && at < *last);
        held.map(|(.., size)| size).sum::<u32>()
    });
    let during = during.max().unwrap_or(0);
    let carried = of.carried().into_iter().map(|value| words(value, plans));
    across(of, plans) + carried.sum::<u32>() + during.max(loaded(loads, plans))
}

/// The registers of a thread for what loads bring.
pub(super) fn loaded<'c: 'a, 'a>(loads: &[OperationRef<'c, 'a>], plans: &Plans) -> u32 {
    let results = loads.iter().flat_map(|load| load.result_values());
    results.map(|value| ring::words(value, plans)).sum()
}
