//! `--tensor-copies`: loads of tiles through pointers as loads through descriptors of tensors, for targets with a unit
//! that copies tiles.
//!
//! The factors of a product come from global memory tile by tile. Where the target has a bulk copy unit, one thread
//! starts the copy of a tile, and the unit computes all addresses; through pointers, each thread computes addresses
//! and masks, and starts a copy for every 16 bytes. Kernels that are written with pointers have tiles, too:
//!
//! ```text
//! pointers = a + rows·stride + columns      descriptor = {a, extents [M, K], strides [stride, 1]}
//! for k = …                                 for k = …
//!   load pointers, columns < K - 64·k         load descriptor [first row, 64·k]
//!   pointers = pointers + 64
//! ```
//!
//! # When both are equal
//!
//! The address of each element, and whether it is read at all, are polynomials in the scalars of the program, the
//! indices of the element and the progress of the loop (`reading`). If these are those of a tile (`tile`), the
//! load and the copy agree as long as no op wraps and all coordinates, extents and strides are in the ranges of the
//! unit. These are conditions on scalars (`conditions`), which a program evaluates once before the loop. The loop as
//! it was remains for the case that they do not hold (`version`).
//!
//! Rows that wrap around at the end of a matrix, as in `(first + i) % M`, are zeros in a copy. If only masked stores
//! depend on these rows, nobody sees that (`observed`); otherwise it is one more condition that the tile does not
//! cross the end.
//!
//! The unit reads memory through a proxy of its own, and does not see what threads of the same kernel have written
//! before. So nothing in the function may store to the memory of the parameter from which the addresses come; as for
//! pipelines, no two parameters are assumed to overlap.
//!
//! Where a block executes the loop for several programs, it is one more condition that the loop has an iteration, and the
//! bounds of the loop with copies show it: sums of products need no zeros to begin with ([`crate::accumulators`]).
//!
//! # Stores
//!
//! What becomes of the sums is stored after the loop, also tile by tile (`storing`). A copy to global memory leaves the
//! elements outside of the tensor alone, as the mask of the store does. It belongs to the loop with copies, under the
//! same conditions, if no load reads the memory that it writes, and if the launcher makes the descriptor.
//!
//! # When copies are worth it
//!
//! All factors that the loop loads must become copies, and the loop as it was must be rare or remain as fast as it was.
//! A descriptor that the program makes before the loop costs it a microsecond. A launcher makes it once for the whole
//! grid (`parameter`), which is possible if the tensor follows from the arguments of the kernel.
//!
//! Factors that are widened after they are loaded become copies only where a warp of its own will issue all of them
//! ([`Narrow`]). Sixteen rows by mxfp4 took 26.0 microseconds with copies for 24.2 with loads (H100, 16x32 by 512).
//!
//! # Deep tiles
//!
//! Where the stages that the program asks for do not fit into shared memory, the tiles are copied in slices along k, each in an
//! iteration of its own (`slices`).
//!
//! # Alternative rejected
//!
//! Proving the conditions from assumptions of the program and from the ranges of its numbers: that matrices have less
//! than 2^31 elements is in no program, and one compare per condition and block costs nothing beside a loop.

mod conditions;
mod exact;
mod observed;
mod parameter;
mod reading;
mod slices;
mod store_parts;
mod storing;
mod tile;
mod version;

use std::rc::Rc;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{LocationExt, OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_target::Target;
use llopt_target::matrix::instructions;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::axis::AxisAnalysis;
use crate::loops::induction::constant;
use crate::loops::unroll::RARE;
use crate::loops::view::{For, is_loop};
use crate::pipelining::stores;
use crate::products::{is_product, operands, source_of, widened_source_of};
use observed::Beyond;
use reading::Reading;
pub use slices::Room;
use slices::Slices;
use tile::Tile;
use version::Version;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith", "scf"],
    options: &[
        PassOption::integer(
            "memory",
            "bytes of shared memory for the tiles of all stages",
            "0",
        ),
        PassOption::integer(
            "num-stages",
            "stages of loops that do not say so themselves; deep tiles are divided if they do not fit",
            "0",
        ),
    ],
    ..PassSpec::new(
        "tensor-copies",
        "load tiles through descriptors of tensors instead of pointers",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let (memory, stages) = (run.integer("memory"), run.integer("num-stages"));
    let none = |_| Complaint::new(format!("memory and num-stages are {memory} and {stages}"));
    let room = Room {
        bytes: u64::try_from(memory).map_err(none)?,
        stages: u32::try_from(stages).map_err(none)?,
    };
    rewrite(module, Maker::Kernel, room, Narrow::Loaded);
    Ok(())
}

/// How factors come that are loaded with fewer bits than they are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrow {
    /// By loads, whose layout in shared memory is free: that suits the threads that widen them. Numbers that are packed in
    /// bytes count as such factors.
    Loaded,
    /// By copies like the others where that is possible, so that a warp of its own can issue all copies: for products with
    /// at least so many rows and columns. Where there are fewer, each warp multiplies by itself, and loads what it
    /// widens ([`crate::layouts`], "Products of few rows").
    Copied(i64),
}

impl Narrow {
    /// Copies for the products that groups of warps of a target multiply.
    #[must_use]
    pub fn copied_for(target: Target) -> Self {
        let by_groups = instructions(target).filter(|row| row.warps > 1);
        Self::Copied(by_groups.map(|row| row.m.into()).min().unwrap_or(0))
    }

    fn is_copied(self) -> bool {
        matches!(self, Self::Copied(_))
    }

    /// How those of a loop come.
    fn of_loop(self, of: For<'_, '_>) -> Self {
        let Self::Copied(least) = self else {
            return self;
        };
        let is_large = |product: &OperationRef| {
            let mut results = product.result_values();
            let of = results
                .next()
                .and_then(|sum| RankedTensor::of(sum.r#type()));
            of.is_some_and(|of| of.shape().iter().all(|extent| *extent >= least))
        };
        let mut operations = of.operations().into_iter();
        match operations.all(|operation| !is_product(operation) || is_large(&operation)) {
            true => self,
            false => Self::Loaded,
        }
    }
}

/// Who makes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Each block of the kernel, before the loop.
    Kernel,
    /// The launcher, which passes them as parameters that the source does not have.
    Launcher,
}

/// The account of a loop with products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyAccount {
    /// `file:line:col` of the loop.
    pub location: String,
    /// What became of it, or why it loads through pointers.
    pub outcome: Result<Copied, String>,
}

/// A loop with copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Loads that became copies.
    pub loads: usize,
    /// Stores after the loop that became copies.
    pub stores: usize,
    /// Conditions that are evaluated before the loop.
    pub conditions: usize,
    /// Slices in which each tile is copied, one in an iteration.
    pub slices: u32,
    /// Whether the loop as it was runs only for sizes that hardly any program has.
    pub is_rare: bool,
}

/// Rewrites the loops of a module with products, of which each has so much room; answers an account of each that loads
/// through pointers.
pub fn rewrite(
    module: OperationRef<'_, '_>,
    maker: Maker,
    room: Room,
    narrow: Narrow,
) -> Vec<CopyAccount> {
    let mut functions = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            functions.push(operation);
        }
    });
    let mut accounts = Vec::new();
    for function in functions {
        let mut loops = Vec::new();
        function.for_each_op(Walk::PreOrder, |operation| loops.extend(For::of(operation)));
        for of in loops {
            let loads = factors(of, source_of);
            if loads.is_empty() {
                continue;
            }
            let narrow = narrow.of_loop(of);
            let mut narrower = match narrow {
                Narrow::Loaded => Vec::new(),
                Narrow::Copied(_) => factors(of, widened_source_of),
            };
            narrower.retain(|load| !loads.contains(load));
            let location = place(of.operation());
            let outcome = rewrite_loop(function, of, [&loads, &narrower], maker, (room, narrow));
            accounts.push(CopyAccount { location, outcome });
        }
    }
    accounts
}

/// `file:line:col` of an operation.
fn place(operation: OperationRef<'_, '_>) -> String {
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}

/// The loads through pointers in the body of a loop that load the factors of its products, or their sources.
fn factors<'c: 'a, 'a>(
    of: For<'c, 'a>,
    source: fn(Value<'c, 'a>) -> Value<'c, 'a>,
) -> Vec<tt::LoadOp<'c, 'a>> {
    let mut loads: Vec<tt::LoadOp<'c, 'a>> = Vec::new();
    let products = of.operations().into_iter();
    for product in products.filter(|operation| is_product(*operation)) {
        for factor in operands(product) {
            let load = tt::LoadOp::defining(source(factor));
            let load = load.filter(|load| load.operation().parent_op() == Some(of.operation()));
            loads.extend(load.filter(|load| !loads.contains(load)));
        }
    }
    loads
}

fn rewrite_loop<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    [loads, narrower]: [&[tt::LoadOp<'c, 'a>]; 2],
    maker: Maker,
    (room, narrow): (Room, Narrow),
) -> Result<Copied, String> {
    if of.operation().discardable_attr(RARE).is_some() {
        return Err("it hardly ever runs".to_owned());
    }
    let inner = of.operations();
    if inner.iter().any(|operation| is_loop(*operation)) {
        return Err("there are loops in the loop".to_owned());
    }
    if !of.results().into_iter().any(ValueExt::has_uses) {
        return Err("nothing uses the results of the loop".to_owned());
    }
    let stored = stores::stored_to(function)?;
    // Rewriting another loop has changed the module.
    let facts = Rc::new(AxisAnalysis::of(function));
    let mut reading = Reading::new(of, Rc::clone(&facts), narrow.is_copied())?;
    let (mut tiles, mut tensors) = (Vec::new(), Vec::new());
    let all = loads.iter().map(|load| (*load, true));
    for (load, is_factor) in all.chain(narrower.iter().map(|load| (*load, false))) {
        let tile = read(load, &mut reading, &facts, &stored).and_then(|tile| {
            let tensor = match maker {
                Maker::Kernel => None,
                Maker::Launcher => Some(parameter::tensor_of(&tile, &reading)?),
            };
            tensors.push(tensor);
            Ok(tile)
        });
        match tile {
            Ok(tile) => tiles.push(tile),
            Err(reason) if is_factor => {
                let place = place(load.operation());
                return Err(format!("the load at {place}: {reason}"));
            }
            // It remains a load.
            Err(_) => {}
        }
    }
    let is_rare = require_whole(&tiles, &mut reading)?;
    let runs = is_repeated(of, narrow) && require_iteration(of, &mut reading);
    let stored_tiles = match maker {
        Maker::Kernel => Vec::new(),
        Maker::Launcher => storing::tiles(function, of, &stored, &mut reading, &facts),
    };
    let slices = Slices::of(of, &tiles, &mut reading, room);
    if let Some(slices) = &slices {
        tiles.clone_from(&slices.tiles);
    }
    let conditions = reading.conditions.all().count();
    let room = room.asked_by(of);
    // The ring of a loop that begins once is empty when its results are stored.
    let factors = match is_repeated(of, narrow) {
        true => tiles.iter().map(|tile| tile.tensor.bytes()).sum(),
        false => 0,
    };
    // A parameter is added after all else is known to be possible.
    let of_tile = tensors.iter().zip(&tiles);
    let parameters = of_tile
        .map(|(tensor, tile)| Some(parameter::parameter(function, tensor.as_ref()?, tile)))
        .collect();
    let stores: Vec<(Tile, Value)> = stored_tiles
        .into_iter()
        .map(|(tile, tensor)| {
            let tile = tile.part(store_parts::parts(&tile, factors, room));
            let parameter = parameter::parameter(function, &tensor, &tile);
            (tile, parameter)
        })
        .collect();
    Version {
        of,
        location: of.operation().loc(),
        tiles: &tiles,
        slices: slices.as_ref().map(|slices| slices.division),
        stores: &stores,
        parameters,
        reading: &reading,
        is_rare,
        runs,
    }
    .write();
    Ok(Copied {
        loads: tiles.len(),
        stores: stores.len(),
        conditions,
        slices: slices.map_or(1, |slices| slices.division.number),
        is_rare,
    })
}

fn read<'c: 'a, 'a>(
    load: tt::LoadOp<'c, 'a>,
    reading: &mut Reading<'c, 'a>,
    facts: &AxisAnalysis,
    stored: &[Option<Value<'c, 'a>>],
) -> Result<Tile<'c, 'a>, String> {
    if load.is_volatile() {
        return Err("it is volatile".to_owned());
    }
    if stores::may_meet(stores::parameter(load.ptr()), stored) {
        return Err("the kernel stores to the memory that it loads from".to_owned());
    }
    Tile::of(load, reading, facts)
}

/// Whether a block executes a loop for several programs.
fn is_repeated(of: For<'_, '_>, narrow: Narrow) -> bool {
    let around = of.operation().parent_op();
    narrow.is_copied() || around.is_some_and(|around| For::of(around).is_some())
}

/// Requires that a loop has an iteration, if that can be a condition: the sums of its products then need no zeros to begin
/// with, which would be written for each program.
fn require_iteration<'c: 'a, 'a>(of: For<'c, 'a>, reading: &mut Reading<'c, 'a>) -> bool {
    constant(of.lower()).is_some()
        && reading
            .last()
            .and_then(|last| reading.conditions.at_least(&last, 0))
            .is_ok()
}

/// Requires that tiles which wrap around do not cross the end of their tensor, unless nobody sees the elements beyond
/// it. Answers whether all other conditions hold for any sizes that are not extreme.
fn require_whole<'c: 'a, 'a>(
    tiles: &[Tile<'c, 'a>],
    reading: &mut Reading<'c, 'a>,
) -> Result<bool, String> {
    let mut is_rare = true;
    for tile in tiles {
        for (dim, of) in tile.dims.iter().enumerate().filter(|(_, dim)| dim.wraps) {
            let first = of.extent.minus(&of.start).ok_or(conditions::TOO_LARGE)?;
            let beyond = Beyond { dim, first: &first };
            let loaded = tile.access.result_value(0).ok_or("it is no load")?;
            if observed::are_unseen(loaded, &beyond, reading) {
                continue;
            }
            reading.conditions.at_least(&first, of.size)?;
            is_rare = false;
        }
    }
    Ok(is_rare)
}
