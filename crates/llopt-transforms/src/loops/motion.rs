//! Operations without effects to where they run less often.

use std::ops::ControlFlow;

use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt, Walk};
use melior::ir::{BlockRef, OperationRef};

use super::view::{For, If};

/// Moves operations that compute the same in each iteration before the loop; answers how many.
pub fn hoist_invariants(of: For<'_, '_>) -> usize {
    let mut hoisted = 0;
    for operation in of.operations() {
        if operation.is_memory_effect_free()
            && operation.is_speculatable()
            && uses_nothing_of(of, operation)
        {
            operation.move_op_before(of.operation());
            hoisted += 1;
        }
    }
    hoisted
}

/// Whether an operation of the body uses nothing of the body, what is in its own regions aside.
fn uses_nothing_of<'c: 'a, 'a>(of: For<'c, 'a>, operation: OperationRef<'c, 'a>) -> bool {
    let found = operation.walk_ops(Walk::PreOrder, |inner| {
        let is_fine = inner.operand_values().all(|value| {
            let owner = value
                .parent_block()
                .and_then(|block| melior::ir::BlockLike::parent_operation(&block));
            of.is_outside(value) || owner.is_some_and(|owner| owner.is_within(operation))
        });
        match is_fine {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    found.is_continue()
}

/// Moves an operation whose results are used in one block of a branch alone into that block. Whether it was.
pub fn sink_into_branch(operation: OperationRef<'_, '_>) -> bool {
    if !operation.is_memory_effect_free() || operation.region_refs().len() > 0 {
        return false;
    }
    let Some(first) = target(operation).and_then(|block| block.operations().next()) else {
        return false;
    };
    operation.move_op_before(first);
    true
}

/// The one block of a branch behind an operation that has all users of its results.
fn target<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<BlockRef<'c, 'a>> {
    let block = operation.parent_block()?;
    let mut target = None;
    for user in operation.result_values().flat_map(ValueExt::users) {
        // The branch in the same block, and the block of it that the user is in.
        let mut inside = user;
        let branch = loop {
            let parent = inside.parent_op()?;
            if parent.parent_block()? == block {
                break If::of(parent)?;
            }
            inside = parent;
        };
        let within = inside.parent_block()?;
        let is_of_branch = branch.blocks().contains(&Some(within));
        if !is_of_branch || target.is_some_and(|target| target != within) {
            return None;
        }
        target = Some(within);
    }
    target
}
