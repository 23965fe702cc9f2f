//! Device libraries: bitcode with the functions the hardware has no instruction for.
//!
//! NVIDIA's `libdevice.10.bc` and AMD's `ocml.bc` and `ockl.bc` come with their toolkits (and with Triton); they are
//! found at run time, by name or where those packages put them (`library_search`). A library is opened lazily, and
//! all its functions are marked as discardable before linking, so that LLVM's linker reads and copies only the bodies
//! of functions that the kernel reaches. The copies are made internal, so that the optimiser may inline and drop
//! them.

use std::path::{Path, PathBuf};

use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use llopt_target::Target;

use crate::error::CodegenError;
use crate::llvm::c_api::open_bitcode_lazily;
use crate::options::CodegenOptions;
use crate::targets::back_end::back_end;

/// Links the libraries that `module` needs into it. If it needs none, no file is searched for. Answers the libraries
/// that were found without being named.
///
/// # Errors
/// A library is needed and not named, or its file cannot be read.
pub fn link<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    target: Target,
    options: &CodegenOptions,
) -> Result<Vec<PathBuf>, CodegenError> {
    let own: Vec<String> = defined(module);
    let mut found = Vec::new();
    let mut linked = false;
    // The user's libraries come first: they may call the vendor's.
    for path in &options.libraries {
        if calls_outside(module) {
            link_one(context, module, target, path)?;
            linked = true;
        }
    }
    for library in back_end(target).libraries(options) {
        let Some(function) = undefined(module, library.prefixes, options) else {
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
        link_one(context, module, target, &path)?;
        if place.searched {
            found.push(path.clone());
        }
        if let Some(function) = undefined(module, library.prefixes, options) {
            return Err(CodegenError::Library {
                path,
                message: format!("it does not define '{function}', which the kernel calls"),
            });
        }
        linked = true;
    }
    if !linked {
        return Ok(found);
    }
    for function in module.get_functions() {
        let is_definition = function.count_basic_blocks() > 0;
        if is_definition
            && !own
                .iter()
                .any(|name| function.get_name().to_bytes() == name.as_bytes())
        {
            function.set_linkage(Linkage::Internal);
        }
    }
    back_end(target).configure_libraries(context, module, options);
    Ok(found)
}

fn defined(module: &Module<'_>) -> Vec<String> {
    module
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0)
        .map(|function| function.get_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether the module calls a function that neither it nor LLVM defines.
fn calls_outside(module: &Module<'_>) -> bool {
    module.get_functions().any(|function| {
        let name = function.get_name().to_bytes();
        // Functions that LLVM and the simulator know.
        let is_known = name.starts_with(b"llvm.") || name.starts_with(b"llopt_");
        function.count_basic_blocks() == 0 && !is_known
    })
}

fn undefined(module: &Module<'_>, prefixes: &[&str], options: &CodegenOptions) -> Option<String> {
    let is_kept = |name: &str| {
        options.keep_print_calls
            && (name.starts_with("__ockl_printf_") || name.starts_with("__ockl_fprintf_"))
    };
    module
        .get_functions()
        .filter(|function| function.count_basic_blocks() == 0)
        .map(|function| function.get_name().to_string_lossy().into_owned())
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
