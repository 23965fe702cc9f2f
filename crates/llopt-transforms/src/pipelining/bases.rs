//! Addresses of loads as an increasing base and constant offsets.
//!
//! A program carries a pointer for each element of a tile, and adds to all of them in each iteration. They take two
//! registers of a thread for each access. That is little if an access has many elements; but in a matrix with
//! unaligned rows each element is an access of its own, and the pointers alone would fill the register file. All of
//! them increase by the same number, however:
//!
//! ```text
//! p = (base + rows·stride) + columns       for i = …, base
//! for i = …, p                               p = (base + columns) + rows·stride
//!   load p                                   load p
//!   p = p + step                             base = base + step
//! ```
//!
//! So one base is carried, which all threads share, and offsets of 32 bits are added to it where an access needs
//! them. That takes one register for each, and no additional instruction. Neighbouring offsets are added first: their
//! common part becomes part of the base, and constant differences become part of the instruction.
//!
//! # When it applies
//!
//! Addresses that fit into registers together with the loop's accumulators stay as they are: then the additions to
//! carried values are complete when the next iteration begins.

use llopt_dialects::arith::{self, ConstantOp};
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_dialects::tt::{AddPtrOp, BroadcastOp, LoadOp, SplatOp};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::{Location, Operation, OperationRef, Type, Value, ValueLike};

use super::{loads, ring};
use crate::axis::AxisAnalysis;
use crate::loops::carried;
use crate::loops::view::For;

/// Registers of a thread for counters, masks, and addresses in shared memory.
const BESIDE: u32 = 32;

/// A tensor of pointers that the loop increments.
struct Moving<'c, 'a> {
    /// Its position among the carried values.
    index: usize,
    /// The pointer that all offsets are added to.
    base: Value<'c, 'a>,
    /// The offsets, as narrow as the program computes them, in the order in which they are added.
    offsets: Vec<Value<'c, 'a>>,
    /// The increment.
    step: Step<'c, 'a>,
}

/// The increment of pointers in an iteration, in elements.
enum Step<'c, 'a> {
    Number(Value<'c, 'a>),
    /// A constant of a type, by its bits.
    Constant(Type<'c>, u64),
}

/// Carries bases instead of the pointers of a loop, if the pointers do not fit into registers. Answers the loop.
pub(super) fn carry<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    warps: u32,
    plans: &Plans,
) -> For<'c, 'a> {
    let target = plans.target();
    let limit = target.plain_registers_of_each(warps * target.warp_size());
    let kept = of.carried().into_iter();
    let kept = kept.filter(|value| Pointer::of(element_or_self(value.r#type())).is_none());
    let kept: u32 = kept.map(|value| ring::words(value, plans)).sum();
    let loads: Vec<LoadOp> = of.operations().into_iter().filter_map(LoadOp::of).collect();
    let fit = |registers: u32| kept + registers + BESIDE <= limit;
    let pointers = loads.iter().map(|load| ring::words(load.ptr(), plans));
    if fit(pointers.sum()) {
        return of;
    }
    let facts = &AxisAnalysis::of(module);
    let accesses = loads
        .iter()
        .map(|load| loads::accesses(*load, facts, plans));
    if fit(accesses.sum::<u32>() * loads::POINTER) {
        return of;
    }
    let count = of.carried().len();
    let moving: Vec<Moving> = (0..count)
        .filter_map(|index| Moving::of(of, index, facts))
        .collect();
    if moving.is_empty() {
        return of;
    }
    let mut rewriter = Rewriter::new(of.operation().ctx());
    let location = of.operation().loc();
    let initial: Vec<Value> = moving.iter().map(|moving| moving.base).collect();
    let new = carried::add(&mut rewriter, of, &initial, |rewriter, new, bases| {
        let next = moving.iter().zip(bases);
        let next = next.map(|(moving, &base)| {
            let step = moving.step.value(rewriter, location);
            put(rewriter, AddPtrOp::build(location, base, step))
        });
        let next: Vec<Value> = next.collect();
        let first = new.operations().into_iter().next();
        rewriter.set_before(first.unwrap_or(new.terminator()));
        for (moving, &base) in moving.iter().zip(bases) {
            let argument = new.carried()[moving.index];
            let pointers = moving.pointers(rewriter, location, base, argument);
            argument.replace_all_uses(pointers);
            // Its next value no longer matters.
            let sum = new.yielded()[moving.index].defining_op();
            new.terminator().set_operand_value(moving.index, argument);
            if let Some(sum) = sum.filter(|sum| !sum.result_values().any(ValueExt::has_uses)) {
                sum.erase();
            }
        }
        next
    });
    carried::drop_needless(&mut rewriter, new)
}

fn put<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, operation: Operation<'c>) -> Value<'c, 'a> {
    let made = rewriter.insert(operation);
    made.result_value(0).expect("it has one result")
}

impl<'c: 'a, 'a> Step<'c, 'a> {
    fn of(offset: Value<'c, 'a>) -> Option<Self> {
        if let Some(splat) = SplatOp::defining(offset) {
            return Some(Self::Number(splat.src()));
        }
        let constant = ConstantOp::defining(offset)?;
        let element = element_or_self(offset.r#type());
        let value = constant.operation().attr("value");
        let bits = value.and_then(AttributeExt::splat_bits)?;
        Some(Self::Constant(element, bits))
    }

    fn value(&self, rewriter: &mut Rewriter<'c, 'a>, location: Location<'c>) -> Value<'c, 'a> {
        match *self {
            Self::Number(value) => value,
            Self::Constant(r#type, bits) => {
                let value = fold::uniform(r#type, bits).expect("it was a constant");
                let made = rewriter
                    .create(
                        arith::ConstantOp::NAME,
                        location,
                        &[],
                        Some(&[r#type]),
                        &[("value", value)],
                    )
                    .expect("the dialect arith is loaded");
                made.result_value(0).expect("it has one result")
            }
        }
    }
}

impl<'c: 'a, 'a> Moving<'c, 'a> {
    fn of(of: For<'c, 'a>, index: usize, facts: &AxisAnalysis) -> Option<Self> {
        let argument = of.carried()[index];
        Pointer::of(RankedTensor::of(argument.r#type())?.element())?;
        let next = AddPtrOp::defining(of.yielded()[index])?;
        if next.ptr() != argument || of.results()[index].has_uses() {
            return None;
        }
        let step = Step::of(next.offset())?;
        let (base, mut offsets) = taken_apart(of.initial()[index])?;
        let layout = RankedTensor::of(argument.r#type())?.encoding();
        let is_alike = |offset: &Value| {
            RankedTensor::of(offset.r#type()).is_some_and(|tensor| tensor.encoding() == layout)
        };
        if !offsets.iter().all(is_alike) {
            return None;
        }
        // Neighbouring ones first, and among the others the smaller ones.
        offsets.sort_by_key(|&offset| {
            let known = facts.facts(offset);
            let rank = known.rank();
            let together = (0..rank).map(|dim| known.along(dim).contiguity.get()).max();
            let elements: i64 = RankedTensor::of(offset.r#type())
                .map_or(1, |tensor| tensor.shape().iter().product());
            (std::cmp::Reverse(together), elements)
        });
        Some(Self {
            index,
            base,
            offsets,
            step,
        })
    }

    /// The pointers of an iteration.
    fn pointers(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        base: Value<'c, 'a>,
        like: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let whole = RankedTensor::of(like.r#type()).expect("it is a tensor");
        let mut pointers = base;
        for &offset in &self.offsets {
            let own = RankedTensor::of(offset.r#type()).expect("it is a tensor");
            let sum = match RankedTensor::of(pointers.r#type()) {
                None => own,
                Some(before) if before.shape() == own.shape() => own,
                Some(_) => whole,
            };
            let of_offset = sum.with_element(own.element());
            let of_pointers = sum.with_element(whole.element());
            let offset = broadcast(rewriter, location, offset, of_offset);
            pointers = match RankedTensor::of(pointers.r#type()) {
                None => put(rewriter, SplatOp::build(location, of_pointers, pointers)),
                Some(_) => broadcast(rewriter, location, pointers, of_pointers),
            };
            pointers = put(rewriter, AddPtrOp::build(location, pointers, offset));
        }
        match RankedTensor::of(pointers.r#type()) {
            None => put(rewriter, SplatOp::build(location, like.r#type(), pointers)),
            Some(_) => broadcast(rewriter, location, pointers, like.r#type()),
        }
    }
}

fn broadcast<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    value: Value<'c, 'a>,
    to: Type<'c>,
) -> Value<'c, 'a> {
    match value.r#type() == to {
        true => value,
        false => put(rewriter, BroadcastOp::build(location, to, value)),
    }
}

/// The scalar pointer and the offsets whose sum pointers are.
fn taken_apart<'c: 'a, 'a>(pointers: Value<'c, 'a>) -> Option<(Value<'c, 'a>, Vec<Value<'c, 'a>>)> {
    let mut offsets = Vec::new();
    let mut value = pointers;
    loop {
        if let Some(sum) = AddPtrOp::defining(value) {
            let mut offset = sum.offset();
            while let Some(wide) = BroadcastOp::defining(offset) {
                offset = wide.src();
            }
            offsets.push(offset);
            value = sum.ptr();
        } else if let Some(wide) = BroadcastOp::defining(value) {
            value = wide.src();
        } else {
            let base = SplatOp::defining(value)?.src();
            return Some((base, offsets));
        }
    }
}
