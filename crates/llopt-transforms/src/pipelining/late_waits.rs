//! Copies from shared memory to tensors, in loops: the wait for one comes an iteration later.
//!
//! A copy unit reads the buffer while threads go on. They have to wait before they fill it anew, not before the end of the
//! iteration:
//!
//! ```text
//! for i …                              buffer
//!   buffer = alloc x                   for i …
//!   copy buffer to C[i]                  wait for the copies of i - 1; store x to the buffer
//!   wait for copies                      copy buffer to C[i]
//!                                      wait for copies
//! ```
//!
//! All warps have to know that the copies have read. So the wait comes before the last place ahead of the store where the
//! warps synchronise anyway, since a product reads what all of them have stored.
//!
//! The buffer is then occupied for the whole loop, so this is for loops in which nothing else could use its memory
//! meanwhile: those whose rings are live as long. Copies of blocks of one type, as of the parts of a tile, take turns in two
//! buffers: one is read while the other is filled.

use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::ttg::{LocalAllocOp, LocalStoreOp};
use llopt_dialects::ttng::{
    AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp, TMAStoreWaitOp, WarpGroupDotOp,
};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::view::For;

/// Buffers in which copies of blocks of one type take turns.
const IN_TURN: usize = 2;

/// The buffer that an operation copies from, if it does.
fn copied_from<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    AsyncTMACopyLocalToGlobalOp::of(operation)
        .map(AsyncTMACopyLocalToGlobalOp::src)
        .or_else(|| AsyncTMAReduceOp::of(operation).map(AsyncTMAReduceOp::src))
}

/// A copy of a body, the buffer that it reads, and the wait that follows.
struct Copy<'c, 'a> {
    buffer: LocalAllocOp<'c, 'a>,
    wait: TMAStoreWaitOp<'c, 'a>,
}

impl<'c: 'a, 'a> Copy<'c, 'a> {
    /// The copy that an operation is, if its buffer is filled for it alone, and all copies are waited for after it.
    fn of(of: For<'c, 'a>, operation: OperationRef<'c, 'a>) -> Option<Self> {
        let source = copied_from(operation)?;
        let buffer = LocalAllocOp::defining(source)?;
        let wait = TMAStoreWaitOp::of(operation.next_op()?)?;
        let is_own = buffer.operation().parent_op() == Some(of.operation())
            && buffer.src().is_some()
            && source.users().count() == 1
            && wait.pendings() == 0;
        is_own.then_some(Self { buffer, wait })
    }
}

/// The last operation of a body up to this one that fills a buffer for a product, with no copy in between, or this one.
fn last_filling<'c: 'a, 'a>(of: For<'c, 'a>, until: OperationRef<'c, 'a>) -> OperationRef<'c, 'a> {
    let is_read = |buffer: LocalAllocOp<'c, 'a>| {
        let mut places = vec![buffer.result()];
        while let Some(place) = places.pop() {
            for user in place.users() {
                if WarpGroupDotOp::of(user).is_some() {
                    return buffer.src().is_some();
                }
                let views = user.result_values();
                places.extend(views.filter(|view| MemDesc::of(view.r#type()).is_some()));
            }
        }
        false
    };
    let mut last = until;
    for operation in of.operations() {
        if operation == until {
            break;
        }
        // Waits count the copies that are issued after their own.
        if copied_from(operation).is_some() {
            last = until;
        } else if LocalAllocOp::of(operation).is_some_and(is_read) {
            last = operation;
        }
    }
    last
}

/// The copies of a loop whose waits can be deferred: all, as they are counted, or none.
fn copies<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<Copy<'c, 'a>> {
    let operations = of.operations();
    let copies: Vec<Copy> = operations
        .iter()
        .filter_map(|operation| Copy::of(of, *operation))
        .collect();
    let waits = operations
        .iter()
        .filter(|operation| TMAStoreWaitOp::of(**operation).is_some());
    match waits.count() == copies.len() {
        true => copies,
        false => Vec::new(),
    }
}

/// In how many buffers copies take turns.
fn buffers_of(copies: &[Copy<'_, '_>]) -> usize {
    let types = copies.iter().map(|copy| copy.buffer.result().r#type());
    let is_one_type = types
        .clone()
        .zip(types.skip(1))
        .all(|(one, next)| one == next);
    match is_one_type && copies.len().is_multiple_of(IN_TURN) {
        true => copies.len().min(IN_TURN),
        false => copies.len(),
    }
}

/// Bytes that the buffers of a loop's copies take now, and do not take when their waits are deferred.
pub(super) fn spared_bytes(of: For<'_, '_>) -> u64 {
    let copies = copies(of);
    let spared = copies.iter().skip(buffers_of(&copies));
    let tensors = spared.filter_map(|copy| RankedTensor::of(copy.buffer.src()?.r#type()));
    tensors.map(RankedTensor::bytes).sum()
}

/// Defers the waits of a loop's copies.
pub(super) fn defer<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
    let copies = copies(of);
    if copies.is_empty() {
        return;
    }
    let count = buffers_of(&copies);
    let mut places: Vec<Value> = Vec::new();
    for (number, Copy { buffer, wait }) in copies.iter().enumerate() {
        let (source, value) = (buffer.src(), buffer.result());
        let parts = MemDesc::of(value.r#type()).and_then(MemDesc::parts);
        let (Some(source), Some(parts)) = (source, parts) else {
            continue;
        };
        let location = buffer.operation().loc();
        if number < count {
            let mutable = MemDesc::get(&MemDescParts {
                mutable: true,
                ..parts
            });
            rewriter.set_before(of.operation());
            let place = rewriter.insert(LocalAllocOp::build(location, mutable, None, None));
            places.extend(place.result_value(0));
        }
        let Some(&place) = places.get(number % count) else {
            continue;
        };
        rewriter.set_before(last_filling(of, buffer.operation()));
        rewriter.insert(TMAStoreWaitOp::build(location, count as i64 - 1));
        rewriter.set_before(buffer.operation());
        rewriter.insert(LocalStoreOp::build(location, source, place));
        rewriter.replace(buffer.operation(), &[place]);
        rewriter.erase(wait.operation());
    }
    rewriter.set_after(of.operation());
    rewriter.insert(TMAStoreWaitOp::build(of.operation().loc(), 0));
}
