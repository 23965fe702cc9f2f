//! The change that code generation makes to memory accesses before instruction selection: it merges neighbours.
//!
//! LLVM's optimiser splits vectors of loads where only their elements are used, and the code generators of both
//! vendors merge them again (`load-store-vectorizer`), so that the optimised IR does not show the width of the
//! instructions. Counters must agree with the hardware, so the same pass runs here, with the target's own rules. A
//! module for another triple than the target's is not changed.

use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target as Backend, TargetTriple,
};
use llopt_target::Target;

use crate::error::Error;

static INITIALIZE: Once = Once::new();

/// Merges neighbouring accesses of `module` as the code generator of `target` will.
///
/// # Errors
/// [`Error::InvalidModule`] with LLVM's message if its pass fails.
pub(crate) fn join_accesses(module: &Module<'_>, target: Target) -> Result<(), Error> {
    if module.get_triple().as_str().to_bytes() != target.triple().as_bytes() {
        return Ok(());
    }
    INITIALIZE.call_once(|| {
        Backend::initialize_nvptx(&InitializationConfig::default());
        Backend::initialize_amd_gpu(&InitializationConfig::default());
    });
    let words = |text: String| Error::InvalidModule(text);
    let triple = TargetTriple::create(target.triple());
    let machine = Backend::from_triple(&triple)
        .map_err(|error| words(error.to_string()))?
        .create_target_machine(
            &triple,
            target.llvm_cpu(),
            target.llvm_features(),
            OptimizationLevel::Aggressive,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| words(format!("LLVM has no machine for {target}")))?;
    module
        .run_passes(
            "function(load-store-vectorizer)",
            &machine,
            PassBuilderOptions::create(),
        )
        .map_err(|error| words(error.to_string()))
}
