//! Arguments and error reports of all commands that generate code for a kernel.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use llopt::{Options, Source, Target};

use crate::budget::Bounds;
use crate::input;
use crate::plans::Plans;

/// A kernel and the options of its code.
#[derive(Args, Debug)]
pub struct Kernel {
    /// Kernel in tile IR, as text or bytecode; `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// GPU to generate code for, such as cuda:90 or hip:gfx942
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,

    /// Warps per block, for input without layouts; 0 takes as many as the model
    /// predicts to be fastest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_warps: Option<u32>,

    /// Pipeline stages of loops with products in kernels without layouts, unless a loop sets its own
    /// number; 1 disables pipelining, 0 takes as many as hide latencies [default: 3 for cuda, 2 for hip]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_stages: Option<u32>,

    /// Blocks of a cluster that share the iterations of a loop of products, in kernels without layouts:
    /// 1, 2, 4 or 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    split_k: u32,

    #[command(flatten)]
    plans: Plans,
}

impl Kernel {
    /// Reads the kernel.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(self, bounds: Bounds) -> Result<(Source, Options)> {
        let (name, contents) = input::read(&self.input)?;
        let mut options = Options::new(self.target);
        options.num_warps = self.num_warps;
        options.num_stages = self.num_stages.unwrap_or(options.num_stages);
        options.split_k = self.split_k;
        self.plans.ask(&mut options);
        bounds.limit(&mut options);
        Ok((Source::new(name, contents), options))
    }
}

/// Reports the errors of a source on standard error.
pub fn report(error: llopt::Error, source: &Source) -> anyhow::Error {
    eprintln!("{}", error.with_source(source));
    crate::Reported.into()
}
