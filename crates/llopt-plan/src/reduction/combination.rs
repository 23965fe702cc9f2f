//! The cost of a combine region: how many instructions it takes, and whether the hardware has it as one instruction
//! for a whole warp.

use llopt_dialects::arith;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{RegionLike, RegionRef, ValueLike};

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
}

impl Combination {
    /// The combination that a region computes.
    #[must_use]
    pub fn of(region: RegionRef<'_, '_>) -> Self {
        Self {
            instructions: all_instructions(region),
            in_hardware: single_combination(region),
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

/// The combination of a region that is a single operation on its two arguments.
fn single_combination(region: RegionRef<'_, '_>) -> Option<WarpCombination> {
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
        && end.operand_count() == 1
        && end.operand(0).ok()?.to_raw().ptr == op.result(0).ok()?.to_raw().ptr;
    if !is_it {
        return None;
    }
    match Kind::of(arith::Op::of(op)?) {
        Kind::Integer(combination) => Some(combination),
        Kind::Product
        | Kind::FloatSum
        | Kind::FloatMaximum
        | Kind::FloatMinimum
        | Kind::FloatExtremum
        | Kind::Quotient
        | Kind::Other => None,
    }
}
