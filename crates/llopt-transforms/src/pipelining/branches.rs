//! Loads of factors in the branches of a loop, as in a product of a block-sparse matrix.
//!
//! ```text
//! for i = …                             for i = …
//!   if keep[i]                            a = load A[i], if keep[i]; b = load B[i], if keep[i]
//!     a = load A[i]; b = load B[i]        if keep[i]
//!     sum = dot a, b, sum                   sum = dot a, b, sum
//! ```
//!
//! A load in a branch cannot be issued iterations ahead, because its branch is not executed then. With the condition of the
//! branch as its mask it stands before the branch and loads the same, and the loop is pipelined as others are: copies
//! that the condition turns off leave what is in their buffers, which nothing reads in that iteration.
//!
//! This applies to loads through pointers whose addresses may be computed needlessly, and which do not pass a store to the
//! same memory. Copies of whole blocks stay: those who wait for their bytes would have to know the condition.

use llopt_dialects::arith::XOrIOp;
use llopt_dialects::tt::LoadOp;
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};

use super::guard::guard;
use super::indirect::may_feed;
use super::loads;
use super::stores::stored_to;
use crate::loops::builder::Arithmetic;
use crate::loops::view::{For, If};
use crate::products::is_product;

/// Moves the loads of factors out of the branches of a loop.
pub(super) fn hoist_loads<'c: 'a, 'a>(of: For<'c, 'a>) {
    let Ok(stored) = stored_to(of.operation()) else {
        return;
    };
    let mut rewriter = Rewriter::new(of.operation().ctx());
    for branch in of.operations().into_iter().filter_map(If::of) {
        for (is_first, block) in [true, false].into_iter().zip(branch.blocks()) {
            let Some(block) = block else { continue };
            for load in loads_of_products(branch, block) {
                let Some(needed) = needed(block, load, &stored) else {
                    continue;
                };
                for operation in &needed {
                    rewriter.move_before(*operation, branch.operation());
                }
                let mut loads = needed.into_iter().filter_map(LoadOp::of).peekable();
                if loads.peek().is_none() {
                    continue;
                }
                let condition = condition(&mut rewriter, branch, is_first);
                for load in loads {
                    rewriter.set_before(load.operation());
                    guard(&mut rewriter, load.operation(), condition);
                }
            }
        }
    }
}

/// The condition under which a block of a conditional is executed, before the conditional and what was moved there.
fn condition<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    branch: If<'c, 'a>,
    is_first: bool,
) -> Value<'c, 'a> {
    let operation = branch.operation();
    let condition = operation
        .operand_value(0)
        .expect("a conditional has a condition");
    if is_first {
        return condition;
    }
    rewriter.set_after_value(condition);
    let location = operation.loc();
    let mut arithmetic = Arithmetic { rewriter, location };
    let always = arithmetic.constant(condition.r#type(), 1);
    let types = [condition.r#type()];
    let made = rewriter.create(
        XOrIOp::NAME,
        location,
        &[condition, always],
        Some(&types),
        &[],
    );
    let made = made.expect("the dialect arith is loaded");
    made.result_value(0).expect("it has one result")
}

/// The loads of a block of a conditional that lead to its products.
fn loads_of_products<'c: 'a, 'a>(
    branch: If<'c, 'a>,
    block: BlockRef<'c, 'a>,
) -> Vec<OperationRef<'c, 'a>> {
    let products: Vec<OperationRef> = block.operations().filter(|op| is_product(*op)).collect();
    let leading = loads::leading_to(&products, branch.operation());
    let all = block.operations();
    all.filter(|operation| LoadOp::of(*operation).is_some() && leading.contains(operation))
        .collect()
}

/// A load and all that it needs from its block, in the order of the program; `None` if it cannot be executed before
/// the branch.
fn needed<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    load: OperationRef<'c, 'a>,
    stored: &[Option<Value<'c, 'a>>],
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut needed = vec![load];
    let mut queue: Vec<Value> = load.operand_values().collect();
    while let Some(value) = queue.pop() {
        let made = value.defining_op();
        let made = made.filter(|made| made.parent_block() == Some(block));
        if let Some(made) = made.filter(|made| !needed.contains(made)) {
            needed.push(made);
            made.for_each_op(Walk::PreOrder, |inner| queue.extend(inner.operand_values()));
        }
    }
    let may_move = |operation: &OperationRef<'c, 'a>| match LoadOp::of(*operation) {
        Some(load) => may_feed(load.operation(), stored),
        None => operation.is_memory_effect_free() && operation.is_speculatable(),
    };
    let all = block.operations();
    needed
        .iter()
        .all(may_move)
        .then(|| all.filter(|own| needed.contains(own)).collect())
}
