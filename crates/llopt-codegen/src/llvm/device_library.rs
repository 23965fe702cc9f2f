//! Device libraries: bitcode with the functions the hardware has no instruction for.
//!
//! NVIDIA's `libdevice.10.bc` and AMD's `ocml.bc` and `ockl.bc` come with their toolkits (and with Triton); they are
//! found at run time, by name or where those packages put them (`library_search`). A library is opened lazily, and
//! all its functions are marked as discardable before linking, so that LLVM's linker reads and copies only the bodies
//! of functions that the kernel reaches, into a module of their own.
//!
//! There they are prepared once, however many elements of a tensor they are called for: functions are inlined into one
//! another, and their short branches become selects (`if_conversion`). NVIDIA's functions are written such that a
//! product and the sum that takes it may be one instruction (where they may not, they call `mul.rn`), as its own compilers
//! and Triton make of them; AMD's say themselves where they want that. Then they are linked to the kernel and
//! made internal, so that the optimiser may inline and drop them.

use std::path::{Path, PathBuf};

use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetMachine;
use inkwell::values::{FastMathFlags, FunctionValue, InstructionOpcode};
use llopt_target::Target;

use crate::error::CodegenError;
use crate::llvm::c_api::open_bitcode_lazily;
use crate::llvm::if_conversion;
use crate::llvm::instructions::change_all;
use crate::llvm::optimize::{self, COMBINE};
use crate::options::CodegenOptions;
use crate::targets::back_end::back_end;

/// Links the libraries that `module` needs into it, optimised for `machine` if there is one. If it needs none, no file is
/// searched for. Answers the libraries that were found without being named.
///
/// # Errors
/// A library is needed and not named, its file cannot be read, or it lacks a function.
pub fn link<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    target: Target,
    machine: Option<&TargetMachine>,
    options: &CodegenOptions,
) -> Result<Vec<PathBuf>, CodegenError> {
    let libraries = context.create_module("libraries");
    libraries.set_triple(&module.get_triple());
    libraries.set_data_layout(&module.get_data_layout());
    // Nothing refers to the declarations, but the linker defines what is declared.
    let called: Vec<FunctionValue<'ctx>> = undefined(module).collect();
    for function in &called {
        libraries.add_function(&name_of(*function), function.get_type(), None);
    }
    let found = define(context, &libraries, target, options)?;
    if !libraries
        .get_functions()
        .any(|function| is_defined(&function))
    {
        return Ok(found);
    }
    let called: Vec<String> = called.into_iter().map(name_of).collect();
    for function in libraries.get_functions().filter(is_defined) {
        let linkage = match called.contains(&name_of(function)) {
            true => Linkage::External,
            false => Linkage::Internal,
        };
        function.set_linkage(linkage);
    }
    back_end(target).configure_libraries(context, &libraries, options);
    if let Some(machine) = machine {
        if options.fp_fusion && back_end(target).contracts_libraries() {
            contract(&libraries);
        }
        prepare(&libraries, target, machine)?;
    }
    module
        .link_in_module(libraries)
        .map_err(|error| CodegenError::Bug {
            stage: "linking of libraries",
            message: error.to_string(),
        })?;
    let now_defined = called.iter().filter_map(|name| module.get_function(name));
    for function in now_defined.filter(is_defined) {
        function.set_linkage(Linkage::Internal);
    }
    Ok(found)
}

/// Defines what is declared in `libraries`, and what that calls. Answers the libraries that were found without being named.
fn define<'ctx>(
    context: &'ctx Context,
    libraries: &Module<'ctx>,
    target: Target,
    options: &CodegenOptions,
) -> Result<Vec<PathBuf>, CodegenError> {
    let mut found = Vec::new();
    // The user's libraries come first: they may call the vendor's.
    for path in &options.libraries {
        if undefined(libraries).next().is_some() {
            link_one(context, libraries, target, path)?;
        }
    }
    for library in back_end(target).libraries(options) {
        let Some(function) = reserved(libraries, library.prefixes, options) else {
            continue;
        };
        let place = library.search();
        let path = place.found.ok_or_else(|| CodegenError::MissingLibrary {
            function,
            library: library.name,
            option: library.option,
            variable: library.variables.first().copied().unwrap_or_default(),
            places: place.looked_in.join(", "),
        })?;
        link_one(context, libraries, target, &path)?;
        if place.searched {
            found.push(path.clone());
        }
        if let Some(function) = reserved(libraries, library.prefixes, options) {
            return Err(CodegenError::UndefinedFunction { path, function });
        }
    }
    Ok(found)
}

/// Makes one function of each that the kernel calls and of what it calls itself, and selects of its short branches.
fn prepare(
    libraries: &Module<'_>,
    target: Target,
    machine: &TargetMachine,
) -> Result<(), CodegenError> {
    const MERGE: &str = "function(simplifycfg)";
    let back_end = back_end(target);
    let first = back_end.passes().first;
    let inline = format!(
        "{first}function(simplifycfg,sroa<modify-cfg>,early-cse),ipsccp,cgscc(inline),globaldce,\
         function(sroa<modify-cfg>,early-cse,{COMBINE},simplifycfg)"
    );
    optimize::run(libraries, machine, &inline)?;
    while if_conversion::convert(libraries, &*back_end) {
        optimize::run(libraries, machine, MERGE)?;
    }
    Ok(())
}

/// Allows that sums and products of library functions are computed by one instruction.
fn contract(libraries: &Module<'_>) {
    use InstructionOpcode::{FAdd, FMul, FSub};
    for opcode in [FAdd, FSub, FMul] {
        change_all(libraries, opcode, |_, instruction| {
            let flags = instruction
                .get_fast_math_flags()
                .unwrap_or(FastMathFlags::empty());
            // Refused only for instructions that cannot carry the flag.
            let _ = instruction.set_fast_math_flags(flags | FastMathFlags::AllowContract);
        });
    }
}

fn name_of(function: FunctionValue<'_>) -> String {
    function.get_name().to_string_lossy().into_owned()
}

fn is_defined(function: &FunctionValue<'_>) -> bool {
    function.count_basic_blocks() > 0
}

/// The functions that a module calls and that neither it nor LLVM defines.
fn undefined<'ctx>(module: &Module<'ctx>) -> impl Iterator<Item = FunctionValue<'ctx>> {
    module.get_functions().filter(|function| {
        let name = function.get_name().to_bytes();
        // Functions that LLVM and the simulator know.
        let is_known = name.starts_with(b"llvm.") || name.starts_with(b"llopt_");
        !is_defined(function) && !is_known
    })
}

/// An undefined function whose name only the vendor's library may have.
fn reserved(module: &Module<'_>, prefixes: &[&str], options: &CodegenOptions) -> Option<String> {
    let is_kept = |name: &str| {
        options.keep_print_calls
            && (name.starts_with("__ockl_printf_") || name.starts_with("__ockl_fprintf_"))
    };
    undefined(module)
        .map(name_of)
        .find(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)) && !is_kept(name))
}

fn link_one<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    target: Target,
    path: &Path,
) -> Result<(), CodegenError> {
    let failed = |message: String| CodegenError::Library {
        path: path.to_owned(),
        message,
    };
    let library = open_bitcode_lazily(context, path).map_err(failed)?;
    library.set_triple(&inkwell::targets::TargetTriple::create(target.triple()));
    library.set_data_layout(&module.get_data_layout());
    for function in library.get_functions() {
        if function.get_linkage() == Linkage::External
            && !function.as_global_value().is_declaration()
        {
            function.set_linkage(Linkage::LinkOnceODR);
        }
    }
    for global in library.get_globals() {
        if global.get_linkage() == Linkage::External && !global.is_declaration() {
            global.set_linkage(Linkage::LinkOnceODR);
        }
    }
    module
        .link_in_module(library)
        .map_err(|error| failed(error.to_string()))
}
