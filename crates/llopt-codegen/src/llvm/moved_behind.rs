//! Moving what computes some values behind an instruction that is emitted after it.
//!
//! Code is emitted operation by operation, so where an instruction takes a value, everything that computes it is there
//! already. Some instructions must not be followed too early: registers that a running product reads are written again
//! only after a wait for it. So what computes the values is moved to the end of the block, behind the wait. What it
//! starts from (results of loads, and of other instructions that do more than compute) stays, and passes through the
//! wait, so that nothing that depends on it comes before.

use std::collections::{HashMap, HashSet};

use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue};

use super::instructions::users;
use super::late_values::{only_computes, operands};
use crate::llvm::emitter::{Emitter, V};

/// The instructions at the end of a block that compute some values, and that nothing else needs.
pub(crate) struct Computation<'ctx> {
    /// Those that have not been moved, in their order.
    open: Vec<InstructionValue<'ctx>>,
    /// Those that have been.
    moved: HashSet<InstructionValue<'ctx>>,
}

impl<'ctx> Computation<'ctx> {
    /// What computes these values in the block to which code is being added.
    pub(crate) fn of(e: &Emitter<'ctx>, values: &[V<'ctx>]) -> Self {
        let block = e.block();
        let needed = needed(values, |made| made.get_parent() == Some(block));
        // Users come after what they use, so they are known when it is looked at.
        let mut kept: HashSet<InstructionValue<'ctx>> = HashSet::new();
        let mut open = Vec::new();
        let mut next = block.get_last_instruction();
        while let Some(made) = next {
            next = made.get_previous_instruction();
            let is_used = |user: Option<InstructionValue<'ctx>>| {
                user.is_some_and(|user| kept.contains(&user))
            };
            if needed.contains(&made) && users(made).all(is_used) {
                kept.insert(made);
                open.push(made);
            }
            if open.len() == needed.len() {
                break;
            }
        }
        open.reverse();
        Self {
            open,
            moved: HashSet::new(),
        }
    }

    /// Moves what computes some of the values behind what `emit` adds to the block. `emit` is given what it starts from,
    /// and returns what is used instead. Answers the values, those of which nothing is moved as `emit` returns them.
    pub(crate) fn move_behind(
        &mut self,
        e: &Emitter<'ctx>,
        values: &[V<'ctx>],
        emit: impl FnOnce(&[V<'ctx>]) -> Vec<V<'ctx>>,
    ) -> Vec<V<'ctx>> {
        let open: HashSet<InstructionValue<'ctx>> = self.open.iter().copied().collect();
        let needed = needed(values, |made| open.contains(&made));
        let (moved, left): (Vec<_>, Vec<_>) =
            self.open.iter().partition(|made| needed.contains(*made));
        self.open = left;
        let is_start = |value: &V<'ctx>| {
            let made = value.as_instruction_value();
            made.is_some_and(|made| !needed.contains(&made) && !self.moved.contains(&made))
        };
        let inner = moved.iter().flat_map(|made| operands(*made));
        let inner = inner.filter(|operand| {
            let made = operand.as_instruction_value();
            made.is_some_and(|made| {
                made.get_parent() == Some(e.block()) && made.get_opcode() != InstructionOpcode::Phi
            })
        });
        let mut starts: Vec<V<'ctx>> = Vec::new();
        for value in inner.chain(values.iter().copied()).filter(is_start) {
            if !starts.contains(&value) {
                starts.push(value);
            }
        }
        let passed = emit(&starts);
        let instead: HashMap<V<'ctx>, V<'ctx>> = starts.into_iter().zip(passed).collect();
        for made in moved {
            for index in 0..made.get_num_operands() {
                let operand = made.get_operand(index).and_then(|operand| operand.value());
                if let Some(other) = operand.and_then(|operand| instead.get(&operand)) {
                    made.set_operand(index, *other);
                }
            }
            e.move_to_end(made);
            self.moved.insert(made);
        }
        let passed = values
            .iter()
            .map(|value| instead.get(value).unwrap_or(value));
        passed.copied().collect()
    }
}

/// The instructions that compute some values, as far as they are of those.
fn needed<'ctx>(
    values: &[V<'ctx>],
    is_of: impl Fn(InstructionValue<'ctx>) -> bool,
) -> HashSet<InstructionValue<'ctx>> {
    let mut found = HashSet::new();
    let mut next: Vec<BasicValueEnum<'ctx>> = values.to_vec();
    while let Some(value) = next.pop() {
        let made = value.as_instruction_value();
        if let Some(made) = made.filter(|made| is_of(*made) && only_computes(*made))
            && found.insert(made)
        {
            next.extend(operands(made));
        }
    }
    found
}
