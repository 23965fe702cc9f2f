//! `--row-iterations`: several iterations of a loop as the rows of one tile, where that is faster.
//!
//! # The rewritten loop
//!
//! A program that computes row after row gives all its warps to each of them. What combines the elements of a row goes
//! through the warp, and then through shared memory from warp to warp, with a barrier, for one result at a time:
//!
//! ```text
//! for i = p to n step s                       for i = p to n - 3s step 4s
//!   x = load X[i, 0 … 1023]                     r = i + s [0, 1, 2, 3]
//!   m = max x                          =>       x = load X[r, 0 … 1023]
//!   e = exp(x - m)                              m = max of each row of x
//!   store Y[i, 0 … 1023], e / sum e             e = exp(x - m)
//!                                               store Y[r, 0 … 1023], e / sum of each row of e
//! ```
//!
//! In a tile of several rows each warp has rows of its own, or fewer warps share one, and a step between lanes or warps
//! combines for several rows at a time. Every operation is lifted by a dimension: a number that differs from iteration to
//! iteration becomes a tensor of one number for each, a tensor one of rows. What is the same in all iterations stays as it
//! is, and is repeated where it meets rows. (This is the vectorisation of an outer loop, D. Nuzman, A. Zaks, *Outer-loop
//! vectorization*, 2008.) The loop as it was remains for the last iterations.
//!
//! # When it is correct
//!
//! Iterations depend on one another only through memory: the loop carries nothing. All loads of a group come before its
//! stores, so the loop must load from other parameters than it stores to (`pipelining::stores`), and each of its
//! stores must have a parameter of its own. Rows that are stored must not overlap, or the later one would have to win: that
//! is so where the distance of two rows is at least the length of one, which is computed before the loop (`apart.rs`). Where
//! it is not, the loop runs as it was.
//!
//! # When it pays
//!
//! The model prices a group with the layouts in which warps lie along rows, beside as many iterations as they were, and the
//! iterations that are left over (`price.rs`). A tile has no more rows than its threads have registers for.
//!
//! # Alternative rejected
//!
//! *A mask for the rows of the last group* in place of the loop as it was: it is in all iterations, and what it selects
//! differs between rows, so that rows whose own mask is the same would not be accessed by one instruction any more.

mod apart;
mod price;
mod rewrite;

use std::collections::HashSet;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{LoadOp, ReduceOp, SplatOp, StoreOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, RegionExt, TypeExt, ValueExt, Walk, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::unroll::RARE;
use crate::loops::vectorize::is_vectorizable;
use crate::loops::view::{For, innermost};
use crate::pass_options::{NUM_STAGES, NUM_WARPS, TARGET, target};
use crate::pipelining::ASKS;
use crate::pipelining::stores::{may_meet, parameter, stored_to};
use apart::{Apart, NUMBER_BITS};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    options: &[TARGET, NUM_WARPS, NUM_STAGES],
    ..PassSpec::new(
        "row-iterations",
        "compute several iterations of a loop as the rows of one tile, where that is faster",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    let number = |name: &str| u32::try_from(run.integer(name)).unwrap_or(1).max(1);
    let (warps, stages) = (number(NUM_WARPS.name), number(NUM_STAGES.name));
    rewrite(module, (warps, stages), target);
    Ok(())
}

/// Rewrites the loops of a module for blocks of so many warps, where that pays. Loops have so many stages unless they say so
/// themselves.
pub fn rewrite(module: OperationRef<'_, '_>, (warps, stages): (u32, u32), target: Target) {
    let mut rewriter = Rewriter::new(module.ctx());
    for of in innermost(module) {
        let Some(body) = Body::of(of) else {
            continue;
        };
        if let Some(rows) = price::cheapest(&body, warps, target) {
            rewrite::write(&mut rewriter, &body, (rows, stages));
        }
    }
}

/// The body of a loop whose iterations can be rows.
struct Body<'c, 'a> {
    of: For<'c, 'a>,
    operations: Vec<OperationRef<'c, 'a>>,
    /// What differs from iteration to iteration.
    varying: HashSet<usize>,
    /// Where it stores.
    stored: Vec<Apart<'c, 'a>>,
}

impl<'c: 'a, 'a> Body<'c, 'a> {
    fn of(of: For<'c, 'a>) -> Option<Self> {
        let is_plain = of.carried().is_empty()
            && !of.is_unsigned()
            && of.number().r#type().is_integer_of_width(NUMBER_BITS)
            && of.operation().attr(RARE).is_none()
            && of.operation().attr(ASKS).is_none();
        if !is_plain {
            return None;
        }
        let operations = of.operations();
        let mut varying = HashSet::from([key(of.number())]);
        for operation in &operations {
            let mut operands = operation.operand_values();
            if operands.any(|operand| varying.contains(&key(operand))) {
                varying.extend(operation.result_values().map(key));
            }
        }
        let body = Self {
            of,
            operations,
            varying,
            stored: Vec::new(),
        };
        let reduces = |operation: &&OperationRef<'c, 'a>| {
            ReduceOp::of(**operation).is_some() && body.varies(**operation)
        };
        let can_be_rows = |operation: &OperationRef<'c, 'a>| body.can_be_rows(*operation);
        if !body.operations.iter().any(|operation| reduces(&operation))
            || !body.operations.iter().all(can_be_rows)
        {
            return None;
        }
        let stored = body.memory_is_apart()?;
        Some(Self { stored, ..body })
    }

    /// Whether an operation computes something else in another iteration.
    fn varies(&self, operation: OperationRef<'c, 'a>) -> bool {
        let mut operands = operation.operand_values();
        operands.any(|operand| self.varying.contains(&key(operand)))
    }

    /// Whether an operation can be there once for many iterations.
    fn can_be_rows(&self, operation: OperationRef<'c, 'a>) -> bool {
        let rank = |value: Value<'c, 'a>| {
            RankedTensor::of(value.r#type()).map_or(0, |tensor| tensor.rank())
        };
        let operands: Vec<Value> = operation.operand_values().collect();
        let results: Vec<Value> = operation.result_values().collect();
        if let Some(reduce) = ReduceOp::of(operation) {
            return reduce.axis() == 0
                && operands.iter().all(|operand| rank(*operand) == 1)
                && is_closed(operation);
        }
        if SplatOp::of(operation).is_some() {
            return rank(results[0]) == 1 && rank(operands[0]) == 0;
        }
        let stores = StoreOp::of(operation).is_some_and(|store| store.boundary_check().is_empty());
        let shape = |value: &Value<'c, 'a>| {
            RankedTensor::of(value.r#type()).map_or_else(Vec::new, |tensor| tensor.shape())
        };
        let mut all = operands.iter().chain(&results);
        let first = all.next().map(shape).unwrap_or_default();
        (stores || is_vectorizable(operation))
            && first.len() <= 1
            && all.all(|it| shape(it) == first)
    }

    /// Where the loop stores, if iterations depend on one another through memory only where rows overlap.
    fn memory_is_apart(&self) -> Option<Vec<Apart<'c, 'a>>> {
        let roots = stored_to(self.of.operation()).ok()?;
        for (index, root) in roots.iter().enumerate() {
            if may_meet(*root, &roots[..index]) {
                return None;
            }
        }
        let mut stored = Vec::new();
        for operation in &self.operations {
            if let Some(load) = LoadOp::of(*operation)
                && may_meet(parameter(load.ptr()), &roots)
            {
                return None;
            }
            if let Some(store) = StoreOp::of(*operation) {
                stored.push(Apart::of(self.of, store.ptr())?);
            }
        }
        Some(stored)
    }
}

/// Whether the regions of an operation take only what is in them.
fn is_closed(operation: OperationRef<'_, '_>) -> bool {
    let mut is_closed = true;
    operation.for_each_op(Walk::PreOrder, |inner| {
        if inner == operation {
            return;
        }
        is_closed &= inner.operand_values().all(|value| {
            let block = match value.argument_of() {
                Some((block, _)) => Some(block),
                None => value.defining_op().and_then(|made| made.parent_block()),
            };
            let entry = operation.region_ref(0).and_then(RegionExt::entry);
            block.is_some() && block == entry
        });
    });
    is_closed
}
