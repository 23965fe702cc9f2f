//! `--spread-copies`: each element of a row is copied by one thread.
//!
//! A loop loads a row of numbers for the columns of its product: sums of exponentials, numbers of documents, biases. Each thread needs
//! those of its own columns, as many threads need the same ones, and that is the layout of the load. Once the row goes through a ring,
//! though, what a thread copies need not be what it reads:
//!
//! ```text
//!   copy row to slot, 8 copies in each of 4 lanes of one warp      copy row to slot, one copy in each of 32 lanes
//!   read slot                                                  →   read slot
//! ```
//!
//! (The other lanes and warps that have the same elements copy nothing, but they skip each copy by itself.)
//!
//! # When it is done
//!
//! Where addresses, masks and substitutes follow from numbers, ranges and constants: these are in any layout, and cost nothing to be
//! in another one. That the copies of a group are as wide as before is known, so the layout has vectors of the same width. Whoever has
//! copied a row waits, and the barrier of the loop tells the others, as for tiles.
//!
//! # Alternative rejected
//!
//! *A layout of the load that is spread*, chosen with all others: the search knows only conversions between loads and their uses in
//! loops with chained products (`layouts::ahead`), and rightly takes none.

use std::collections::HashMap;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{Integers, OpFacts, Transfer};
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{ExpandDimsOp, SplatOp};
use llopt_dialects::ttg::AsyncCopyGlobalToLocalOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value, ValueLike};

use super::{ring, warps_of};
use crate::allocation::plans_of;

/// The most ops of a slice.
const LARGEST: usize = 32;

/// The pass.
pub static SPREAD_COPIES: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "tt", "ttg"],
    ..PassSpec::new(
        "spread-copies",
        "let each element of a row be copied by one thread",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let plans = plans_of(module, run)?;
    let warps = warps_of(module);
    let mut copies = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        copies.extend(AsyncCopyGlobalToLocalOp::of(operation));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for copy in copies {
        if let Some(layout) = spread(copy, warps, &plans) {
            rewrite(&mut rewriter, copy, &layout);
        }
    }
    Ok(())
}

/// The layout in which threads copy fewer elements of a row, if there is one and its operands can be computed in it.
fn spread(copy: AsyncCopyGlobalToLocalOp<'_, '_>, warps: u32, plans: &Plans) -> Option<Encoding> {
    let pointers = RankedTensor::of(copy.src().r#type())?;
    let shape = transfer::extents(&pointers.shape());
    let mut long = shape.iter().enumerate().filter(|(_, extent)| **extent > 1);
    let (dim, extent) = long.next().filter(|_| long.clone().next().is_none())?;
    let width = u32::try_from(copy.contiguity()).ok()?.max(1);
    let threads = plans.target().warp_size() * warps;
    let fewest = extent.div_ceil(u64::from(threads * width)) as usize;
    let before = ring::tensor(plans, pointers.r#type())?.registers();
    if before <= fewest * width as usize {
        return None;
    }
    let mut left = LARGEST;
    let mut operands = copy.operation().operand_values();
    if !operands.all(|operand| is_computed(operand, &mut left)) {
        return None;
    }
    let rank = shape.len();
    let mut vector = vec![1; rank];
    vector[dim] = width;
    let others = (0..rank as u32).filter(|other| *other != dim as u32);
    let order: Vec<u32> = std::iter::once(dim as u32).chain(others).collect();
    let single = CgaLayout::single(rank);
    let lanes = plans.target().warp_size();
    let layout = Blocked::spread(&shape, &vector, &order, warps, lanes, single).ok()?;
    Some(Encoding::Blocked(layout))
}

/// Whether a tensor follows from numbers, ranges and constants; what is no tensor has no layout.
fn is_computed(value: Value<'_, '_>, left: &mut usize) -> bool {
    if RankedTensor::of(value.r#type()).is_none() {
        return true;
    }
    let Some(made) = value.defining_op().filter(|_| *left > 0) else {
        return false;
    };
    *left -= 1;
    begins(made)
        || (is_kept(made) || ExpandDimsOp::of(made).is_some())
            && made
                .operand_values()
                .all(|operand| is_computed(operand, left))
}

/// Whether an op makes a tensor in any layout of what is none.
fn begins(operation: OperationRef<'_, '_>) -> bool {
    ConstantOp::of(operation).is_some()
        || SplatOp::of(operation).is_some()
        || OpFacts::of(operation).integers == Integers::Range
}

/// Whether the tensors that an op takes have the layout of its result, whatever that is, and it can be computed again.
fn is_kept(operation: OperationRef<'_, '_>) -> bool {
    OpFacts::of(operation).layouts == Transfer::Same
        && operation.region_refs().len() == 0
        && operation.is_memory_effect_free()
}

/// Gives the operands of a copy another layout.
fn rewrite<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    copy: AsyncCopyGlobalToLocalOp<'c, 'a>,
    layout: &Encoding,
) {
    let operation = copy.operation();
    rewriter.set_before(operation);
    let mut computed = Computed::default();
    for index in 0..operation.operand_values().len() {
        let anew = operation
            .operand_value(index)
            .and_then(|operand| computed.anew(rewriter, operand, layout));
        if let Some(anew) = anew {
            operation.set_operand_value(index, anew);
        }
    }
}

/// Values that are computed anew, by the originals and their layouts.
#[derive(Default)]
struct Computed<'c, 'a> {
    known: HashMap<(usize, Encoding), Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Computed<'c, 'a> {
    /// A tensor in a layout; `None` for what is no tensor.
    fn anew(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        value: Value<'c, 'a>,
        layout: &Encoding,
    ) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        let key = (key(value), layout.clone());
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let made = value.defining_op()?;
        let of_operand = match ExpandDimsOp::of(made) {
            Some(expand) => transfer::slice(layout, expand.axis()).ok()?,
            None => layout.clone(),
        };
        let operands: Vec<Option<Value>> = made
            .operand_values()
            .map(|operand| self.anew(rewriter, operand, &of_operand))
            .collect();
        let copy = rewriter.clone_op(made);
        for (index, operand) in operands.into_iter().enumerate() {
            if let Some(operand) = operand {
                copy.set_operand_value(index, operand);
            }
        }
        let result = copy.result_value(0)?;
        let r#type = tensor.with_encoding(Some(layout.to_attribute(rewriter.context())));
        if ConstantOp::of(copy).is_some()
            && let Some(constant) = copy
                .attr("value")
                .and_then(|constant| fold::retyped(constant, r#type))
        {
            copy.set_attr("value", constant);
        }
        result.set_type(r#type);
        self.known.insert(key, result);
        Some(result)
    }
}
