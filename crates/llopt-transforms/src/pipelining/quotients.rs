//! Quotients and remainders that the addresses of loads depend on, in iterations ahead.
//!
//! One counter may number several things, as the taps and the channels of a convolution. Loads go some iterations ahead, and
//! an iteration ahead may be one that the program never executes. There a divisor may be zero, or the quotient out of range,
//! for which a division has no meaning. So it divides by one there:
//!
//! ```text
//! for step …                              for step …
//!   tap = step / channels                   by = channels == 0 or step / channels overflows ? 1 : channels
//!   a = load A[tap …]                       tap = step / by
//!                                           a = load A[tap …]
//! ```
//!
//! Wherever the division has a meaning, it is the same. In the branches of a conditional, too: a loop over the iterations of several
//! programs computes the place of a program where its first iteration comes. This is for numbers that all threads share: of tensors it would hide
//! what is known of the elements of an access, that a divisor has factors in common with them.

use llopt_dialects::arith::{DivSIOp, DivUIOp, RemSIOp, RemUIOp};
use llopt_dialects::scf::{IfOp, YieldOp};
use llopt_mlir::ir::{OperationExt, Walk, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{OperationRef, Value, ValueLike};

use super::loads;
use crate::loops::builder::Arithmetic;
use crate::loops::needs::maker;
use crate::loops::view::For;

/// The attribute of a division that has a meaning for all operands.
const DEFINED: &str = "pipeline.defined";

/// Whether an operation without effects may be executed in iterations that the program does not execute.
/// A conditional may be if all may that its branches consist of.
pub(super) fn may_be_ahead(operation: OperationRef<'_, '_>) -> bool {
    if IfOp::of(operation).is_none() {
        return operation.is_speculatable() || operation.discardable_attr(DEFINED).is_some();
    }
    let mut is_possible = true;
    operation.for_each_op(Walk::PreOrder, |inner| {
        let is_part = IfOp::of(inner).is_some() || inner.name_str() == YieldOp::NAME;
        is_possible &= is_part || may_be_ahead(inner);
    });
    is_possible
}

/// Gives a meaning to all divisions that the addresses of a loop's loads depend on.
pub(super) fn define<'c: 'a, 'a>(of: For<'c, 'a>) {
    let (carried, yielded) = (of.carried(), of.yielded());
    let mut queue: Vec<Value> = loads::of_products(of, &loads::all_products(of))
        .into_iter()
        .flat_map(loads::address_operands)
        .collect();
    let mut seen: Vec<OperationRef> = Vec::new();
    let mut followed = vec![false; carried.len()];
    while let Some(value) = queue.pop() {
        if let Some(index) = carried.iter().position(|argument| *argument == value) {
            if !std::mem::replace(&mut followed[index], true) {
                queue.push(yielded[index]);
            }
        } else if let Some(operation) =
            maker(of, value).filter(|operation| !seen.contains(operation))
        {
            seen.push(operation);
            operation.for_each_op(Walk::PreOrder, |inner| queue.extend(inner.operand_values()));
        }
    }
    let mut rewriter = Rewriter::new(of.operation().ctx());
    for operation in seen {
        let mut undefined: Vec<OperationRef> = Vec::new();
        operation.for_each_op(Walk::PreOrder, |inner| {
            if !inner.is_speculatable() {
                undefined.push(inner);
            }
        });
        for operation in undefined {
            divide_safely(&mut rewriter, operation);
        }
    }
}

/// Lets a division of numbers divide by one where it has no meaning.
fn divide_safely<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, operation: OperationRef<'c, 'a>) {
    let signed = DivSIOp::of(operation).is_some() || RemSIOp::of(operation).is_some();
    let unsigned = DivUIOp::of(operation).is_some() || RemUIOp::of(operation).is_some();
    let operands: Vec<Value> = operation.operand_values().collect();
    let [dividend, divisor] = operands[..] else {
        return;
    };
    let number = divisor.r#type();
    let width = IntegerType::try_from(number).map(|integer| integer.width());
    let Some(width @ 1..=64) = width.ok().filter(|_| signed || unsigned) else {
        return;
    };
    rewriter.set_before(operation);
    let location = operation.loc();
    let mut arithmetic = Arithmetic { rewriter, location };
    let one = arithmetic.constant(number, 1);
    let zero = arithmetic.constant(number, 0);
    let mut undefined = arithmetic.is_equal(divisor, zero);
    if signed {
        let least = arithmetic.constant(number, i64::MIN >> (64 - width));
        let minus_one = arithmetic.constant(number, -1);
        let is_least = arithmetic.is_equal(dividend, least);
        let negates = arithmetic.is_equal(divisor, minus_one);
        let overflows = arithmetic.both(is_least, negates);
        undefined = arithmetic.either(undefined, overflows);
    }
    let by = arithmetic.select(undefined, one, divisor);
    operation.set_operand_value(1, by);
    operation.set_discardable_attr(DEFINED, attr::unit(operation.ctx()));
}
