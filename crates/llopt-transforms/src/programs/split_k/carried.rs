//! How a loop carries its values, and with which value a block's part of the iterations begins.
//!
//! A carried value is
//!
//! - the *same* in all iterations,
//! - moved by equal *steps*: `x' = x + d` with `d` from outside of the loop, also several times and for pointers. Then
//!   it is `x + start * d` in iteration `start`. Integers wrap, so this holds for them without conditions; offsets of
//!   pointers are multiplied in 64 bits;
//! - a *sum*: `x' = dot(a, b, x)`, `x' = x + y`, also several in a row, where `x` has no other use. Then the sum of the
//!   sums of all blocks, of which the first begins with `x` and the others with zero, is the result.

use llopt_dialects::arith::{self, AddFOp, AddIOp, SubIOp};
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::type_set::TypeSet;
use llopt_dialects::tables::types::{RankedTensor, class_of};
use llopt_dialects::tt::{AddPtrOp, SplatOp};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};

use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::view::For;
use crate::products::is_product;

/// The operand of a product that it adds to.
const ACCUMULATOR: usize = 2;

/// How a loop carries a value.
pub(super) enum Carried<'c, 'a> {
    /// It is the same in all iterations.
    Same,
    /// These operations move it, first to last.
    Steps(Vec<Step<'c, 'a>>),
    /// It is a sum, in which there may be a product.
    Sum { of_products: bool },
}

/// An operation that moves a value by one from outside of the loop.
pub(crate) struct Step<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    /// The position of the other value among its operands.
    by: usize,
}

impl<'c: 'a, 'a> Carried<'c, 'a> {
    /// How a loop carries the value at a position.
    ///
    /// # Errors
    /// In none of these ways, or its last value is used where only one block knows it.
    pub(super) fn of(of: For<'c, 'a>, index: usize) -> Result<Self, String> {
        let (argument, next) = (of.carried()[index], of.yielded()[index]);
        if argument == next {
            return Ok(Self::Same);
        }
        if let Some(steps) = steps(of, argument, next) {
            return match of.results()[index].has_uses() {
                true => Err(format!(
                    "the last value of {argument_name} is used after it",
                    argument_name = named(index)
                )),
                false => Ok(Self::Steps(steps)),
            };
        }
        let of_products = sum(of, argument, next)
            .ok_or_else(|| format!("{} is neither a sum nor moves by equal steps", named(index)))?;
        if zero(argument.r#type()).is_none() {
            return Err(format!(
                "{} is a sum of '{}'",
                named(index),
                argument.r#type()
            ));
        }
        Ok(Self::Sum { of_products })
    }

    /// Whether it is a sum of products.
    pub(super) fn sums_products(&self) -> bool {
        matches!(self, Self::Sum { of_products: true })
    }

    /// The value with which iteration `start` begins, in the block of this rank.
    pub(super) fn first(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        initial: Value<'c, 'a>,
        start: Value<'c, 'a>,
        rank: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        match self {
            Self::Same => initial,
            Self::Steps(steps) => steps.iter().fold(initial, |value, step| {
                step.times(rewriter, location, value, start)
            }),
            Self::Sum { .. } if fold::is_zero_constant(initial) => initial,
            Self::Sum { .. } => {
                let of = initial.r#type();
                let zeros = zero(of).expect("a sum has a zero");
                let zeros = constant(rewriter, location, of, zeros);
                let mut arithmetic = Arithmetic { rewriter, location };
                let none = arithmetic.constant(rank.r#type(), 0);
                let is_first = arithmetic.is_equal(rank, none);
                arithmetic.select(is_first, initial, zeros)
            }
        }
    }
}

/// A carried value in a message.
fn named(index: usize) -> String {
    format!("carried value {index}")
}

/// Zeros of a type that code adds, if it is one.
fn zero<'c>(of: Type<'c>) -> Option<melior::ir::Attribute<'c>> {
    const NUMBERS: TypeSet = TypeSet::F16
        .union(TypeSet::BF16)
        .union(TypeSet::F32)
        .union(TypeSet::F64)
        .union(TypeSet::I32)
        .union(TypeSet::I64);
    let element = RankedTensor::of(of)?.element();
    class_of(element)
        .intersects(NUMBERS)
        .then(|| fold::uniform(of, 0))
        .flatten()
}

fn constant<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    of: Type<'c>,
    value: melior::ir::Attribute<'c>,
) -> Value<'c, 'a> {
    let made = rewriter.create(
        arith::ConstantOp::NAME,
        location,
        &[],
        Some(&[of]),
        &[("value", value)],
    );
    made.expect(IN_CONTEXT)
        .result_value(0)
        .expect("it has one result")
}

/// The operations that move a carried value by values from outside of the loop, if it is moved so.
pub(crate) fn steps<'c: 'a, 'a>(
    of: For<'c, 'a>,
    argument: Value<'c, 'a>,
    next: Value<'c, 'a>,
) -> Option<Vec<Step<'c, 'a>>> {
    let mut steps = Vec::new();
    let mut value = next;
    while value != argument {
        let operation = value.defining_op().filter(|_| !of.is_outside(value))?;
        let [first, second] = [operation.operand_value(0)?, operation.operand_value(1)?];
        let is_sum = AddIOp::of(operation).is_some();
        let moves = is_sum || SubIOp::of(operation).is_some() || AddPtrOp::of(operation).is_some();
        let (moved, by) = match moves {
            true if of.is_outside(second) => (first, 1),
            true if is_sum && of.is_outside(first) => (second, 0),
            _ => return None,
        };
        steps.push(Step { operation, by });
        value = moved;
    }
    steps.reverse();
    Some(steps)
}

/// Whether a carried value is a sum, and one of products.
fn sum<'c: 'a, 'a>(of: For<'c, 'a>, argument: Value<'c, 'a>, next: Value<'c, 'a>) -> Option<bool> {
    let mut of_products = false;
    let mut value = argument;
    while value != next {
        let mut uses = value.uses();
        let used = uses.next()?;
        if uses.next().is_some() {
            return None;
        }
        let is_here = used.operation.parent_block() == Some(of.body());
        let adds = match is_product(used.operation) {
            true => used.operand == ACCUMULATOR,
            false => AddFOp::of(used.operation).is_some() || AddIOp::of(used.operation).is_some(),
        };
        if !is_here || !adds {
            return None;
        }
        of_products |= is_product(used.operation);
        value = used.operation.result_value(0)?;
    }
    // What is added comes from the loop: a product, or the other term of an addition.
    (value != argument && value.has_one_use()).then_some(of_products)
}

impl<'c: 'a, 'a> Step<'c, 'a> {
    /// The operation.
    pub(crate) fn operation(&self) -> OperationRef<'c, 'a> {
        self.operation
    }

    /// The value by which it moves another.
    pub(crate) fn by(&self) -> Value<'c, 'a> {
        let by = self.operation.operand_value(self.by);
        by.expect("it is one of its operands")
    }

    /// The operands of an operation that moves a value by this distance.
    pub(crate) fn operands(
        &self,
        value: Value<'c, 'a>,
        distance: Value<'c, 'a>,
    ) -> [Value<'c, 'a>; 2] {
        match self.by {
            0 => [distance, value],
            _ => [value, distance],
        }
    }

    /// A value after so many steps.
    pub(crate) fn times(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        value: Value<'c, 'a>,
        count: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let operation = self.operation;
        let is_pointer = AddPtrOp::of(operation).is_some();
        let by = multiple(rewriter, location, self.by(), count, is_pointer);
        let operands = self.operands(value, by);
        let made = rewriter.create(
            operation.name_str(),
            location,
            &operands,
            Some(&[value.r#type()]),
            &[],
        );
        made.expect(IN_CONTEXT)
            .result_value(0)
            .expect("it has one result")
    }
}

/// A multiple of an integer or of a tensor of integers, perhaps in 64 bits.
fn multiple<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    value: Value<'c, 'a>,
    count: Value<'c, 'a>,
    widens: bool,
) -> Value<'c, 'a> {
    let i64: Type<'c> = IntegerType::new(rewriter.context(), 64).into();
    let Some(tensor) = RankedTensor::of(value.r#type()) else {
        let mut arithmetic = Arithmetic { rewriter, location };
        let value = match widens {
            true => arithmetic.signed_as_type(value, i64),
            false => value,
        };
        let count = arithmetic.as_type(count, value.r#type());
        return arithmetic.multiply(value, count);
    };
    // One number for all elements is multiplied before it is spread.
    let scalar = SplatOp::defining(value).map(SplatOp::src).or_else(|| {
        let bits = arith::ConstantOp::defining(value)?.value()?.splat_bits()?;
        let number = attr::integer(tensor.element(), bits.cast_signed());
        Some(constant(rewriter, location, tensor.element(), number))
    });
    let spread = |rewriter: &mut Rewriter<'c, 'a>, number: Value<'c, 'a>| {
        let of = RankedTensor::get(&tensor.shape(), number.r#type(), tensor.encoding());
        let spread = rewriter.insert(SplatOp::build(location, of, number));
        spread.result_value(0).expect("it has one result")
    };
    if let Some(scalar) = scalar {
        let number = multiple(rewriter, location, scalar, count, widens);
        return spread(rewriter, number);
    }
    let mut arithmetic = Arithmetic { rewriter, location };
    let value = match widens {
        true => arithmetic.signed_as_type(value, tensor.with_element(i64)),
        false => value,
    };
    let element = match widens {
        true => i64,
        false => tensor.element(),
    };
    let count = arithmetic.as_type(count, element);
    let count = spread(rewriter, count);
    Arithmetic { rewriter, location }.multiply(value, count)
}
