//! What a combine region costs, whether the hardware has it as one instruction for a whole warp, and whether it gives
//! the same bits when its two arguments change places.
//!
//! The last is decided by value numbering. The operations of the region are numbered twice in one table, with the
//! arguments `(a, b)` and with `(b, a)`; an expression has the number of an equal one that was seen before, whatever
//! the order of its operands if it commutes. If each result has the same number both times, the region commutes. A
//! float sum commutes by itself, but not where one of its operands is a product: the back end may fuse the two, and
//! `fma(a, b, c * d)` rounds otherwise than `fma(c, d, a * b)`. Whatever cannot be decided does not commute, which
//! costs instructions only ([`super::warp`]).

use std::collections::HashMap;

use llopt_dialects::{Op, arith};
use llopt_mlir::ir::{OperationExt, ValueExt, key};
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, RegionLike, RegionRef, Value, ValueLike};

use super::kind::Kind;
pub use super::kind::WarpCombination;
use crate::elementwise::instructions;

/// How a combine region combines two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combination {
    /// The approximate number of instructions.
    pub instructions: f32,
    /// The operation, if it is a single one that hardware may apply over the lanes of a warp.
    pub in_hardware: Option<WarpCombination>,
    /// Whether it is known to give the same bits when its two arguments change places.
    pub is_commutative: bool,
}

/// The combination of tests: a sum, of which hardware knows nothing.
#[cfg(test)]
pub(crate) const SUM: Combination = Combination {
    instructions: 1.0,
    in_hardware: None,
    is_commutative: true,
};

impl Combination {
    /// The combination that a region computes.
    #[must_use]
    pub fn of(region: RegionRef<'_, '_>) -> Self {
        Self {
            instructions: all_instructions(region),
            in_hardware: single_combination(region),
            is_commutative: is_commutative(region),
        }
    }
}

/// The approximate number of instructions of one combination.
fn all_instructions(region: RegionRef<'_, '_>) -> f32 {
    let mut all = 0.0;
    let mut next_block = region.first_block();
    while let Some(block) = next_block {
        let mut next = block.first_operation();
        while let Some(op) = next {
            all += instructions(op);
            next = op.next_in_block();
        }
        next_block = block.next_in_region();
    }
    all
}

/// The operation of a region that is a single one on its two arguments.
fn single_operation<'c, 'a>(region: RegionRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let block = region.first_block()?;
    let op = block.first_operation()?;
    let end = op.next_in_block()?;
    let arguments =
        [block.argument(0).ok()?, block.argument(1).ok()?].map(|argument| argument.to_raw().ptr);
    let mut operands =
        [op.operand(0).ok()?, op.operand(1).ok()?].map(|operand| operand.to_raw().ptr);
    if operands != arguments {
        operands.reverse();
    }
    let is_it = operands == arguments
        && op.operand_count() == 2
        && end.next_in_block().is_none()
        && end.operand_count() == 1
        && end.operand(0).ok()?.to_raw().ptr == op.result(0).ok()?.to_raw().ptr;
    is_it.then_some(op)
}

/// The combination of a region that is a single operation on its two arguments.
fn single_combination(region: RegionRef<'_, '_>) -> Option<WarpCombination> {
    let op = single_operation(region)?;
    match Kind::of(arith::Op::of(op)?) {
        Kind::Integer(combination) => Some(combination),
        Kind::Product
        | Kind::FloatProduct
        | Kind::FloatSum
        | Kind::FloatMaximum
        | Kind::FloatMinimum
        | Kind::FloatExtremum
        | Kind::Quotient
        | Kind::Other => None,
    }
}

/// An operation with numbered operands: its name, its attributes and types as text, its operands.
type Expression = (String, String, Vec<usize>);

/// Whether each result of a region has the same bits when its two halves of arguments change places.
fn is_commutative(region: RegionRef<'_, '_>) -> bool {
    let Some(block) = region.first_block() else {
        return false;
    };
    // Most regions are sums or maxima, and need no numbers.
    if single_operation(region).is_some_and(|op| is_function(op) && commutes(op)) {
        return block.next_in_region().is_none();
    }
    let half = block.argument_count() / 2;
    let mut known = HashMap::new();
    let in_order = results(block, |argument| argument, &mut known);
    let exchanged = results(
        block,
        |argument| (argument + half) % (2 * half.max(1)),
        &mut known,
    );
    block.next_in_region().is_none() && in_order.is_some() && in_order == exchanged
}

/// The numbers of what a block ends with, where its arguments have the given numbers; `None` if it has operations that
/// are not functions of their operands.
fn results(
    block: BlockRef<'_, '_>,
    argument: impl Fn(usize) -> usize,
    known: &mut HashMap<Expression, usize>,
) -> Option<Vec<usize>> {
    let count = block.argument_count();
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for i in 0..count {
        numbers.insert(key(block.argument(i).ok()?.into()), argument(i));
    }
    let mut next = block.first_operation();
    while let Some(op) = next {
        next = op.next_in_block();
        // What is made outside of the region is the same both times.
        let mut operands: Vec<usize> = op
            .operand_values()
            .map(|value| {
                let outside = key(value);
                *numbers.entry(outside).or_insert(outside)
            })
            .collect();
        if next.is_none() {
            return Some(operands);
        }
        if !is_function(op) {
            return None;
        }
        if commutes(op) {
            operands.sort_unstable();
        }
        let name = op.name().as_string_ref().as_str().ok()?.to_owned();
        let attributes: Vec<String> = op
            .attributes()
            .map(|(name, value)| {
                format!(
                    "{} = {value}",
                    name.as_string_ref().as_str().unwrap_or_default()
                )
            })
            .collect();
        let text = format!("{attributes:?} {}", op.result_value(0)?.r#type());
        let number = count + known.len();
        let number = *known.entry((name, text, operands)).or_insert(number);
        numbers.insert(key(op.result_value(0)?), number);
    }
    None
}

/// Whether an operation is a function of its operands, with one result.
fn is_function(op: OperationRef<'_, '_>) -> bool {
    op.result_count() == 1
        && op.region_count() == 0
        && matches!(Op::of(op), Some(Op::Arith(_) | Op::Math(_)))
}

/// Whether an operation gives the same bits when its two operands change places.
fn commutes(op: OperationRef<'_, '_>) -> bool {
    let Some(kind) = arith::Op::of(op).map(Kind::of) else {
        return false;
    };
    match kind {
        Kind::FloatSum => !op.operand_values().any(may_be_fused),
        Kind::Integer(_)
        | Kind::Product
        | Kind::FloatProduct
        | Kind::FloatMaximum
        | Kind::FloatMinimum
        | Kind::FloatExtremum => true,
        Kind::Quotient | Kind::Other => false,
    }
}

/// Whether a value is a product, which the back end may fuse with a sum.
fn may_be_fused(value: Value<'_, '_>) -> bool {
    match value.defining_op().and_then(arith::Op::of) {
        Some(arith::Op::ExtF(wider)) => may_be_fused(wider.r#in()),
        Some(op) => Kind::of(op) == Kind::FloatProduct,
        None => false,
    }
}
