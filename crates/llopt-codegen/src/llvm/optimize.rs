//! LLVM's optimiser over a lowered module, and the little that must happen before and after it.
//!
//! Before: the device libraries are linked in ([`crate::llvm::device_library`]). After: addresses of one array are
//! split into a common base and constant offsets, and the target's back end decides where these go
//! (`BackEnd::after_optimization`).

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::InstructionOpcode;
use llopt_target::Target;

use crate::error::CodegenError;
use crate::llvm::c_api;
use crate::llvm::instructions::change_all;
use crate::targets::back_end::back_end;

/// Optimises `module`, into which the device libraries are linked already.
///
/// # Errors
/// A bug: a pass failed.
pub fn optimize(
    module: &Module<'_>,
    target: Target,
    machine: &TargetMachine,
) -> Result<(), CodegenError> {
    run(module, machine, "default<O3>")?;
    // Constants leave the addresses, so that accesses share what remains and take them as offsets.
    change_all(module, InstructionOpcode::Or, c_api::gather_constants);
    change_all(
        module,
        InstructionOpcode::GetElementPtr,
        c_api::move_constant_outwards,
    );
    run(
        module,
        machine,
        "function(separate-const-offset-from-gep,early-cse)",
    )?;
    if back_end(target).after_optimization(module) {
        run(module, machine, "function(early-cse)")?;
    }
    Ok(())
}

fn run(module: &Module<'_>, machine: &TargetMachine, passes: &str) -> Result<(), CodegenError> {
    let options = PassBuilderOptions::create();
    options.set_loop_unrolling(true);
    options.set_loop_interleaving(true);
    options.set_loop_vectorization(true);
    options.set_loop_slp_vectorization(true);
    module
        .run_passes(passes, machine, options)
        .map_err(|error| CodegenError::Bug {
            stage: "optimisation",
            message: error.to_string(),
        })
}
