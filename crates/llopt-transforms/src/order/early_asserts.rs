//! `--advance-asserts`: assertions in front of the arithmetic that they do not need.
//!
//! Nothing that may trap is executed before an assertion that comes before it, and threads wait for each other behind one.
//! So a load whose address is checked begins when all that is written in front of the check is done:
//!
//! ```text
//!   i = load index           i = load index
//!   random numbers           assert i < n
//!   assert i < n         →   random numbers
//!   x = load table + i       x = load table + i
//! ```
//!
//! Behind the assertion an assembler may issue the load first, and the arithmetic while the data are on their way. Only what
//! has no effects moves, within a block: loads stay in front of the assertion.

use llopt_dialects::tt::AssertOp;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::OperationRef;

/// The pass.
pub static ADVANCE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "advance-asserts",
        "check what an assertion needs before computing anything else",
        |module, _run| {
            let mut asserts = Vec::new();
            module.for_each_op(Walk::PreOrder, |operation| {
                asserts.extend(AssertOp::of(operation).map(|_| operation));
            });
            let mut rewriter = Rewriter::new(module.ctx());
            for assert in asserts {
                for unneeded in unneeded_before(assert) {
                    rewriter.move_after(unneeded, assert);
                }
            }
            Ok(())
        },
    )
};

/// The ops without effects between the last op with effects and an assertion that it does not need, the last one first.
fn unneeded_before<'c: 'a, 'a>(assert: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut needed = vec![assert];
    let mut unneeded = Vec::new();
    let mut next = assert.previous_op();
    while let Some(operation) = next.filter(|operation| is_arithmetic(*operation)) {
        // What a needed op needs is needed, and comes before it.
        let is_needed = operation
            .result_values()
            .flat_map(ValueExt::users)
            .any(|user| needed.contains(&user));
        match is_needed {
            true => needed.push(operation),
            false => unneeded.push(operation),
        }
        next = operation.previous_op();
    }
    unneeded
}

/// Whether an op only computes.
fn is_arithmetic(operation: OperationRef<'_, '_>) -> bool {
    operation.is_memory_effect_free() && operation.region_refs().next().is_none()
}
