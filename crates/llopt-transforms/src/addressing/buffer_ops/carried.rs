//! Loops that carry pointers, rewritten to carry offsets.
//!
//! A loop over tiles steps through memory: it carries a tensor of pointers and adds to it in each iteration. If all
//! of these start from an argument whose tensor the caller promises to be small, the loop can carry the 32-bit
//! offsets from the argument instead, and an access then has a base and offsets:
//!
//! ```text
//! p = splat(a) + o                        o'= o
//! for … iter_args(p) {                    for … iter_args(o') {
//!   load p                         →        load splat(a) + o'
//!   yield p + d                             yield o' + d
//! }                                       }
//! ```
//!
//! Offsets are added modulo 2^32. So they may stand for another address than the pointers did, but never for an
//! address that is accessed, since each of those is within 2^31 bytes of the argument. A pointer that has uses other
//! than accesses stays a pointer, and so does one with which another loop goes on that uses it otherwise.

use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::ir::{OperationRef, Value, ValueLike};

use super::{Access, Parts, Writer, is_small, key, moved};
use crate::loops::carried;
use crate::loops::view::For;

/// A tensor of pointers that a loop carries and increments.
struct Stepped<'c, 'a> {
    /// Its position among the carried values.
    index: usize,
    /// Its initial value.
    initial: Value<'c, 'a>,
    /// Its parts, relative to the argument.
    parts: Parts<'c, 'a>,
    /// The additions of an iteration, the last first.
    steps: Vec<tt::AddPtrOp<'c, 'a>>,
}

/// Makes every loop below an op carry offsets in place of pointers that are only accessed.
pub(super) fn rewrite<'c: 'a, 'a>(root: OperationRef<'c, 'a>, writer: &mut Writer<'c, 'a>) {
    // Outer loops come first: then the initial value of an inner one is known.
    let mut loops = Vec::new();
    root.for_each_op(Walk::PreOrder, |operation| loops.extend(For::of(operation)));
    for of in loops {
        let all = 0..of.carried().len();
        let stepped: Vec<Stepped> = all.filter_map(|index| Stepped::of(of, index)).collect();
        if !stepped.is_empty() {
            carry(of, stepped, writer);
        }
    }
}

impl<'c: 'a, 'a> Stepped<'c, 'a> {
    fn of(of: For<'c, 'a>, index: usize) -> Option<Self> {
        let (argument, initial) = (of.carried()[index], of.initial()[index]);
        Pointer::of(RankedTensor::of(argument.r#type())?.element())?;
        let parts = Parts::of(initial)?.reach_argument();
        if !is_small(parts.base) {
            return None;
        }
        let mut steps = Vec::new();
        let mut value = of.yielded()[index];
        while value != argument {
            let add = tt::AddPtrOp::defining(value)?;
            steps.push(add);
            value = add.ptr();
        }
        only_accessed(argument, Loops::Followed).then_some(Self {
            index,
            initial,
            parts,
            steps,
        })
    }
}

/// What a loop that takes pointers is to the question of what becomes of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loops {
    /// A use like any other.
    Uses,
    /// It carries them on, and what it carries is followed.
    Followed,
}

/// Whether the only uses of pointers, and of those computed from them, are accesses.
pub(super) fn only_accessed<'c: 'a, 'a>(pointers: Value<'c, 'a>, loops: Loops) -> bool {
    let mut queue = vec![pointers];
    let mut seen = vec![key(pointers)];
    while let Some(value) = queue.pop() {
        for user in value.users() {
            if Access::of(user).is_some_and(|access| access.pointers == value) {
                continue;
            }
            let results = match loops {
                Loops::Followed => carried_on(value, user),
                Loops::Uses => None,
            };
            let is_computed = tt::AddPtrOp::of(user).is_some() || moved(user).is_some();
            let results = results.or_else(|| {
                let result = user.result_value(0).filter(|_| is_computed)?;
                Some(vec![result])
            });
            let Some(results) = results else {
                return false;
            };
            for result in results {
                if !seen.contains(&key(result)) {
                    seen.push(key(result));
                    queue.push(result);
                }
            }
        }
    }
    true
}

/// What a value is as a loop carries it and at the end of the loop, if an operation is a loop that begins with it, or ends an
/// iteration with it.
fn carried_on<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    user: OperationRef<'c, 'a>,
) -> Option<Vec<Value<'c, 'a>>> {
    let (of, next) = match For::of(user) {
        Some(of) => (of, of.initial()),
        None => {
            let of = user.parent_op().and_then(For::of)?;
            (of.terminator() == user).then(|| (of, of.yielded()))?
        }
    };
    let own = of.carried().into_iter().zip(of.results());
    let taken = next.into_iter().zip(own).filter(|(next, _)| *next == value);
    Some(
        taken
            .flat_map(|(_, (carried, result))| [carried, result])
            .collect(),
    )
}

/// Rewrites a loop.
fn carry<'c: 'a, 'a>(of: For<'c, 'a>, stepped: Vec<Stepped<'c, 'a>>, writer: &mut Writer<'c, 'a>) {
    let mut first = Vec::new();
    let mut kept = Vec::new();
    for one in stepped {
        if let Some(offsets) = writer.offsets(one.initial, &one.parts) {
            first.push(offsets);
            kept.push(one);
        }
    }
    let types: Vec<_> = of.carried().iter().map(|value| value.r#type()).collect();
    let location = of.operation().loc();
    let mut rewriter = llopt_mlir::rewrite::Rewriter::new(of.operation().ctx());
    let place = of.carried().len();
    let new = carried::add(&mut rewriter, of, &first, |_, new, offsets| {
        let next = kept.iter().zip(offsets).map(|(one, &offsets)| {
            writer.rewriter.set_before(new.terminator());
            writer.location = location;
            let sum = one.steps.iter().rev().try_fold(offsets, |sum, &step| {
                let step = writer.narrow(step.offset())?;
                writer.put(melior::dialect::arith::addi(sum, step, location))
            });
            sum.unwrap_or(offsets)
        });
        next.collect()
    });
    for (number, one) in kept.iter().enumerate() {
        let pointers = |writer: &mut Writer<'c, 'a>, offsets: Value<'c, 'a>| {
            let base = writer.put(tt::SplatOp::build(
                location,
                types[one.index],
                one.parts.base,
            ))?;
            writer.put(tt::AddPtrOp::build(location, base, offsets))
        };
        let (old, offsets) = (new.carried()[one.index], new.carried()[place + number]);
        writer.rewriter.set_to_start(new.body());
        if let Some(inside) = pointers(writer, offsets) {
            old.replace_all_uses(inside);
        }
        let (old, offsets) = (new.results()[one.index], new.results()[place + number]);
        writer.rewriter.set_after(new.operation());
        if let Some(after) = pointers(writer, offsets) {
            old.replace_all_uses(after);
        }
    }
    carried::drop_needless(&mut rewriter, new);
    for step in kept.iter().flat_map(|one| &one.steps) {
        let operation = step.operation();
        if operation
            .result_value(0)
            .is_some_and(|next| !next.has_uses())
        {
            operation.erase();
        }
    }
}
