//! Where vendors differ about a whole module: the requirements of LLVM's back ends, their assemblers and their
//! loaders.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::RelocMode;
use inkwell::values::{BasicValue, FunctionValue, InstructionValue, IntValue};
use llopt_target::{Target, Vendor};

use super::amdgpu::{self, Amdgpu};
use super::hooks::Hooks;
use super::nvptx::{self, Nvptx};
use crate::llvm::c_api::OmittedPass;
use crate::llvm::library_search::Library;
use crate::options::CodegenOptions;

/// An integer that assembly without effects copies, at the place of a builder; `attributes` say what else is known of it.
pub(crate) fn copy_by_assembly<'ctx>(
    builder: &Builder<'ctx>,
    value: InstructionValue<'ctx>,
    [text, constraints]: [&str; 2],
    attributes: &[&str],
) -> Option<InstructionValue<'ctx>> {
    let own = IntValue::try_from(value).ok()?;
    let of = own.get_type();
    let context = of.get_context();
    let r#type = of.fn_type(&[of.into()], false);
    let (text, constraints) = (text.to_owned(), constraints.to_owned());
    let copies = context.create_inline_asm(r#type, text, constraints, false, false, None, false);
    let call = builder
        .build_indirect_call(r#type, copies, &[own.into()], "")
        .expect("bug in llopt: a call at the builder's place");
    for name in ["nounwind", "memory"].iter().chain(attributes) {
        let kind = Attribute::get_named_enum_kind_id(name);
        let attribute = context.create_enum_attribute(kind, 0);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    call.try_as_basic_value().basic()?.as_instruction_value()
}

/// The back end of a vendor.
pub(crate) trait BackEnd {
    /// How code refers to its symbols when it is loaded.
    fn relocation(&self) -> RelocMode;

    /// Adds what the loader has to know to a new module.
    fn mark_module<'ctx>(&self, _context: &'ctx Context, _module: &Module<'ctx>) {}

    /// The device libraries that kernels may need, in the order in which they are linked.
    fn libraries(&self, options: &CodegenOptions) -> Vec<Library>;

    /// Configures the device libraries that were linked in.
    fn configure_libraries<'ctx>(
        &self,
        context: &'ctx Context,
        module: &Module<'ctx>,
        options: &CodegenOptions,
    );

    /// Whether products and sums of the device libraries may be fused where an author allows it for the kernel.
    fn contracts_libraries(&self) -> bool {
        false
    }

    /// Whether an intrinsic becomes code with branches of lanes.
    fn has_branches(&self, _intrinsic: &str) -> bool {
        false
    }

    /// The passes of LLVM's optimiser that only this vendor has.
    fn passes(&self) -> VendorPasses;

    /// What the names of LLVM's intrinsics begin with that only this vendor has.
    fn intrinsics(&self) -> &'static str;

    /// The first changes to a module, before LLVM optimises it.
    fn before_optimization(&self, _module: &Module<'_>) {}

    /// The last changes to a module that LLVM has optimised; returns whether they may leave duplicate or unused
    /// instructions.
    fn after_optimization(&self, module: &Module<'_>) -> bool;

    /// The number of threads that share the registers of their units, if the function has it: those that run a kernel together,
    /// or more where more are to be resident.
    fn threads(&self, _: FunctionValue<'_>) -> Option<u32> {
        None
    }

    /// What an instruction does that matters to the order of others, where LLVM's scheduler decides about it.
    fn effect(&self, _instruction: InstructionValue<'_>) -> Effect {
        Effect::Other
    }

    /// Whether the result of an instruction differs from lane to lane, if that does not follow from its operands.
    fn differs(&self, _instruction: InstructionValue<'_>) -> Option<bool> {
        None
    }

    /// A copy of an integer of one register at the place of a builder, of which LLVM does not know what it is; `None` for other
    /// values.
    fn opaque_copy<'ctx>(
        &self,
        builder: &Builder<'ctx>,
        value: InstructionValue<'ctx>,
    ) -> Option<InstructionValue<'ctx>>;

    /// Marks the place of a builder as one over which LLVM's scheduler moves no instruction, if there is such a mark.
    fn stop_scheduling<'ctx>(&self, _module: &Module<'ctx>, _builder: &Builder<'ctx>) {}

    /// Whether a loop in assembly reads values that threads keep in memory for want of registers.
    fn spills(&self, _assembly: &str) -> bool {
        false
    }

    /// Whether a function of a module is to have so many waves resident on each unit that it may use few registers.
    fn wishes_waves(&self, _module: &Module<'_>) -> bool {
        false
    }

    /// Lets LLVM choose how many waves of the functions of a module are resident.
    fn grant_any_waves(&self, _module: &Module<'_>) {}

    /// The assembly in the form that its assembler expects.
    fn finish_assembly(&self, text: String) -> String {
        text
    }
}

/// What an instruction does that matters to the order of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A product that keeps its unit busy while others are issued.
    Product,
    /// It loads from global memory into registers.
    Load,
    /// It waits for other warps, or orders memory.
    Barrier,
    /// The scheduler moves nothing over it.
    Line,
    /// Anything else.
    Other,
}

/// LLVM passes that only one vendor has, by their names in a pipeline's text; each list ends with a comma, or is
/// empty. And those that one vendor does not need.
#[derive(Debug)]
pub(crate) struct VendorPasses {
    /// Over the module, before anything else.
    pub(crate) first: &'static str,
    /// Over each function, once calls are inlined and loops have their form.
    pub(crate) in_functions: &'static str,
    /// Unrolls loops of known numbers of iterations, without a comma.
    pub(crate) unrolling: &'static str,
    /// Over the module, after everything else.
    pub(crate) last: &'static str,
    /// Whether instructions are combined and duplicates removed once more, which the vendor's back end does not do itself.
    pub(crate) repeats: bool,
    /// Passes of the code generator, or single runs of them, that find nothing in what is emitted for the vendor.
    pub(crate) idle: Vec<OmittedPass>,
}

/// The back end of a target.
pub(crate) fn back_end(target: Target) -> Box<dyn BackEnd> {
    match target.vendor() {
        Vendor::Nvptx => Box::new(Nvptx::new(target)),
        Vendor::Amdgpu => Box::new(Amdgpu::new(target)),
    }
}

/// The instructions of a target.
pub(crate) fn hooks(target: Target, options: &CodegenOptions) -> Box<dyn Hooks> {
    match target.vendor() {
        Vendor::Nvptx => {
            let hooks = Nvptx::new(target);
            Box::new(hooks.flushing_denormals(options.library_flushes_denormals))
        }
        Vendor::Amdgpu => Box::new(Amdgpu::new(target)),
    }
}

/// Prefixes of the names of functions that only vendors' libraries may define.
pub(crate) fn reserved_prefixes() -> impl Iterator<Item = &'static str> {
    let vendors = nvptx::library::RESERVED.into_iter();
    vendors.chain(amdgpu::library::RESERVED)
}

/// Whether a name is that of a function of another vendor's libraries.
pub(crate) fn is_of_other_vendor(name: &str, target: Target) -> bool {
    let others: &[&str] = match target.vendor() {
        Vendor::Nvptx => &amdgpu::library::RESERVED,
        Vendor::Amdgpu => &nvptx::library::RESERVED,
    };
    others.iter().any(|prefix| name.starts_with(prefix))
}
