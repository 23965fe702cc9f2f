//! The buffers in shared memory that the operations of a body read and write: what may change places with what.
//!
//! Copies and products access memory after they are issued, in their own time. So of two operations that change places
//! neither may write what the other one reads, or wait for what brings it: a wait for copies is for those to buffers that
//! its barrier counts, and one for products counts those issued before it.

use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::tt::LoadOp;
use llopt_dialects::ttg::{AsyncWaitOp, LocalAllocOp, LocalLoadOp};
use llopt_dialects::ttng::{
    AsyncTMACopyGlobalToLocalOp, FenceAsyncSharedOp, TMAStoreWaitOp, WaitBarrierOp, WarpGroupDotOp,
    WarpGroupDotWaitOp,
};
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{Effect, OperationExt, ValueExt};
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::view::For;

/// Whether an operation at most reads memory, or fills a buffer that nothing else writes to.
pub(super) fn keeps_memory(operation: OperationRef<'_, '_>) -> bool {
    operation.is_memory_effect_free()
        || LoadOp::of(operation).is_some_and(|load| !load.is_volatile())
        || LocalAllocOp::of(operation).is_some_and(|buffer| buffer.src().is_some())
        || LocalLoadOp::of(operation).is_some()
        || WarpGroupDotOp::of(operation).is_some()
}

/// The buffer that a place in shared memory is in.
pub(super) fn buffer<'c: 'a, 'a>(place: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let mut place = place;
    while let Some(view) = place.defining_op() {
        if LocalAllocOp::of(view).is_some() {
            return Some(place);
        }
        place = view
            .operand_value(0)
            .filter(|_| view.is_memory_effect_free())?;
    }
    None
}

/// The buffers that operations name, if all are known.
pub(super) fn named<'c: 'a, 'a>(operations: &[OperationRef<'c, 'a>]) -> Option<Vec<Value<'c, 'a>>> {
    let operands = operations.iter().flat_map(|one| one.operand_values());
    let places = operands.filter(|value| MemDesc::of(value.r#type()).is_some());
    places.map(buffer).collect()
}

fn is_global(effect: &Effect<'_, '_>) -> bool {
    effect
        .resource
        .is_some_and(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
}

/// Whether an operation may write to global memory.
fn writes_global(operation: OperationRef<'_, '_>) -> bool {
    operation.effects().is_none_or(|effects| {
        let mut effects = effects.iter();
        effects.any(|effect| effect.kind == EffectKind::Write && is_global(effect))
    })
}

/// The buffers that an operation may write to, if all shared memory that it writes to is in known ones.
fn written<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<Vec<Value<'c, 'a>>> {
    if TMAStoreWaitOp::of(operation).is_some() {
        return Some(Vec::new());
    }
    let effects = operation.effects()?;
    let writes = effects
        .into_iter()
        .filter(|effect| effect.kind == EffectKind::Write && !is_global(effect));
    writes.map(|effect| effect.value.and_then(buffer)).collect()
}

/// Whether an operation writes to none of some buffers.
pub(super) fn writes_none_of<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    buffers: &[Value<'c, 'a>],
) -> bool {
    let known = written(operation).filter(|_| operation.region_refs().len() == 0);
    known.is_some_and(|written| !written.iter().any(|one| buffers.contains(one)))
}

/// Whether what reads some buffers, and loads from global memory, may come before an operation of a body that comes before it
/// now: the operation writes to neither, and is no wait for data in the buffers.
pub(super) fn is_apart_from<'c: 'a, 'a>(
    of: For<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    buffers: &[Value<'c, 'a>],
) -> bool {
    let brings = |wait: WaitBarrierOp<'c, 'a>| {
        let barrier = buffer(wait.alloc());
        let copies = of.operations().into_iter();
        let mut copies = copies.filter_map(AsyncTMACopyGlobalToLocalOp::of);
        barrier.is_none()
            || copies.any(|copy| {
                let own = buffer(copy.barrier());
                let filled = buffer(copy.result());
                (own.is_none() || own == barrier) && filled.is_none_or(|one| buffers.contains(&one))
            })
    };
    match WaitBarrierOp::of(operation) {
        Some(wait) => !brings(wait),
        None => {
            !orders(operation) && !writes_global(operation) && writes_none_of(operation, buffers)
        }
    }
}

/// Whether an operation makes others wait for what was issued before it, or see what was written before it.
pub(super) fn orders(operation: OperationRef<'_, '_>) -> bool {
    FenceAsyncSharedOp::of(operation).is_some()
        || WarpGroupDotWaitOp::of(operation).is_some()
        || AsyncWaitOp::of(operation).is_some()
        || WaitBarrierOp::of(operation).is_some()
}

/// Whether a running product reads its operands undisturbed while an operation is executed.
pub(super) fn leaves_operands<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    product: WarpGroupDotOp<'c, 'a>,
) -> bool {
    let is_apart = || {
        let read = named(&[product.operation()]);
        orders(operation) || read.is_some_and(|read| writes_none_of(operation, &read))
    };
    operation.region_refs().len() == 0 && (keeps_memory(operation) || is_apart())
}
