//! `--sink-loads`: loads from global memory move to the first use of their data, where registers are scarce.
//!
//! A kernel that loads all its tensors at the top has all of them in registers while it converts and combines the first
//! ones:
//!
//! ```text
//!   load x (512 registers)            load mean
//!   load mean                         convert mean
//!   convert mean              →       load x
//!   subtract mean of x                subtract mean of x
//! ```
//!
//! A conversion through shared memory and a reduction contain a barrier, past which an assembler moves nothing. So conversions
//! with few registers, as of one number for each row, move up to what they convert. Behind them elements can be loaded, computed
//! with and combined one after the other (for NVIDIA see `demand_order` of code generation).
//!
//! Only in blocks with too many live registers, since a load that is issued late is waited for, and not in loops. Loads move behind what
//! computes and what reads, not behind what may write memory or waits for other threads.

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tt::LoadOp;
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::late_operands::{BESIDE, disturbs, is_scarce};
use llopt_plan::plans::Plans;
use melior::ir::{BlockRef, OperationRef};

use super::live::{Live, threads, words};
use crate::allocation::plans_of;
use crate::late_operands::{Crossing, crossing};

/// The pass.
pub static SINK: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "sink-loads",
        "load from global memory where the data are used, if registers are scarce",
        |module, run| {
            let plans = plans_of(module, run)?;
            let mut blocks: Vec<BlockRef<'_, '_>> = Vec::new();
            module.for_each_op(Walk::PreOrder, |operation| {
                let block = LoadOp::of(operation).and_then(|_| operation.parent_block());
                let block = block.filter(|block| !is_in_loop(operation) && !blocks.contains(block));
                blocks.extend(block);
            });
            for block in blocks {
                sink(block, &plans);
            }
            Ok(())
        },
    )
};

/// Whether an operation is executed in each iteration of a loop. What is loaded there, and when, is decided by its schedule.
fn is_in_loop(operation: OperationRef<'_, '_>) -> bool {
    let around = std::iter::successors(operation.parent_op(), |inner| inner.parent_op());
    let mut kinds = around.map(Control::of);
    kinds.any(|kind| matches!(kind, Control::For | Control::While))
}

/// Moves the loads of a block, if its values do not fit into registers.
fn sink<'c: 'a, 'a>(block: BlockRef<'c, 'a>, plans: &Plans) {
    let live = Live::of(block, plans);
    let Some(first) = live.operations.first() else {
        return;
    };
    let threads = threads(*first);
    let is_full = |words: &u32| is_scarce(*words, plans.target(), threads);
    if !live.words.iter().any(is_full) {
        return;
    }
    let mut rewriter = Rewriter::new(first.ctx());
    for operation in &live.operations {
        if let Some(conversion) = ConvertLayoutOp::of(*operation)
            && crossing(conversion, plans) >= Some(Crossing::WarpMemory)
            && words(conversion.result(), plans) <= BESIDE
            && let Some(source) = conversion.src().defining_op()
            && source.parent_block() == Some(block)
        {
            rewriter.move_after(*operation, source);
        }
    }
    // A load moves to where a later one, whose address it is, has moved before.
    for operation in live.operations.iter().rev() {
        if LoadOp::of(*operation).is_some_and(|load| !load.is_volatile())
            && let Some(user) = first_user(*operation)
        {
            rewriter.move_before(*operation, user);
        }
    }
}

/// The first operation behind another one of its block that uses it, if nothing between them disturbs.
fn first_user<'c: 'a, 'a>(of: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let users: Vec<OperationRef<'c, 'a>> = of.result_values().flat_map(ValueExt::users).collect();
    let behind = std::iter::successors(of.next_op(), |operation| operation.next_op());
    for next in behind {
        if users
            .iter()
            .any(|user| *user == next || user.is_within(next))
        {
            return Some(next);
        }
        if disturbs(next) {
            return None;
        }
    }
    None
}
