//! Moving computations to where they are for.
//!
//! Instructions stand where the walk came by. LLVM's optimiser and a back end without a scheduler leave them there, and
//! nothing passes what has effects. What should run beside such an instruction has to be moved behind it.

use std::collections::HashSet;

use inkwell::attributes::AttributeLoc;
use inkwell::values::{AsValueRef, BasicValue, CallSiteValue, InstructionOpcode, InstructionValue};

use super::{Emitter, MEMORY_NONE, V};

fn key(instruction: InstructionValue<'_>) -> usize {
    instruction.as_value_ref() as usize
}

impl<'ctx> Emitter<'ctx> {
    /// Moves the instructions of this block that compute `values`, and nothing that others use, to where the next
    /// instruction comes. Only those move that neither have effects nor read memory.
    pub fn bring_here(&self, values: &[V<'ctx>]) {
        let Some(block) = self.builder.get_insert_block() else {
            return;
        };
        let made_by = |value: &V<'ctx>| value.as_instruction_value().map(key);
        let mut wanted: HashSet<usize> = values.iter().filter_map(made_by).collect();
        let mut moved: Vec<InstructionValue<'ctx>> = Vec::new();
        let mut keys = HashSet::new();
        // Users come first, backwards.
        let mut next = block.get_last_instruction();
        while let Some(instruction) = next {
            next = instruction.get_previous_instruction();
            if !wanted.contains(&key(instruction))
                || !self.only_computes(instruction)
                || !users(instruction).all(|user| keys.contains(&user))
            {
                continue;
            }
            keys.insert(key(instruction));
            moved.push(instruction);
            let operands = 0..instruction.get_num_operands();
            let operands = operands.filter_map(|index| instruction.get_operand(index)?.value());
            wanted.extend(operands.filter_map(|operand| made_by(&operand)));
        }
        for instruction in moved.into_iter().rev() {
            instruction.remove_from_basic_block();
            self.builder.insert_instruction(&instruction, None);
        }
    }

    /// Whether an instruction computes its result from its operands and does nothing else.
    fn only_computes(&self, instruction: InstructionValue<'ctx>) -> bool {
        use InstructionOpcode as Op;
        match instruction.get_opcode() {
            Op::Add
            | Op::Sub
            | Op::Mul
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Shl
            | Op::LShr
            | Op::AShr
            | Op::Trunc
            | Op::ZExt
            | Op::SExt
            | Op::BitCast
            | Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FNeg
            | Op::FPExt
            | Op::FPTrunc
            | Op::SIToFP
            | Op::UIToFP
            | Op::ICmp
            | Op::FCmp
            | Op::Select
            | Op::ExtractElement
            | Op::InsertElement
            | Op::ShuffleVector => true,
            Op::Call => CallSiteValue::try_from(instruction).is_ok_and(|call| {
                let function = call.get_called_fn_value();
                let has = |kind: u32, value: u64| {
                    let own = call.get_enum_attribute(AttributeLoc::Function, kind);
                    let declared = || function?.get_enum_attribute(AttributeLoc::Function, kind);
                    own.or_else(declared)
                        .is_some_and(|found| found.get_enum_value() == value)
                };
                has(self.kinds.memory, MEMORY_NONE) && !has(self.kinds.convergent, 0)
            }),
            _ => false,
        }
    }
}

/// The instructions that use a result.
fn users(instruction: InstructionValue<'_>) -> impl Iterator<Item = usize> {
    let uses = std::iter::successors(instruction.get_first_use(), |one| one.get_next_use());
    uses.map(|one| one.get_user().as_value_ref() as usize)
}
