//! The loop of groups of iterations.

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{BroadcastOp, ExpandDimsOp, MakeRangeOp, ReduceOp, SplatOp};
use llopt_mlir::ir::{OperationExt, attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, Operation, OperationRef, Type, Value, ValueLike};

use super::Body;
use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::clone::Mapping;
use crate::loops::unroll::{GROUPED, RARE, STAGES, asked_stages, group};

/// Makes groups of so many iterations of a loop, which remains for the others. It has so many stages unless it says so itself.
pub(super) fn write<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    body: &Body<'c, 'a>,
    (rows, stages): (u32, u32),
) {
    let (of, location) = (body.of, body.of.operation().loc());
    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let mut condition: Option<Value> = None;
    for stored in &body.stored {
        let own = stored.condition(&mut arithmetic, of);
        condition = Some(match condition {
            Some(others) => arithmetic.both(others, own),
            None => own,
        });
    }
    let asked = asked_stages(of.operation());
    let asked = asked.unwrap_or(stages);
    let step = of.step();
    let grouped = group(rewriter, of, rows, condition, |rewriter, main| {
        let mut lifted = Lifted {
            rows: i64::from(rows),
            location,
            tensors: HashMap::new(),
            scalars: Mapping::new(),
        };
        lifted.number(rewriter, (of.number(), main.number()), step);
        for operation in &body.operations {
            lifted.copy(rewriter, *operation);
        }
        Vec::new()
    });
    let Some(grouped) = grouped else {
        return;
    };
    let context = rewriter.context();
    let number = |count: u32| attr::i32(context, count.cast_signed());
    let main = grouped.main.operation();
    main.set_discardable_attr(GROUPED, number(rows));
    // As many rows are ahead as were before, or a group if any were.
    let groups = asked.div_ceil(rows).max(asked.min(2));
    main.set_attr(STAGES, number(groups));
    if let Some(rest) = grouped.rest {
        rest.operation().set_attr(STAGES, number(1));
        rest.operation()
            .set_discardable_attr(RARE, attr::unit(context));
    }
}

/// Copies of operations for many iterations at a time.
struct Lifted<'c, 'a> {
    rows: i64,
    location: Location<'c>,
    /// What there is in place of values that differ from iteration to iteration.
    tensors: HashMap<usize, Value<'c, 'a>>,
    /// The others.
    scalars: Mapping<'c, 'a>,
}

impl<'c: 'a, 'a> Lifted<'c, 'a> {
    /// The numbers of the iterations of a group, of which the first one is given.
    fn number(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        (number, first): (Value<'c, 'a>, Value<'c, 'a>),
        step: Value<'c, 'a>,
    ) {
        let rows = self.type_of(number.r#type());
        let insert = |rewriter: &mut Rewriter<'c, 'a>, made| result(rewriter, made);
        let range = MakeRangeOp::build(self.location, rows, 0, self.rows);
        let range = insert(rewriter, range);
        let [first, step] = [first, step].map(|scalar| {
            let splat = SplatOp::build(self.location, rows, scalar);
            insert(rewriter, splat)
        });
        let location = self.location;
        let mut arithmetic = Arithmetic { rewriter, location };
        let distances = arithmetic.multiply(range, step);
        let numbers = arithmetic.add(first, distances);
        self.tensors.insert(key(number), numbers);
    }

    /// The type of as many values of a type.
    fn type_of(&self, of: Type<'c>) -> Type<'c> {
        match RankedTensor::of(of) {
            Some(tensor) => {
                let shape: Vec<i64> = std::iter::once(self.rows).chain(tensor.shape()).collect();
                RankedTensor::get(&shape, tensor.element(), None)
            }
            None => RankedTensor::get(&[self.rows], of, None),
        }
    }

    /// A value for all iterations.
    fn get(&self, rewriter: &mut Rewriter<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        if let Some(known) = self.tensors.get(&key(value)) {
            return *known;
        }
        let value = self.scalars.get(value);
        let repeated = self.type_of(value.r#type());
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return result(rewriter, SplatOp::build(self.location, repeated, value));
        };
        let row = RankedTensor::get(&[1, tensor.shape()[0]], tensor.element(), None);
        let row = result(rewriter, ExpandDimsOp::build(self.location, row, value, 0));
        result(rewriter, BroadcastOp::build(self.location, repeated, row))
    }

    /// The value of each iteration at all places of a row.
    fn along_rows(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        numbers: Value<'c, 'a>,
        row: Type<'c>,
    ) -> Value<'c, 'a> {
        let tensor = RankedTensor::of(numbers.r#type()).expect("it is a tensor");
        let column = RankedTensor::get(&[self.rows, 1], tensor.element(), None);
        let column = result(
            rewriter,
            ExpandDimsOp::build(self.location, column, numbers, 1),
        );
        let repeated = self.type_of(row);
        result(
            rewriter,
            BroadcastOp::build(self.location, repeated, column),
        )
    }

    fn copy(&mut self, rewriter: &mut Rewriter<'c, 'a>, operation: OperationRef<'c, 'a>) {
        let operands: Vec<Value> = operation.operand_values().collect();
        if !operands
            .iter()
            .any(|it| self.tensors.contains_key(&key(*it)))
        {
            self.scalars.copy(rewriter, operation);
            return;
        }
        let operands = operands.into_iter().map(|it| self.get(rewriter, it));
        let operands: Vec<Value> = operands.collect();
        if let Some(splat) = SplatOp::of(operation) {
            let of = splat.result();
            let rows = self.along_rows(rewriter, operands[0], of.r#type());
            self.tensors.insert(key(of), rows);
            return;
        }
        let copy = self.scalars.copy_apart(rewriter, operation);
        for (index, operand) in operands.into_iter().enumerate() {
            copy.set_operand_value(index, operand);
        }
        if ReduceOp::of(operation).is_some() {
            copy.set_attr("axis", attr::i32(rewriter.context(), 1));
        }
        for (own, made) in operation.result_values().zip(copy.result_values()) {
            made.set_type(self.type_of(own.r#type()));
            self.tensors.insert(key(own), made);
        }
        // What the program promises of a row is not known of the tile.
        if operation.region_refs().len() == 0 {
            for (name, _) in copy.discardable_attrs() {
                copy.remove_attr(name);
            }
        }
    }
}

fn result<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, made: Operation<'c>) -> Value<'c, 'a> {
    let made = rewriter.insert(made);
    made.result_value(0).expect(IN_CONTEXT)
}
