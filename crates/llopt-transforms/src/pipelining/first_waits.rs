//! Waits for blocks that are copied before a loop and read in it: they come behind the copies of the first iterations.
//!
//! A kernel waits for each block where it copies it. The latencies of the blocks then add up before the first product,
//! for each program that a multiprocessor executes:
//!
//! ```text
//! copy keys; wait for keys            copy keys
//! copy values; wait for values        copy values
//! copy rows of the first iterations   copy rows of the first iterations
//! for i …                             wait for keys; wait for values
//!   …                                 for i …
//! ```

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::LocalAllocOp;
use llopt_dialects::ttng::{AsyncTMACopyGlobalToLocalOp, InvalBarrierOp, WaitBarrierOp};
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::view::For;

/// A block that is copied once, and the operations that end its barrier.
struct Copied<'c, 'a> {
    buffer: Value<'c, 'a>,
    wait: OperationRef<'c, 'a>,
    invalidate: OperationRef<'c, 'a>,
}

impl<'c: 'a, 'a> Copied<'c, 'a> {
    /// What a wait is for, if its barrier has no other wait and is for one copy to one buffer.
    fn of(wait: OperationRef<'c, 'a>) -> Option<Self> {
        let waiting = WaitBarrierOp::of(wait)?;
        LocalAllocOp::defining(waiting.alloc())?;
        let users: Vec<OperationRef> = waiting.alloc().users().collect();
        let waits = users
            .iter()
            .filter(|user| WaitBarrierOp::of(**user).is_some());
        let mut copies = users
            .iter()
            .copied()
            .filter_map(AsyncTMACopyGlobalToLocalOp::of);
        let copy = copies.next().filter(|_| waits.count() == 1)?;
        let buffer = LocalAllocOp::defining(copy.result())?.result();
        let invalidate = wait.next_op().filter(|next| {
            InvalBarrierOp::of(*next).is_some_and(|own| own.alloc() == waiting.alloc())
        })?;
        copies.next().is_none().then_some(Self {
            buffer,
            wait,
            invalidate,
        })
    }

    /// Whether the contents of the buffer are used by one of some operations.
    fn is_used_by(&self, operations: &[OperationRef<'c, 'a>]) -> bool {
        let mut places = vec![self.buffer];
        while let Some(place) = places.pop() {
            for user in place.users() {
                if operations.iter().any(|one| user.is_within(*one)) {
                    return true;
                }
                let views = user.result_values();
                places.extend(views.filter(|view| MemDesc::of(view.r#type()).is_some()));
            }
        }
        false
    }
}

/// Moves the waits in front of a loop as far down to it as the operations between do not use the data.
pub(super) fn defer<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
    let end = of.operation();
    let Some(block) = end.parent_block() else {
        return;
    };
    let before: Vec<OperationRef> = block
        .operations()
        .take_while(|operation| *operation != end)
        .collect();
    for (place, &wait) in before.iter().enumerate() {
        let Some(copied) = Copied::of(wait) else {
            continue;
        };
        let between = &before[place + 1..];
        if !copied.is_used_by(between) {
            rewriter.move_before(copied.wait, end);
            rewriter.move_before(copied.invalidate, end);
        }
    }
}
