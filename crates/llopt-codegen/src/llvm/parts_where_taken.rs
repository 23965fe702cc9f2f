//! Words that a loop carries are split in the blocks that use their parts.
//!
//! The word of a block's argument is split after the phi ([`crate::walk::carried`]). In a loop this is the block with
//! its condition. LLVM would then not rotate the loop, because of the code before its condition, or it would split
//! the words for the next iteration at the end of the one before, and carry the parts. So each block splits the words
//! that it uses itself.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue};

use crate::llvm::instructions::users;

/// Splits, in each block, the carried words of other blocks of which it uses parts.
pub(crate) fn divide<'ctx>(module: &Module<'ctx>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            for part in block.get_instructions().collect::<Vec<_>>() {
                let Some((word, vector, index)) = carried_word(block, part) else {
                    continue;
                };
                let mut known: HashMap<BasicBlock<'ctx>, BasicValueEnum<'ctx>> = HashMap::new();
                for (user, operand) in takers(part) {
                    let Some(place) = user.get_parent().filter(|place| *place != block) else {
                        continue;
                    };
                    let own = known.entry(place).or_insert_with(|| {
                        let first = place
                            .get_instructions()
                            .find(|first| first.get_opcode() != InstructionOpcode::Phi)
                            .unwrap_or(user);
                        builder.position_before(&first);
                        let word = builder.build_bit_cast(word, vector.get_type(), "");
                        let word = word.expect("bug in llopt: a word has the bits of its parts");
                        let own = builder.build_extract_element(
                            word.into_vector_value(),
                            index.into_int_value(),
                            "",
                        );
                        own.expect("bug in llopt: a part of a vector")
                    });
                    user.set_operand(operand, *own);
                }
                // A remaining copy would be found to be equal, and be used in place of this one after all.
                let cast = vector.as_instruction_value();
                for unused in [Some(part), cast].into_iter().flatten() {
                    if unused.get_first_use().is_none() {
                        unused.erase_from_basic_block();
                    }
                }
            }
        }
    }
}

/// The word of a phi of the block, its vector, and the number of the part, if an instruction extracts one.
fn carried_word<'ctx>(
    block: BasicBlock<'ctx>,
    part: InstructionValue<'ctx>,
) -> Option<(
    BasicValueEnum<'ctx>,
    BasicValueEnum<'ctx>,
    BasicValueEnum<'ctx>,
)> {
    if part.get_opcode() != InstructionOpcode::ExtractElement {
        return None;
    }
    let operand = |of: InstructionValue<'ctx>, at| of.get_operand(at)?.value();
    let (vector, index) = (operand(part, 0)?, operand(part, 1)?);
    let cast = vector.as_instruction_value()?;
    if cast.get_opcode() != InstructionOpcode::BitCast {
        return None;
    }
    let word = operand(cast, 0)?;
    let phi = word.as_instruction_value()?;
    let is_carried = phi.get_opcode() == InstructionOpcode::Phi && phi.get_parent() == Some(block);
    is_carried.then_some((word, vector, index))
}

/// The users of a value except phis, each with the operand's index.
fn takers(value: InstructionValue<'_>) -> Vec<(InstructionValue<'_>, u32)> {
    let mut found = Vec::new();
    for user in users(value).flatten() {
        if user.get_opcode() == InstructionOpcode::Phi {
            continue;
        }
        for operand in 0..user.get_num_operands() {
            let is_it = user
                .get_operand(operand)
                .and_then(|operand| operand.value());
            if is_it.and_then(|it| it.as_instruction_value()) == Some(value) {
                found.push((user, operand));
            }
        }
    }
    found
}
