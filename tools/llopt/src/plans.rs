//! Options that request kinds of plans and of accesses, for all commands that generate code.

use clap::Args;
use llopt::{ConversionRequest, GatherRequest, Options, Persistent, PingPong, TensorCopies};

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
    block_pingpong: PingPong,
}

impl Plans {
    /// Adds them to the options of a compilation.
    pub fn ask(self, options: &mut Options) {
        options.conversion_plan = self.conversion_plan;
        options.gather_plan = self.gather_plan;
        options.tensor_copies = self.tensor_copies;
        options.persistent = self.persistent;
        options.dependent_launch = self.dependent_launch;
        options.block_pingpong = self.block_pingpong;
    }
}
