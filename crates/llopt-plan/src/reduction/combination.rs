//! What a combine region takes: how many instructions, and whether the hardware has it as one for a whole warp.

use llopt_mlir::ir::OperationExt;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionLike, RegionRef, ValueLike};

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

/// What two values become one by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combination {
    /// Instructions, about.
    pub instructions: f32,
    /// What it is if it is a single operation that hardware may do over the lanes of a warp.
    pub in_hardware: Option<WarpCombination>,
}

impl Combination {
    /// What a combine region does.
    #[must_use]
    pub fn of(region: RegionRef<'_, '_>) -> Self {
        Self {
            instructions: all_instructions(region),
            in_hardware: single_combination(region),
        }
    }
}

/// Instructions that one op stands for, about: a quotient and a function of a real variable take several.
fn instructions(op: OperationRef<'_, '_>) -> f32 {
    const SEVERAL: f32 = 10.0;
    let name = op.name_str();
    let divides = ["div", "rem"].iter().any(|word| name.contains(word));
    if divides || name.starts_with("math.") {
        SEVERAL
    } else {
        1.0
    }
}

/// Instructions of one combination, about.
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
    Some(match op.name_str() {
        "arith.addi" => WarpCombination::Add,
        "arith.andi" => WarpCombination::And,
        "arith.ori" => WarpCombination::Or,
        "arith.xori" => WarpCombination::Xor,
        "arith.minsi" => WarpCombination::MinSigned,
        "arith.maxsi" => WarpCombination::MaxSigned,
        "arith.minui" => WarpCombination::MinUnsigned,
        "arith.maxui" => WarpCombination::MaxUnsigned,
        _ => return None,
    })
}
