//! The options of a compilation.

use std::path::PathBuf;

use llopt_codegen::options::CodegenOptions;
use llopt_target::Target;

use crate::{
    ArtifactKind, Budget, ConversionRequest, GatherRequest, Persistent, Rewriting, TensorCopies,
};

/// The options of a compilation. All except the target have the defaults of Triton's own compiler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The GPU to compile for.
    pub target: Target,
    /// Warps for each block; 0 chooses as many as the model of loops with products predicts to be fastest. Input with
    /// layouts determines it (`ttg.num-warps`); a different number is then an error.
    pub num_warps: Option<u32>,
    /// The number of stages of loops with products that do not specify it themselves (`tt.num_stages`), in kernels
    /// without layouts; 1 does not pipeline, 0 chooses as many as hide the latency of loads.
    pub num_stages: u32,
    /// Blocks for each cluster; as with `num_warps`, input with layouts determines it.
    pub num_ctas: Option<u32>,
    /// Blocks of a cluster that share the iterations of a loop of products and add their sums, in kernels without
    /// layouts: 1, 2, 4 or 8. A loop of which that is not possible stays as it is.
    pub split_k: u32,
    /// The blocks of which each computes a part of a program's tile, in kernels without layouts: 1, 2, 4 or 8. A kernel of
    /// which that is not possible stays as it is; the [metadata](crate::Metadata::tile_parts) say what became of it.
    pub tile_parts: u32,
    /// The rows of tiles of a kernel without layouts that are computed where the program sees that others are not stored: a
    /// power of two from 16 on, or zero for all.
    pub tile_rows: u32,
    /// Whether launches of a kernel without layouts have no more blocks than there are multiprocessors.
    /// Then loops are pipelined as deep as memory asks for while all multiprocessors load.
    pub single_wave: bool,
    /// Whether launches have so few programs that all their blocks are resident, so that an assembler need not save
    /// registers for others ([`crate::residency`]).
    pub few_programs: bool,
    /// Whether the second factors of products of a kernel without layouts are larger than the cache and read once, so that caches
    /// drop them first.
    pub streamed: bool,
    /// Whether a multiplication and an addition may be fused into one rounding.
    pub fp_fusion: bool,
    /// Bitcode of NVIDIA's device library; without it, the environment variable `LLOPT_LIBDEVICE` is used, then the
    /// directories of CUDA, Debian's packages and an installed Triton are searched.
    pub libdevice: Option<PathBuf>,
    /// Directory of AMD's device libraries (`ocml.bc`, `ockl.bc`); without it, the environment variable `LLOPT_OCML`
    /// is used, then the directories of ROCm, Debian's packages and an installed Triton are searched.
    pub ocml: Option<PathBuf>,
    /// NVIDIA's assembler; without it, [`find_ptxas`](crate::toolchain::find_ptxas) searches for it.
    pub ptxas: Option<PathBuf>,
    /// LLVM's linker for AMD code objects; without it, `LLOPT_LLD`, then `ld.lld-22` and `ld.lld` on the search path.
    pub lld: Option<PathBuf>,
    /// Upper bound on registers for each thread, passed to `ptxas`.
    pub max_registers: Option<u32>,
    /// Bitcode of further libraries; a kernel gets those of their functions that it calls.
    pub libraries: Vec<PathBuf>,
    /// Whether libdevice's functions flush denormal numbers of 32 bits to zero (NVIDIA).
    pub library_flushes_denormals: bool,
    /// Whether arithmetic may flush denormal numbers of 32 bits to zero (AMD).
    pub flush_denormals: bool,
    /// The target number of warps for each execution unit (AMD); zero lets LLVM choose.
    pub waves_per_eu: u32,
    /// Whether line information goes into the artefact.
    pub line_info: bool,
    /// Whether LLVM optimises; without it, LLVM IR is that of lowering (for the simulator, which runs both).
    pub optimize: bool,
    /// Whether calls of the device runtime's print functions remain calls of external functions, which the simulator
    /// provides; without it they are linked (AMD).
    pub keep_print_calls: bool,
    /// Whether the code calls a function that checks indices of buffers and of gathers against their bounds, which
    /// the simulator provides; code with such calls runs nowhere else.
    pub check_indices: bool,
    /// Whether the code calls functions where the live ranges of buffers of shared memory begin and end, which the
    /// simulator provides; code with such calls runs nowhere else.
    pub mark_buffers: bool,
    /// The forms to return besides the requested one, if the kernel passes through them.
    pub keep: Vec<ArtifactKind>,
    /// The plan for conversions between layouts, instead of the cheapest one; a conversion for which it is not
    /// possible is an error. It does not apply to a conversion that moves nothing between threads.
    pub conversion_plan: Option<ConversionRequest>,
    /// Whether loads of tiles through pointers become tensor copies, where the target has them, and who makes the
    /// descriptors.
    pub tensor_copies: TensorCopies,
    /// Whether the launcher starts no more blocks of a kernel than are resident, and each computes several programs
    /// where that is faster; the [metadata](crate::Metadata::program_extents) say what it passes.
    pub persistent: Persistent,
    /// Whether the kernel waits for the one before it itself, so that its launch may overlap with that, where the target
    /// has such launches; the [metadata](crate::Metadata::launch_pdl) say whether it does.
    pub dependent_launch: bool,
    /// Whether the halves of a block take turns in loops of products, in kernels without layouts (AMD).
    pub block_pingpong: Rewriting,
    /// Whether loops that reduce over tiles take tiles of twice the size, where that is proved to be the same over the
    /// real numbers, in kernels without layouts.
    pub wide_iterations: Rewriting,
    /// The plan for gathers, instead of the cheapest one; a gather for which it is not possible is an error.
    pub gather_plan: Option<GatherRequest>,
    /// Whether layouts are checked after each pass that changes some; by default only if llopt itself was built with
    /// debug assertions.
    pub verify_layouts: bool,
    /// Limits on the cost of the compilation.
    pub budget: Budget,
    /// Whether lowering keeps its decisions, for [`explain`](crate::explain()).
    pub(crate) keep_decisions: bool,
    /// The directory for the input of a compilation that hits a bug in llopt; `None` writes none.
    pub reproducer_directory: Option<PathBuf>,
}

impl Options {
    /// The options of code generation.
    pub(crate) fn codegen(&self) -> CodegenOptions {
        CodegenOptions {
            fp_fusion: self.fp_fusion,
            max_registers: self.max_registers,
            line_info: self.line_info,
            libdevice: self.libdevice.clone(),
            ocml: self.ocml.clone(),
            lld: self.lld.clone(),
            keep_decisions: self.keep_decisions,
            keep_print_calls: self.keep_print_calls,
            check_indices: self.check_indices,
            mark_buffers: self.mark_buffers,
            libraries: self.libraries.clone(),
            library_flushes_denormals: self.library_flushes_denormals,
            flush_denormals: self.flush_denormals,
            waves_per_eu: self.waves_per_eu,
            ..CodegenOptions::default()
        }
    }

    /// Whether the number of warps is the compiler's to choose.
    pub(crate) fn chooses_warps(&self) -> bool {
        self.num_warps == Some(0)
    }

    /// The defaults for a target: three stages on NVIDIA, two on AMD, as in Triton.
    pub fn new(target: Target) -> Self {
        let num_stages = match target.vendor() {
            llopt_target::Vendor::Nvptx => 3,
            llopt_target::Vendor::Amdgpu => 2,
        };
        Self {
            target,
            num_warps: None,
            num_stages,
            num_ctas: None,
            split_k: 1,
            tile_parts: 1,
            tile_rows: 0,
            single_wave: false,
            few_programs: false,
            streamed: false,
            fp_fusion: true,
            libdevice: None,
            ocml: None,
            ptxas: None,
            lld: None,
            max_registers: None,
            libraries: Vec::new(),
            library_flushes_denormals: true,
            flush_denormals: false,
            waves_per_eu: 0,
            line_info: true,
            optimize: true,
            conversion_plan: None,
            gather_plan: None,
            tensor_copies: TensorCopies::Off,
            persistent: Persistent::Off,
            dependent_launch: false,
            block_pingpong: Rewriting::Auto,
            wide_iterations: Rewriting::Auto,
            verify_layouts: cfg!(debug_assertions),
            budget: Budget::default(),
            keep_decisions: false,
            keep_print_calls: false,
            check_indices: false,
            mark_buffers: false,
            keep: Vec::new(),
            reproducer_directory: Some(std::env::temp_dir()),
        }
    }
}
