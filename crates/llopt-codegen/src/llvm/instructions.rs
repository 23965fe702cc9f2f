//! Going over the instructions of a module, some of which change on the way.

use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{InstructionOpcode, InstructionValue};

/// Whether some instruction of the module is of a kind.
pub(crate) fn any<'ctx>(
    module: &Module<'ctx>,
    is_of_kind: impl Fn(InstructionValue<'ctx>) -> bool,
) -> bool {
    module.get_functions().any(|function| {
        function
            .get_basic_block_iter()
            .any(|block| block.get_instructions().any(&is_of_kind))
    })
}

/// Changes each instruction of a kind, in order.
pub(crate) fn change_all<'ctx>(
    module: &Module<'ctx>,
    opcode: InstructionOpcode,
    change: impl Fn(&Builder<'ctx>, InstructionValue<'ctx>),
) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                if instruction.get_opcode() == opcode {
                    change(&builder, instruction);
                }
            }
        }
    }
}
