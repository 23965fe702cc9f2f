//! The bytes of a single buffer of a ring, where its number is known.
//!
//! A pipelined loop takes the buffers of a ring in turn, by a number that it carries. Before the loop the numbers are
//! constants, but not written as such: copies of the loop's own arithmetic compute them. Two different buffers share no
//! byte, so accesses of them need no barrier. Within the loop a number is unknown, and an access is to the whole ring.

use std::collections::HashMap;
use std::ops::Range;

use llopt_dialects::arith::{AddIOp, CmpIOp, CmpIPredicate, ConstantOp, SelectOp};
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::MemDescIndexOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, key};
use llopt_plan::buffer::room;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::program::Point;

/// Numbers that are known, by value.
#[derive(Debug, Default)]
pub(super) struct Slots {
    known: HashMap<usize, i64>,
}

impl Slots {
    /// The numbers that the ops of a program compute from constants.
    pub(super) fn of(points: &[Point<'_, '_>]) -> Self {
        let mut slots = Self::default();
        for point in points {
            let number = slots.computed(point.operation);
            if let (Some(number), Some(result)) = (number, point.operation.result_value(0)) {
                slots.known.insert(key(result), number);
            }
        }
        slots
    }

    fn number(&self, value: Value<'_, '_>) -> Option<i64> {
        self.known.get(&key(value)).copied()
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

    /// The bytes of a view of a ring that takes `ring`, if it is a single buffer whose number is known, and nothing is
    /// between the buffers.
    pub(super) fn bytes(&self, view: Value<'_, '_>, ring: &Range<u64>) -> Option<Range<u64>> {
        let index = MemDescIndexOp::defining(view)?;
        // The ring itself, not a part of it.
        llopt_dialects::ttg::LocalAllocOp::defining(index.src())?;
        let of = MemDesc::of(index.src().r#type())?;
        let count = u64::try_from(*of.shape().first()?).ok()?;
        let number = u64::try_from(self.number(index.index())?).ok()?;
        let each = room(MemDesc::of(view.r#type())?).ok()?.bytes;
        let is_dense = each.checked_mul(count)? == ring.end - ring.start;
        (number < count && is_dense)
            .then(|| ring.start + number * each..ring.start + (number + 1) * each)
    }
}
