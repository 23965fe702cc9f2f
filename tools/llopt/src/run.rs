//! `llopt run`: executes a kernel on the simulated machine, on NumPy arrays.

mod parameter_values;

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use llopt::isolation;
use llopt::sim::reference::Limits;
use llopt::sim::{self, Argument, Launch, Machine, Order};
use llopt::{
    ArgumentDescriptor, ArtifactKind, Compiler, Metadata, Options, Parameter, ReferenceError,
    Source, Target, TensorDescriptor,
};

use crate::input;
use crate::output::Output;
use crate::plans::Plans;
use crate::tensor_argument;
use parameter_values::Buffer;

/// The arguments of `llopt run`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Kernel in tile IR, which is compiled first, or in LLVM IR; `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// GPU to simulate, such as cuda:90 or hip:gfx942
    #[arg(long, value_name = "TARGET", value_parser = Target::parse, default_value = "cuda:90",
          required_unless_present = "parameters", hide_default_value = true)]
    target: Target,

    /// Number of programs along x, y and z; for LLVM IR, number of blocks
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid, default_value = "1",
          required_unless_present = "parameters", hide_default_value = true)]
    grid: [u32; 3],

    /// Print the names and types of the kernel's parameters, and do nothing else
    #[arg(long)]
    parameters: bool,

    /// An argument by the name of its parameter; repeat the option for each parameter: NAME=@FILE.npy is a buffer (with
    /// --out-dir its result is written there as NAME.npy), NAME=2.5 a scalar, NAME=null a null pointer
    #[arg(
        long = "arg",
        value_name = "NAME=VALUE",
        conflicts_with = "args",
        allow_hyphen_values = true
    )]
    named: Vec<String>,

    /// Arguments in the order of the kernel's parameters: a .npy file is a buffer, a number a
    /// scalar, `null` a null pointer, `desc:` and a .npy file a tensor with a descriptor; the two
    /// scratch pointers at the end may be left out
    #[arg(
        long,
        value_name = "ARG,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    args: Vec<String>,

    /// Directory for the final contents of the buffers, each under its own name
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,

    /// Interpret tile IR on whole tensors instead of compiling it
    #[arg(long, conflicts_with_all = ["report", "kernel", "library", "shared", "num_warps", "num_ctas"])]
    reference: bool,

    /// With --reference: also write FILE.bound.npy beside each buffer FILE.npy: how far compiled code may
    /// deviate in each element (0: not at all)
    #[arg(long, requires = "reference", requires = "out_dir")]
    bounds: bool,

    /// Write counters and findings as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<Output>,

    /// Warps per block; tile IR with layouts specifies them itself; 0 takes as many as the model
    /// predicts to be fastest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_warps: Option<u32>,

    /// Blocks per cluster; must match the input if it has layouts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    num_ctas: Option<u32>,

    /// Blocks of a cluster that share the iterations of a loop of products, in kernels without layouts:
    /// 1, 2, 4 or 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    split_k: u32,

    /// Pipeline stages of loops with products in kernels without layouts, unless a loop sets its own
    /// number; 1 disables pipelining, 0 takes as many as hide latencies [default: 3 for cuda, 2 for hip]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    num_stages: Option<u32>,

    /// Bytes of dynamic shared memory [default: what the compiled kernel needs; all there is for LLVM IR]
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,

    /// Kernel to run if the LLVM IR defines several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Bitcode libraries with functions that LLVM IR calls (libdevice, ocml, ockl)
    #[arg(long, value_name = "FILE")]
    library: Vec<PathBuf>,

    /// Run the LLVM IR as lowered from tile IR, before LLVM optimises it
    #[arg(long)]
    no_optimize: bool,

    /// Do not check for races, uninitialised reads and misaligned accesses
    #[arg(long)]
    no_sanitizer: bool,

    /// Also run the blocks in other orders (the last first, and two shuffled orders), and report whether
    /// the results depend on the order
    #[arg(long, conflicts_with = "reference")]
    orders: bool,

    /// Instead of writing results, run the kernel once more without each of its waits, fences and barriers, and list what
    /// shows the absence: a finding of the sanitizer, other results, or nothing. With --report as JSON
    #[arg(long, conflicts_with_all = ["reference", "orders", "out_dir", "no_sanitizer"])]
    removals: bool,

    /// Threads that run blocks; without races the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N", conflicts_with = "reference")]
    jobs: Option<NonZeroUsize>,

    /// Warp instructions after which a block counts as hung; with --reference, elements that a program computes
    #[arg(long, value_name = "N", default_value_t = sim::Options::default().instruction_limit)]
    instruction_limit: u64,

    /// NVIDIA's device library (libdevice.10.bc), for functions without an instruction
    #[arg(long, value_name = "FILE", env = "LLOPT_LIBDEVICE")]
    libdevice: Option<PathBuf>,

    /// Directory of AMD's device libraries (ocml.bc, ockl.bc)
    #[arg(long, value_name = "DIRECTORY", env = "LLOPT_OCML")]
    ocml: Option<PathBuf>,

    #[command(flatten)]
    plans: Plans,
}

/// `X`, `X,Y` or `X,Y,Z`.
fn grid(text: &str) -> Result<[u32; 3], String> {
    let numbers: Vec<u32> = text
        .split(',')
        .map(|part| {
            part.trim()
                .parse()
                .map_err(|_| format!("'{part}' is no number of blocks"))
        })
        .collect::<Result<_, _>>()?;
    let grid = match numbers[..] {
        [x] => [x, 1, 1],
        [x, y] => [x, y, 1],
        [x, y, z] => [x, y, z],
        _ => return Err("a grid has one to three dimensions".to_owned()),
    };
    let programs = grid.iter().try_fold(1u32, |count, &n| count.checked_mul(n));
    match programs {
        Some(_) => Ok(grid),
        None => Err("a grid of more than 2^32 programs would take years".to_owned()),
    }
}

/// A kernel in LLVM IR, and the data for its launch.
struct Kernel {
    ir: Vec<u8>,
    warps: u32,
    shared: u32,
    /// Bytes of scratch memory for each block.
    global_scratch: u32,
    blocks_per_cluster: u32,
    tensor_descriptors: Vec<TensorDescriptor>,
    argument_tensors: Vec<ArgumentDescriptor>,
    /// The blocks of which each computes a part of a program's tile.
    tile_parts: u32,
    /// Whether each block computes several programs.
    program_extents: bool,
    /// Whether its launch may overlap with the kernel before.
    overlaps: bool,
}

/// Runs according to the arguments.
///
/// # Errors
/// The input cannot be read, compiled or executed, an argument does not fit, a result cannot be written, or the
/// sanitizer has findings. In the last case buffers and the report are still written.
pub fn run(arguments: Arguments, bounds: crate::budget::Bounds) -> Result<()> {
    let (name, contents) = input::read(&arguments.input)?;
    let is_llvm = is_llvm(&name, &contents);
    if is_llvm {
        ensure!(
            arguments.named.is_empty() && !arguments.parameters,
            "LLVM IR has no names of parameters: give the arguments in their order with --args"
        );
    }
    let parameters = match is_llvm {
        true => Vec::new(),
        false => parameters(&Source::new(&name, contents.clone()))?,
    };
    if arguments.parameters {
        for (index, parameter) in parameters.iter().enumerate() {
            println!(
                "{}: {}",
                parameter_values::name_of(parameter, index),
                parameter.ty
            );
        }
        return Ok(());
    }
    let (values, arrays) = match arguments.named.is_empty() {
        true => parameter_values::read_arguments(&arguments.args)?,
        false => parameter_values::read_named(&arguments.named, &parameters)?,
    };
    if !is_llvm {
        parameter_values::check_arguments(&parameters, &values, &arrays)?;
    }
    if arguments.reference {
        return run_reference(&arguments, Source::new(name, contents), values, &arrays);
    }
    let kernel = match is_llvm {
        true => as_it_is(&arguments, contents)?,
        false => compile(&arguments, bounds, &name, contents)?,
    };
    isolation::lift_limits();
    let libraries: Vec<&Path> = arguments.library.iter().map(PathBuf::as_path).collect();
    let mut machine = Machine::with_libraries(
        &kernel.ir,
        &libraries,
        arguments.target,
        arguments.kernel.as_deref(),
    )?;
    if is_llvm {
        // Those of tile IR are checked already.
        let (takes, given) = (machine.parameters().len(), values.len());
        ensure!(
            given == takes || given + 2 == takes,
            "the kernel takes {takes} arguments, of which the last two may be left out if they are scratch \
             pointers; {given} given"
        );
    }
    let launch = launch(&arguments, &kernel, &machine, values)?;
    if arguments.removals {
        return remove(&arguments, &mut machine, &launch);
    }
    execute(&arguments, &machine, launch, &arrays)
}

/// The launch of a kernel, with the scratch pointers that may be left out.
///
/// # Errors
/// A tensor with a descriptor does not fit the kernel's, or there are too many blocks.
fn launch(
    arguments: &Arguments,
    kernel: &Kernel,
    machine: &Machine,
    mut values: Vec<Argument>,
) -> Result<Launch> {
    let mut added: Vec<Argument> = kernel
        .argument_tensors
        .iter()
        .map(|tensor| tensor_argument::of_arguments(tensor, &values))
        .collect();
    let mut grid = arguments.grid;
    if kernel.program_extents {
        added.extend(grid.map(|extent| Argument::Int(extent.into())));
        grid = Metadata::blocks_of_programs(grid);
    }
    grid[0] = grid[0].saturating_mul(kernel.tile_parts);
    // A descriptor may be an argument for several parameters.
    let more = machine.filled_by(&values) - values.len();
    let arguments_of_kernel = machine.parameters().len().saturating_sub(more);
    // Scratch pointers come after what the launcher adds.
    let takes = arguments_of_kernel.saturating_sub(added.len());
    let at = values.len().min(takes.saturating_sub(2));
    values.splice(at..at, added);
    if values.len() + 2 == arguments_of_kernel {
        let programs = grid.iter().map(|&n| n as usize).product::<usize>();
        let blocks = programs * kernel.blocks_per_cluster as usize;
        values.push(match kernel.global_scratch as usize {
            0 => Argument::Null,
            bytes => Argument::Uninitialized(bytes * blocks),
        });
        values.push(Argument::Null);
    }
    let mut descriptors = kernel.tensor_descriptors.iter();
    for value in &mut values {
        // What the kernel takes in parts needs no encoding.
        if let Argument::Descriptor(tensor) = value
            && more == 0
        {
            tensor_argument::complete(tensor, descriptors.next())?;
        }
    }

    let threads = kernel.warps * arguments.target.warp_size();
    grid[0] = grid[0]
        .checked_mul(kernel.blocks_per_cluster)
        .context("the grid has more blocks than there are numbers for them")?;
    let mut launch = Launch::new(grid, threads, values);
    launch.dynamic_shared = arguments.shared.unwrap_or(kernel.shared).into();
    launch.overlaps = kernel.overlaps;
    Ok(launch)
}

/// Runs the blocks, writes their results, and prints the sanitizer's findings.
///
/// # Errors
/// The run fails, the sanitizer has findings, or a result cannot be written.
fn execute(
    arguments: &Arguments,
    machine: &Machine,
    mut launch: Launch,
    arrays: &[Buffer],
) -> Result<()> {
    let bar = progress_bar();
    let begin = Instant::now();
    let warned = AtomicBool::new(false);
    let progress = |done: u64, total: u64| {
        bar.set_length(total);
        bar.set_position(done);
        if let Some(hours) = hours(begin.elapsed(), done, total)
            && !warned.swap(true, Ordering::Relaxed)
        {
            bar.suspend(|| {
                eprintln!(
                    "llopt: note: this grid of {total} blocks will take about {hours:.1} hours"
                );
            });
        }
    };
    let options = sim::Options {
        sanitize: !arguments.no_sanitizer,
        instruction_limit: arguments.instruction_limit,
        threads: arguments.jobs.map(NonZeroUsize::get),
        order: Order::Ascending,
        progress: Some(&progress),
    };
    let before = arguments.orders.then(|| launch.clone());
    let outcome = machine.run(&mut launch, &options);
    bar.finish_and_clear();
    let (report, failure) = match outcome {
        Ok(report) => (report, None),
        Err(sim::Error::Stopped {
            block,
            message,
            report,
        }) => {
            let [x, y, z] = block;
            (
                *report,
                Some(format!("block ({x}, {y}, {z}) stopped: {message}")),
            )
        }
        Err(error) => return Err(error.into()),
    };

    for line in &report.output {
        println!("{}", line.trim_end_matches('\n'));
    }
    if let Some(directory) = &arguments.out_dir {
        parameter_values::write_buffers(directory, &launch, arrays)?;
    }
    if let Some(output) = &arguments.report {
        output.write_json(&report)?;
    }
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    if let Some(failure) = failure {
        bail!("{failure}");
    }
    if report.unwatched_blocks > 0 {
        eprintln!(
            "llopt: note: {} blocks touched more of global memory than is watched; races beyond that are not found",
            report.unwatched_blocks
        );
    }
    // Even if blocks race, the user needs to know whether the results differ.
    let compared = before.map_or(Ok(()), |before| {
        compare_orders(machine, &options, &before, &launch, arrays)
    });
    if report.findings.is_empty() {
        return compared;
    }
    if let Err(difference) = compared {
        eprintln!("llopt: note: {difference:#}");
    }
    bail!("the sanitizer has {} findings", report.findings.len());
}

/// Runs the kernel without each of its synchronising operations.
///
/// # Errors
/// The kernel as it is fails or has findings, the report cannot be written, or nothing shows an absence.
fn remove(arguments: &Arguments, machine: &mut Machine, launch: &Launch) -> Result<()> {
    let options = sim::Options {
        instruction_limit: arguments.instruction_limit,
        threads: arguments.jobs.map(NonZeroUsize::get),
        ..sim::Options::default()
    };
    let (report, removals) = machine.removals(launch, &options)?;
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    ensure!(
        report.findings.is_empty(),
        "the sanitizer has {} findings in the kernel as it is",
        report.findings.len()
    );
    match &arguments.report {
        Some(output) => output.write_json(&removals)?,
        None => removals.iter().for_each(|removal| println!("{removal}")),
    }
    let unfound = removals
        .iter()
        .filter(|removal| !removal.is_found())
        .count();
    ensure!(
        unfound == 0,
        "nothing shows the absence of {unfound} of {} operations",
        removals.len()
    );
    Ok(())
}

/// Runs the blocks in other orders and compares the results.
///
/// # Errors
/// A run fails, or its results differ; the message says in which order and where.
fn compare_orders(
    machine: &Machine,
    options: &sim::Options<'_>,
    before: &Launch,
    ascending: &Launch,
    buffers: &[Buffer],
) -> Result<()> {
    for (order, name) in [
        (Order::Descending, "with the last block first"),
        (Order::Shuffled(1), "with mixed blocks"),
        (Order::Shuffled(2), "with mixed blocks"),
    ] {
        let mut launch = before.clone();
        let options = sim::Options {
            order,
            progress: None,
            ..*options
        };
        machine
            .run(&mut launch, &options)
            .with_context(|| format!("{name}, where it ends well in their order"))?;
        for buffer in buffers {
            let (expected, found) = (
                &ascending.arguments[buffer.index],
                &launch.arguments[buffer.index],
            );
            if let (Argument::Buffer(expected), Argument::Buffer(found)) = (expected, found)
                && let Some(at) = (0..expected.len()).find(|&at| expected[at] != found[at])
            {
                let element = at / buffer.array.element_size().unwrap_or(1);
                bail!(
                    "the result depends on the order of blocks: {name}, element {element} of '{}' is another",
                    buffer.name.display()
                );
            }
        }
    }
    eprintln!("llopt: note: the results do not depend on the order of blocks, in four orders");
    Ok(())
}

/// An estimate of the hours of a run, from the time of its first blocks; `None` for less than one, and while too few
/// blocks are done.
fn hours(elapsed: Duration, done: u64, total: u64) -> Option<f64> {
    if elapsed < Duration::from_secs(1) {
        return None;
    }
    let hours = elapsed.as_secs_f64() / 3600.0 * total as f64 / done.max(1) as f64;
    (hours >= 1.0).then_some(hours)
}

/// The parameters of a kernel in tile IR.
fn parameters(source: &Source) -> Result<Vec<Parameter>> {
    llopt::parameters(source).map_err(|error| crate::kernel::report(error, source))
}

fn run_reference(
    arguments: &Arguments,
    source: Source,
    values: Vec<Argument>,
    buffers: &[Buffer],
) -> Result<()> {
    let mut launch = Launch::new(arguments.grid, 1, values);
    let limits = Limits {
        work: arguments.instruction_limit,
        ..Limits::default()
    };
    match llopt::run_reference(&source, &mut launch, limits) {
        Ok(bounds) => {
            let Some(directory) = &arguments.out_dir else {
                return Ok(());
            };
            parameter_values::write_buffers(directory, &launch, buffers)?;
            match arguments.bounds {
                true => parameter_values::write_bounds(directory, &bounds, buffers),
                false => Ok(()),
            }
        }
        Err(ReferenceError::Source(error)) => Err(crate::kernel::report(error, &source)),
        Err(ReferenceError::Run(error)) => Err(error.into()),
    }
}

/// Whether the input is LLVM IR rather than tile IR: by its name, or by how it begins.
fn is_llvm(name: &str, contents: &[u8]) -> bool {
    let by_name = [".llir", ".ll", ".bc"]
        .iter()
        .any(|end| name.ends_with(end));
    by_name || contents.starts_with(b"BC\xc0\xde") || contents.starts_with(b"; ModuleID")
}

/// A kernel that is already LLVM IR.
fn as_it_is(arguments: &Arguments, ir: Vec<u8>) -> Result<Kernel> {
    Ok(Kernel {
        ir,
        warps: arguments
            .num_warps
            .filter(|&warps| warps > 0)
            .context("LLVM IR does not say how many warps a block has: give --num-warps")?,
        shared: arguments.target.shared_memory_limit(),
        global_scratch: 0,
        blocks_per_cluster: 1,
        tensor_descriptors: Vec::new(),
        argument_tensors: Vec::new(),
        tile_parts: 1,
        program_extents: false,
        overlaps: false,
    })
}

/// The kernel that results from compiling tile IR.
fn compile(
    arguments: &Arguments,
    bounds: crate::budget::Bounds,
    name: &str,
    contents: Vec<u8>,
) -> Result<Kernel> {
    let mut options = Options::new(arguments.target);
    options.num_warps = arguments.num_warps;
    options.num_ctas = arguments.num_ctas;
    options.split_k = arguments.split_k;
    options.num_stages = arguments.num_stages.unwrap_or(options.num_stages);
    arguments.plans.ask(&mut options);
    bounds.limit(&mut options);
    options.optimize = !arguments.no_optimize;
    options.keep_print_calls = true;
    options.check_indices = !arguments.no_sanitizer;
    options.mark_buffers = !arguments.no_sanitizer;
    options.libdevice.clone_from(&arguments.libdevice);
    options.ocml.clone_from(&arguments.ocml);
    let source = Source::new(name, contents);
    match Compiler::new(options).compile(&source, ArtifactKind::Llvm) {
        Ok(compilation) => Ok(Kernel {
            warps: compilation.metadata.num_warps,
            shared: compilation.metadata.shared,
            global_scratch: compilation.metadata.global_scratch_size,
            blocks_per_cluster: compilation.metadata.num_ctas,
            tensor_descriptors: compilation.metadata.tensordesc_meta,
            argument_tensors: compilation.metadata.argument_tensors,
            tile_parts: compilation.metadata.tile_parts,
            program_extents: compilation.metadata.program_extents,
            overlaps: compilation.metadata.launch_pdl,
            ir: compilation.artifact.into_bytes(),
        }),
        Err(error) => Err(crate::kernel::report(error, &source)),
    }
}

/// A progress bar on a terminal, which appears only on long runs.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} blocks, {eta} left") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_read() {
        assert_eq!(grid("4"), Ok([4, 1, 1]));
        assert_eq!(grid("4,2, 3"), Ok([4, 2, 3]));
        assert!(grid("70000,70000").is_err());
        assert_eq!(hours(Duration::from_secs(2), 1, 100), None);
        assert_eq!(hours(Duration::from_secs(36), 1, 100), Some(1.0));
        assert!(grid("4,x").is_err() && grid("1,2,3,4").is_err() && grid("").is_err());
    }

    #[test]
    fn llvm_ir_is_told_from_tile_ir() {
        assert!(is_llvm("k.llir", b"") && is_llvm("<stdin>", b"; ModuleID = 'x'"));
        assert!(!is_llvm("k.ttgir", b"module {}") && !is_llvm("<stdin>", b"module {}"));
    }
}
