//! Sums of offsets that are computed once for several pointers.
//!
//! An access to a buffer takes a base pointer and a tensor of offsets. Where pointers are tensors, as when layouts are
//! chosen, offsets are added to each base by itself: `(p + a) + b` and `(q + a) + b`. Once the base pointers are taken
//! apart from the offsets ([`crate::buffer_ops`]) both add `b` to `a`, and one of the two additions is left over as a
//! common subexpression, as it is with `a + b` that the program computes. So the first such sum of a block has the
//! price of an addition, and the following ones have none.
//!
//! Expressions are compared by value numbering (Cocke 1970, "Global common subexpression elimination"): leaves and ops get
//! numbers, equal ones the same. Broadcasts and conversions have no number of their own, but sums are only equal if their shapes
//! and layouts are. While layouts are chosen there are none: where two such sums get different ones both are computed, and
//! the price does not know that.

use llopt_dialects::arith::AddIOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AddPtrOp, BroadcastOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk, key};
use llopt_target::{Feature, Target};
use melior::ir::{AttributeLike, OperationRef, Value, ValueLike};
use rustc_hash::{FxHashMap, FxHashSet};

use super::relation::is_cheap;
use crate::buffer_ops::is_taken_apart;

/// Bits of an offset that a buffer access adds itself.
const OFFSET_BITS: u32 = 32;

/// What a value is computed by; equal expressions have equal values.
#[derive(PartialEq, Eq, Hash)]
enum Expression {
    /// Something else than the following.
    Value(usize),
    /// An op that costs nothing: its name, shape and attributes, and the numbers of its operands.
    Cheap(String, Vec<i64>, Vec<(String, usize)>, Vec<usize>),
    /// The sum of two numbered expressions, the smaller number first, with its shape and its layout.
    Sum(Vec<i64>, Option<usize>, [usize; 2]),
}

/// The values of a function that are computed so far, each with its number.
#[derive(Default)]
struct Numbers {
    expressions: FxHashMap<Expression, usize>,
    values: FxHashMap<usize, usize>,
}

impl Numbers {
    fn of_expression(&mut self, expression: Expression) -> usize {
        let next = self.expressions.len();
        *self.expressions.entry(expression).or_insert(next)
    }

    fn of_value(&mut self, value: Value<'_, '_>) -> usize {
        match self.values.get(&key(value)) {
            Some(&number) => number,
            None => self.of_expression(Expression::Value(key(value))),
        }
    }

    /// Numbers the result of an op; answers the number if it is a sum of offsets.
    fn add<'c: 'a, 'a>(&mut self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        let result = operation.result_value(0)?;
        if let Some(terms) = terms(operation) {
            let [x, y] = terms.map(|term| self.of_value(term));
            let encoding = RankedTensor::of(result.r#type()).and_then(RankedTensor::encoding);
            let layout = encoding.map(|encoding| encoding.to_raw().ptr as usize);
            let sum = Expression::Sum(shape(result), layout, [x.min(y), x.max(y)]);
            let number = self.of_expression(sum);
            self.values.insert(key(result), number);
            return Some(number);
        }
        let number = if let Some(offset) = of_base(operation) {
            self.of_value(offset)
        } else if let Some(broadcast) = BroadcastOp::of(operation) {
            self.of_value(broadcast.src())
        } else if let Some(conversion) = ConvertLayoutOp::of(operation) {
            self.of_value(conversion.src())
        } else if is_cheap(operation) {
            let attributes = operation.attrs().into_iter();
            let attributes =
                attributes.map(|(name, it)| (name.to_owned(), it.to_raw().ptr as usize));
            let attributes = attributes.collect();
            let operands: Vec<Value> = operation.operand_values().collect();
            let operands = operands.into_iter().map(|it| self.of_value(it)).collect();
            let name = operation.name_str().to_owned();
            self.of_expression(Expression::Cheap(name, shape(result), attributes, operands))
        } else {
            return None;
        };
        self.values.insert(key(result), number);
        None
    }
}

fn shape(value: Value<'_, '_>) -> Vec<i64> {
    RankedTensor::of(value.r#type()).map_or_else(Vec::new, |tensor| tensor.shape())
}

fn is_offset(value: Value<'_, '_>) -> bool {
    RankedTensor::of(value.r#type()).is_some_and(|it| it.element().bit_width() == Some(OFFSET_BITS))
}

/// An addition to tensors of pointers that are taken apart from their base.
fn addition<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<AddPtrOp<'c, 'a>> {
    let result = operation.result_value(0)?;
    let add = AddPtrOp::of(operation).filter(|add| is_offset(add.offset()))?;
    is_taken_apart(result).then_some(add)
}

/// Whether the offset of an addition is the first one that is added to the base.
fn is_first(add: AddPtrOp<'_, '_>) -> bool {
    add.ptr().defining_op().is_some_and(is_cheap)
}

/// The offset of pointers that are a base and this one offset.
fn of_base<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    addition(operation)
        .filter(|&add| is_first(add))
        .map(AddPtrOp::offset)
}

/// The terms of a sum of offsets, or of pointers with offsets and another offset.
fn terms<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<[Value<'c, 'a>; 2]> {
    if let Some(sum) = AddIOp::of(operation).filter(|sum| is_offset(sum.lhs())) {
        return Some([sum.lhs(), sum.rhs()]);
    }
    let add = addition(operation).filter(|&add| !is_first(add))?;
    Some([add.ptr(), add.offset()])
}

/// The results of those sums of offsets in functions that repeat another one of their block.
pub(super) fn repeated(functions: &[OperationRef<'_, '_>], target: Target) -> FxHashSet<usize> {
    let mut repeated = FxHashSet::default();
    if !target.has(Feature::BufferOps) {
        return repeated;
    }
    for function in functions {
        let (mut numbers, mut known) = (Numbers::default(), FxHashSet::default());
        function.for_each_op(Walk::PreOrder, |operation| {
            let Some(number) = numbers.add(operation) else {
                return;
            };
            let block = operation
                .parent_block()
                .map(|block| block.to_raw().ptr as usize);
            if let Some(result) = operation.result_value(0)
                && !known.insert((block, number))
            {
                repeated.insert(key(result));
            }
        });
    }
    repeated
}
