//! The requirements of LLVM's AMDGPU back end, AMD's loader, and ocml and ockl.

use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{FlagBehavior, Linkage, Module};
use inkwell::targets::RelocMode;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};
use llopt_target::{Feature, Target};

use super::kernel::{ANY_WAVES, WAVES, WORK_GROUP_SIZE};
use super::{Amdgpu, library, overflow};
use crate::llvm::addresses;
use crate::llvm::c_api::OmittedPass;
use crate::llvm::instructions::{called, change_all};
use crate::llvm::library_search::Library;
use crate::options::CodegenOptions;
use crate::targets::back_end::{BackEnd, Effect, VendorPasses, copy_by_assembly};

/// The version of the code objects that are emitted, times a hundred.
const CODE_OBJECT_VERSION: u64 = 500;
/// The address space of shared memory.
const SHARED: u16 = 3;

impl BackEnd for Amdgpu {
    fn relocation(&self) -> RelocMode {
        RelocMode::PIC
    }

    fn mark_module<'ctx>(&self, context: &'ctx Context, module: &Module<'ctx>) {
        let version = context.i32_type().const_int(CODE_OBJECT_VERSION, false);
        module.add_basic_value_flag("amdhsa_code_object_version", FlagBehavior::Error, version);
    }

    fn libraries(&self, options: &CodegenOptions) -> Vec<Library> {
        library::libraries(options)
    }

    fn configure_libraries<'ctx>(
        &self,
        context: &'ctx Context,
        module: &Module<'ctx>,
        _options: &CodegenOptions,
    ) {
        define_control_constants(context, module, self.target);
    }

    fn intrinsics(&self) -> &'static str {
        "llvm.amdgcn."
    }

    fn passes(&self) -> VendorPasses {
        VendorPasses {
            first: "",
            // The device libraries take pointers of any address space.
            in_functions: "infer-address-spaces,",
            unrolling: "loop-unroll<O3>",
            // Determines which of the registers that a launch fills are read by a kernel.
            last: "amdgpu-attributor,",
            repeats: false,
            idle: self.idle_passes(),
        }
    }

    fn before_optimization(&self, module: &Module<'_>) {
        if self.target.has(Feature::ClampedConvert) {
            overflow::clamp_by_mode(module);
        }
    }

    fn threads(&self, function: FunctionValue<'_>) -> Option<u32> {
        let own: u32 = last_number(function, WORK_GROUP_SIZE)?;
        let waves = last_number(function, WAVES).unwrap_or(0);
        Some(own.max(self.target.threads_of_waves(waves)))
    }

    fn grant_any_waves(&self, module: &Module<'_>) {
        let any = module
            .get_context()
            .create_string_attribute(WAVES, ANY_WAVES);
        for function in module.get_functions().filter(|of| self.wishes(*of)) {
            function.remove_string_attribute(AttributeLoc::Function, WAVES);
            function.add_attribute(AttributeLoc::Function, any);
        }
    }

    fn wishes_waves(&self, module: &Module<'_>) -> bool {
        module.get_functions().any(|of| self.wishes(of))
    }

    fn effect(&self, instruction: InstructionValue<'_>) -> Effect {
        match instruction.get_opcode() {
            InstructionOpcode::Fence => return Effect::Barrier,
            InstructionOpcode::Call => {}
            _ => return Effect::Other,
        }
        let Some(name) = called(instruction) else {
            return Effect::Other;
        };
        let Some(name) = name.strip_prefix("llvm.amdgcn.") else {
            return Effect::Other;
        };
        let is_one_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if is_one_of(&["mfma.", "smfmac."]) {
            Effect::Product
        } else if is_one_of(&["raw.ptr.buffer.load."]) && !name.ends_with(".lds") {
            Effect::Load
        } else if is_one_of(&["s.barrier"]) {
            Effect::Barrier
        } else if name == "sched.barrier" && may_nothing_pass(instruction) {
            Effect::Line
        } else {
            Effect::Other
        }
    }

    fn differs(&self, instruction: InstructionValue<'_>) -> Option<bool> {
        match instruction.get_opcode() {
            // Only loads from global memory go to scalar registers.
            InstructionOpcode::Load => {
                let from = instruction.get_operand(0)?.value()?;
                let of_lanes = AddressSpace::from(SHARED);
                let is_shared =
                    from.into_pointer_value().get_type().get_address_space() == of_lanes;
                is_shared.then_some(true)
            }
            InstructionOpcode::Call => {
                let name = called(instruction)?;
                let name = name.strip_prefix("llvm.amdgcn.")?;
                let is_one_of =
                    |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
                if is_one_of(&["readfirstlane", "readlane", "ballot"]) {
                    Some(false)
                } else if is_one_of(&["workitem.id", "mbcnt", "raw.ptr.buffer.load"]) {
                    Some(true)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    fn opaque_copy<'ctx>(
        &self,
        builder: &Builder<'ctx>,
        value: InstructionValue<'ctx>,
    ) -> Option<InstructionValue<'ctx>> {
        // The result is in a vector register, that of the operand if nothing else needs it. It is not moved out of a loop.
        copy_by_assembly(builder, value, ["", "=v,0"], &["convergent"])
    }

    fn spills(&self, assembly: &str) -> bool {
        let mut labels: HashMap<&str, usize> = HashMap::new();
        let mut last = None;
        for (place, line) in assembly.lines().enumerate() {
            let line = line.trim();
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, place);
            } else if is_reload(line) {
                last = Some(place);
            } else if line.starts_with("s_branch") || line.starts_with("s_cbranch") {
                let to = line.split_whitespace().nth(1);
                let start = to.and_then(|to| labels.get(to));
                if start.is_some_and(|start| last.is_some_and(|reload| reload > *start)) {
                    return true;
                }
            }
        }
        false
    }

    fn stop_scheduling<'ctx>(&self, module: &Module<'ctx>, builder: &Builder<'ctx>) {
        let Some(stops) = Intrinsic::find("llvm.amdgcn.sched.barrier") else {
            return;
        };
        let Some(function) = stops.get_declaration(module, &[]) else {
            return;
        };
        let none_may_pass = module.get_context().i32_type().const_zero();
        builder
            .build_call(function, &[none_may_pass.into()], "")
            .expect("bug in llopt: a call at the builder's place");
    }

    fn after_optimization(&self, module: &Module<'_>) -> bool {
        keep_large_constants(module, self.target.largest_address_offset());
        true
    }
}

impl Amdgpu {
    /// Passes of the code generator without which listings stay as they are, or get as many instructions. Removing duplicates
    /// and copying registers on is repeated; only the last run, or any one of two, finds something.
    fn idle_passes(&self) -> Vec<OmittedPass> {
        let mut idle = vec![
            OmittedPass::once(c"early-cse", 1),
            OmittedPass::once(c"early-cse", 2),
            OmittedPass::once(c"machine-cp", 2),
            // Invariants leave loops before registers are allocated, and after that nothing is computed twice in a block.
            OmittedPass::always(c"machinelicm"),
            OmittedPass::always(c"machine-latecleanup"),
        ];
        // The optimiser has written sums so that they have parts in common. Where arithmetic shares the registers of
        // accumulators, main loops of attention take up to 1.015 of the cycles without it.
        if self.target.has(Feature::Mfma) {
            idle.push(OmittedPass::always(c"nary-reassociate"));
        }
        idle
    }
}

impl Amdgpu {
    /// Whether more waves of a function are to be resident than one block has.
    fn wishes(&self, function: FunctionValue<'_>) -> bool {
        let [own, waves] =
            [WORK_GROUP_SIZE, WAVES].map(|of| last_number(function, of).unwrap_or(0));
        self.target.threads_of_waves(waves) > own
    }
}

/// The last number of an attribute that has several.
fn last_number(function: FunctionValue<'_>, attribute: &str) -> Option<u32> {
    let numbers = function.get_string_attribute(AttributeLoc::Function, attribute)?;
    let numbers = numbers.get_string_value();
    let last = numbers.to_str().ok()?.split(',').next_back()?;
    last.trim().parse().ok()
}

/// Whether an instruction reads a value from where a thread keeps it: by the instructions for a thread's own memory, or through
/// the descriptor of all of it where there are none.
fn is_reload(instruction: &str) -> bool {
    instruction.starts_with("scratch_load")
        || instruction.starts_with("buffer_load") && instruction.contains(" off, s[0:3], 0")
}

/// Whether the mask of a barrier of the scheduler is zero.
fn may_nothing_pass(barrier: InstructionValue<'_>) -> bool {
    let mask = barrier.get_operand(0).and_then(|mask| mask.value());
    let mask = mask.filter(|mask| mask.is_int_value());
    mask.and_then(|mask| mask.into_int_value().get_zero_extended_constant()) == Some(0)
}

/// Adds up indices in 32 bits, and keeps constants that no access can add itself in that part of addresses, except the low bits, which accesses
/// add. Instruction selection would add the constants to the 64-bit address, although a base in scalar registers plus
/// an offset in a vector register is already an addressing mode; and each access would have an offset of its own.
fn keep_large_constants(module: &Module<'_>, largest: u32) {
    change_all(
        module,
        InstructionOpcode::GetElementPtr,
        addresses::merge_indices,
    );
    change_all(
        module,
        InstructionOpcode::GetElementPtr,
        |builder, address| {
            addresses::return_large_constant(builder, address, largest);
        },
    );
    change_all(
        module,
        InstructionOpcode::GetElementPtr,
        |builder, address| {
            addresses::split_large_constant(builder, address, largest);
        },
    );
    for widening in [InstructionOpcode::ZExt, InstructionOpcode::SExt] {
        change_all(module, widening, |_, extension| {
            addresses::hide_large_constant(extension, largest);
        });
    }
}

/// The libraries read a few constants that describe the target and the floating-point rules.
fn define_control_constants<'ctx>(context: &'ctx Context, module: &Module<'ctx>, target: Target) {
    let byte = |name: &str, value: bool| {
        define_constant(module, name, context.i8_type(), u64::from(value))
    };
    byte("__oclc_daz_opt", false);
    byte("__oclc_finite_only_opt", false);
    byte("__oclc_correctly_rounded_sqrt32", true);
    byte("__oclc_unsafe_math_opt", false);
    byte("__oclc_wavefrontsize64", target.warp_size() == 64);
    define_constant(
        module,
        "__oclc_ISA_version",
        context.i32_type(),
        isa_version(target),
    );
    define_constant(
        module,
        "__oclc_ABI_version",
        context.i32_type(),
        CODE_OBJECT_VERSION,
    );
}

fn define_constant<'ctx>(
    module: &Module<'ctx>,
    name: &str,
    of: inkwell::types::IntType<'ctx>,
    value: u64,
) {
    const CONSTANT_SPACE: u16 = 4;
    let global = module
        .get_global(name)
        .unwrap_or_else(|| module.add_global(of, Some(AddressSpace::from(CONSTANT_SPACE)), name));
    global.set_initializer(&of.const_int(value, false));
    global.set_constant(true);
    global.set_linkage(Linkage::Internal);
}

/// `gfx90a` is 9010, `gfx942` 9402, `gfx1100` 11000: major, minor and a hexadecimal step, as the libraries
/// count.
fn isa_version(target: Target) -> u64 {
    let digits = target.arch().trim_start_matches("gfx");
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let major: u64 = major.parse().unwrap_or(0);
    let minor: u64 = rest[..1].parse().unwrap_or(0);
    let step = u64::from_str_radix(&rest[1..], 16).unwrap_or(0);
    major * 1000 + minor * 100 + step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isa_versions_are_the_libraries_numbers() {
        let version = |name: &str| isa_version(Target::parse(name).unwrap());
        assert_eq!(version("hip:gfx90a"), 9010);
        assert_eq!(version("hip:gfx942"), 9402);
        assert_eq!(version("hip:gfx950"), 9500);
        assert_eq!(version("hip:gfx1100"), 11000);
        assert_eq!(version("hip:gfx1201"), 12001);
    }
}
