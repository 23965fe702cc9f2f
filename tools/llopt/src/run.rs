//! `llopt run`: executes a kernel on the simulated machine, on NumPy arrays.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use llopt::sim::reference::Bounds;
use llopt::sim::{self, Argument, Launch, Machine};
use llopt::{ArtifactKind, Compiler, Options, ReferenceError, Source, Target, TensorDescriptor};

use crate::input;
use crate::npy::{self, Array};
use crate::output::Output;
use crate::plans::Plans;
use crate::tensor_argument;

/// What `llopt run` is told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Kernel in tile IR, which is compiled first, or in LLVM IR; `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// GPU to simulate, such as cuda:90 or hip:gfx942
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,

    /// Number of programs along x, y and z; for LLVM IR, of blocks
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid)]
    grid: [u32; 3],

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

    /// Directory for the buffers as the kernel leaves them, each under its own name
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,

    /// Execute tile IR by the meaning of its operations on whole tensors, instead of compiling it
    #[arg(long, conflicts_with_all = ["report", "kernel", "library", "shared", "num_warps"])]
    reference: bool,

    /// With --reference: beside each buffer FILE.npy also write FILE.bound.npy, how far each element
    /// may be from what compiled code computes (0: not at all)
    #[arg(long, requires = "reference", requires = "out_dir")]
    bounds: bool,

    /// Write counters and findings as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<Output>,

    /// Warps of a block; tile IR says so itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    num_warps: Option<u32>,

    /// Bytes of dynamic shared memory [default: what the compiled kernel needs; all there is for LLVM IR]
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,

    /// Kernel to run if the LLVM IR defines several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Bitcode libraries with functions that LLVM IR calls (libdevice, ocml, ockl)
    #[arg(long, value_name = "FILE")]
    library: Vec<PathBuf>,

    /// Run what lowering makes of tile IR, before LLVM optimises it
    #[arg(long)]
    no_optimize: bool,

    /// Do not watch for races, uninitialised reads and misaligned accesses
    #[arg(long)]
    no_sanitizer: bool,

    /// Threads that run blocks; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N", conflicts_with = "reference")]
    jobs: Option<NonZeroUsize>,

    /// Warp instructions after which a block counts as hung
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
    match numbers[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("a grid has one to three dimensions".to_owned()),
    }
}

/// A kernel in LLVM IR with what its launch needs.
struct Kernel {
    ir: Vec<u8>,
    warps: u32,
    shared: u32,
    /// Bytes of scratch memory for each block.
    global_scratch: u32,
    blocks_per_cluster: u32,
    tensor_descriptors: Vec<TensorDescriptor>,
}

/// Runs as told.
///
/// # Errors
/// The input cannot be read, compiled or executed, an argument does not fit, a result cannot be
/// written, or the sanitizer found something. Buffers and the report are written in that last
/// case too.
pub fn run(arguments: Arguments) -> Result<()> {
    let (name, contents) = input::read(&arguments.input)?;
    let (values, arrays) = read_arguments(&arguments.args)?;
    let is_llvm = is_llvm(&name, &contents);
    if !is_llvm {
        check_arguments(&Source::new(&name, contents.clone()), &values, &arrays)?;
    }
    if arguments.reference {
        return run_reference(&arguments, Source::new(name, contents), values, &arrays);
    }
    let kernel = if is_llvm {
        Kernel {
            ir: contents,
            warps: arguments
                .num_warps
                .context("LLVM IR does not say how many warps a block has: give --num-warps")?,
            shared: arguments.target.shared_memory_limit(),
            global_scratch: 0,
            blocks_per_cluster: 1,
            tensor_descriptors: Vec::new(),
        }
    } else {
        compile(&arguments, &name, contents)?
    };
    let libraries: Vec<&Path> = arguments.library.iter().map(PathBuf::as_path).collect();
    let machine = Machine::with_libraries(
        &kernel.ir,
        &libraries,
        arguments.target,
        arguments.kernel.as_deref(),
    )?;

    let mut values = values;
    let (takes, given) = (machine.parameters().len(), values.len());
    ensure!(
        // Those of tile IR are checked already.
        !is_llvm || given == takes || given + 2 == takes,
        "the kernel takes {takes} arguments, of which the last two may be left out if they are scratch \
         pointers; {given} given"
    );
    if given + 2 == takes {
        let blocks = arguments
            .grid
            .iter()
            .map(|&n| n as usize)
            .product::<usize>()
            * kernel.blocks_per_cluster as usize;
        values.push(match kernel.global_scratch as usize {
            0 => Argument::Null,
            bytes => Argument::Uninitialized(bytes * blocks),
        });
        values.push(Argument::Null);
    }
    let mut descriptors = kernel.tensor_descriptors.iter();
    for value in &mut values {
        if let Argument::Descriptor(tensor) = value {
            tensor_argument::complete(tensor, descriptors.next())?;
        }
    }

    let threads = kernel.warps * arguments.target.warp_size();
    let mut grid = arguments.grid;
    grid[0] *= kernel.blocks_per_cluster;
    let mut launch = Launch::new(grid, threads, values);
    launch.dynamic_shared = arguments.shared.unwrap_or(kernel.shared).into();
    let bar = progress_bar();
    let progress = |done: u64, total: u64| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let options = sim::Options {
        sanitize: !arguments.no_sanitizer,
        instruction_limit: arguments.instruction_limit,
        threads: arguments.jobs.map(NonZeroUsize::get),
        progress: Some(&progress),
    };
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
    write_buffers(&arguments, &launch, &arrays)?;
    if let Some(output) = &arguments.report {
        output.write_json(&report)?;
    }
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    if let Some(failure) = failure {
        bail!("{failure}");
    }
    ensure!(
        report.findings.is_empty(),
        "the sanitizer has {} findings",
        report.findings.len()
    );
    Ok(())
}

/// A buffer argument: its position, its file, what is in it.
struct Buffer {
    index: usize,
    path: PathBuf,
    array: Array,
}

/// The arguments of a launch, and those of them that are files.
fn read_arguments(texts: &[String]) -> Result<(Vec<Argument>, Vec<Buffer>)> {
    let mut values = Vec::new();
    let mut buffers = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        values.push(if text.starts_with(tensor_argument::PREFIX) {
            let (path, array, tensor) = tensor_argument::read(text)?;
            buffers.push(Buffer { index, path, array });
            Argument::Descriptor(tensor)
        } else if text.ends_with(".npy") {
            let path = PathBuf::from(text);
            let array = npy::read(&path)?;
            let buffer = Argument::Buffer(array.data.clone());
            buffers.push(Buffer { index, path, array });
            buffer
        } else {
            scalar(text)?
        });
    }
    Ok((values, buffers))
}

/// Checks the arguments against the parameters of a kernel in tile IR, which knows what its pointers
/// point to.
///
/// # Errors
/// The source is invalid, the number of arguments is wrong, or an array holds something else.
fn check_arguments(source: &Source, values: &[Argument], arrays: &[Buffer]) -> Result<()> {
    let parameters = match llopt::parameters(source) {
        Ok(parameters) => parameters,
        Err(error) => {
            eprintln!("{}", error.with_source(source));
            return Err(crate::Reported.into());
        }
    };
    let (takes, given) = (parameters.len(), values.len());
    ensure!(
        // The two scratch pointers may be given too.
        given == takes || given == takes + 2,
        "the kernel takes {takes} arguments, {given} given"
    );
    for buffer in arrays {
        let Some(parameter) = parameters.get(buffer.index) else {
            continue;
        };
        ensure!(
            parameter.pointee.is_none_or(|to| buffer.array.holds(to)),
            "argument {} is '{}' with elements of type '{}', the kernel expects {}",
            buffer.index,
            buffer.path.display(),
            buffer.array.descr().unwrap_or_default(),
            parameter.ty
        );
    }
    Ok(())
}

/// Writes the buffers as the kernel left them.
fn write_buffers(arguments: &Arguments, launch: &Launch, buffers: &[Buffer]) -> Result<()> {
    let Some(directory) = &arguments.out_dir else {
        return Ok(());
    };
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create '{}'", directory.display()))?;
    for buffer in buffers {
        if let Argument::Buffer(data) = &launch.arguments[buffer.index]
            && let Some(file) = buffer.path.file_name()
        {
            Output::File(directory.join(file)).write(&buffer.array.with_data(data))?;
        }
    }
    Ok(())
}

/// Writes the bounds of the elements of each buffer, as an array of doubles.
fn write_bounds(arguments: &Arguments, bounds: &Bounds, buffers: &[Buffer]) -> Result<()> {
    let Some(directory) = arguments.out_dir.as_ref().filter(|_| arguments.bounds) else {
        return Ok(());
    };
    for buffer in buffers {
        let size = buffer.array.element_size().with_context(|| {
            format!(
                "'{}' has no elements of one size to bound",
                buffer.path.display()
            )
        })?;
        let mut numbers = vec![0.0f64; buffer.array.data.len() / size];
        for (offset, bound) in bounds.buffers.get(&buffer.index).into_iter().flatten() {
            if let Some(number) = usize::try_from(*offset)
                .ok()
                .and_then(|at| numbers.get_mut(at / size))
            {
                *number = bound.max(*number);
            }
        }
        if let Some(stem) = buffer.path.file_stem() {
            let file = format!("{}.bound.npy", stem.to_string_lossy());
            Output::File(directory.join(file)).write(&npy::doubles(&numbers))?;
        }
    }
    Ok(())
}

fn run_reference(
    arguments: &Arguments,
    source: Source,
    values: Vec<Argument>,
    buffers: &[Buffer],
) -> Result<()> {
    let mut launch = Launch::new(arguments.grid, 1, values);
    match llopt::run_reference(&source, &mut launch) {
        Ok(bounds) => {
            write_buffers(arguments, &launch, buffers)?;
            write_bounds(arguments, &bounds, buffers)
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

fn compile(arguments: &Arguments, name: &str, contents: Vec<u8>) -> Result<Kernel> {
    let mut options = Options::new(arguments.target);
    options.num_warps = arguments.num_warps;
    arguments.plans.ask(&mut options);
    options.optimize = !arguments.no_optimize;
    options.keep_print_calls = true;
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
            ir: compilation.artifact.into_bytes(),
        }),
        Err(error) => Err(crate::kernel::report(error, &source)),
    }
}

fn scalar(text: &str) -> Result<Argument> {
    if text == "null" {
        return Ok(Argument::Null);
    }
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Argument::Int(value));
    }
    match text.parse::<f64>() {
        Ok(value) => Ok(Argument::Real(value)),
        Err(_) => bail!("the argument '{text}' is neither a .npy file nor a number"),
    }
}

/// A bar on a terminal; it shows itself only on runs that take a while.
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
    fn grids_and_scalars_are_read() {
        assert_eq!(grid("4"), Ok([4, 1, 1]));
        assert_eq!(grid("4,2, 3"), Ok([4, 2, 3]));
        assert!(grid("4,x").is_err() && grid("1,2,3,4").is_err() && grid("").is_err());
        assert_eq!(scalar("-7").unwrap(), Argument::Int(-7));
        assert_eq!(scalar("1e-5").unwrap(), Argument::Real(1e-5));
        assert_eq!(scalar("null").unwrap(), Argument::Null);
        assert!(scalar("x.npz").is_err());
    }

    #[test]
    fn llvm_ir_is_told_from_tile_ir() {
        assert!(is_llvm("k.llir", b"") && is_llvm("<stdin>", b"; ModuleID = 'x'"));
        assert!(!is_llvm("k.ttgir", b"module {}") && !is_llvm("<stdin>", b"module {}"));
    }
}
