//! The walk over regions: blocks in an order in which definitions come before uses, operations in their order in the
//! block.

use inkwell::basic_block::BasicBlock;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, BlockRef, OperationRef, RegionLike, RegionRef, Value};

use crate::llvm::emitter::V;
use crate::ops::asynchronous::copy_wait;
use crate::values::registers::Registers;
use crate::walk::carried::Carried;
use crate::walk::emit_late;
use crate::walk::function::{FunctionLowering, Lowered};
use crate::walk::loaded_words;
use crate::walk::names::{argument, block_key};

/// Emits the blocks of a function's body. The entry block's arguments are `arguments`.
pub(crate) fn body<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    region: RegionRef<'_, '_>,
    arguments: Vec<Registers<'ctx>>,
) -> Lowered {
    let entry = lowering.e.block();
    let Some(first) = region.first_block() else {
        return Ok(());
    };
    let start = lowering.e.new_block(lowering.e.function());
    lowering.e.enter(start);
    for (i, registers) in arguments.into_iter().enumerate() {
        lowering.bind(argument(first, i), registers);
    }
    lowering.blocks.insert(first, start, Vec::new());
    walk_blocks(lowering, first, true)?;
    copy_wait::settle(lowering);
    // The entry block, where the threads' numbers are computed, leads into the body.
    lowering.e.enter(entry);
    lowering.set_location(None);
    lowering.e.branch(start);
    Ok(())
}

/// Emits the blocks that are reachable from `first`, for which a block exists already if `is_entered`.
fn walk_blocks(
    lowering: &mut FunctionLowering<'_, '_>,
    first: BlockRef<'_, '_>,
    first_exists: bool,
) -> Lowered {
    let order = reverse_post_order(first);
    lowering.copies.expect(&order);
    for block in order.iter().skip(usize::from(first_exists)) {
        open_block(lowering, *block)?;
    }
    for block in order {
        let llvm = lowering.blocks.of(block).llvm;
        lowering.e.enter(llvm);
        lowering.copies.enter(block);
        lowering.packed_masks.enter_block();
        emit_late::find(lowering, block)?;
        let mut next = block.first_operation();
        while let Some(op) = next {
            next = op.next_in_block();
            lowering.set_location(Some(op));
            emit_late::operation_in_time(lowering, op)?;
        }
    }
    Ok(())
}

/// Creates the LLVM block of a source block, with the phis of its arguments.
fn open_block(lowering: &mut FunctionLowering<'_, '_>, block: BlockRef<'_, '_>) -> Lowered {
    let llvm = lowering.e.new_block(lowering.e.function());
    lowering.e.enter(llvm);
    lowering.set_location(None);
    let mut all = Vec::with_capacity(block.argument_count());
    for i in 0..block.argument_count() {
        let value = argument(block, i);
        let of = lowering.type_of(value)?;
        let count = of.distinct_registers().count();
        let plans = lowering.program.plans;
        let loaded = loaded_words::loaded_order(lowering, value);
        all.push(Carried::new(lowering.e, plans, value, &of, count, loaded));
    }
    // All phis come before the instructions that split their words.
    for (i, carried) in all.iter().enumerate() {
        let value = argument(block, i);
        let of = lowering.type_of(value)?;
        let distinct = carried.registers(lowering.e);
        lowering.bind(value, of.spread(&distinct));
    }
    lowering.blocks.insert(block, llvm, all);
    Ok(())
}

/// Passes block arguments: adds the values from the current block to the phis of `to`.
pub(crate) fn flow_into<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    to: BlockRef<'_, '_>,
    arguments: &[Value<'_, '_>],
) -> Lowered<BasicBlock<'ctx>> {
    lowering.copies.branch(to, arguments);
    let from = lowering.e.block();
    let target = lowering.blocks.of(to).clone();
    for (carried, value) in target.carried.iter().zip(arguments) {
        let of = lowering.type_of(*value)?;
        let registers = lowering.registers(*value);
        let distinct: Vec<V<'ctx>> = of
            .distinct_registers()
            .map(|register| registers[register])
            .collect();
        carried.flow(lowering.e, lowering.hooks(), &distinct, from);
    }
    Ok(target.llvm)
}

/// Emits a copy of a region with its block arguments bound, and returns the values that its terminator yields.
pub(crate) fn inline<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    arguments: &[Registers<'ctx>],
) -> Lowered<Vec<Registers<'ctx>>> {
    let first = region
        .first_block()
        .ok_or_else(|| lowering.invalid(op, "its region has no block"))?;
    for (i, registers) in arguments.iter().enumerate() {
        lowering.bind(argument(first, i), registers.clone());
    }
    if first.next_in_region().is_none() {
        // A single block: straight-line code at the current position.
        let mut next = first.first_operation();
        while let Some(inner) = next {
            next = inner.next_in_block();
            if next.is_none() {
                return Ok(inner
                    .operands()
                    .map(|value| lowering.registers(value))
                    .collect());
            }
            lowering.set_location(Some(inner));
            lowering.operation(inner)?;
        }
        return Err(lowering.invalid(op, "its region has no terminator"));
    }
    let function = lowering.e.function();
    let (start, end) = (
        lowering.e.new_block(function),
        lowering.e.new_block(function),
    );
    lowering.e.branch(start);
    lowering.blocks.insert(first, start, Vec::new());
    lowering.blocks.begin_region(end);
    let place = lowering.copies.place();
    walk_blocks(lowering, first, true)?;
    lowering.copies.go_back(place);
    let exit = lowering.blocks.end_region();
    lowering.e.enter(end);
    let width = exit.arrivals.first().map_or(0, |(_, values)| values.len());
    Ok((0..width)
        .map(|i| {
            let count = exit.arrivals[0].1[i].len();
            (0..count)
                .map(|register| {
                    let phi = lowering.e.phi(exit.arrivals[0].1[i][register].get_type());
                    for (from, values) in &exit.arrivals {
                        phi.add_incoming(&[(&values[i][register], *from)]);
                    }
                    phi.as_basic_value()
                })
                .collect()
        })
        .collect())
}

/// Exits the innermost region that is being inlined with the operands of its terminator.
pub(crate) fn leave<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let values: Vec<Registers<'ctx>> = op
        .operands()
        .map(|value| lowering.registers(value))
        .collect();
    let from = lowering.e.block();
    let Some(exit) = lowering.blocks.exit() else {
        return Err(lowering.invalid(op, "it stands outside of a region that it could leave"));
    };
    exit.arrivals.push((from, values));
    let to = exit.to;
    lowering.e.branch(to);
    Ok(())
}

/// The blocks reachable from `first`, each before the blocks it dominates; where the order is free, those that the
/// first successor reaches come before the others. So the body of a loop comes before its exit, and the branch back
/// can fall through to the exit: LLVM's NVPTX back end cannot invert conditions, and would branch twice in each
/// iteration.
fn reverse_post_order<'c, 'a>(first: BlockRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    let mut seen = std::collections::HashSet::from([block_key(first)]);
    let mut order = Vec::new();
    let mut stack = vec![(first, first.successor_count())];
    while let Some((block, left)) = stack.pop() {
        if let Some(next) = left.checked_sub(1) {
            stack.push((block, next));
            if let Ok(successor) = block.successor(next)
                && seen.insert(block_key(successor))
            {
                stack.push((successor, successor.successor_count()));
            }
        } else {
            order.push(block);
        }
    }
    order.reverse();
    order
}
