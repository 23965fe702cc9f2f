//! The cost of a combine region: how many instructions it takes, and whether the hardware has it as one instruction
//! for a whole warp.

use llopt_dialects::arith;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{RegionLike, RegionRef, ValueLike};

use crate::elementwise::instructions;

/// A combination of integers that hardware may do over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpCombination {
    /// Sum modulo 2^32.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The least signed number.
    MinSigned,
    /// The greatest signed number.
    MaxSigned,
    /// The least unsigned number.
    MinUnsigned,
    /// The greatest unsigned number.
    MaxUnsigned,
}

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

/// What an op of `arith` is, as a combination of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of integers, and one that hardware may do over the lanes of a warp.
    Integer(WarpCombination),
    /// The product of integers.
    Product,
    /// The sum of floats.
    FloatSum,
    /// The greatest float, or NaN if there is one.
    FloatMaximum,
    /// The least float, or NaN if there is one.
    FloatMinimum,
    /// The greatest or the least float that is a number.
    FloatExtremum,
    /// A quotient or a remainder.
    Quotient,
    /// Anything else: not of two values, or not commutative.
    Other,
}

impl Kind {
    /// The kind of an op.
    #[must_use]
    pub fn of(op: arith::Op<'_, '_>) -> Self {
        use arith::Op;
        match op {
            Op::AddI(_) => Self::Integer(WarpCombination::Add),
            Op::AndI(_) => Self::Integer(WarpCombination::And),
            Op::OrI(_) => Self::Integer(WarpCombination::Or),
            Op::XOrI(_) => Self::Integer(WarpCombination::Xor),
            Op::MinSI(_) => Self::Integer(WarpCombination::MinSigned),
            Op::MaxSI(_) => Self::Integer(WarpCombination::MaxSigned),
            Op::MinUI(_) => Self::Integer(WarpCombination::MinUnsigned),
            Op::MaxUI(_) => Self::Integer(WarpCombination::MaxUnsigned),
            Op::MulI(_) => Self::Product,
            Op::AddF(_) => Self::FloatSum,
            Op::MaximumF(_) => Self::FloatMaximum,
            Op::MinimumF(_) => Self::FloatMinimum,
            Op::MaxNumF(_) | Op::MinNumF(_) => Self::FloatExtremum,
            Op::DivF(_)
            | Op::DivSI(_)
            | Op::DivUI(_)
            | Op::CeilDivSI(_)
            | Op::CeilDivUI(_)
            | Op::FloorDivSI(_)
            | Op::RemF(_)
            | Op::RemSI(_)
            | Op::RemUI(_) => Self::Quotient,
            Op::SubF(_)
            | Op::MulF(_)
            | Op::NegF(_)
            | Op::SubI(_)
            | Op::ShLI(_)
            | Op::ShRSI(_)
            | Op::ShRUI(_)
            | Op::CmpF(_)
            | Op::CmpI(_)
            | Op::Select(_)
            | Op::Constant(_)
            | Op::Bitcast(_)
            | Op::ExtF(_)
            | Op::ExtSI(_)
            | Op::ExtUI(_)
            | Op::TruncF(_)
            | Op::TruncI(_)
            | Op::ScalingExtF(_)
            | Op::ScalingTruncF(_)
            | Op::SIToFP(_)
            | Op::UIToFP(_)
            | Op::FPToSI(_)
            | Op::FPToUI(_)
            | Op::IndexCast(_)
            | Op::IndexCastUI(_)
            | Op::AddUIExtended(_)
            | Op::MulSIExtended(_)
            | Op::MulUIExtended(_) => Self::Other,
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
