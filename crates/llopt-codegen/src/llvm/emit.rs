//! From an optimised module to text and binaries.
//!
//! LLVM's code generator rewrites the module it works on, so a module yields only one artefact: the functions here
//! take the module. Clone it first to get both assembly and an object.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use inkwell::llvm_sys::target_machine::LLVMCodeGenFileType;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use llopt_target::Target;

use crate::error::CodegenError;
use crate::llvm::c_api::{OmittedPass, generate_code};
use crate::llvm::strength_reduction;
use crate::options::CodegenOptions;
use crate::targets::back_end::back_end;

/// A pass of the code generator that finds nothing in what we emit.
///
/// Our debug information has lines only and describes no variable. The analysis of where variables live looks for the
/// registers that each instruction overwrites all the same, under all names of each register: on AMD, where every
/// sequence of registers has a name, 8 % of the back end's time for matrix products.
const LOCATIONS_OF_VARIABLES: &CStr = c"livedebugvalues";

/// A pass that is worth its time only where `strength_reduction` says so.
const STRENGTH_REDUCTION: &CStr = c"slsr";

fn write(
    module: Module<'_>,
    target: Target,
    machine: &TargetMachine,
    kind: LLVMCodeGenFileType,
) -> Result<MemoryBuffer<'static>, CodegenError> {
    let mut omitted = omitted_always(target);
    if !strength_reduction::pays(&module, target) {
        omitted.push(OmittedPass::always(STRENGTH_REDUCTION));
    }
    generate_code(module, machine, kind, &mut omitted).ok_or_else(|| CodegenError::Bug {
        stage: "code generation",
        message: "the target has no such output".to_owned(),
    })
}

/// The passes of the code generator that are left out whatever the module is.
fn omitted_always(target: Target) -> Vec<OmittedPass> {
    let mut omitted = back_end(target).passes().idle;
    omitted.push(OmittedPass::always(LOCATIONS_OF_VARIABLES));
    omitted
}

/// The assembly text: PTX, or AMDGCN assembly.
///
/// # Errors
/// A bug: LLVM could not select instructions.
pub fn assembly(
    module: Module<'_>,
    target: Target,
    machine: &TargetMachine,
) -> Result<String, CodegenError> {
    let made = write(
        module,
        target,
        machine,
        LLVMCodeGenFileType::LLVMAssemblyFile,
    )?;
    let text = String::from_utf8_lossy(made.as_slice())
        .trim_end_matches('\0')
        .to_owned();
    Ok(back_end(target).finish_assembly(text))
}

/// The relocatable object (AMD).
///
/// # Errors
/// A bug: LLVM could not select or encode instructions.
pub fn object(
    module: Module<'_>,
    target: Target,
    machine: &TargetMachine,
) -> Result<Vec<u8>, CodegenError> {
    let made = write(module, target, machine, LLVMCodeGenFileType::LLVMObjectFile)?;
    Ok(made.as_slice().to_vec())
}

/// Links a relocatable object into the shared object that AMD's runtime loads.
///
/// # Errors
/// No linker was found, or it refused the object.
pub fn link_code_object(object: &[u8], options: &CodegenOptions) -> Result<Vec<u8>, CodegenError> {
    let failed = |message: String| CodegenError::Linker { message };
    let linker = find_linker(options).ok_or_else(|| {
        failed("no ld.lld found: install it (Debian: lld-22), or name it with --lld or the environment variable LLOPT_LLD".to_owned())
    })?;
    let directory = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let (input, output) = (
        directory.path().join("kernel.o"),
        directory.path().join("kernel.hsaco"),
    );
    std::fs::write(&input, object).map_err(|error| failed(error.to_string()))?;
    let result = Command::new(&linker)
        .args(
            ["-flavor", "gnu", "-shared", "--no-undefined"]
                .iter()
                .skip(if names_gnu_flavour(&linker) { 2 } else { 0 }),
        )
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .map_err(|error| failed(format!("{}: {error}", linker.display())))?;
    if !result.status.success() {
        return Err(failed(format!(
            "{}: {}",
            linker.display(),
            String::from_utf8_lossy(&result.stderr).trim()
        )));
    }
    std::fs::read(&output).map_err(|error| failed(error.to_string()))
}

/// Whether the program's name already selects ELF linking; a bare `lld` needs an option for it.
fn names_gnu_flavour(linker: &Path) -> bool {
    linker
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("ld"))
}

fn find_linker(options: &CodegenOptions) -> Option<PathBuf> {
    if let Some(path) = options
        .lld
        .clone()
        .or_else(|| std::env::var_os("LLOPT_LLD").map(PathBuf::from))
    {
        return Some(path);
    }
    let path = std::env::var_os("PATH")?;
    let in_path = ["ld.lld-22", "ld.lld"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)));
    in_path
        .chain([PathBuf::from("/usr/lib/llvm-22/bin/ld.lld")])
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::llvm_sys::target_machine::LLVMCodeGenFileType;
    use inkwell::memory_buffer::MemoryBuffer;
    use llopt_target::Target;

    use crate::llvm::c_api::{OmittedPass, generate_code};
    use crate::llvm::machine::Machine;

    /// Whether a target's back end has each of these passes.
    fn found(target: Target, mut omitted: Vec<OmittedPass>) -> Vec<bool> {
        let text = b"define void @f() { ret void }";
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text, "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        let machine = Machine::of(target).unwrap();
        let kind = LLVMCodeGenFileType::LLVMAssemblyFile;
        generate_code(module, &machine, kind, &mut omitted).unwrap();
        omitted.iter().map(OmittedPass::is_found).collect()
    }

    #[test]
    fn every_pass_that_is_left_out_is_one_of_the_back_end() {
        for name in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
            let target = Target::parse(name).unwrap();
            let mut omitted = super::omitted_always(target);
            omitted.push(OmittedPass::always(super::STRENGTH_REDUCTION));
            let found = found(target, omitted.clone());
            assert!(found.iter().all(|found| *found), "{name}: {omitted:?}");
        }
    }

    #[test]
    fn runs_of_a_pass_are_counted_from_one() {
        let target = Target::parse("hip:gfx942").unwrap();
        // LLVM copies registers on twice: after it allocated them, and once control flow is final.
        let runs = (1..=3).map(|run| OmittedPass::once(c"machine-cp", run));
        assert_eq!(found(target, runs.collect()), [true, true, false]);
    }
}
