//! The requirements of LLVM's NVPTX back end, `ptxas` and libdevice.

use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Module};
use inkwell::targets::RelocMode;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};

use super::kernel::THREADS;
use super::{Nvptx, library};
use crate::llvm::c_api::OmittedPass;
use crate::llvm::instructions::change_all;
use crate::llvm::library_search::Library;
use crate::llvm::{
    c_api, constants_last, demand_order, early_values, recurrences, rows_apart, trip_counts,
};
use crate::options::CodegenOptions;
use crate::targets::back_end::{BackEnd, Effect, VendorPasses, copy_by_assembly};

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

    fn intrinsics(&self) -> &'static str {
        "llvm.nvvm."
    }

    fn contracts_libraries(&self) -> bool {
        true
    }

    fn has_branches(&self, intrinsic: &str) -> bool {
        // Divisions and roots that are rounded correctly: `ptxas` calls a function for the arguments that they are hard for.
        let rounded = intrinsic.strip_prefix(self.intrinsics());
        let rounded = rounded.and_then(|name| name.split_once(".r"));
        rounded.is_some_and(|(name, _)| matches!(name, "div" | "rcp" | "sqrt"))
    }

    fn passes(&self) -> VendorPasses {
        VendorPasses {
            // libdevice's queries about the compilation, and the ranges of special registers.
            first: "nvvm-reflect,function(nvvm-intr-range),",
            in_functions: "",
            // `ptxas` repeats iterations itself, of loops that it can count.
            unrolling: "loop-unroll<O3;no-partial>",
            last: "",
            // Few kernels differ without it, and those have up to a twentieth more instructions.
            repeats: true,
            idle: vec![
                // It writes sums so that they have parts in common, after the optimiser has done the same: no listing of a
                // corpus differs without it.
                OmittedPass::always(c"nary-reassociate"),
                // It moves instructions over branches to where their results are used, whether their operands end there or not, and
                // so undoes `early_values`. `ptxas` does what is of use: of 188 kernels, 12 differ by more than a fiftieth in
                // instructions, eight registers or bytes spilled without it, in both directions.
                OmittedPass::always(c"machine-sink"),
            ],
        }
    }

    fn threads(&self, function: FunctionValue<'_>) -> Option<u32> {
        let threads = function.get_string_attribute(AttributeLoc::Function, THREADS)?;
        threads.get_string_value().to_str().ok()?.parse().ok()
    }

    fn effect(&self, instruction: InstructionValue<'_>) -> Effect {
        let loads = c_api::assembly_text(instruction).is_some_and(|text| only_loads(&text));
        match loads {
            true => Effect::Load,
            false => Effect::Other,
        }
    }

    fn opaque_copy<'ctx>(
        &self,
        builder: &Builder<'ctx>,
        value: InstructionValue<'ctx>,
    ) -> Option<InstructionValue<'ctx>> {
        // `ptxas` leaves nothing of the move.
        copy_by_assembly(builder, value, ["mov.b32 $0, $1;", "=r,r"], &[])
    }

    fn after_optimization(&self, module: &Module<'_>) -> bool {
        widen_indices(module);
        fold_address_offsets(module);
        constants_last::add(module, self.target, self);
        rows_apart::advance_one(module, self.target, self);
        recurrences::hide_beginnings(module);
        trip_counts::show(module);
        early_values::compute_early(module, self.target, self);
        demand_order::order(module, self.target, self);
        false
    }

    fn finish_assembly(&self, text: String) -> String {
        // With the word `debug`, ptxas does not optimise; line tables do not need it.
        number_calls(&text.replacen(", debug", "", 1))
    }
}

/// Whether assembly does nothing but load from global memory, under a condition perhaps.
fn only_loads(text: &str) -> bool {
    let loads = |line: &str| line.contains("ld.global.");
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.clone().any(loads) && lines.all(|line| loads(line) || line.starts_with("mov."))
}

/// Numbers the calls of a PTX text from zero. LLVM writes a comment next to each call, with a number from a counter
/// of the whole process, so that the text would depend on earlier compilations.
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
        // The end of a call is near its start.
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

/// Widens indices from outside of a block in assembly where the block adds them to its addresses, if there are many.
/// LLVM widens them before a loop, where each then takes two registers; LLVM and `ptxas` do not move assembly. Few of
/// them are better left as they are: adding a wide index takes no multiplication.
fn widen_indices(module: &Module<'_>) {
    const MULTIPLY_AND_ADD: &str = "mad.wide.s32 $0, $1, SIZE, $2;";
    // The number of registers to be saved: an eighth of those that a thread can have.
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
