//! Options that request kinds of plans and of accesses, for all commands that generate code.

use clap::Args;
use llopt::{ConversionRequest, GatherRequest, Options, Persistent, Rewriting, TensorCopies};

/// The requested kinds of plans and of accesses.
#[derive(Args, Clone, Copy, Debug)]
pub struct Plans {
    /// How elements go from one layout to another [default: the cheapest plan]: register, shuffle,
    /// shared, or shared:STORE-LOAD, each one of vector, matrix, transposed, any
    #[arg(long, value_name = "PLAN")]
    conversion_plan: Option<ConversionRequest>,

    /// How elements are gathered [default: the cheapest plan]: thread, shuffle or shared
    #[arg(long, value_name = "PLAN")]
    gather_plan: Option<GatherRequest>,

    /// Who makes the descriptors with which loads of tiles through pointers become tensor copies, where the GPU
    /// has them: off, kernel or launcher
    #[arg(long, value_name = "WHO", default_value = "off")]
    tensor_copies: TensorCopies,

    /// Blocks of which each computes a part of a program's tile, in kernels without layouts: 1, 2, 4 or 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    tile_parts: u32,

    /// Rows of tiles that are computed where the program sees that others are not stored, in kernels without
    /// layouts: a power of two from 16 on, or 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    tile_rows: u32,

    /// Launches have no more blocks than there are multiprocessors: loops are pipelined as deep as
    /// memory asks for while all of these load
    #[arg(long)]
    single_wave: bool,

    /// Launches have so few programs that all blocks are resident: the assembler saves no registers for others (NVIDIA)
    #[arg(long)]
    few_programs: bool,

    /// The second factors of products are larger than the cache and read once, in kernels without layouts: caches drop
    /// them first
    #[arg(long)]
    streamed: bool,

    /// Whether blocks compute several programs each, where that is faster and the launcher starts no more than are
    /// resident: off, propose (the metadata say where) or on
    #[arg(long, value_name = "WHETHER", default_value = "off")]
    persistent: Persistent,

    /// Let the kernel wait for the one before it itself, so that its launch may overlap with that, where the GPU has
    /// such launches (the metadata say so)
    #[arg(long)]
    dependent_launch: bool,

    /// Whether the halves of a block take turns in loops of products, one multiplying while the other accesses memory
    /// (AMD): off, auto (where the model predicts a gain) or on (wherever possible)
    #[arg(long, value_name = "WHETHER", default_value = "auto")]
    block_pingpong: Rewriting,

    /// Whether loops that reduce over tiles take tiles of twice the size, where that is proved to be the same over the
    /// real numbers, in kernels without layouts: off, auto (where the model predicts a gain) or on (wherever possible)
    #[arg(long, value_name = "WHETHER", default_value = "auto")]
    wide_iterations: Rewriting,
}

impl Plans {
    /// Adds them to the options of a compilation.
    pub fn ask(self, options: &mut Options) {
        options.conversion_plan = self.conversion_plan;
        options.gather_plan = self.gather_plan;
        options.tensor_copies = self.tensor_copies;
        options.tile_parts = self.tile_parts;
        options.tile_rows = self.tile_rows;
        options.single_wave = self.single_wave;
        options.few_programs = self.few_programs;
        options.streamed = self.streamed;
        options.persistent = self.persistent;
        options.dependent_launch = self.dependent_launch;
        options.block_pingpong = self.block_pingpong;
        options.wide_iterations = self.wide_iterations;
    }
}
