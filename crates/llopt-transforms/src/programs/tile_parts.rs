//! `--tile-parts`: the tile of a program in parts, of which one block computes one, or of which only one is computed.
//!
//! The author of a kernel chooses tiles before sizes are known. With few rows a product is the time of reading the other
//! matrix, and tiles that are right for many rows are wrong twice: there are fewer of them than multiprocessors, and
//! most of their rows are outside of the matrix.
//!
//! # Columns for several blocks
//!
//! ```text
//! columns = n * 128 + range(0, 128)              block = 2 * n + part, two parts
//!                                                columns = n * 128 + range(0, 64) + part * 64
//! for k ...                                      for k ...
//!   sum = dot a, b, sum     [64, 128]              sum = dot a, b, sum     [64, 64]
//! ```
//!
//! The elements along a dimension of a program (`dimension.rs`) do not depend on each other, so blocks that compute parts
//! of it need nothing from each other: neither a cluster nor sums in the end, as blocks do that share the iterations of a
//! loop ([`crate::split_k`]). Each loads the whole factor without the dimension, which with few rows is the small one.
//! The launch starts that many times as many blocks along x; each program has a run of them, so that the blocks that load
//! the same factor run at the same time.
//!
//! It is correct if all ops that change memory write tensors with the dimension, each block its part.
//!
//! # Fewer rows
//!
//! See `rows.rs`.
//!
//! # Alternatives rejected
//!
//! Clusters of blocks that have parts of each layout (`num_ctas`): everything from layouts to barriers has to know of
//! the other blocks, the hardware has fewer places for clusters than for blocks, and other GPUs have none.

mod dimension;
mod rows;

use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts};
use llopt_dialects::tables::module::TILE_PARTS;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{
    CacheModifier, DescriptorLoadOp, EvictionPolicy, GetNumProgramsOp, GetProgramIdOp, LoadOp,
    ProgramDim,
};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, RegionExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Value, ValueLike};

use crate::block_access::BlockAccess;
use crate::loops::builder::Arithmetic;
use crate::loops::view::For;
use crate::pipelining::place;
use crate::products::{products_in, widened_source_of};
use crate::split_k::Count;
use crate::split_k::does_more_than_read;
use dimension::Dimension;

/// The most blocks that may compute parts of a tile.
pub const MOST_PARTS: u32 = 8;
/// The fewest rows or columns of a product.
pub const FEWEST: i64 = 16;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    options: &[
        PassOption::integer(
            "parts",
            "the number of blocks that each compute a part of a program's tile",
            "1",
        ),
        PassOption::integer(
            "rows",
            "the number of rows of tiles that are computed where others are not seen; 0 for all",
            "0",
        ),
    ],
    ..PassSpec::new("tile-parts", "let blocks compute parts of tiles", run)
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let (parts, rows) = (run.integer("parts"), run.integer("rows"));
    let number = |value: i64| u32::try_from(value).ok();
    let parts = number(parts).filter(|parts| is_number_of_parts(*parts));
    let parts = parts.ok_or_else(|| Complaint::new("parts is not 1, 2, 4 or 8"))?;
    let rows = number(rows).filter(|rows| is_number_of_rows(*rows));
    let rows =
        rows.ok_or_else(|| Complaint::new("rows is neither 0 nor a power of two from 16 on"))?;
    let _ = narrow(module, rows);
    let _ = divide(module, parts);
    Ok(())
}

/// Whether so many blocks may compute parts of a tile.
pub fn is_number_of_parts(parts: u32) -> bool {
    parts.is_power_of_two() && parts <= MOST_PARTS
}

/// Whether tiles may have so many rows; zero stands for all that they have.
pub fn is_number_of_rows(rows: u32) -> bool {
    rows == 0 || rows.is_power_of_two() && i64::from(rows) >= FEWEST
}

/// The tile of a kernel's product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductTile {
    /// `file:line:col` of the loop in which it is computed.
    pub location: String,
    /// The number of its iterations.
    pub iterations: Count,
    /// Its rows and columns.
    pub extents: [u64; 2],
    /// The most blocks that can each compute a part of it.
    pub most_parts: u32,
    /// The rows that there are, if the kernel stores no others and they follow from its integers.
    pub rows: Option<Count>,
    /// Bytes of both factors.
    pub bytes: [u64; 2],
}

/// The tile of the product of a module's kernel, if it has one product of two matrices.
pub fn tile(module: OperationRef<'_, '_>) -> Option<ProductTile> {
    let kernel = kernel_of(module).ok()?;
    let &[product] = &products_in(kernel)[..] else {
        return None;
    };
    let &[rows, columns] = &tensor_of(product.result_value(0)?)?.shape()[..] else {
        return None;
    };
    let bytes = |index| {
        let factor = widened_source_of(product.operand_value(index)?);
        Some(tensor_of(factor)?.bytes())
    };
    let of = For::of(product.parent_op()?)?;
    let mut parts = [8, 4, 2].into_iter();
    Some(ProductTile {
        location: place(of.operation()),
        iterations: Count::of(of),
        extents: [u64::try_from(rows).ok()?, u64::try_from(columns).ok()?],
        most_parts: parts
            .find(|parts| dimensions(kernel, COLUMNS, *parts).is_ok())
            .unwrap_or(1),
        rows: rows::number_of_rows(kernel, product),
        bytes: [bytes(0)?, bytes(1)?],
    })
}

/// Computes only so many rows of the tiles of a module's kernel, where the program sees that there are no more.
///
/// # Errors
/// Why all rows are computed; then nothing is changed.
pub fn narrow(module: OperationRef<'_, '_>, rows: u32) -> Result<(), String> {
    match rows {
        0 => Ok(()),
        rows => rows::narrow(kernel_of(module)?, rows.into()),
    }
}

/// Lets so many blocks compute a part of each tile of a module's kernel.
///
/// # Errors
/// Why one block computes a whole tile; then nothing is changed.
pub fn divide(module: OperationRef<'_, '_>, parts: u32) -> Result<(), String> {
    if parts == 1 {
        return Ok(());
    }
    let kernel = kernel_of(module)?;
    let dimensions = dimensions(kernel, COLUMNS, parts)?;
    write(module, kernel, dimensions, parts);
    Ok(())
}

/// The dimension of columns.
const COLUMNS: usize = 1;

/// Lets caches drop first what a module's products load as second factors, since blocks with other columns load other
/// elements. Loads for which the author asks for something else stay as they are.
pub fn read_columns_once(module: OperationRef<'_, '_>) {
    for product in products_in(module) {
        let Some(factor) = product.operand_value(1).map(widened_source_of) else {
            continue;
        };
        let by_pointers = LoadOp::defining(factor).map(|load| (load.evict(), load.cache()));
        let by_blocks =
            || DescriptorLoadOp::defining(factor).map(|load| (load.evict(), load.cache()));
        let asked = by_pointers.or_else(by_blocks);
        if asked == Some((EvictionPolicy::Normal, CacheModifier::None))
            && let Some(load) = factor.defining_op()
        {
            let first = attr::i32(module.ctx(), EvictionPolicy::EvictFirst as i32);
            load.set_attr("evict", first);
        }
    }
}

/// The kernel of a module that has no other function.
fn kernel_of<'c: 'a, 'a>(module: OperationRef<'c, 'a>) -> Result<OperationRef<'c, 'a>, String> {
    let mut kernels = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            kernels.push(operation);
        }
    });
    match kernels[..] {
        [kernel] => Ok(kernel),
        _ => Err("the module has several functions".to_owned()),
    }
}

/// The type of a tensor.
fn tensor_of<'c>(value: Value<'c, '_>) -> Option<RankedTensor<'c>> {
    RankedTensor::of(value.r#type())
}

/// The first product in an operation, or the operation itself.
fn product_of<'c: 'a, 'a>(within: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    products_in(within).into_iter().next()
}

/// The dimensions that parts divide: those of all products of a kernel.
fn dimensions<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    dim: usize,
    parts: u32,
) -> Result<Vec<Dimension<'c, 'a>>, String> {
    let mut found: Vec<Dimension<'c, 'a>> = Vec::new();
    for product in products_in(kernel) {
        let sum = product.result_value(0).ok_or("a product has no result")?;
        let known = found.iter().find_map(|dimension| dimension.place_in(sum));
        match known {
            Some(place) if place == dim => continue,
            Some(_) => {
                return Err("it is rows of one product and columns of another one".to_owned());
            }
            None => {}
        }
        let dimension = Dimension::of(sum, dim)?;
        let parts = i64::from(parts);
        if dimension.extent % parts != 0 || dimension.extent / parts < FEWEST {
            return Err("its tiles are too small to be divided".to_owned());
        }
        dimension.may_shrink(dimension.extent / parts, false)?;
        found.push(dimension);
    }
    let mut whole = None;
    kernel.for_each_op(Walk::PreOrder, |operation| {
        let is_of_part = || {
            let anchor = OpFacts::of(operation).anchor;
            let is_access = matches!(anchor, Some(LayoutAnchor::Store | LayoutAnchor::Update))
                || BlockAccess::of(operation).is_some();
            is_access && found.iter().any(|dimension| dimension.has(operation))
        };
        let is_access =
            operation.region_refs().len() == 0 && Control::of(operation) == Control::Computes;
        if is_access && does_more_than_read(operation) && !is_of_part() {
            whole = Some(operation.name_str());
        }
    });
    match whole {
        Some(name) => Err(format!("each part would execute {name}")),
        None => Ok(found),
    }
}

/// Divides the dimensions of a kernel, and numbers its programs as before.
fn write<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    kernel: OperationRef<'c, 'a>,
    dimensions: Vec<Dimension<'c, 'a>>,
    parts: u32,
) {
    let context = module.ctx();
    let Some(body) = kernel.region_ref(0).and_then(RegionExt::entry) else {
        return;
    };
    let (mut numbers, mut counts) = (Vec::new(), Vec::new());
    kernel.for_each_op(Walk::PreOrder, |operation| {
        numbers
            .extend(GetProgramIdOp::of(operation).filter(|number| number.axis() == ProgramDim::X));
        counts
            .extend(GetNumProgramsOp::of(operation).filter(|count| count.axis() == ProgramDim::X));
    });
    let mut rewriter = Rewriter::new(context);
    rewriter.set_to_start(body);
    let location = kernel.loc();
    let i32 = IntegerType::new(context, 32).into();
    let parts_value = Arithmetic {
        rewriter: &mut rewriter,
        location,
    }
    .constant(i32, parts.into());
    let quotient = |rewriter: &mut Rewriter<'c, 'a>, operation| {
        let made: OperationRef<'c, 'a> = rewriter.insert(operation);
        let value = made.result_value(0)?;
        let mut arithmetic = Arithmetic { rewriter, location };
        Some((value, arithmetic.divide(value, parts_value)))
    };
    let block = quotient(
        &mut rewriter,
        GetProgramIdOp::build(location, ProgramDim::X),
    );
    let Some((block, program)) = block else {
        return;
    };
    if !counts.is_empty()
        && let Some((_, programs)) = quotient(
            &mut rewriter,
            GetNumProgramsOp::build(location, ProgramDim::X),
        )
    {
        for count in counts {
            count.result().replace_all_uses(programs);
            count.operation().erase();
        }
    }
    for number in numbers {
        number.result().replace_all_uses(program);
        number.operation().erase();
    }
    let mut arithmetic = Arithmetic {
        rewriter: &mut rewriter,
        location,
    };
    let part = arithmetic.remainder(block, parts_value);
    for dimension in dimensions {
        let to = dimension.extent / i64::from(parts);
        let after = part_start(&mut rewriter, part, to, location);
        dimension.resize(&mut rewriter, to, Some(after));
    }
    module.set_discardable_attr(TILE_PARTS, attr::i32(context, parts.cast_signed()));
}

/// The number of the first element of a part.
fn part_start<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    part: Value<'c, 'a>,
    to: i64,
    location: Location<'c>,
) -> Value<'c, 'a> {
    if let Some(made) = part.defining_op() {
        rewriter.set_after(made);
    }
    let mut arithmetic = Arithmetic { rewriter, location };
    let to = arithmetic.constant(part.r#type(), to);
    arithmetic.multiply(part, to)
}
