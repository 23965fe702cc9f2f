//! What LLVM's NVPTX back end, `ptxas` and libdevice want.

use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use inkwell::targets::RelocMode;
use inkwell::values::InstructionOpcode;

use super::{Nvptx, library};
use crate::llvm::c_api;
use crate::llvm::instructions::change_all;
use crate::llvm::library_search::Library;
use crate::options::CodegenOptions;
use crate::targets::back_end::{BackEnd, VendorPasses};

impl BackEnd for Nvptx {
    fn relocation(&self) -> RelocMode {
        RelocMode::Default
    }

    fn libraries(&self, options: &CodegenOptions) -> Vec<Library> {
        library::libraries(options)
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

    fn passes(&self) -> VendorPasses {
        VendorPasses {
            // What libdevice asks of the compilation, and which values registers of the machine can have.
            first: "nvvm-reflect,function(nvvm-intr-range),",
            in_functions: "",
            last: "",
        }
    }

    fn after_optimization(&self, module: &Module<'_>) -> bool {
        widen_indices(module);
        fold_address_offsets(module);
        false
    }

    fn finish_assembly(&self, text: String) -> String {
        // With the word `debug`, ptxas would not optimise; line tables need no word.
        number_calls(&text.replacen(", debug", "", 1))
    }
}

/// Numbers the calls of a PTX text from zero. LLVM writes a comment beside each, with a number that it takes from a counter
/// of the whole process, so that a text would tell what was compiled before it.
fn number_calls(ptx: &str) -> String {
    const MARK: &str = "// callseq ";
    let mut numbers: Vec<&str> = Vec::new();
    let mut pieces = ptx.split(MARK);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(piece.len());
        let (number, rest) = piece.split_at(end);
        // The end of a call comes soon after its beginning.
        let place = numbers.iter().rposition(|known| *known == number);
        let place = place.unwrap_or_else(|| {
            numbers.push(number);
            numbers.len() - 1
        });
        text.push_str(MARK);
        text.push_str(&place.to_string());
        text.push_str(rest);
    }
    text
}

/// Widens indices from outside of a block where the block adds them to its addresses, if there are many. LLVM widens them
/// before a loop, where each then takes two registers, and LLVM and `ptxas` leave alone what assembly says. Few of them
/// are better off as they are: to add a wide one takes no multiplication.
fn widen_indices(module: &Module<'_>) {
    const MULTIPLY_AND_ADD: &str = "mad.wide.s32 $0, $1, SIZE, $2;";
    // Registers to save, an eighth of those that a thread can have.
    const MANY: usize = 32;
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let late: Vec<_> = block
                .get_instructions()
                .filter_map(c_api::index_from_outside)
                .collect();
            let mut indices: Vec<usize> = late.iter().map(c_api::LateIndex::key).collect();
            indices.sort_unstable();
            indices.dedup();
            if indices.len() < MANY {
                continue;
            }
            for address in late {
                address.add_by(&builder, MULTIPLY_AND_ADD, "=l,r,l");
            }
        }
    }
}

/// Moves the constant offsets of predicated accesses into their assembly, as LLVM's own instruction selection
/// does for plain ones.
fn fold_address_offsets(module: &Module<'_>) {
    change_all(module, InstructionOpcode::Call, |_, call| {
        c_api::fold_offset_into_assembly(call);
    });
}

#[cfg(test)]
mod tests {
    use super::number_calls;

    #[test]
    fn calls_are_numbered_from_zero() {
        let text = |first: u32, second: u32| {
            format!(
                "{{ // callseq {first}, 0\n}} // callseq {first}\n{{ // callseq {second}, 8\n}} // callseq {second}\n"
            )
        };
        assert_eq!(number_calls(&text(17, 140)), text(0, 1));
        assert_eq!(number_calls("ret;\n"), "ret;\n");
    }
}
