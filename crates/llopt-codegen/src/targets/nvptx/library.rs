//! NVIDIA's device library, `libdevice.10.bc`: the names of its functions, and the directories of CUDA, Debian's
//! packages and the Python packages of Triton and NVIDIA.

use std::path::PathBuf;

use crate::llvm::library_search::{Library, in_python, toolkits};
use crate::options::CodegenOptions;

/// Prefixes of the names of functions that only libraries may define.
pub(crate) const RESERVED: [&str; 2] = ["__nv_", "__nvvm_"];

/// The libraries that kernels may need.
pub(super) fn libraries(options: &CodegenOptions) -> Vec<Library> {
    vec![Library {
        name: "libdevice",
        prefixes: &["__nv_"],
        option: "--libdevice",
        named: options.libdevice.clone(),
        variables: &["LLOPT_LIBDEVICE", "TRITON_LIBDEVICE_PATH"],
        places,
        file: None,
    }]
}

fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = toolkits(&["CUDA_HOME", "CUDA_PATH"], "/usr/local/cuda")
        .map(|toolkit| toolkit.join("nvvm/libdevice/libdevice.10.bc"))
        .collect();
    places.push("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc".into());
    places.push("/usr/share/nvidia-cuda-toolkit/libdevice/libdevice.10.bc".into());
    places.extend(in_python(&[
        "triton/backends/nvidia/lib/libdevice.10.bc",
        "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
    ]));
    places
}
