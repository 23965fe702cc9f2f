//! The loop of wide iterations.

use std::collections::HashMap;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::MakeRangeOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith as build;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};

use super::axes::{Relation, is_source, shape};
use super::proof::{Counter, Proof};
use super::terms::FAR;
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;
use crate::loops::needs::{maker, needs};
use crate::loops::unroll::{Unrolled, group};
use crate::loops::view::For;

/// Iterations of a loop that become one.
pub(super) const FACTOR: u32 = 2;

/// Makes wide iterations of pairs of those of a loop, which remains for the last one, and for numbers that are not as the
/// proof assumes. `None`, without a change, if it has only one iteration.
pub(super) fn widen<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    proof: &Proof<'c, 'a>,
) -> Option<Unrolled<'c, 'a>> {
    let location = of.operation().loc();
    rewriter.set_before(of.operation());
    let mut conditions = Vec::new();
    for number in &proof.assumed.not_negative {
        conditions.push(is_not_negative(rewriter, *number, location)?);
    }
    for counter in &proof.assumed.far {
        conditions.push(stays_far(rewriter, of, *counter, location));
    }
    let mut arithmetic = Arithmetic { rewriter, location };
    let both = |one, other| arithmetic.both(one, other);
    let condition = conditions.into_iter().reduce(both);
    group(rewriter, of, FACTOR, condition, |rewriter, main| {
        let mut body = Body {
            of,
            proof,
            main,
            mapping: Mapping::iteration(of, main.number(), &main.carried()),
            sources: HashMap::new(),
        };
        body.write(rewriter)
    })
}

/// Whether a number of floating point is zero or more.
fn is_not_negative<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    number: Value<'c, 'a>,
    location: Location<'c>,
) -> Option<Value<'c, 'a>> {
    let context = rewriter.context();
    let zero = attr::float(context, number.r#type(), 0.0);
    let zero = rewriter.insert(build::constant(context, zero, location));
    let zero = zero.result_value(0)?;
    let predicate = build::CmpfPredicate::Oge;
    let compared = rewriter.insert(build::cmpf(context, predicate, number, zero, location));
    compared.result_value(0)
}

/// Whether a counter is still far from the greatest number of 32 bits when a loop ends.
fn stays_far<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    counter: Counter,
    location: Location<'c>,
) -> Value<'c, 'a> {
    let wide: Type<'c> = IntegerType::new(rewriter.context(), 64).into();
    let mut arithmetic = Arithmetic { rewriter, location };
    let upper = arithmetic.signed_as_type(of.upper(), wide);
    let last = match counter {
        Counter::Number => upper,
        Counter::Carried(index, times) => {
            let lower = arithmetic.signed_as_type(of.lower(), wide);
            let times = arithmetic.constant(wide, times);
            let distance = arithmetic.subtract(upper, lower);
            let grown = arithmetic.multiply(distance, times);
            let first = arithmetic.signed_as_type(of.initial()[index], wide);
            arithmetic.add(first, grown)
        }
    };
    let most = arithmetic.constant(wide, i64::from(i32::MAX) - 2 * FAR);
    arithmetic.is_below(last, most, false)
}

/// The type of a tensor with another extent along a dimension.
fn resized<'c>(value: Value<'c, '_>, dim: usize, extent: i64) -> Type<'c> {
    let Some(tensor) = RankedTensor::of(value.r#type()) else {
        return value.r#type();
    };
    let mut shape = tensor.shape();
    shape[dim] = extent;
    RankedTensor::get(&shape, tensor.element(), tensor.encoding())
}

/// The body of the loop of wide iterations, while it is written.
struct Body<'p, 'c, 'a> {
    of: For<'c, 'a>,
    proof: &'p Proof<'c, 'a>,
    main: For<'c, 'a>,
    mapping: Mapping<'c, 'a>,
    /// Wide tensors in place of those that are tensors of their own where they are used, by the dimension that walks.
    sources: HashMap<(usize, usize), Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Body<'_, 'c, 'a> {
    fn extent(&self) -> i64 {
        self.proof.extent() * i64::from(FACTOR)
    }

    fn write(&mut self, rewriter: &mut Rewriter<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let (of, location) = (self.of, self.of.operation().loc());
        for operation in of.operations() {
            self.copy(rewriter, operation);
        }
        let wide: Vec<Value> = of
            .yielded()
            .into_iter()
            .map(|own| self.mapping.get(own))
            .collect();
        // The values that are only advanced are advanced once more.
        let number = Arithmetic { rewriter, location }.add(self.main.number(), of.step());
        let mut again = Mapping::iteration(of, number, &wide);
        let makers = of.yielded().into_iter().zip(&self.proof.advanced);
        let makers =
            makers.filter_map(|(own, is_advanced)| maker(of, own).filter(|_| *is_advanced));
        let makers: Vec<OperationRef> = makers.collect();
        let mut needed = makers.clone();
        for last in makers {
            needed.extend(needs(of, last));
        }
        let operations = of.operations().into_iter();
        for operation in operations.filter(|operation| needed.contains(operation)) {
            again.copy(rewriter, operation);
        }
        let both = of.yielded().into_iter().zip(wide).zip(&self.proof.advanced);
        both.map(|((own, wide), is_advanced)| if *is_advanced { again.get(own) } else { wide })
            .collect()
    }

    /// Copies an operation, with more elements along the axis that walks.
    fn copy(&mut self, rewriter: &mut Rewriter<'c, 'a>, operation: OperationRef<'c, 'a>) {
        let (axes, walking) = (&self.proof.axes, self.proof.walking);
        let mut wide = Vec::new();
        for (index, value) in operation.operand_values().enumerate() {
            let own = axes.of_operand(operation, index);
            let dim = own.iter().position(|axis| *axis == walking);
            if let Some(dim) = dim.filter(|_| axes.is_apart(value)) {
                wide.push((index, value, dim));
            }
        }
        let wide: Vec<(usize, Value)> = wide
            .into_iter()
            .map(|(index, value, dim)| (index, self.source(rewriter, value, dim)))
            .collect();
        let copy = self.mapping.copy(rewriter, operation);
        for (index, value) in wide {
            copy.set_operand_value(index, value);
        }
        if is_source(operation) {
            return;
        }
        for (own, result) in operation.result_values().zip(copy.result_values()) {
            let own = self.proof.axes.of_value(own);
            if let Some(dim) = own.iter().position(|axis| *axis == walking) {
                result.set_type(resized(result, dim, self.extent()));
                // What the program promises of the whole tensor may name longer runs than there are now.
                if operation.region_refs().len() == 0 {
                    for (name, _) in copy.discardable_attrs() {
                        copy.remove_attr(name);
                    }
                }
            }
        }
    }

    /// The wide tensor in place of one that is a tensor of its own where it is used. What is made before the loop is made
    /// there.
    fn source(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        value: Value<'c, 'a>,
        dim: usize,
    ) -> Value<'c, 'a> {
        if let Some(known) = self.sources.get(&(key(value), dim)) {
            return *known;
        }
        let is_outside = self.of.is_outside(value);
        let made = match is_outside {
            true => rewriter.at(|rewriter| {
                rewriter.set_before(self.main.operation());
                self.remade(rewriter, value, dim)
            }),
            false => self.remade(rewriter, value, dim),
        };
        self.sources.insert((key(value), dim), made);
        made
    }

    fn remade(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        value: Value<'c, 'a>,
        dim: usize,
    ) -> Value<'c, 'a> {
        let Some(made) = value.defining_op() else {
            return value;
        };
        let wide = resized(value, dim, self.extent());
        if let Some(range) = MakeRangeOp::of(made) {
            let (start, extent) = (range.start(), self.extent());
            let range = MakeRangeOp::build(made.loc(), wide, start, start + extent);
            return rewriter.insert(range).result_value(0).unwrap_or(value);
        }
        let relation = Relation::of(made);
        let operands: Vec<Value> = made.operand_values().collect();
        let mut others = Vec::new();
        for (index, operand) in operands
            .into_iter()
            .enumerate()
            .filter(|_| !is_source(made))
        {
            let own = shape(operand);
            let from = match &relation {
                Relation::ExpandsAt(axis) => dim - usize::from(dim > *axis),
                Relation::Permutes(order) => order.get(dim).copied().unwrap_or(dim),
                _ => dim,
            };
            let has_axis = own.get(from) == shape(value).get(dim);
            if has_axis {
                others.push((index, self.source(rewriter, operand, from)));
            }
        }
        let copy = self.mapping.copy_apart(rewriter, made);
        for (index, operand) in others {
            copy.set_operand_value(index, operand);
        }
        for (name, _) in copy.discardable_attrs() {
            copy.remove_attr(name);
        }
        let constant = ConstantOp::of(made).and_then(ConstantOp::value);
        let bits = constant.and_then(AttributeExt::splat_bits);
        if let Some(elements) = bits.and_then(|bits| attr::splat(wide, bits)) {
            copy.set_attr("value", elements);
        }
        let Some(result) = copy.result_value(0) else {
            return value;
        };
        result.set_type(wide);
        result
    }
}
