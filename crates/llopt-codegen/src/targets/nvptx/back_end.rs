//! What LLVM's NVPTX back end, `ptxas` and libdevice want.

use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use inkwell::targets::RelocMode;
use inkwell::values::InstructionOpcode;

use super::Nvptx;
use crate::llvm::c_api;
use crate::options::CodegenOptions;
use crate::targets::back_end::BackEnd;

impl BackEnd for Nvptx {
    fn relocation(&self) -> RelocMode {
        RelocMode::Default
    }

    fn configure_libraries<'ctx>(
        &self,
        context: &'ctx Context,
        module: &Module<'ctx>,
        options: &CodegenOptions,
    ) {
        let flag = context
            .i32_type()
            .const_int(u64::from(options.library_flushes_denormals), false);
        module.add_basic_value_flag("nvvm-reflect-ftz", FlagBehavior::Override, flag);
    }

    fn after_optimization(&self, module: &Module<'_>) {
        fold_address_offsets(module);
    }

    fn finish_assembly(&self, text: String) -> String {
        // With the word `debug`, ptxas would not optimise; line tables need no word.
        text.replacen(", debug", "", 1)
    }
}

/// Moves the constant offsets of predicated accesses into their assembly, as LLVM's own instruction selection
/// does for plain ones.
fn fold_address_offsets(module: &Module<'_>) {
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                if instruction.get_opcode() == InstructionOpcode::Call {
                    c_api::fold_offset_into_assembly(instruction);
                }
            }
        }
    }
}
