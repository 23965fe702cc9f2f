//! Launching a kernel: arguments, the grid, the host's threads.
//!
//! Blocks are independent, so they run on all of the host's cores, each on one; their reports are merged in the order
//! of their numbers. A kernel with atomics on global memory is different: the order in which blocks add
//! floating-point numbers, or take a lock, would depend on the host. So its blocks run on one thread, in order, each
//! until it ends or has used its time slice (it may be waiting for a later block). In both cases two runs give the
//! same results and the same report.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use llopt_target::{Target, Vendor};

use crate::error::{Error, LaunchError};
use crate::machine::block::{Block, Stop};
use crate::machine::bytecode::{Parameter, Program};
use crate::machine::counters::Counters;
use crate::machine::findings::Findings;
use crate::machine::grid::Grid;
use crate::machine::report::{Finding, FindingKind, Report};
use crate::memory::bulk::{DESCRIPTOR_BYTES, TensorMap};
use crate::memory::footprint::{self, Conflict, Footprint, Watch};
use crate::memory::global::GlobalMemory;
use crate::memory::watch::describe as describe_actor;

/// Called with (blocks done, blocks in all), from any thread.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// An argument of a kernel, in the order of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A buffer in global memory with these contents; after the run it has the contents that the kernel left.
    Buffer(Vec<u8>),
    /// A buffer of that many bytes that are not initialised: reading a byte before it is written is a finding. After
    /// the run it is an [`Argument::Buffer`].
    Uninitialized(usize),
    /// A null pointer.
    Null,
    /// A pointer to any byte of [mapped memory](Launch::mapped), or null.
    Address(u64),
    /// An integer parameter (wraps to the parameter's width).
    Int(i64),
    /// A floating-point parameter (rounds to the parameter's type), or an integral value for an integer parameter.
    Real(f64),
    /// The contents of a parameter passed by value in memory.
    Bytes(Vec<u8>),
    /// A tensor in global memory; the kernel gets its descriptor object by value. A kernel that has a pointer in its place
    /// gets its address, extents, strides and padding as so many parameters. After the run it is an [`Argument::Buffer`].
    Descriptor(TensorArgument),
    /// The descriptor object of a tensor that begins where another argument, which comes before, points to. Its
    /// contents are not used.
    DescriptorOf(usize, TensorArgument),
}

/// A tensor in global memory with the description for copying it in boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorArgument {
    /// The bytes of the tensor.
    pub contents: Vec<u8>,
    /// Extents in elements, outermost first.
    pub shape: Vec<u32>,
    /// The distance of consecutive elements along each dimension, in elements.
    pub strides: Vec<u64>,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// The number of the element type, as in PTX's `tensormap.replace`.
    pub element_type: u32,
    /// The number of the swizzle: 0 none, 1, 2, 3 over 32, 64, 128 bytes.
    pub swizzle_mode: u32,
    /// Extents of a box in elements, outermost first.
    pub box_shape: Vec<u32>,
    /// Whether elements outside of the tensor read as NaN.
    pub fill_nan: bool,
}

impl TensorArgument {
    /// The machine's descriptor object of such a tensor at an address of [mapped memory](Launch::mapped), to be
    /// passed as [`Argument::Bytes`]. The contents are not used.
    #[must_use]
    pub fn object_at(&self, address: u64) -> Vec<u8> {
        self.map(address).encode().to_vec()
    }

    /// What kernels take in the place of an object where there is no unit that reads one: the address, the extents, the
    /// strides, and whether elements outside are NaN.
    fn parts(&self, address: u64) -> Vec<u64> {
        let mut parts = vec![address];
        parts.extend(self.shape.iter().map(|&extent| u64::from(extent)));
        parts.extend(&self.strides);
        parts.push(self.fill_nan.into());
        parts
    }

    /// Whether extents, strides and boxes are of one rank.
    fn is_consistent(&self) -> bool {
        let rank = self.shape.len();
        rank == self.box_shape.len() && rank == self.strides.len()
    }

    /// The description of the tensor at an address.
    fn map(&self, address: u64) -> TensorMap {
        let bytes = u64::from(self.element_bytes);
        let outer = self.strides.len().saturating_sub(1);
        TensorMap {
            address,
            element_type: self.element_type,
            swizzle_mode: self.swizzle_mode,
            fill_nan: self.fill_nan,
            global_dim: self.shape.iter().rev().copied().collect(),
            global_stride: self.strides[..outer]
                .iter()
                .rev()
                .map(|stride| stride * bytes)
                .collect(),
            box_dim: self.box_shape.iter().rev().copied().collect(),
        }
    }
}

/// Memory of the host that the kernel sees at its address in the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Address of the first byte: not zero, below 2^48, and not in the range where the machine places buffers, which
    /// starts at 2^36 and has 2^36 bytes for each.
    pub address: u64,
    /// The contents; after the run, those that the kernel left.
    pub contents: Vec<u8>,
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u64,
    /// Arguments; the two scratch pointers at the end of Triton's kernels are ordinary arguments.
    pub arguments: Vec<Argument>,
    /// Memory behind [addresses](Argument::Address), and behind pointers stored in memory.
    pub mapped: Vec<Mapping>,
    /// Whether it may start before the kernel before it has ended (NVIDIA's programmatic dependent launch): then a block
    /// may not access global memory before it has waited for that.
    pub overlaps: bool,
}

impl Launch {
    /// A launch of `grid` blocks of `threads` threads in a row.
    #[must_use]
    pub fn new(grid: [u32; 3], threads: u32, arguments: Vec<Argument>) -> Self {
        Self {
            grid,
            block: [threads, 1, 1],
            dynamic_shared: 0,
            arguments,
            mapped: Vec::new(),
            overlaps: false,
        }
    }
}

/// How to run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Report races, uninitialised reads and misaligned accesses. Bounds are always checked.
    pub sanitize: bool,
    /// The number of warp instructions after which a block is considered to hang.
    pub instruction_limit: u64,
    /// Threads of the host; all cores when `None`.
    pub threads: Option<usize>,
    /// The order in which blocks run.
    pub order: Order,
    /// Called from time to time.
    pub progress: Option<Progress<'a>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            sanitize: true,
            instruction_limit: 500_000_000,
            threads: None,
            order: Order::Ascending,
            progress: None,
        }
    }
}

/// An order of blocks. A GPU guarantees none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By their numbers.
    #[default]
    Ascending,
    /// The last first.
    Descending,
    /// Permuted, by a seed.
    Shuffled(u64),
}

impl Order {
    /// The number of the block that runs at a position among `total`.
    fn block(self, position: u64, total: u64) -> u64 {
        match self {
            Self::Ascending => position,
            Self::Descending => total - 1 - position,
            Self::Shuffled(seed) => shuffled(seed, position, total),
        }
    }
}

/// A permutation of the numbers below `total`: four rounds of a Feistel network on the next even number of bits,
/// repeated until the result is below.
fn shuffled(seed: u64, position: u64, total: u64) -> u64 {
    let half = (64 - total.leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut at = position;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4u64 {
            let mixed = (right + round + 1)
                .wrapping_mul(seed | 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (left, right) = (right, left ^ (mixed >> 32 & mask));
        }
        at = left << half | right;
        if at < total {
            return at;
        }
    }
}

/// Rounds of a block's warps before another block runs, where blocks share one thread.
const TIME_SLICE: u64 = 4096;

/// Runs `program`; writes the contents of buffers back into the launch.
pub(crate) fn run(
    program: &Program,
    target: Target,
    launch: &mut Launch,
    options: &Options<'_>,
) -> Result<Report, Error> {
    check_shape(target, launch)?;
    if !launch.grid[0].is_multiple_of(program.cluster) {
        return Err(LaunchError::Shape(format!(
            "a grid of {} blocks along x is not made of clusters of {}",
            launch.grid[0], program.cluster
        ))
        .into());
    }
    let mut memory = GlobalMemory::new();
    for global in &program.globals {
        memory.add(&global.bytes, !global.constant, true);
    }
    let mut buffers = Vec::new();
    let arguments = place_arguments(program, launch, &mut memory, &mut buffers)?;
    let hidden_arguments = memory.add(&hidden_arguments(launch), false, true);
    map_buffers(launch, &mut memory)?;
    let grid = Grid {
        target,
        blocks: launch.grid,
        block_threads: launch.block,
        arguments,
        shared_bytes: program.shared_dynamic.max(program.shared_static) + launch.dynamic_shared,
        sanitize: options.sanitize,
        overlaps: launch.overlaps,
        lockstep: target.vendor() == Vendor::Amdgpu,
        fences_order: target.vendor() == Vendor::Amdgpu,
        instruction_limit: options.instruction_limit,
        hidden_arguments,
        cluster: program.cluster,
    };
    let outcome = match target.warp_size() {
        64 => run_grid::<64>(program, &memory, &grid, options),
        _ => run_grid::<32>(program, &memory, &grid, options),
    };
    for (index, address) in buffers {
        launch.arguments[index] = Argument::Buffer(memory.contents(address));
    }
    for mapping in &mut launch.mapped {
        mapping.contents = memory.contents(mapping.address);
    }
    outcome
}

fn check_shape(target: Target, launch: &Launch) -> Result<(), LaunchError> {
    let threads: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
    if launch.grid.contains(&0) || threads == 0 {
        return Err(LaunchError::Shape(
            "a grid needs at least one block of one thread".to_owned(),
        ));
    }
    let limit = u64::from(target.max_threads_per_block());
    if threads > limit {
        return Err(LaunchError::Shape(format!(
            "a block of {threads} threads is larger than the {limit} of {target}"
        )));
    }
    if launch.dynamic_shared > 1 << 24 {
        return Err(LaunchError::Shape(format!(
            "{} bytes of dynamic shared memory",
            launch.dynamic_shared
        )));
    }
    Ok(())
}

/// Adds the launch's mappings at their addresses.
///
/// # Errors
/// A mapping that overlaps another one or lies in the range where the machine places buffers.
pub(crate) fn map_buffers(launch: &Launch, memory: &mut GlobalMemory) -> Result<(), LaunchError> {
    for mapping in &launch.mapped {
        memory
            .map(mapping.address, &mapping.contents)
            .map_err(LaunchError::Mapping)?;
    }
    match memory.misplaced_mapping() {
        Some(address) => Err(LaunchError::Mapping(format!(
            "a mapping at {address:#x} lies where the machine puts buffers"
        ))),
        None => Ok(()),
    }
}

/// The tensor of an argument that a kernel takes in parts, where it has this parameter.
fn in_parts<'t>(parameter: &Parameter, argument: &'t Argument) -> Option<&'t TensorArgument> {
    match (parameter, argument) {
        (Parameter::Pointer(_), Argument::Descriptor(tensor))
            if tensor.shape.len() == tensor.strides.len() =>
        {
            Some(tensor)
        }
        _ => None,
    }
}

/// How many parameters of a kernel these arguments are for.
pub(crate) fn filled_by(program: &Program, arguments: &[Argument]) -> usize {
    arguments.iter().fold(0, |filled, argument| {
        let parameter = program.parameters.get(filled);
        let tensor = parameter.and_then(|parameter| in_parts(parameter, argument));
        filled + tensor.map_or(1, |tensor| 2 + 2 * tensor.shape.len())
    })
}

/// Puts buffers into memory and evaluates the kernel's parameters.
fn place_arguments(
    program: &Program,
    launch: &Launch,
    memory: &mut GlobalMemory,
    buffers: &mut Vec<(usize, u64)>,
) -> Result<Vec<u64>, LaunchError> {
    if filled_by(program, &launch.arguments) != program.parameters.len() {
        return Err(LaunchError::ArgumentCount {
            expected: program.parameters.len(),
            given: launch.arguments.len(),
        });
    }
    let mut values = Vec::new();
    for (index, argument) in launch.arguments.iter().enumerate() {
        let parameter = &program.parameters[values.len()];
        let unfit = |parameter| LaunchError::ArgumentKind {
            index,
            expected: describe(parameter),
            given: argument.kind(),
        };
        if let Some(tensor) = in_parts(parameter, argument) {
            let address = memory.add_argument(&tensor.contents, true);
            buffers.push((index, address));
            let parts = tensor.parts(address);
            let taken = &program.parameters[values.len()..][..parts.len()];
            let is_other = |of: &&Parameter| !matches!(of, Parameter::Int(_));
            if let Some(other) = taken[1..].iter().find(is_other) {
                return Err(unfit(other));
            }
            values.extend(parts);
            continue;
        }
        let value = match (parameter, argument) {
            (Parameter::Pointer(_), Argument::Buffer(bytes)) => {
                let address = memory.add_argument(bytes, true);
                buffers.push((index, address));
                address
            }
            (Parameter::Pointer(_), Argument::Uninitialized(bytes)) => {
                let address = memory.add_argument(&vec![0; *bytes], false);
                buffers.push((index, address));
                address
            }
            (Parameter::Pointer(_), Argument::Null) => 0,
            (Parameter::Pointer(_), Argument::Address(address)) => *address,
            (Parameter::Int(bits), Argument::Int(value)) => {
                *value as u64 & crate::machine::row::mask(*bits)
            }
            (Parameter::Int(bits), Argument::Real(value)) if value.fract() == 0.0 => {
                *value as i64 as u64 & crate::machine::row::mask(*bits)
            }
            (Parameter::Real(real), Argument::Real(value)) => real.encode(*value),
            (Parameter::Real(real), Argument::Int(value)) => real.encode(*value as f64),
            (Parameter::ByValue(size), Argument::Descriptor(tensor))
                if *size == DESCRIPTOR_BYTES as u64 && tensor.is_consistent() =>
            {
                let address = memory.add_argument(&tensor.contents, true);
                buffers.push((index, address));
                memory.add(&tensor.map(address).encode(), false, true)
            }
            (Parameter::ByValue(size), Argument::DescriptorOf(of, tensor))
                if *size == DESCRIPTOR_BYTES as u64 && *of < index && tensor.is_consistent() =>
            {
                memory.add(&tensor.map(values[*of]).encode(), false, true)
            }
            (Parameter::ByValue(size), Argument::Bytes(bytes)) if bytes.len() as u64 == *size => {
                memory.add(bytes, true, true)
            }
            _ => return Err(unfit(parameter)),
        };
        values.push(value);
    }
    Ok(values)
}

/// A parameter in words.
pub(crate) fn describe(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Pointer(_) => "a buffer".to_owned(),
        Parameter::Int(bits) => format!("an integer of {bits} bits"),
        Parameter::Real(real) => format!("a floating-point number of {} bits", real.bits()),
        Parameter::ByValue(size) => format!("{size} bytes by value"),
        Parameter::Other(ty) => format!("a value of type {ty}, which cannot be given"),
    }
}

impl Argument {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Argument::Buffer(_) | Argument::Uninitialized(_) => "a buffer",
            Argument::Null => "a null pointer",
            Argument::Address(_) => "an address",
            Argument::Int(_) => "an integer",
            Argument::Real(_) => "a floating-point number",
            Argument::Descriptor(_) | Argument::DescriptorOf(..) => "a tensor descriptor",
            Argument::Bytes(_) => "a by-value block of bytes of another size",
        }
    }
}

/// The block of hidden kernel arguments of AMD's code object version 5.
fn hidden_arguments(launch: &Launch) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    for axis in 0..3 {
        bytes[4 * axis..4 * axis + 4].copy_from_slice(&launch.grid[axis].to_le_bytes());
        let group = (launch.block[axis] as u16).to_le_bytes();
        bytes[12 + 2 * axis..14 + 2 * axis].copy_from_slice(&group);
    }
    let dimensions = launch
        .grid
        .iter()
        .rposition(|&n| n > 1)
        .map_or(1u16, |axis| axis as u16 + 1);
    bytes[64..66].copy_from_slice(&dimensions.to_le_bytes());
    bytes
}

/// The results of a block.
struct Remains {
    findings: Findings,
    footprint: Footprint,
    output: Vec<String>,
}

/// Coordinates of the first block of a cluster.
fn coordinates(grid: &Grid, number: u64) -> [u32; 3] {
    let [x, y, _] = grid.blocks.map(u64::from);
    let cluster = u64::from(grid.cluster);
    let x = x / cluster;
    [number % x * cluster, number / x % y, number / (x * y)].map(|c| c as u32)
}

fn run_grid<const W: usize>(
    program: &Program,
    memory: &GlobalMemory,
    grid: &Grid,
    options: &Options<'_>,
) -> Result<Report, Error> {
    let blocks: u64 = grid.blocks.iter().map(|&n| u64::from(n)).product();
    let total = blocks / u64::from(grid.cluster);
    let threads = options
        .threads
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
        .min(usize::try_from(total).unwrap_or(usize::MAX))
        .max(1);
    let (counters, results) = if program.global_atomics || threads == 1 {
        run_in_order::<W>(program, memory, grid, options, total)
    } else {
        run_in_parallel::<W>(program, memory, grid, options, total, threads)
    };
    let mut report = Report::default();
    counters.summarize(program, &mut report);
    let mut findings = Findings::default();
    let mut failure = None;
    let mut numbers = Vec::new();
    let mut footprints = Vec::new();
    for (number, result) in results {
        findings.merge(result.1.findings);
        numbers.push(number);
        footprints.push(result.1.footprint);
        report.output.extend(result.1.output);
        if failure.is_none()
            && let Err(stop) = result.0
        {
            failure = Some((number, stop));
        }
    }
    report.findings = findings.into_list();
    report.unwatched_blocks = footprints.iter().filter(|f| f.is_incomplete).count() as u64;
    for conflict in footprint::conflicts(&footprints) {
        let id = |block: usize| coordinates(grid, numbers[block]);
        report
            .findings
            .push(between_blocks(program, grid, conflict, id));
    }
    match failure {
        None => Ok(report),
        Some((number, stop)) => {
            let block = coordinates(grid, number);
            Err(match stop {
                Stop::Watchdog => Error::Watchdog {
                    block,
                    limit: grid.instruction_limit,
                },
                Stop::Fatal(message) => Error::Stopped {
                    block,
                    message,
                    report: Box::new(report),
                },
            })
        }
    }
}

/// A race between blocks as a finding of the later of the two.
fn between_blocks(
    program: &Program,
    grid: &Grid,
    conflict: Conflict,
    id: impl Fn(usize) -> [u32; 3],
) -> Finding {
    let (earlier, other, other_writes) = conflict.one;
    let (block, actor, writes) = conflict.other;
    let kind = if writes && other_writes {
        FindingKind::GlobalWriteWriteRace
    } else {
        FindingKind::GlobalReadWriteRace
    };
    let verb = |writes: bool| if writes { "write" } else { "read" };
    let [x, y, z] = id(earlier);
    let message = format!(
        "a {} of global memory races with the {} of another block, block ({x}, {y}, {z}) {}",
        verb(writes),
        verb(other_writes),
        describe_actor(program, other)
    );
    // The number of pairs of threads is not bounded.
    let warps = grid.threads().div_ceil(grid.target.warp_size()) as usize;
    let mut findings = Findings::new(id(block), warps);
    let (warp, lane) = (actor.warp.into(), actor.lane.into());
    findings.add(
        program,
        kind,
        warp,
        lane,
        Some(conflict.address),
        actor.site,
        &message,
    );
    findings.into_list().swap_remove(0)
}

type BlockResult = (u64, (Result<(), Stop>, Remains));

fn finish<const W: usize>(
    block: Block<'_, W>,
    result: Result<(), Stop>,
    counters: &mut Counters,
) -> (Result<(), Stop>, Remains) {
    counters.add(&block.counters);
    (
        result,
        Remains {
            findings: block.findings,
            footprint: block
                .watch
                .map_or_else(Footprint::default, Watch::footprint),
            output: block.output,
        },
    )
}

fn run_in_order<const W: usize>(
    program: &Program,
    memory: &GlobalMemory,
    grid: &Grid,
    options: &Options<'_>,
    total: u64,
) -> (Counters, Vec<BlockResult>) {
    let mut counters = Counters::new(program);
    let mut results: Vec<BlockResult> = Vec::new();
    let mut queue: VecDeque<(u64, Block<'_, W>)> = VecDeque::new();
    let mut next = 0;
    loop {
        // Unfinished blocks take turns with blocks that have not started.
        let (number, mut block) = if next < total {
            let block = Block::<W>::new(
                program,
                memory,
                grid,
                coordinates(grid, options.order.block(next, total)),
                Counters::new(program),
            );
            next += 1;
            (options.order.block(next - 1, total), block)
        } else if let Some(waiting) = queue.pop_front() {
            waiting
        } else {
            break;
        };
        match block.run(TIME_SLICE) {
            Ok(false) => queue.push_back((number, block)),
            Ok(true) => {
                results.push((number, finish(block, Ok(()), &mut counters)));
                if let Some(progress) = options.progress {
                    progress(results.len() as u64, total);
                }
            }
            Err(stop) => {
                results.push((number, finish(block, Err(stop), &mut counters)));
                break;
            }
        }
    }
    results.sort_by_key(|(number, _)| *number);
    (counters, results)
}

fn run_in_parallel<const W: usize>(
    program: &Program,
    memory: &GlobalMemory,
    grid: &Grid,
    options: &Options<'_>,
    total: u64,
    threads: usize,
) -> (Counters, Vec<BlockResult>) {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed_at = AtomicUsize::new(usize::MAX);
    let gathered: Mutex<(Counters, Vec<BlockResult>)> =
        Mutex::new((Counters::new(program), Vec::new()));
    let work = || {
        let mut counters = Counters::new(program);
        let mut results = Vec::new();
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            // Blocks before a failed one still run, so that the first failure is always the one reported.
            if position as u64 >= total || position > failed_at.load(Ordering::Relaxed) {
                break;
            }
            let number = options.order.block(position as u64, total);
            let id = coordinates(grid, number);
            let mut block = Block::<W>::new(program, memory, grid, id, Counters::new(program));
            let result = loop {
                match block.run(TIME_SLICE) {
                    Ok(true) => break Ok(()),
                    Ok(false) => {}
                    Err(stop) => break Err(stop),
                }
            };
            if result.is_err() {
                failed_at.fetch_min(position, Ordering::Relaxed);
            }
            results.push((number, finish(block, result, &mut counters)));
            let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = options.progress {
                progress(finished as u64, total);
            }
        }
        let mut gathered = gathered
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        gathered.0.add(&counters);
        gathered.1.extend(results);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (counters, mut results) = gathered
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    (counters, results)
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn every_order_runs_each_block_once() {
        for total in [1, 2, 3, 7, 64, 1000] {
            for order in [
                Order::Ascending,
                Order::Descending,
                Order::Shuffled(1),
                Order::Shuffled(77),
            ] {
                let mut blocks: Vec<u64> = (0..total).map(|at| order.block(at, total)).collect();
                if total > 100 && matches!(order, Order::Shuffled(_)) {
                    assert!(!blocks.is_sorted());
                }
                blocks.sort_unstable();
                assert_eq!(blocks, (0..total).collect::<Vec<_>>(), "{order:?}");
            }
        }
    }
}
