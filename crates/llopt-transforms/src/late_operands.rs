//! `--sink-operands`: what brings the operands of a product next to it, where they do not fit into registers together
//! with its sums.
//!
//! What is between the loads of the operands and the product then no longer needs them in registers, and code
//! generation can load and compute a fragment at a time ([`llopt_plan::late_operands`]). Loads also move into a choice
//! that holds the product. Buffers are placed and barriers put afterwards, so that both know where the loads are.

use llopt_dialects::tables::module::{num_warps, threads_per_warp};
use llopt_dialects::tt::DotOp;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::late_operands::{chain, exceeds_registers};
use llopt_plan::plans::Plans;
use melior::ir::OperationRef;

use crate::allocation::plans_of;

/// The pass.
pub static SINK: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "sink-operands",
        "bring the operands of products next to them where registers are scarce",
        |module, run| {
            sink(module, &*plans_of(module, run)?);
            Ok(())
        },
    )
};

/// Moves the chains of all products whose registers are scarce.
fn sink(module: OperationRef<'_, '_>, plans: &Plans) {
    let mut products = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        products.extend(DotOp::of(operation));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for dot in products {
        let operation = dot.operation();
        let threads = num_warps(operation).unwrap_or(1) * threads_per_warp(operation);
        if exceeds_registers(dot, plans.types(), plans.target(), threads) {
            for made in chain(dot) {
                rewriter.move_before(made, operation);
            }
        }
    }
}
