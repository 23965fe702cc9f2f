//! AMD's device libraries, `ocml.bc` and `ockl.bc`: the names of their functions, and the directories of ROCm,
//! Debian's packages and Triton's Python package.

use std::path::PathBuf;

use crate::llvm::library_search::{Library, in_python, toolkits};
use crate::options::CodegenOptions;

/// Prefixes of the names of functions that only libraries may define.
pub(crate) const RESERVED: [&str; 3] = ["__ocml_", "__ockl_", "__oclc_"];

/// The libraries that kernels may need.
pub(super) fn libraries(options: &CodegenOptions) -> Vec<Library> {
    let library = |name, prefixes, file| Library {
        name,
        prefixes,
        option: "--ocml",
        named: options.ocml.clone(),
        variables: &["LLOPT_OCML"],
        places,
        file: Some(file),
    };
    // ockl after ocml: nothing in ockl calls ocml, and both may call the other's internals.
    vec![
        library("ocml", &["__ocml_"], "ocml.bc"),
        library("ockl", &["__ockl_"], "ockl.bc"),
    ]
}

fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = toolkits(&["ROCM_PATH", "HIP_PATH"], "/opt/rocm")
        .map(|toolkit| toolkit.join("amdgcn/bitcode"))
        .collect();
    let machine = std::env::consts::ARCH;
    places.push(format!("/usr/lib/{machine}-linux-gnu/amdgcn/bitcode").into());
    places.push("/usr/lib/amdgcn/bitcode".into());
    places.extend(in_python(&["triton/backends/amd/lib"]));
    places
}
