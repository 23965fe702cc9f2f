//! Copies to shared memory where their slots are free: before copies from it, and before what threads compute.
//!
//! The copy unit executes in order what threads issue, and a thread waits to issue while its queue is full. To add a tile to
//! memory takes the unit longer than to load one (64 rows of 128 singles some 1,700 cycles on an H100, by samples of stalls). Loads for a
//! later iteration that are issued after it make their warps wait for it, and soon the others, which meet these at
//! barriers:
//!
//! ```text
//! for i …                        for i …
//!   wait for product               copy to ring[i + 2]      while the product runs
//!   store x                        wait for product
//!   add x to C[i]                  store x
//!   copy to ring[i + 2]            add x to C[i]
//! ```
//!
//! With products that run on, the slot that is filled is that of the iteration before, whose last product is
//! complete where the body waits for it. The copies come after that wait, before the last one ahead of the copy from shared
//! memory. There the warps synchronise, since others may still read the slot; so the wait for the copy from shared memory of
//! the iteration before comes there, too, while products are running.
//!
//! Where a loop copies nothing from shared memory, the copies come directly after that wait. At the end of the body a ring of two
//! slots would begin to load the next iteration's data when these are waited for, after all of the softmax of attention: the
//! block waits for a sixth of the time with tiles of 64 x 128 on an H100.

use llopt_dialects::ttng::{
    AsyncTMACopyGlobalToLocalOp, AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp, BarrierExpectOp,
    FenceAsyncSharedOp, TMAStoreWaitOp, WaitBarrierOp, WarpGroupDotWaitOp,
};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::OperationRef;

use super::buffers::{keeps_memory, named, writes_none_of};
use crate::loops::needs::maker;
use crate::loops::view::For;

/// Whether an operation makes the copy unit write a tile of shared memory, or says for how many bytes of them a barrier
/// waits.
fn loads(operation: OperationRef<'_, '_>) -> bool {
    AsyncTMACopyGlobalToLocalOp::of(operation).is_some() || BarrierExpectOp::of(operation).is_some()
}

fn stores(operation: OperationRef<'_, '_>) -> bool {
    AsyncTMACopyLocalToGlobalOp::of(operation).is_some()
        || AsyncTMAReduceOp::of(operation).is_some()
}

/// Moves the copies to shared memory at the end of a body, with products that run on, to where their slots are free.
pub(super) fn load_first<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
    let operations = of.operations();
    let store = operations.iter().position(|own| stores(*own));
    let before = store.unwrap_or(operations.len());
    let waits_for_carried = |wait: OperationRef<'c, 'a>| {
        let carried = of.carried();
        wait.operand_values().any(|value| carried.contains(&value))
    };
    let waits: Vec<usize> = (0..before)
        .filter(|&at| WarpGroupDotWaitOp::of(operations[at]).is_some())
        .collect();
    let complete = waits
        .iter()
        .rposition(|&at| waits_for_carried(operations[at]));
    let place = match (complete, store) {
        (None, _) => return,
        (Some(last), Some(store)) if last + 1 == waits.len() => store,
        (Some(_), Some(_)) => waits[waits.len() - 1],
        (Some(last), None) => waits[last] + 1,
    };
    // The copies, and what computes their operands.
    let mut moved: Vec<OperationRef> = operations[place..]
        .iter()
        .copied()
        .filter(|own| loads(*own))
        .collect();
    if moved.is_empty() {
        return;
    }
    let mut next = 0;
    while let Some(&operation) = moved.get(next) {
        next += 1;
        for made in operation
            .operand_values()
            .filter_map(|value| maker(of, value))
        {
            let is_behind = operations[place..].contains(&made);
            if !is_behind || moved.contains(&made) {
                continue;
            }
            if !made.is_memory_effect_free() {
                return;
            }
            moved.push(made);
        }
    }
    // What they change places with.
    let Some(buffers) = named(&moved) else {
        return;
    };
    let end = of.terminator();
    let mut others = operations[place..]
        .iter()
        .filter(|own| !moved.contains(own) && **own != end);
    let leaves = |own: OperationRef<'c, 'a>| {
        keeps_memory(own)
            || FenceAsyncSharedOp::of(own).is_some()
            || WarpGroupDotWaitOp::of(own).is_some()
            || WaitBarrierOp::of(own).is_some()
            || writes_none_of(own, &buffers)
    };
    if !others.all(|own| leaves(*own)) {
        return;
    }
    for (at, wait) in operations[..place].iter().enumerate() {
        let is_wait = TMAStoreWaitOp::of(*wait).is_some();
        if is_wait
            && operations[at + 1..place]
                .iter()
                .all(|own| keeps_memory(*own))
        {
            rewriter.move_before(*wait, operations[place]);
        }
    }
    for operation in operations[place..].iter().filter(|own| moved.contains(own)) {
        rewriter.move_before(*operation, operations[place]);
    }
}
