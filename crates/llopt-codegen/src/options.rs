//! The choices of a user that change the emitted code, with Triton's defaults.

use std::path::PathBuf;

/// Choices for lowering, optimisation and emission.
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// Whether products and sums may be fused into multiply-adds.
    pub fp_fusion: bool,
    /// Whether `f32` denormals may be flushed to zero (AMD).
    pub flush_denormals: bool,
    /// Whether libdevice's functions flush `f32` denormals (NVIDIA).
    pub library_flushes_denormals: bool,
    /// Warps per execution unit to aim for (AMD); 0 leaves it to LLVM.
    pub waves_per_eu: u32,
    /// Limit of 32-bit registers per thread (NVIDIA).
    pub max_registers: Option<u32>,
    /// Whether instructions carry their source lines.
    pub line_info: bool,
    /// Bitcode of NVIDIA's libdevice; else the environment variable `LLOPT_LIBDEVICE`.
    pub libdevice: Option<PathBuf>,
    /// Directory of AMD's `ocml.bc` and `ockl.bc`; else the environment variable `LLOPT_OCML`.
    pub ocml: Option<PathBuf>,
    /// Bitcode of further libraries, for functions that the kernel calls and the device libraries do not define.
    pub libraries: Vec<PathBuf>,
    /// The `ld.lld` that links code objects; else the environment variable `LLOPT_LLD`, else the first of
    /// `ld.lld-22`, `ld.lld` on the path.
    pub lld: Option<PathBuf>,
    /// Whether calls of the device runtime's print functions are kept, for a simulator that provides these functions
    /// (AMD).
    pub keep_print_calls: bool,
    /// Whether each index is passed to a function together with its bound, for a simulator that provides the
    /// function.
    pub check_indices: bool,
    /// Whether functions are called at the start and end of the live ranges of buffers of shared memory, for a
    /// simulator that provides them.
    pub mark_buffers: bool,
    /// Whether LLVM's verifier runs after lowering.
    pub verify: bool,
    /// Whether lowering records its [decisions](crate::walk::decision).
    pub keep_decisions: bool,
}

impl Default for CodegenOptions {
    fn default() -> Self {
        Self {
            fp_fusion: true,
            flush_denormals: false,
            library_flushes_denormals: true,
            waves_per_eu: 0,
            max_registers: None,
            line_info: true,
            libdevice: None,
            ocml: None,
            libraries: Vec::new(),
            lld: None,
            keep_print_calls: false,
            check_indices: false,
            mark_buffers: false,
            verify: cfg!(debug_assertions),
            keep_decisions: false,
        }
    }
}
