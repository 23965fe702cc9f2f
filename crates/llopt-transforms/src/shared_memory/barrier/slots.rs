//! The single buffer of a ring that an access is to.
//!
//! A pipelined loop takes the buffers of a ring in turn, by a number that it carries. Two different buffers share no
//! byte, so accesses of them need no barrier.
//!
//! - *Before the loop* the numbers are constants, but not written as such: copies of the loop's own arithmetic compute
//!   them. The bytes are known.
//! - *Within the loop* a number depends on the iteration. But several of them differ by a constant, in each iteration the
//!   same, for all of them advance alike:
//!
//! ```text
//!   read = 0, written = 3                        places 0 and 3 of 4
//!   for t …
//!     ring[read], ring[written]                  buffers t and t + 3 modulo 4
//!     read    = read + 1    < 4 ? read + 1    : 0
//!     written = written + 1 < 4 ? written + 1 : 0
//! ```
//!
//! Carried numbers are *in turn* if each begins with a constant from -1 to `count - 1`, or with what another loop in turn ends
//! with, and goes on as one of them, advanced any number of times. They all advance by one `step`: one that does not is not in
//! turn. An access is then to the buffer of a [`Turn`]; where a number is neither known nor in turn, to the whole ring.

use std::collections::HashMap;
use std::ops::Range;

use llopt_dialects::arith::{AddIOp, CmpIOp, CmpIPredicate, ConstantOp, SelectOp};
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::{LocalAllocOp, MemDescIndexOp};
use llopt_mlir::ir::{AttributeExt, OperationExt, key};
use llopt_plan::buffer::room;
use melior::ir::{OperationRef, Value, ValueLike};

use super::node::Turn;
use crate::loops::view::For;
use crate::program::Point;

/// The most buffers of a ring whose turns are told apart.
const MOST: u32 = 32;

/// Where numbers in turn begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// With zero.
    Zero,
    /// With the end of the loop at this point.
    After(usize),
}

/// Numbers that are known, and those in turn, by value.
#[derive(Debug, Default)]
pub(super) struct Slots {
    known: HashMap<usize, i64>,
    turns: HashMap<usize, Turn>,
    /// The results of loops, by their places.
    ends: HashMap<usize, Turn>,
}

impl Slots {
    /// The numbers that the ops of a program compute from constants, and those that its loops take in turn.
    pub(super) fn of(points: &[Point<'_, '_>]) -> Self {
        let mut slots = Self::default();
        for (number, point) in points.iter().enumerate() {
            let operation = point.operation;
            if let Some(of) = For::of(operation) {
                slots.take_in_turn(of, number);
            }
            let Some(result) = operation.result_value(0) else {
                continue;
            };
            if let Some(number) = slots.computed(operation) {
                slots.known.insert(key(result), number);
            }
            if let Some((before, count)) = slots.advanced(result)
                && let Some(&turn) = slots.turns.get(&key(before))
                && turn.count == count
            {
                let place = (turn.place + 1) % count;
                slots.turns.insert(key(result), Turn { place, ..turn });
            }
        }
        slots
    }

    fn number(&self, value: Value<'_, '_>) -> Option<i64> {
        self.known.get(&key(value)).copied()
    }

    /// The same, also of a constant in a body that is still ahead.
    fn constant(&self, value: Value<'_, '_>) -> Option<i64> {
        let constant = || ConstantOp::defining(value)?.value()?.as_i64();
        self.number(value).or_else(constant)
    }

    /// The number that an op computes: what counts the buffers of a ring.
    fn computed(&self, operation: OperationRef<'_, '_>) -> Option<i64> {
        if let Some(constant) = ConstantOp::of(operation) {
            return constant.value()?.as_i64();
        }
        if let Some(sum) = AddIOp::of(operation) {
            return self.number(sum.lhs())?.checked_add(self.number(sum.rhs())?);
        }
        if let Some(comparison) = CmpIOp::of(operation) {
            let (x, y) = (
                self.number(comparison.lhs())?,
                self.number(comparison.rhs())?,
            );
            return match comparison.predicate()? {
                CmpIPredicate::Slt => Some((x < y).into()),
                CmpIPredicate::Eq => Some((x == y).into()),
                _ => None,
            };
        }
        let choice = SelectOp::of(operation)?;
        match self.number(choice.condition())? {
            0 => self.number(choice.false_value()),
            _ => self.number(choice.true_value()),
        }
    }

    /// The number that a value is the next one after, modulo the count that comes with it.
    fn advanced<'c: 'a, 'a>(&self, value: Value<'c, 'a>) -> Option<(Value<'c, 'a>, u32)> {
        let choice = SelectOp::defining(value)?;
        let comparison = CmpIOp::defining(choice.condition())?;
        let (sum, zero) = match comparison.predicate()? {
            CmpIPredicate::Slt => (choice.true_value(), choice.false_value()),
            CmpIPredicate::Sge | CmpIPredicate::Eq => (choice.false_value(), choice.true_value()),
            _ => return None,
        };
        if comparison.lhs() != sum || self.constant(zero) != Some(0) {
            return None;
        }
        let count = u32::try_from(self.constant(comparison.rhs())?).ok()?;
        let sum = AddIOp::defining(sum)?;
        let is_next = self.constant(sum.rhs()) == Some(1);
        ((1..=MOST).contains(&count) && is_next).then(|| (sum.lhs(), count))
    }

    /// Finds the carried numbers of a loop, at this point, that are in turn.
    fn take_in_turn(&mut self, of: For<'_, '_>, point: usize) {
        let yielded = of.yielded();
        let mut counts: Vec<u32> = yielded
            .iter()
            .filter_map(|value| Some(self.advanced(*value)?.1))
            .collect();
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            self.take_in_turn_of(of, point, count);
        }
    }

    /// The same for rings of so many buffers.
    fn take_in_turn_of(&mut self, of: For<'_, '_>, point: usize, count: u32) {
        let (carried, initial) = (of.carried(), of.initial());
        // Which carried number each one goes on as, and how often it is advanced.
        let next: Vec<Option<(usize, u32)>> = of
            .yielded()
            .into_iter()
            .map(|mut value| {
                let mut times = 0;
                while let Some((before, modulus)) = self.advanced(value) {
                    if modulus != count || times == MOST {
                        return None;
                    }
                    (value, times) = (before, times + 1);
                }
                let position = carried.iter().position(|argument| *argument == value);
                Some((position?, times))
            })
            .collect();
        let mut places: Vec<Option<(Base, u32)>> = initial
            .iter()
            .map(|value| self.begin(*value, count))
            .collect();
        let step_of = |places: &[Option<(Base, u32)>], index: usize| {
            let (base, own) = places[index]?;
            let (source, times) = next[index]?;
            let (other, place) = places[source]?;
            let step = (place + times + count - own) % count;
            (base == other).then_some((base, step))
        };
        let leader = (0..places.len())
            .filter(|&index| next[index].is_some_and(|(source, _)| source == index))
            .find_map(|index| step_of(&places, index));
        let Some(wanted) = leader else {
            return;
        };
        loop {
            let fit = |index: &usize| step_of(&places, *index) == Some(wanted);
            let out: Vec<usize> = (0..places.len())
                .filter(|index| places[*index].is_some() && !fit(index))
                .collect();
            if out.is_empty() {
                break;
            }
            for index in out {
                places[index] = None;
            }
        }
        let results = of.results();
        for (index, place) in places.into_iter().enumerate() {
            let Some((_, place)) = place else {
                continue;
            };
            let turn = Turn {
                entry: point,
                count,
                step: wanted.1,
                place,
            };
            self.turns.insert(key(carried[index]), turn);
            self.ends.insert(key(results[index]), turn);
        }
    }

    /// Where a carried number begins.
    fn begin(&self, value: Value<'_, '_>, count: u32) -> Option<(Base, u32)> {
        if let Some(number) = self.constant(value) {
            let is_near = (-1..i64::from(count)).contains(&number);
            let place = number.rem_euclid(i64::from(count)) as u32;
            return is_near.then_some((Base::Zero, place));
        }
        let end = self.ends.get(&key(value))?;
        (end.count == count).then_some((Base::After(end.entry), end.place))
    }

    /// The number of the buffer that a view of a ring is, and what the ring is.
    fn index<'c: 'a, 'a>(
        view: Value<'c, 'a>,
        ring: &Range<u64>,
    ) -> Option<(Value<'c, 'a>, u64, u64)> {
        let index = MemDescIndexOp::defining(view)?;
        // The ring itself, not a part of it.
        LocalAllocOp::defining(index.src())?;
        let of = MemDesc::of(index.src().r#type())?;
        let count = u64::try_from(*of.shape().first()?).ok()?;
        let each = room(MemDesc::of(view.r#type())?).ok()?.bytes;
        let is_dense = each.checked_mul(count)? == ring.end - ring.start;
        is_dense.then_some((index.index(), count, each))
    }

    /// The bytes of a view of a ring that takes `ring`, if it is a single buffer whose number is known, and nothing is
    /// between the buffers.
    pub(super) fn bytes(&self, view: Value<'_, '_>, ring: &Range<u64>) -> Option<Range<u64>> {
        let (index, count, each) = Self::index(view, ring)?;
        let number = u64::try_from(self.number(index)?).ok()?;
        (number < count).then(|| ring.start + number * each..ring.start + (number + 1) * each)
    }

    /// The turn of such a view, if a loop takes the buffers in turn. Its loop is a point.
    pub(super) fn turn(&self, view: Value<'_, '_>, ring: &Range<u64>) -> Option<Turn> {
        let (index, count, _) = Self::index(view, ring)?;
        let turn = self.turns.get(&key(index))?;
        (u64::from(turn.count) == count).then_some(*turn)
    }
}
