//! Canonicalisation of tt operations.

use super::{AssertOp, BroadcastOp, ExpandDimsOp, LoadOp, ReshapeOp, SplatOp, StoreOp};
use crate::{
    check::infer, layout::transfer, meaning::fold, meaning::rewriting::supersede,
    tables::types::RankedTensor,
};
use llopt_mlir::{
    ir::{BlockExt, OperationExt, RegionExt, ValueExt},
    rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten},
};
use melior::ir::{BlockLike, BlockRef, OperationRef, Type, Value, ValueLike};

/// A mask that is known.
pub const LOAD: &[PatternSpec] = &[PatternSpec::new("load-of-constant-mask", masked_load)];
/// A mask that is known.
pub const STORE: &[PatternSpec] = &[PatternSpec::new("store-of-constant-mask", masked_store)];
/// A condition that holds.
pub const ASSERT: &[PatternSpec] = &[PatternSpec::new("assert-of-true", assert_true)];
/// Splats and broadcasts.
pub const EXPAND_DIMS: &[PatternSpec] = &[
    PatternSpec::new("expand-dims-of-splat", expand_splat),
    PatternSpec::new("expand-dims-of-broadcast", expand_broadcast),
];
/// Reshapes and splats.
pub const RESHAPE: &[PatternSpec] = &[
    PatternSpec::new("reshape-of-reshape", reshape_reshape),
    PatternSpec::new("reshape-of-splat", reshape_splat),
];
/// Splats and broadcasts.
pub const BROADCAST: &[PatternSpec] = &[
    PatternSpec::new("broadcast-of-splat", broadcast_splat),
    PatternSpec::new("broadcast-of-broadcast", broadcast_broadcast),
];

/// Loops of other dialects over values of this one.
pub const LOOPS: &[PatternSpec] = &[
    PatternSpec::new("loop-carried-for-nothing", carried_for_nothing).at("scf.for"),
    PatternSpec::new("loop-condition-of-first-turn", known_condition).at("scf.while"),
];

/// The value that all elements of a constant mask have.
fn known_mask(mask: Option<Value<'_, '_>>) -> Result<bool, NoMatch> {
    mask.and_then(infer::constant_value)
        .and_then(fold::bits)
        .map(|bits| bits != 0)
        .ok_or(NoMatch)
}

fn masked_load<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let load = LoadOp::of(operation).ok_or(NoMatch)?;
    if known_mask(load.mask())? {
        let unmasked = LoadOp::build(
            operation.loc(),
            load.ptr(),
            None,
            None,
            &load.boundary_check(),
            load.padding(),
            load.cache(),
            load.evict(),
            load.is_volatile(),
        );
        supersede(rewriter, operation, unmasked);
        return Ok(());
    }
    // Without `other` the result is undefined; keeping the load costs nothing.
    let other = load.other().ok_or(NoMatch)?;
    rewriter.replace(operation, &[other]);
    Ok(())
}

fn masked_store<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let store = StoreOp::of(operation).ok_or(NoMatch)?;
    if known_mask(store.mask())? {
        let unmasked = StoreOp::build(
            operation.loc(),
            store.ptr(),
            store.value(),
            None,
            &store.boundary_check(),
            store.cache(),
            store.evict(),
        );
        supersede(rewriter, operation, unmasked);
    } else {
        rewriter.erase(operation);
    }
    Ok(())
}

fn assert_true<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let assert = AssertOp::of(operation).ok_or(NoMatch)?;
    if !known_mask(Some(assert.condition()))? {
        return Err(NoMatch);
    }
    rewriter.erase(operation);
    Ok(())
}

/// Replaces an operation on a splat by the splat that it makes.
fn splat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    source: Value<'c, 'a>,
    result: Type<'c>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let splat = SplatOp::defining(source).ok_or(NoMatch)?;
    let replacement = SplatOp::build(operation.loc(), result, splat.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn expand_splat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let expand = ExpandDimsOp::of(operation).ok_or(NoMatch)?;
    splat(operation, expand.src(), expand.result().r#type(), rewriter)
}

/// Broadcasts move to the end, where several can be combined.
fn expand_broadcast<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let expand = ExpandDimsOp::of(operation).ok_or(NoMatch)?;
    let broadcast = BroadcastOp::defining(expand.src()).ok_or(NoMatch)?;
    let source = broadcast.src();
    let tensor = RankedTensor::of(source.r#type()).ok_or(NoMatch)?;
    let result = expand.result().r#type();
    let mut shape = tensor.shape();
    let encoding = match infer::encoding_of(tensor).map_err(|_| NoMatch)? {
        None => None,
        Some(encoding) => Some(
            transfer::expand_dims(&encoding, &shape, expand.axis())
                .map_err(|_| NoMatch)?
                .to_attribute(rewriter.context()),
        ),
    };
    // A broadcast keeps its layout, so the two results must agree on it.
    if RankedTensor::of(result).and_then(RankedTensor::encoding) != encoding {
        return Err(NoMatch);
    }
    let axis = usize::try_from(expand.axis()).map_err(|_| NoMatch)?;
    shape.insert(axis, 1);
    let expanded = RankedTensor::get(&shape, tensor.element(), encoding);
    rewriter.set_before(operation);
    let expanded = rewriter.insert(ExpandDimsOp::build(
        operation.loc(),
        expanded,
        source,
        expand.axis(),
    ));
    let expanded = ExpandDimsOp::of(expanded).ok_or(NoMatch)?;
    let replacement = BroadcastOp::build(broadcast.operation().loc(), result, expanded.result());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn reshape_reshape<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let reshape = ReshapeOp::of(operation).ok_or(NoMatch)?;
    if reshape.efficient_layout() {
        return Err(NoMatch);
    }
    let inner = ReshapeOp::defining(reshape.src()).ok_or(NoMatch)?;
    let replacement = ReshapeOp::build(
        operation.loc(),
        reshape.result().r#type(),
        inner.src(),
        reshape.allow_reorder() || inner.allow_reorder(),
        false,
    );
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn reshape_splat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let reshape = ReshapeOp::of(operation).ok_or(NoMatch)?;
    splat(
        operation,
        reshape.src(),
        reshape.result().r#type(),
        rewriter,
    )
}

fn broadcast_splat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let broadcast = BroadcastOp::of(operation).ok_or(NoMatch)?;
    splat(
        operation,
        broadcast.src(),
        broadcast.result().r#type(),
        rewriter,
    )
}

fn broadcast_broadcast<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let broadcast = BroadcastOp::of(operation).ok_or(NoMatch)?;
    let inner = BroadcastOp::defining(broadcast.src()).ok_or(NoMatch)?;
    let replacement = BroadcastOp::build(operation.loc(), broadcast.result().r#type(), inner.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

/// A value that is carried through a loop, whose result is not used and which only serves to compute itself: the loop
/// yields its argument instead, and MLIR's own patterns remove both.
fn carried_for_nothing<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let body = operation
        .region_ref(0)
        .and_then(RegionExt::entry)
        .ok_or(NoMatch)?;
    let last = body.operations().last().ok_or(NoMatch)?;
    let mut idle = Vec::new();
    for (index, result) in operation.result_values().enumerate() {
        // The first argument is the induction variable.
        let argument = body.argument_value(index + 1).ok_or(NoMatch)?;
        let yielded = last.operand_value(index).ok_or(NoMatch)?;
        // After the bounds and the step come the initial values.
        let initial = operation.operand_value(index + 3).ok_or(NoMatch)?;
        if !result.has_uses()
            && ![argument, initial].contains(&yielded)
            && serves_only(argument, (last, index), body)
        {
            idle.push((index, argument));
        }
    }
    if idle.is_empty() {
        return Err(NoMatch);
    }
    rewriter.modify(last, || {
        for (index, argument) in idle {
            last.set_operand_value(index, argument);
        }
    });
    Ok(())
}

/// The condition of a loop that is an argument of it: an iteration happens only if it is true, so if the iteration
/// yields `true` for it, it never changes.
fn known_condition<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let entry = |region| operation.region_ref(region).and_then(RegionExt::entry);
    let (before, after) = (entry(0).ok_or(NoMatch)?, entry(1).ok_or(NoMatch)?);
    let condition = before.operations().last().ok_or(NoMatch)?;
    let last = after.operations().last().ok_or(NoMatch)?;
    let argument = condition.operand_value(0).ok_or(NoMatch)?;
    let index = (0..before.argument_count())
        .find(|index| before.argument_value(*index) == Some(argument))
        .ok_or(NoMatch)?;
    let yielded = last.operand_value(index).ok_or(NoMatch)?;
    let initial = operation.operand_value(index).ok_or(NoMatch)?;
    if infer::constant_bool(yielded) != Some(true) || !argument.has_uses() {
        return Err(NoMatch);
    }
    rewriter.replace_all_uses(argument, initial);
    Ok(())
}

/// Whether a value reaches, through operations of a block without effects, nothing but one
/// operand of its terminator.
fn serves_only<'c, 'a>(
    value: Value<'c, 'a>,
    (last, position): (OperationRef<'c, 'a>, usize),
    block: BlockRef<'c, 'a>,
) -> bool {
    let mut pending = vec![value];
    let mut seen = Vec::new();
    while let Some(value) = pending.pop() {
        for r#use in value.uses() {
            let user = r#use.operation;
            if user == last {
                if r#use.operand != position {
                    return false;
                }
            } else if user.parent_block() != Some(block) || !user.is_memory_effect_free() {
                return false;
            } else if !seen.contains(&user) {
                seen.push(user);
                pending.extend(user.result_values());
            }
        }
    }
    true
}
