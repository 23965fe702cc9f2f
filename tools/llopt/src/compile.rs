//! `llopt compile`: from a kernel in tile IR to an artefact and its launch metadata.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, pipeline};

use crate::budget::Bounds;
use crate::input;
use crate::output::Output;
use crate::plans::Plans;

/// The arguments of `llopt compile`.
#[derive(Args, Debug)]
#[command(override_usage = "\
llopt compile [OPTIONS] --target <TARGET> <FILE>
       llopt compile --print-pipeline [--target <TARGET>] [--num-ctas <N>]")]
pub struct Arguments {
    /// Kernel in tile IR, as text or bytecode; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "print_pipeline")]
    input: Option<PathBuf>,

    /// GPU to compile for, such as cuda:80, cuda:90, hip:gfx942, hip:gfx1100
    #[arg(
        long,
        value_name = "TARGET",
        value_parser = Target::parse,
        required_unless_present = "print_pipeline"
    )]
    target: Option<Target>,

    /// Print the passes before code generation, with what each requires and ensures, and compile nothing;
    /// without a target, print those of all targets as Markdown
    #[arg(long, conflicts_with = "input")]
    print_pipeline: bool,

    /// Artefact to produce: ttir, ttgir, llvm, ptx, cubin, amdgcn or hsaco
    /// [default: the target's assembly]
    #[arg(long, value_name = "KIND")]
    emit: Option<ArtifactKind>,

    /// Output file; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: Output,

    /// Write the launch metadata, with Triton's keys, as JSON
    #[arg(long, value_name = "FILE")]
    metadata: Option<Output>,

    /// Print how long each phase took, as a table on standard error
    #[arg(long)]
    time: bool,

    /// Write how long each phase took, as JSON
    #[arg(long, value_name = "FILE")]
    time_json: Option<Output>,

    /// Warps per block; must match the input if it has layouts; 0 takes as many as the model
    /// predicts to be fastest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_warps: Option<u32>,

    /// Pipeline stages of loops with products in kernels without layouts, unless a loop sets its own
    /// number; 1 disables pipelining, 0 takes as many as hide latencies [default: 3 for cuda, 2 for hip]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_stages: Option<u32>,

    /// Blocks per cluster; must match the input if it has layouts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    num_ctas: Option<u32>,

    /// Blocks of a cluster that share the iterations of a loop of products, in kernels without layouts:
    /// 1, 2, 4 or 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    split_k: u32,

    /// Round after every floating-point operation: never fuse a multiplication and an addition
    #[arg(long)]
    no_fp_fusion: bool,

    /// NVIDIA's device library (libdevice.10.bc), for functions without an instruction
    /// [default: that of CUDA, Debian's packages or an installed Triton]
    #[arg(long, value_name = "FILE", env = "LLOPT_LIBDEVICE")]
    libdevice: Option<PathBuf>,

    /// Directory of AMD's device libraries (ocml.bc, ockl.bc)
    /// [default: that of ROCm, Debian's packages or an installed Triton]
    #[arg(long, value_name = "DIRECTORY", env = "LLOPT_OCML")]
    ocml: Option<PathBuf>,

    /// NVIDIA's assembler, for cubin [default: LLOPT_PTXAS, TRITON_PTXAS_PATH, CUDA_HOME, PATH]
    #[arg(long, value_name = "FILE")]
    ptxas: Option<PathBuf>,

    /// LLVM's linker, for hsaco [default: ld.lld-22 or ld.lld on PATH]
    #[arg(long, value_name = "FILE", env = "LLOPT_LLD")]
    lld: Option<PathBuf>,

    /// Upper bound on registers for each thread
    #[arg(long, value_name = "N")]
    maxnreg: Option<u32>,

    /// Warps for each execution unit to aim for (AMD); 0 leaves it to LLVM
    #[arg(long, value_name = "N", default_value_t = 0)]
    waves_per_eu: u32,

    /// Leave out line information
    #[arg(long)]
    no_line_info: bool,

    /// Check the layouts of all values after each pass that changes any
    #[arg(long)]
    verify_layouts: bool,

    #[command(flatten)]
    plans: Plans,
}

/// Compiles according to the arguments.
///
/// # Errors
/// The input cannot be read or compiled, or a result cannot be written; no output file is changed
/// before compilation has succeeded.
pub fn run(arguments: Arguments, bounds: Bounds) -> Result<()> {
    if arguments.print_pipeline {
        let text = match arguments.target.map(Options::new) {
            Some(mut options) => {
                options.num_ctas = arguments.num_ctas;
                options.split_k = arguments.split_k;
                pipeline::text(&options)
            }
            None => pipeline::page(),
        };
        return arguments.output.write(text.as_bytes());
    }
    let input = arguments.input.context("no input is named")?;
    let target = arguments.target.context("no target is named")?;
    let kind = arguments.emit.unwrap_or(ArtifactKind::assembly_of(target));
    if !kind.is_text() && arguments.output == Output::Standard && io::stdout().is_terminal() {
        bail!("a {kind} is not for a terminal: name a file with -o");
    }

    let mut options = Options::new(target);
    options.num_warps = arguments.num_warps;
    options.num_stages = arguments.num_stages.unwrap_or(options.num_stages);
    options.num_ctas = arguments.num_ctas;
    options.split_k = arguments.split_k;
    options.fp_fusion = !arguments.no_fp_fusion;
    options.libdevice = arguments.libdevice;
    options.ocml = arguments.ocml;
    options.ptxas = arguments.ptxas;
    options.lld = arguments.lld;
    options.max_registers = arguments.maxnreg;
    options.waves_per_eu = arguments.waves_per_eu;
    options.line_info = !arguments.no_line_info;
    options.verify_layouts |= arguments.verify_layouts;
    arguments.plans.ask(&mut options);
    bounds.limit(&mut options);

    let (name, contents) = input::read(&input)?;
    let source = Source::new(name, contents);
    let compilation = Compiler::new(options)
        .compile(&source, kind)
        .map_err(|error| crate::kernel::report(error, &source))?;
    for library in &compilation.libraries {
        eprintln!(
            "llopt: note: takes the device library {}",
            library.display()
        );
    }
    for warning in &compilation.warnings {
        eprintln!("{}", warning.with_source(&source));
    }

    arguments.output.write(compilation.artifact.bytes())?;
    if let Some(output) = arguments.metadata {
        output.write_json(&compilation.metadata)?;
    }
    if let Some(output) = arguments.time_json {
        let mut text =
            serde_json::to_string(&compilation.timings).context("cannot serialise the timings")?;
        text.push('\n');
        output.write(text.as_bytes())?;
    }
    if arguments.time {
        eprint!("{}", compilation.timings);
    }
    Ok(())
}
