//! A loop whose copies a separate warp issues.
//!
//! # The rewritten loop
//!
//! Copies of whole blocks need one thread, and warp-group products need registers. In a loop with both, each copy is
//! issued between two products, and a loop around it fills its pipeline anew in each of its iterations. Here the
//! loops are executed twice, concurrently: by a *producer* of one warp, which has only the copies and the computation
//! of their addresses, and by the *consumers*, the kernel's own warps, which have everything else.
//!
//! ```text
//! producer                                   consumers
//! for tile …                                 for tile …
//!   for i …                                    for i …
//!     wait empty[s], phase 1 - p                 wait full[s], phase p
//!     expect bytes at full[s]                    sum = product of ring[s], which runs on
//!     copy to ring[s], arrives at full[s]        complete the product before: arrive at empty[s - 1]
//!     s, p = the next slot                       s, p = the next slot
//!                                              complete the last product: arrive at empty[s - 1]
//!                                              what is made of the sum
//! ```
//!
//! - The numbers `s` and `p` are carried through all loops: for the producer the next tile is only the next slot. So
//!   its copies arrive while the consumers store the tile before.
//! - Producer and consumers share rings of slots, with barriers that say who may use a slot (`channels`).
//! - What the products read of the loop around them, as the rows of queries in attention, has a ring of its own, whose slots
//!   are counted by tiles. So it is fetched while the tile before is computed or, with one slot, while it is stored.
//!
//! # Laws
//!
//! The producer executes the same iterations as the consumers, since it computes all bounds as they do. A consumer
//! arrives at each `empty` as often as it has waited for `full`, so the producer is ahead by at most the number of
//! slots, and every wait is satisfied. If a product runs on, at least two slots are needed: its slot is released only
//! when the next one is full.
//!
//! # Factors that are computed in registers
//!
//! Narrow weights are copied as they are; consumers read them from their slot, release it, and widen them. The product
//! of the iteration before runs on until they have been read. So each group of four warps waits only for copies and
//! for its own products: no barrier of the block keeps the groups in step, and the matrix unit has the product of one
//! group while the other one widens its next factor. What is no block of a tensor, such as scales with few bytes in a
//! row, consumers load to registers, an iteration ahead.
//!
//! Alternative rejected: a third role of warps that widen and store the result for products that read both factors in
//! shared memory. Shared memory would be busy for longer than the matrix units: 1,088 cycles of 1,024 in a tile of 256x128
//! by 64, and 928 if the wide factor stays in registers.
//!
//! # Loops that stay as they are
//!
//! Loops with factors that are loaded through pointers to shared memory (one warp is too few for these), and loops in
//! which the position of a block depends on tensors. If it depends on a number that is loaded, the producer loads it.

mod channels;
mod consumers;
mod divided;
mod producer;
mod rings;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::ttg::{
    WarpReturnOp, WarpSpecializeOp, WarpSpecializePartitionsOp, WarpYieldOp,
};
use llopt_mlir::ir::{OperationExt, RegionExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{
    Block, BlockLike, Location, OperationRef, Region, RegionLike, Type, Value, ValueLike,
};

use crate::loops::clone::Mapping;
use crate::loops::view::For;
use channels::Channels;
pub(super) use divided::Division;
pub(super) use rings::Rings;

/// The attribute of a loop that asks for partitions.
pub(crate) const ASKS: &str = "tt.warp_specialize";
/// Warps of the producer.
pub(super) const PRODUCER_WARPS: u32 = 1;
/// The loops from the one that asks for partitions to this one, if each contains only the next one.
///
/// # Errors
/// The other operations in one of the loops.
pub(super) fn asking<'c: 'a, 'a>(of: For<'c, 'a>) -> Option<Result<Vec<For<'c, 'a>>, String>> {
    let mut nest = vec![of];
    let mut between = None;
    let mut operation = of.operation();
    loop {
        if operation.attr(ASKS).is_some() {
            nest.reverse();
            return Some(match between {
                Some(name) => Err(format!("there is {name} around it")),
                None => Ok(nest),
            });
        }
        operation = operation.parent_op()?;
        match For::of(operation) {
            Some(outer) => nest.push(outer),
            None => between = Some(operation.name_str()),
        }
    }
}

/// The loops around this one from the outermost on, each directly in the one before.
pub(super) fn nest_of<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<For<'c, 'a>> {
    let mut nest = vec![of];
    let outer = |of: &For<'c, 'a>| For::of(of.operation().parent_op()?);
    while let Some(outer) = nest.last().and_then(outer) {
        nest.push(outer);
    }
    nest.reverse();
    nest
}

/// Divides loops, for consumers of so many warps. `registers` is the number that each thread of the producer keeps,
/// if it gives registers to the consumers. Answers the innermost loop of the consumers.
pub(super) fn divide<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    division: &Division<'c, 'a>,
    warps: u32,
    registers: Option<i32>,
) -> Option<For<'c, 'a>> {
    let root = *division.nest.first()?;
    let location = root.operation().loc();
    rewriter.set_before(root.operation());
    let channels = Channels::build(rewriter, &division.rings, warps, location)?;
    let around = Channels::build(rewriter, &division.around, warps, location)?;
    let is_constant = |value: &Value<'c, 'a>| ConstantOp::defining(*value).is_some();
    let outside = division.needs.outside.iter();
    let (constants, captured): (Vec<Value>, Vec<Value>) = outside.partition(|v| is_constant(v));
    let captured = [captured, channels.all(), around.all()].concat();
    let concurrent = concurrently(rewriter, root, &captured, registers);
    rewriter.set_after(concurrent);
    channels.give_back(rewriter, &division.rings, location);
    around.give_back(rewriter, &division.around, location);
    into_default_region(rewriter, root, concurrent)?;
    // The producer is built before the loops change.
    let partition = WarpSpecializeOp::of(concurrent)?.partition_regions();
    let block = partition.first().copied().and_then(RegionExt::entry)?;
    rewriter.set_to_end(block);
    let mut mapping = Mapping::new();
    for constant in constants {
        mapping.copy(rewriter, constant.defining_op()?);
    }
    for (index, &value) in captured.iter().enumerate() {
        mapping.map(value, Value::from(block.argument(index).ok()?));
    }
    producer::produce(rewriter, division, [&channels, &around], mapping)?;
    rewriter.set_to_end(block);
    rewriter.insert(WarpReturnOp::build(location));
    consumers::consume(rewriter, division, [&channels, &around], warps)
}

/// The operation whose default region is for the loops, and whose partition of the producer takes the `captured` values.
fn concurrently<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    root: For<'c, 'a>,
    captured: &[Value<'c, 'a>],
    registers: Option<i32>,
) -> OperationRef<'c, 'a> {
    let location = root.operation().loc();
    let arguments: Vec<(Type, Location)> = captured
        .iter()
        .map(|value| (value.r#type(), location))
        .collect();
    let own = Region::new();
    own.append_block(Block::new(&arguments));
    let holder = Block::new(&[]);
    holder.append_operation(WarpSpecializePartitionsOp::build(location, vec![own]));
    let (default, partitions) = (Region::new(), Region::new());
    default.append_block(Block::new(&[]));
    partitions.append_block(holder);
    let results = root.results();
    let types: Vec<Type> = results.iter().map(|result| result.r#type()).collect();
    let registers = registers.map(|registers| vec![registers]);
    rewriter.insert(WarpSpecializeOp::build(
        location,
        &types,
        captured,
        &[PRODUCER_WARPS as i32],
        None,
        registers.as_deref(),
        None,
        vec![default, partitions],
    ))
}

/// Moves the loops into the default region of the operation, whose results take the place of theirs.
fn into_default_region<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    root: For<'c, 'a>,
    concurrent: OperationRef<'c, 'a>,
) -> Option<()> {
    let results = root.results();
    let body = concurrent.region_ref(0).and_then(RegionExt::entry)?;
    rewriter.set_to_end(body);
    let end = rewriter.insert(WarpYieldOp::build(root.operation().loc(), &results));
    for (index, result) in results.iter().enumerate() {
        result.replace_uses_except(concurrent.result_value(index)?, &[end]);
    }
    rewriter.move_before(root.operation(), end);
    Some(())
}
