//! `ttg.warp_specialize`: code of warp partitions that run concurrently.
//!
//! # Protocol
//!
//! The launcher starts the warps of all partitions together with those of the kernel. At the kernel's entry they
//! separate: the first `ttg.num-warps` run the kernel, the others, the *workers*, run a loop.
//!
//! ```text
//! kernel                                    worker
//!                                           head: barrier 1
//! captures, number of the op to memory
//! barrier 1  ─────────────────────────────►       number = memory
//! registers                                       number 0: exit; else registers of the group
//! default region, barrier 0                       partition of this warp, barrier 2, 3, …
//! more than at first: registers back              more than at first: registers back
//! barrier 1  ◄─────────────────────────────       barrier 1
//! fewer than at first: registers back             fewer than at first: registers back; head
//! …
//! return: number 0 to memory, barrier 1
//! ```
//!
//! Barrier 1 counts all threads of the block. Between its two uses for an op nothing writes the number or the
//! captures, and each worker reads them there, so the op may be inside a loop or a conditional. Warps without a
//! partition of an op go directly from one barrier to the other.
//!
//! # Registers
//!
//! All threads start with the same number of registers. If an op asks for other numbers, each group of four warps
//! changes its number between the barriers, and changes it back. Groups that release registers do so at once without
//! waiting; groups that acquire registers wait for those that release them. A group acquires again what it released
//! only when all others have released theirs, after the second barrier. Otherwise a partition that ends early would
//! take registers for which another one still waits, and that one would never arrive at the barrier. The pass that
//! assigned a number to each group is responsible for sums and defaults.

use std::collections::HashMap;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use llopt_dialects::ttg;
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::scratch::CAPTURE_BYTES;
use llopt_plan::tensor::ValueType;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::scratch;
use crate::targets::hooks::PartitionHooks;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::threads::{self, Threads};
use crate::walk::context::ExecutionContext;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};
use crate::walk::workers::{KERNEL_BARRIER, Workers};
use crate::walk::{late, regions};

/// The barrier of the first partition.
const FIRST_PARTITION_BARRIER: u32 = 2;
/// Warps that change their registers together.
const GROUP_WARPS: u32 = 4;

/// The first warp of a group of four, and the registers of a thread before and after.
type Change = (u32, u32, u32);

/// The registers that an op gives to the kernel's warps, and to each of its partitions.
fn registers_of(op: ttg::WarpSpecializeOp<'_, '_>) -> Option<Vec<u32>> {
    let all = op.actual_registers()?;
    let all = all.iter().map(|count| u32::try_from(*count).ok());
    all.collect()
}

/// The first warp and the warps of each partition of an op.
fn places(op: ttg::WarpSpecializeOp<'_, '_>) -> Option<Vec<(u32, u32)>> {
    let starts = op.warp_group_start_ids()?;
    let counts = op.partition_num_warps();
    let pairs = starts.iter().zip(counts.iter());
    pairs
        .map(|(start, count)| Some((u32::try_from(*start).ok()?, u32::try_from(*count).ok()?)))
        .collect()
}

/// Sends the warps beyond the kernel's own to the workers' code, and continues with the kernel's in a new block,
/// which becomes the entry block for everything that the kernel computes once.
pub(crate) fn part_workers(
    lowering: &mut FunctionLowering<'_, '_>,
    function: OperationRef<'_, '_>,
) -> Lowered {
    let hooks = partition_hooks(lowering, function)?;
    let e = lowering.e;
    let (warps, kernel_warps) = (lowering.program.launched_warps, lowering.context.warps);
    let lanes = lowering.program.threads_per_warp;
    let offset = integer_attribute(function, ALLOCATION_OFFSET).ok_or_else(|| {
        let reason = "no shared memory was allocated for its groups of warps";
        lowering.unsupported(function, Some(reason.to_owned()))
    })?;
    let number = e.byte_offset(lowering.hidden.shared, offset);
    let warp = e.lshr(
        lowering.hooks().thread_in_block(e),
        e.i32(i64::from(lanes.trailing_zeros())),
    );
    let warp = hooks.of_warp(e, warp);
    let is_worker = e.icmp(IntPredicate::UGE, warp, e.i32(i64::from(kernel_warps)));
    let (kernel, head) = (e.new_block(e.function()), e.new_block(e.function()));
    e.branch_if(is_worker, head, kernel);
    e.enter(kernel);
    lowering.threads = Threads::new(kernel, 0, kernel_warps * lanes);
    lowering.context.barrier = Some(KERNEL_BARRIER);
    lowering.workers = Some(Workers {
        head,
        warps,
        kernel_warps,
        lanes,
        registers: lowering.program.divided_registers,
        number,
        ops: Vec::new(),
    });
    Ok(())
}

fn partition_hooks<'r>(
    lowering: &FunctionLowering<'r, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered<&'r dyn PartitionHooks> {
    lowering
        .hooks()
        .partitions()
        .ok_or_else(|| lowering.unsupported(op, None))
}

/// Ends the workers, where the kernel returns.
pub(crate) fn dismiss_workers(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    if let Some(workers) = &lowering.workers {
        let hooks = partition_hooks(lowering, op)?;
        tell_workers(lowering, workers, 0);
        workers.meet(lowering.e, hooks);
    }
    Ok(())
}

/// Writes the number of an op for the workers.
fn tell_workers<'ctx>(lowering: &FunctionLowering<'_, 'ctx>, workers: &Workers<'ctx>, number: u32) {
    let e = lowering.e;
    let first = lowering.threads.acts_under(
        e,
        lowering.hooks(),
        workers.kernel_warps * workers.lanes - 1,
    );
    threads::only_if(e, first, || {
        e.store(e.i32(i64::from(number)), workers.number, 4);
    });
}

/// `ttg.warp_specialize`, for the kernel's warps.
pub(crate) fn warp_specialize<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: ttg::WarpSpecializeOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let hooks = partition_hooks(lowering, operation)?;
    let e = lowering.e;
    if lowering.workers.is_none() {
        let reason = "groups of warps part in kernels only";
        return Err(lowering.unsupported(operation, Some(reason.to_owned())));
    }
    let captured: Vec<Value<'_, '_>> = operation.operands().collect();
    let addresses = capture_addresses(lowering, operation, &captured)?;
    let values: Vec<V<'ctx>> = captured
        .iter()
        .map(|value| lowering.scalar(*value))
        .collect();
    let threads = lowering.own_threads();
    let first = lowering
        .threads
        .acts_under(e, lowering.hooks(), threads - 1);
    threads::only_if(e, first, || {
        for (value, address) in values.iter().zip(&addresses) {
            e.store(*value, *address, CAPTURE_BYTES as u32);
        }
    });
    let Some(workers) = &mut lowering.workers else {
        return Ok(());
    };
    workers.ops.push(late::key(operation));
    let number = workers.ops.len() as u32;
    if let Some(workers) = &lowering.workers {
        tell_workers(lowering, workers, number);
        workers.meet(e, hooks);
    }
    let registers = register_change(lowering, op, 0);
    if let Some((before, during)) = registers {
        hooks.change_registers(e, before, during);
    }
    let region = operation
        .region(0)
        .map_err(|_| lowering.invalid(operation, "it has no default region"))?;
    let results = regions::inline(lowering, operation, region, &[])?;
    if let Some((before, during)) = registers.filter(|(before, during)| before < during) {
        hooks.change_registers(e, during, before);
    }
    if let Some(workers) = &lowering.workers {
        workers.meet(e, hooks);
    }
    if let Some((before, during)) = registers.filter(|(before, during)| before > during) {
        hooks.change_registers(e, during, before);
    }
    for (index, registers) in results.into_iter().enumerate() {
        lowering.bind_result_at(operation, index, registers);
    }
    Ok(())
}

/// Registers of a thread before an op and within it, for the kernel's warps (0) or the partition of that number,
/// counted from 1.
fn register_change(
    lowering: &FunctionLowering<'_, '_>,
    op: ttg::WarpSpecializeOp<'_, '_>,
    place: usize,
) -> Option<(u32, u32)> {
    let before = lowering.workers.as_ref()?.registers?;
    let during = *registers_of(op)?.get(place)?;
    Some((before, during))
}

/// The addresses of captured values.
fn capture_addresses<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    captured: &[Value<'_, '_>],
) -> Lowered<Vec<V<'ctx>>> {
    if captured.is_empty() {
        return Ok(Vec::new());
    }
    for value in captured {
        if let ValueType::Tensor(_) = lowering.type_of(*value)? {
            let reason = "a tensor cannot be handed to other warps";
            return Err(lowering.unsupported(op, Some(reason.to_owned())));
        }
    }
    let base = scratch::base(lowering, op)?;
    Ok((0..captured.len())
        .map(|i| {
            lowering
                .e
                .byte_offset(base, i as i64 * CAPTURE_BYTES as i64)
        })
        .collect())
}

/// The ops that the workers of a kernel identify by number.
fn ops_of<'c, 'a>(
    workers: &Workers<'_>,
    function: OperationRef<'c, 'a>,
) -> Vec<ttg::WarpSpecializeOp<'c, 'a>> {
    let mut of_name = HashMap::new();
    function.for_each_op(Walk::PreOrder, |op| {
        of_name.extend(ttg::WarpSpecializeOp::of(op).map(|found| (late::key(op), found)));
    });
    let ops = workers.ops.iter();
    ops.filter_map(|name| of_name.get(name).copied()).collect()
}

/// Emits the workers' code: their loop, and the partitions of all ops of the kernel.
pub(crate) fn worker_code(
    lowering: &mut FunctionLowering<'_, '_>,
    function: OperationRef<'_, '_>,
) -> Lowered {
    let Some(workers) = &lowering.workers else {
        return Ok(());
    };
    let hooks = partition_hooks(lowering, function)?;
    let e = lowering.e;
    let llvm = e.function();
    let (head, ops) = (workers.head, ops_of(workers, function));
    let lanes = workers.lanes;
    e.builder().unset_current_debug_location();
    e.enter(head);
    let warp = e.lshr(
        lowering.hooks().thread_in_block(e),
        e.i32(i64::from(lanes.trailing_zeros())),
    );
    let warp = hooks.of_warp(e, warp);
    let around = e.new_block(llvm);
    e.branch(around);
    e.enter(around);
    workers.meet(e, hooks);
    let number = e.load(e.int(32).into(), workers.number, 4);
    let is = |wanted: u32| e.icmp(IntPredicate::EQ, number, e.i32(i64::from(wanted)));
    let (home, mut next) = (e.new_block(llvm), e.new_block(llvm));
    e.branch_if(is(0), home, next);
    e.enter(home);
    e.return_(None);
    for (index, op) in ops.iter().enumerate() {
        e.enter(next);
        if index + 1 < ops.len() {
            let (chosen, other) = (e.new_block(llvm), e.new_block(llvm));
            e.branch_if(is(index as u32 + 1), chosen, other);
            e.enter(chosen);
            next = other;
        }
        run_partitions(lowering, hooks, *op, warp)?;
        e.branch(around);
    }
    if ops.is_empty() {
        e.enter(next);
        e.unreachable();
    }
    Ok(())
}

/// Runs the partitions of an op, each by its own warps, and meets the kernel's warps behind them. Groups that have more
/// registers meanwhile give them back before that meeting; those that have fewer get theirs after it.
fn run_partitions<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    hooks: &dyn PartitionHooks,
    op: ttg::WarpSpecializeOp<'_, '_>,
    warp: V<'ctx>,
) -> Lowered {
    let Some(workers) = &lowering.workers else {
        return Ok(());
    };
    let (kernel_warps, warps) = (workers.kernel_warps, workers.warps);
    let (e, function) = (lowering.e, lowering.e.function());
    let operation = op.operation();
    let places = places(op)
        .filter(|places| {
            places.len() + FIRST_PARTITION_BARRIER as usize <= hooks.barriers() as usize
        })
        .ok_or_else(|| {
            let reason = "its partitions have no warps, or are more than there are barriers";
            lowering.unsupported(operation, Some(reason.to_owned()))
        })?;
    let groups = register_changes(lowering, op, &places, kernel_warps, warps);
    change_group_registers(e, hooks, warp, &groups);
    let done = e.new_block(function);
    for (partition, (first, count)) in places.iter().enumerate() {
        let (body, other) = (e.new_block(function), e.new_block(function));
        let from = e.sub(warp, e.i32(i64::from(*first)));
        let mine = e.icmp(IntPredicate::ULT, from, e.i32(i64::from(*count)));
        e.branch_if(mine, body, other);
        e.enter(body);
        let region = op.partition_regions().get(partition).copied();
        let region = region.ok_or_else(|| lowering.invalid(operation, "it lacks a partition"))?;
        let context = ExecutionContext {
            first_warp: *first,
            warps: *count,
            barrier: Some(FIRST_PARTITION_BARRIER + partition as u32),
        };
        emit_partition(lowering, operation, region, context, done)?;
        e.enter(other);
    }
    e.branch(done);
    e.enter(done);
    let (took, gave): (Vec<Change>, Vec<Change>) = groups
        .into_iter()
        .map(|(group, before, during)| (group, during, before))
        .partition(|(_, during, before)| during > before);
    change_group_registers(e, hooks, warp, &took);
    if let Some(workers) = &lowering.workers {
        workers.meet(e, hooks);
    }
    change_group_registers(e, hooks, warp, &gave);
    Ok(())
}

/// For each group of four workers: its first warp, and the registers of a thread before an op and within it.
fn register_changes(
    lowering: &FunctionLowering<'_, '_>,
    op: ttg::WarpSpecializeOp<'_, '_>,
    places: &[(u32, u32)],
    kernel_warps: u32,
    warps: u32,
) -> Vec<Change> {
    (kernel_warps..warps)
        .step_by(GROUP_WARPS as usize)
        .filter_map(|group| {
            // The pass assigned the same number to all partitions of a group; a group without one keeps its
            // registers.
            let partition = places
                .iter()
                .position(|(first, count)| *first < group + GROUP_WARPS && group < first + count)?;
            let (before, during) = register_change(lowering, op, partition + 1)?;
            Some((group, before, during))
        })
        .collect()
}

fn change_group_registers<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn PartitionHooks,
    warp: V<'ctx>,
    changes: &[Change],
) {
    for (group, from, to) in changes {
        let at = e.sub(warp, e.i32(i64::from(*group)));
        let mine = e.icmp(IntPredicate::ULT, at, e.i32(i64::from(GROUP_WARPS)));
        threads::only_if(e, Some(mine), || hooks.change_registers(e, *from, *to));
    }
}

/// Emits one partition, from the current block to `done`.
fn emit_partition<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    context: ExecutionContext,
    done: BasicBlock<'ctx>,
) -> Lowered {
    let e = lowering.e;
    let entry = e.block();
    let lanes = lowering.program.threads_per_warp;
    let threads = Threads::new(entry, context.first_warp * lanes, context.warps * lanes);
    let around = (
        std::mem::replace(&mut lowering.threads, threads),
        std::mem::replace(&mut lowering.context, context),
        lowering.partition_end.replace(done),
    );
    let captured: Vec<Value<'_, '_>> = op.operands().collect();
    let addresses = capture_addresses(lowering, op, &captured)?;
    let mut arguments: Vec<Registers<'ctx>> = Vec::with_capacity(captured.len());
    for (value, address) in captured.iter().zip(addresses) {
        let of = lowering.type_of(*value)?.element().llvm(e.context);
        arguments.push(vec![e.load(of, address, CAPTURE_BYTES as u32)].into());
    }
    regions::body(lowering, region, arguments)?;
    (lowering.threads, lowering.context, lowering.partition_end) = around;
    Ok(())
}

/// `ttg.warp_return`.
pub(crate) fn end_partition(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let done = lowering
        .partition_end
        .ok_or_else(|| lowering.invalid(op, "it stands outside of a partition"))?;
    lowering.e.branch(done);
    Ok(())
}
