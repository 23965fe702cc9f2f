//! `--tritongpu-split-k`: the blocks of a cluster share the iterations of a loop of products, and add their sums.
//!
//! A product with few rows and columns has fewer tiles than the GPU has multiprocessors. Where k is long, a cluster of
//! `S` blocks computes each tile instead of one block:
//!
//! ```text
//!                                    r = rank of the block
//! for i = 0 to n …                   for i = r * c to min((r + 1) * c, n) …         c = ceil(n / S)
//!   a = load A[i]                      a = load A[i]
//!   b = load B[i]                      b = load B[i]
//!   sum = dot a, b, sum                sum = dot a, b, sum
//!                                    sum = sums of all blocks, in a fixed order
//! store sum                          store this block's part of sum
//! ```
//!
//! Layouts, rings and barriers know nothing of the cluster: each block runs the code of one, with other bounds. Only
//! the number of a program is that of its cluster, and two ops know of the other blocks (`ttng.cluster_rank`,
//! `ttng.cluster_sum`). The order of additions differs from that of the program, as it does with any other size of
//! tiles along k, but is always the same.
//!
//! # When it is correct
//!
//! The carried values of the loop are sums (`carried`), which begin at zero in all blocks but the first, or move by
//! equal steps (addresses, offsets), so that the first value of a block's part is known. In the loop and before it
//! memory is only read, as all blocks execute it.
//!
//! The loop may be the first of two versions between which the program chooses by numbers alone ([`crate::tile_parts`]
//! computes fewer rows where there are no more). All blocks of a cluster choose the same version, and the first block
//! executes the other one alone.
//!
//! # What comes after the loop
//!
//! If it only stores tensors of the sum's shape and if these, their addresses and their masks can be computed for a
//! part of the rows or of the columns (`part`), each block stores its part: the traffic between blocks is the least,
//! and all of them store. Otherwise every block gets the whole sum, and only the first one executes the rest.
//!
//! # Alternatives rejected
//!
//! More programs with atomic additions to global memory need zeros there first, and add in any order. Blocks of a
//! cluster that each have a part of the tile (`num_ctas`) divide the work of a tile along rows and columns, which
//! smaller tiles do as well; there are not enough of both.

mod carried;
mod count;
mod memory;
mod part;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module::{CLUSTER_SPLIT, NUM_CTAS};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttng::ClusterRankOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, Location, OperationRef, Value, ValueLike};

use crate::choice::VERSIONS;
use crate::loops::builder::Arithmetic;
use crate::loops::induction::Numbers;
use crate::loops::motion::hoist_invariants;
use crate::loops::unroll::RARE;
use crate::loops::view::{For, If};
use crate::pipelining::place;
use crate::products::is_product;
use carried::Carried;
pub(crate) use carried::{Step, steps};
pub use count::Count;
pub(crate) use memory::does_more_than_read;
use part::{Parts, sum_of_blocks};

/// The most blocks that a cluster may have on every GPU that has clusters.
pub const MOST_BLOCKS: u32 = 8;

/// Shares the loops of products of a module among blocks.
pub static SPLIT: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt", "ttng"],
    options: &[PassOption::integer(
        "blocks",
        "the number of blocks that share the products of a tile",
        "2",
    )],
    ..PassSpec::new(
        "tritongpu-split-k",
        "let the blocks of a cluster share the iterations of a loop of products",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let blocks = run.integer("blocks");
    let blocks = u32::try_from(blocks)
        .ok()
        .filter(|blocks| is_number_of_blocks(*blocks))
        .ok_or_else(|| Complaint::new(format!("blocks is {blocks}, not 1, 2, 4 or 8")))?;
    let clusters: Option<u32> = module.attr(NUM_CTAS).and_then(AttributeExt::as_int);
    split(module, blocks, clusters.unwrap_or(1));
    Ok(())
}

/// Whether so many blocks may share a loop.
pub fn is_number_of_blocks(blocks: u32) -> bool {
    blocks.is_power_of_two() && blocks <= MOST_BLOCKS
}

/// The account of a loop of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitAccount {
    /// `file:line:col` of the loop.
    pub location: String,
    /// The number of its iterations, those of all blocks together.
    pub iterations: Count,
    /// What is done with the sum, or why blocks do not share the loop.
    pub outcome: Result<Shared, String>,
}

/// A loop that blocks share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Bytes of the sums of a block.
    pub bytes: u64,
    /// What comes after the loop.
    pub rest: Rest,
}

/// What comes after a shared loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Each block has a part of the sum along this dimension.
    Divided(usize),
    /// The first block does it alone, for this reason.
    OfFirst(String),
}

/// The loops of a module that have products.
pub fn loops_of_products<'c: 'a, 'a>(module: OperationRef<'c, 'a>) -> Vec<For<'c, 'a>> {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        let has_product = |of: &For| of.operations().into_iter().any(is_product);
        loops.extend(For::of(operation).filter(has_product));
    });
    loops
}

/// Lets so many blocks share the loop of products of a module's kernel, if it has one, and if a cluster otherwise has
/// one block. Answers an account of each loop of products.
pub fn split(module: OperationRef<'_, '_>, blocks: u32, num_ctas: u32) -> Vec<SplitAccount> {
    if blocks == 1 {
        return Vec::new();
    }
    let loops = loops_of_products(module);
    let is_rare = |of: &For| of.operation().discardable_attr(RARE).is_some();
    let count = loops.iter().filter(|of| !is_rare(of)).count();
    let mut accounts = Vec::new();
    for of in loops {
        let location = place(of.operation());
        // Its bounds are those of a part afterwards.
        let iterations = Count::of(of);
        let outcome = match (num_ctas, count) {
            (1, _) if is_rare(&of) => {
                Err("it is a version that is hardly ever executed".to_owned())
            }
            (1, 1) => share(module, of, blocks),
            (1, _) => Err(format!("it is one of {count} loops of products")),
            _ => Err("the blocks of a cluster already share the tile".to_owned()),
        };
        accounts.push(SplitAccount {
            location,
            iterations,
            outcome,
        });
    }
    accounts
}

/// Where a loop is.
struct Surroundings<'c, 'a> {
    /// The block of operations that has the loop.
    body: BlockRef<'c, 'a>,
    /// The choice whose first version that block is; the function consists of the choice and what comes before it.
    choice: Option<If<'c, 'a>>,
}

impl<'c: 'a, 'a> Surroundings<'c, 'a> {
    /// Where a loop is, if its function has no other branches.
    fn of(of: For<'c, 'a>) -> Result<Self, String> {
        let elsewhere = || "it is in a loop or a condition".to_owned();
        let parent = of.operation().parent_op().ok_or_else(elsewhere)?;
        let choice = If::of(parent).filter(|choice| {
            let body = of.operation().parent_block();
            choice.operation().discardable_attr(VERSIONS).is_some()
                && choice.results().is_empty()
                && choice.blocks()[0].is_some_and(|first| Some(first) == body)
        });
        let function = match choice {
            Some(choice) => choice.operation().parent_op().ok_or_else(elsewhere)?,
            None => parent,
        };
        if Control::of(function) != Control::Function {
            return Err(elsewhere());
        }
        let body = function
            .region_ref(0)
            .and_then(|region| region.single_block());
        let body = body.ok_or("the function has branches")?;
        let Some(choice) = choice else {
            return Ok(Self { body, choice: None });
        };
        let after = choice.operation().next_op();
        if after.and_then(|after| after.next_op()).is_some() {
            return Err("the function goes on after the choice between versions".to_owned());
        }
        let first = choice.blocks()[0].ok_or_else(elsewhere)?;
        Ok(Self {
            body: first,
            choice: Some(choice),
        })
    }

    /// The first operation that blocks must not execute as that of one.
    fn first(&self, of: For<'c, 'a>) -> OperationRef<'c, 'a> {
        match self.choice {
            Some(choice) => choice.operation(),
            None => of.operation(),
        }
    }

    /// The operations that all blocks execute before the loop.
    fn before(&self, of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
        let up_to = |block: Option<BlockRef<'c, 'a>>, end: OperationRef<'c, 'a>| {
            let operations = block.into_iter().flat_map(BlockExt::operations);
            operations
                .take_while(|operation| *operation != end)
                .collect::<Vec<_>>()
        };
        let mut all = up_to(Some(self.body), of.operation());
        if let Some(choice) = self.choice {
            all.extend(up_to(choice.operation().parent_block(), choice.operation()));
        }
        all
    }
}

/// Why the operations up to the end of the loop must not be executed by several blocks.
fn only_reads<'c: 'a, 'a>(
    of: For<'c, 'a>,
    surroundings: &Surroundings<'c, 'a>,
) -> Result<(), String> {
    for operation in surroundings.before(of) {
        if does_more_than_read(operation) {
            let name = operation.name_str();
            return Err(format!("{name} before it does more than read memory"));
        }
    }
    let mut writes = None;
    for operation in of.operations() {
        if does_more_than_read(operation) {
            writes = writes.or(Some(operation.name_str()));
        }
    }
    match writes {
        Some(name) => Err(format!("{name} in it does more than read memory")),
        None => Ok(()),
    }
}

/// Shares a loop among blocks.
fn share<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    blocks: u32,
) -> Result<Shared, String> {
    let surroundings = Surroundings::of(of)?;
    let body = surroundings.body;
    only_reads(of, &surroundings)?;
    hoist_invariants(of);
    let carried: Vec<Carried> = (0..of.carried().len())
        .map(|index| Carried::of(of, index))
        .collect::<Result<_, _>>()?;
    if !carried.iter().any(Carried::sums_products) {
        return Err("no product in it adds to a sum".to_owned());
    }
    let sums: Vec<Value> = carried
        .iter()
        .zip(of.results())
        .filter(|(carried, result)| matches!(carried, Carried::Sum { .. }) && result.has_uses())
        .map(|(_, result)| result)
        .collect();

    let context = module.ctx();
    let location = of.operation().loc();
    let mut rewriter = Rewriter::new(context);
    rewriter.set_before(surroundings.first(of));
    let rank = rewriter.insert(ClusterRankOp::build(location));
    let rank = rank.result_value(0).ok_or("the rank has no value")?;
    if let Some([_, Some(other)]) = surroundings.choice.map(If::blocks) {
        leave_block_to_first(&mut rewriter, location, other, rank);
    }
    rewriter.set_before(of.operation());
    let start = set_bounds(&mut rewriter, of, rank, blocks);
    let initial: Vec<Value> = carried
        .iter()
        .zip(of.initial())
        .map(|(carried, initial)| carried.first(&mut rewriter, location, initial, start, rank))
        .collect();
    of.set_initial(&initial);
    module.set_discardable_attr(CLUSTER_SPLIT, attr::i32(context, blocks.cast_signed()));

    let bytes = sums.iter().map(|sum| bytes_of(*sum)).sum();
    let rest = match Parts::of(of, body, &sums, blocks) {
        Ok(parts) => {
            let dim = parts.dim();
            parts.write(rewriter, rank);
            Rest::Divided(dim)
        }
        Err(reason) => {
            leave_to_first(&mut rewriter, of, body, &sums, rank);
            Rest::OfFirst(reason)
        }
    };
    Ok(Shared { bytes, rest })
}

/// Bytes of a tensor.
fn bytes_of(value: Value<'_, '_>) -> u64 {
    RankedTensor::of(value.r#type()).map_or(0, RankedTensor::bytes)
}

/// Sets the bounds of a block's part of a loop. Answers the number of the first iteration.
fn set_bounds<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    rank: Value<'c, 'a>,
    blocks: u32,
) -> Value<'c, 'a> {
    let location = of.operation().loc();
    let r#type = of.lower().r#type();
    let known = Numbers::of(of).map(Numbers::count);
    let of_each = i64::from(blocks);
    let arithmetic = &mut Arithmetic { rewriter, location };
    let rank = arithmetic.as_type(rank, r#type);
    let [lower, upper, step] = of.bounds();
    if let Some(count) = known.filter(|count| count.is_multiple_of(u64::from(blocks))) {
        // All parts are equal.
        let chunk = arithmetic.constant(r#type, (count / u64::from(blocks)).cast_signed());
        let start = arithmetic.multiply(rank, chunk);
        let before = arithmetic.multiply(start, step);
        let first = arithmetic.add(lower, before);
        let all = arithmetic.multiply(chunk, step);
        let end = arithmetic.add(first, all);
        of.set_bound(0, first);
        of.set_bound(1, end);
        return start;
    }
    let count = match known {
        Some(count) => arithmetic.constant(r#type, count.cast_signed()),
        None => arithmetic.iterations(of.bounds(), of.is_unsigned()),
    };
    let more = arithmetic.constant(r#type, of_each - 1);
    let blocks = arithmetic.constant(r#type, of_each);
    let rounded = arithmetic.add(count, more);
    let chunk = arithmetic.divide(rounded, blocks);
    let start = arithmetic.multiply(rank, chunk);
    let is_inside = arithmetic.is_below(start, count, true);
    let start = arithmetic.select(is_inside, start, count);
    let end = arithmetic.add(start, chunk);
    let is_before_last = arithmetic.is_below(end, count, true);
    let distance = arithmetic.multiply(start, step);
    let first = arithmetic.add(lower, distance);
    let distance = arithmetic.multiply(end, step);
    let after = arithmetic.add(lower, distance);
    let after = arithmetic.select(is_before_last, after, upper);
    of.set_bound(0, first);
    of.set_bound(1, after);
    start
}

/// Gives all blocks the whole sums, and lets only the first execute what comes after.
fn leave_to_first<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    body: BlockRef<'c, 'a>,
    sums: &[Value<'c, 'a>],
    rank: Value<'c, 'a>,
) {
    let location = of.operation().loc();
    let mut after: Vec<OperationRef> = body
        .operations()
        .skip_while(|operation| *operation != of.operation())
        .skip(1)
        .collect();
    // The terminator stays.
    after.pop();
    rewriter.set_after(of.operation());
    for &sum in sums {
        let shape = RankedTensor::of(sum.r#type()).map(RankedTensor::shape);
        let added = shape.and_then(|shape| sum_of_blocks(rewriter, location, sum, &shape));
        if let Some((added, whole)) = added {
            sum.replace_uses_except(whole, &[added]);
        }
    }
    move_to_first(rewriter, location, after, rank);
}

/// Lets only the first block execute the operations of a block, all but the last.
fn leave_block_to_first<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    block: BlockRef<'c, 'a>,
    rank: Value<'c, 'a>,
) {
    let mut all: Vec<OperationRef> = block.operations().collect();
    if let Some(terminator) = all.pop() {
        rewriter.set_before(terminator);
        move_to_first(rewriter, location, all, rank);
    }
}

/// Moves operations to a condition that only the first block meets.
fn move_to_first<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    operations: Vec<OperationRef<'c, 'a>>,
    rank: Value<'c, 'a>,
) {
    let mut arithmetic = Arithmetic { rewriter, location };
    let zero = arithmetic.constant(rank.r#type(), 0);
    let is_first = arithmetic.is_equal(rank, zero);
    let alone = If::build(
        rewriter,
        location,
        is_first,
        &[],
        |_| Vec::new(),
        |_| Vec::new(),
    );
    let end = alone.blocks()[0].and_then(|block| block.operations().last());
    if let Some(end) = end {
        for operation in operations {
            operation.move_op_before(end);
        }
    }
}
