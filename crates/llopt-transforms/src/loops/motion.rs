//! Motion of operations without effects to where they run less often.

use std::collections::HashSet;
use std::ops::ControlFlow;

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt, Walk, key};
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};

use super::view::{For, If};

/// Hoists loop-invariant operations before the loop; returns how many.
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

/// The operations of the body of a loop that compute a value from what is there before the loop, in their order; `None` if
/// some of them may not be moved there.
pub(crate) fn invariant_slice<'c: 'a, 'a>(
    of: For<'c, 'a>,
    value: Value<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut slice: Vec<OperationRef<'c, 'a>> = Vec::new();
    let mut queue = vec![value];
    while let Some(value) = queue.pop() {
        if of.is_outside(value) {
            continue;
        }
        let operation = value.defining_op()?;
        let is_own = operation.parent_op() == Some(of.operation());
        let is_pure = operation.is_memory_effect_free() && operation.is_speculatable();
        if !is_own || !is_pure || operation.region_refs().len() > 0 {
            return None;
        }
        if !slice.contains(&operation) {
            slice.push(operation);
            queue.extend(operation.operand_values());
        }
    }
    let body = of.operations().into_iter();
    Some(body.filter(|operation| slice.contains(operation)).collect())
}

/// Moves operations of the body of a loop before it, in their order, as far as they are still there.
pub(crate) fn hoist<'c: 'a, 'a>(
    of: For<'c, 'a>,
    slice: impl IntoIterator<Item = OperationRef<'c, 'a>>,
) {
    for operation in slice {
        if operation.parent_op() == Some(of.operation()) {
            operation.move_op_before(of.operation());
        }
    }
}

/// Whether an operation of the body uses no value of the body, apart from those in its own regions.
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

/// Moves operations without effects that only what comes after a loop needs from before it to directly behind it; returns
/// how many. Their results occupy no registers in the loop, and asynchronous work that the loop leaves unfinished runs while
/// they are computed. What is computed of other tensors of the block stays, since those would be in registers instead.
pub fn sink_behind(of: For<'_, '_>) -> usize {
    let Some(block) = of.operation().parent_block() else {
        return 0;
    };
    let Some(mut behind) = of.operation().next_op() else {
        return 0;
    };
    let before = block.operations();
    let before = before.take_while(|operation| *operation != of.operation());
    // The results of operations that can be moved with all tensors that they need.
    let mut of_numbers = HashSet::new();
    let mut movable = Vec::new();
    for operation in before {
        let is_kept = |value: Value<'_, '_>| {
            let is_tensor = RankedTensor::of(value.r#type()).is_some();
            is_tensor && value.parent_block() == Some(block) && !of_numbers.contains(&key(value))
        };
        let is_pure = operation.is_memory_effect_free() && operation.region_refs().len() == 0;
        if is_pure && !operation.operand_values().any(is_kept) {
            of_numbers.extend(operation.result_values().map(key));
            movable.push(operation);
        }
    }
    let is_behind = |user: OperationRef<'_, '_>| {
        let around = std::iter::successors(Some(user), |inner| inner.parent_op());
        let mut beside = around.filter(|around| around.parent_block() == Some(block));
        let beside = beside.next();
        beside.is_some_and(|beside| of.operation().is_before(beside))
    };
    let mut moved = 0;
    for operation in movable.into_iter().rev() {
        let mut users = operation.result_values().flat_map(ValueExt::users);
        if users.all(is_behind) {
            operation.move_op_before(behind);
            behind = operation;
            moved += 1;
        }
    }
    moved
}

/// Moves an operation whose results are used in one block of a conditional only into that block; returns whether it
/// was moved.
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

/// The only block of a conditional after an operation that has all users of its results.
fn target<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<BlockRef<'c, 'a>> {
    let block = operation.parent_block()?;
    let mut target = None;
    for user in operation.result_values().flat_map(ValueExt::users) {
        // The conditional in the same block, and the block of it that contains the user.
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
