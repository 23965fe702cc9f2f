//! Operations that are emitted late, in parts, or anew, because their results would not fit into registers.
//!
//! The walk emits an operation at its position, for all registers of its tensors. LLVM mostly keeps this order: two
//! tensors that are loaded one after the other are in registers together, and so are the addresses of both, which it
//! computes once for all accesses. A gather through shared memory needs each element of its source at most once in
//! each round, and each index only when it reads its element. If source, indices and result do not fit into a
//! thread's registers together ([`llopt_target::Target::plain_registers_of_each`]),
//!
//! * operands that only the gather uses are *late*: loads, and elementwise operations on their results, are not
//!   emitted at their position but by the gather, for some of their registers at a time. No operation between them
//!   and the gather may write memory. A round that needs an index again loads it again;
//! * addresses and masks are computed *anew* each time, and for each store that follows in the block, from a copy of
//!   the thread's number that LLVM cannot identify with the original. Otherwise it would keep them from round to
//!   round;
//! * results that fill the registers on their own are *set aside* in private memory, each as soon as it is computed,
//!   if only stores use them. They cannot be stored at once, since the next round might load from the same memory.
//!
//! A product by matrix instructions needs one fragment of each operand after the other; [`llopt_plan::late_operands`]
//! says which of its operands are late, and nothing is computed anew for it.
//!
//! After the last round of a gather the threads synchronise once more: then every thread has read before any thread
//! continues after the gather, as if all loads had come first.
//!
//! Rejected: another register allocator for such functions. LLVM's basic one takes seconds where the greedy one takes
//! minutes, but spills more than necessary, and options of the code generator hold for all compilations of a process.
//! Where an assembler allocates registers, addresses are one register and constants, and spilling is fast, so nothing
//! is computed anew or set aside.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_dialects::{tt, ttg};
use llopt_mlir::ir::{self, OperationExt, ValueExt};
use llopt_plan::gather::GatherPlan;
use llopt_plan::late_operands::{self, disturbs, disturbs_shared_memory};
use llopt_plan::product::MatrixProduct;
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::{BlockLike, BlockRef, OperationRef, Value};

use crate::ops::elementwise::fp4;
use crate::ops::memory::{global, local};
use crate::targets::hooks::Scheduling;
use crate::values::registers::Registers;
use crate::walk::aside;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};
use crate::walk::late::{Copied, Emitted, Places, key};

// The late operations.

/// Finds the operations of a block that are emitted late.
pub(crate) fn find(lowering: &mut FunctionLowering<'_, '_>, block: BlockRef<'_, '_>) -> Lowered {
    let mut next = block.first_operation();
    let mut is_scarce = false;
    while let Some(op) = next {
        next = op.next_op();
        if is_scarce && OpFacts::of(op).anchor == Some(LayoutAnchor::Store) {
            lowering.late.stores.insert(key(op));
        }
        if let Some(gather) = tt::GatherOp::of(op)
            && exceeds_registers(lowering, gather)?
        {
            defer_operands(lowering, op);
            lowering.late.gathers.insert(key(op));
            is_scarce = lowering.hooks().target().llvm_allocates_registers();
        }
        if let Some(product) = MatrixProduct::of(op) {
            defer_chain(lowering, product);
        }
    }
    Ok(())
}

/// Whether a gather goes through shared memory, and its operands and result do not fit into registers.
fn exceeds_registers(
    lowering: &FunctionLowering<'_, '_>,
    gather: tt::GatherOp<'_, '_>,
) -> Lowered<bool> {
    let op = gather.operation();
    let (from, to) = (
        lowering.tensor_of(op, gather.src())?,
        lowering.tensor_of(op, gather.indices())?,
    );
    let bits = from.element.bits();
    let all =
        aside::words(&from, bits) + aside::words(&to, to.element.bits()) + aside::words(&to, bits);
    if all
        <= lowering
            .hooks()
            .target()
            .plain_registers_of_each(lowering.own_threads())
    {
        return Ok(false);
    }
    let axis = usize::try_from(gather.axis()).unwrap_or(0);
    let chosen = lowering.program.plans.gather(op, &from, &to, axis);
    Ok(chosen.is_ok_and(|chosen| matches!(chosen.plan, GatherPlan::Shared(_))))
}

/// Defers the ops that load and compute the operands of a product that has too few registers.
fn defer_chain(lowering: &mut FunctionLowering<'_, '_>, of: MatrixProduct<'_, '_>) {
    let product = of.operation();
    if product.attr(late_operands::LATE).is_none() {
        return;
    }
    let mut chain: HashSet<usize> = late_operands::chain(of).into_iter().map(key).collect();
    let mut next = product.previous_op();
    while let Some(op) = next.filter(|_| !chain.is_empty()) {
        if disturbs_shared_memory(op) || integer_attribute(op, ALLOCATION_OFFSET).is_some() {
            break;
        }
        let is_late = |user| user == product || lowering.late.deferred.contains(&key(user));
        let is_partial = ttg::LocalLoadOp::of(op).is_some()
            || keeps_places(lowering, op)
            || bytes_of(lowering, op).is_some();
        if chain.remove(&key(op))
            && is_partial
            && op.result_values().flat_map(ValueExt::users).all(is_late)
        {
            lowering.late.deferred.insert(key(op));
        }
        next = op.previous_op();
    }
    lowering.late.products.insert(key(product));
}

/// Defers the ops that only `op` uses, backwards in its block up to a write of memory.
fn defer_operands(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) {
    let mut users = HashSet::from([key(op)]);
    let mut next = op.previous_op();
    while let Some(op) = next {
        next = op.previous_op();
        if disturbs(op) {
            return;
        }
        let mut users_of = op.result_values().flat_map(ValueExt::users);
        let is_used_here = op.has_result_uses() && users_of.all(|user| users.contains(&key(user)));
        let is_load = OpFacts::of(op).anchor == Some(LayoutAnchor::Load);
        if is_used_here && (is_load || moves_nothing(op)) && keeps_places(lowering, op) {
            users.insert(key(op));
            lowering.late.deferred.insert(key(op));
        }
    }
}

/// Whether each register of the result follows from the same register of each operand that is a tensor.
fn keeps_places(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> bool {
    let tensor = |value: Value<'_, '_>| lowering.type_of(value).ok()?.tensor().cloned();
    let Some(result) = op.result_value(0).and_then(tensor) else {
        return false;
    };
    let is_same =
        |other: &TensorType| other.shape == result.shape && other.layout() == result.layout();
    op.result_value(1).is_none()
        && OpFacts::of(op).layouts == Transfer::Same
        && op.operand_value(0).is_some()
        && op
            .operand_values()
            .all(|value| tensor(value).is_none_or(|other| is_same(&other)))
}

/// For each register of the result of an unpacking op, the register with its byte.
fn bytes_of(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Option<Places> {
    let unpack = ttg::Fp4ToFpOp::of(op)?;
    let tensor = |value| lowering.type_of(value).ok()?.tensor().cloned();
    let (from, to) = (tensor(unpack.src())?, tensor(unpack.result())?);
    let axis = usize::try_from(unpack.axis()).ok();
    let axis = axis.filter(|axis| *axis < to.shape.len())?;
    Some(Places::Bytes {
        of: fp4::byte_registers(&from, &to, axis)?.into(),
        registers: from.registers(),
    })
}

fn is_tensor(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> bool {
    let tensor = |value| matches!(lowering.type_of(value), Ok(ValueType::Tensor(_)));
    op.result_values().all(tensor)
}

/// The operations on which `value` depends and that are `emitted` with it, operands first, each with the registers of
/// its result that are needed with those of `value`.
fn slice<'c: 'a, 'a>(
    lowering: &FunctionLowering<'_, '_>,
    value: Value<'c, 'a>,
    emitted: Emitted,
) -> Vec<(OperationRef<'c, 'a>, Places)> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    // With an explicit stack: chains may be as long as programs.
    let mut stack = vec![(value, false)];
    while let Some((value, is_complete)) = stack.pop() {
        let Some(op) = value.defining_op() else {
            continue;
        };
        if is_complete {
            found.push(op);
            continue;
        }
        let again = lowering.late.deferred.contains(&key(op))
            || emitted == Emitted::Anew
                && op.is_memory_effect_free()
                && moves_nothing(op)
                && is_tensor(lowering, op);
        if again && seen.insert(key(op)) {
            stack.push((value, true));
            stack.extend(op.operand_values().map(|operand| (operand, false)));
        }
    }
    // Users first: the registers are the same as those of the users if all users keep positions.
    let mut places: HashMap<usize, Places> = HashMap::new();
    let mut slice: Vec<(OperationRef<'c, 'a>, Places)> = Vec::with_capacity(found.len());
    for op in found.into_iter().rev() {
        let own = places.remove(&key(op)).unwrap_or(Places::Same);
        let of_operands = if keeps_places(lowering, op) {
            own.clone()
        } else if own == Places::Same {
            bytes_of(lowering, op).unwrap_or(Places::Elsewhere)
        } else {
            Places::Elsewhere
        };
        for operand in op.operand_values().filter_map(ValueExt::defining_op) {
            let others = places
                .entry(key(operand))
                .or_insert_with(|| of_operands.clone());
            if *others != of_operands {
                *others = Places::Elsewhere;
            }
        }
        slice.push((op, own));
    }
    slice.reverse();
    slice
}

// What is emitted.

/// Emits an operation at its position, unless it is late.
pub(crate) fn operation_in_time(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    if lowering.late.deferred.contains(&key(op)) {
        return Ok(());
    }
    if !lowering.late.stores.contains(&key(op)) {
        return lowering.operation(op);
    }
    let copied = copy_threads(lowering);
    let mut before = Vec::new();
    for value in op.operand_values() {
        if !lowering.late.aside.contains_key(&ir::key(value)) {
            before.extend(emit_slice(lowering, value, Emitted::Anew, None)?);
        }
    }
    lowering.operation(op)?;
    restore(lowering, before);
    end_copy(lowering, copied);
    Ok(())
}

/// The registers of a late value that come from one access each, for all loads on which it depends.
pub(crate) fn groups(
    lowering: &FunctionLowering<'_, '_>,
    value: Value<'_, '_>,
    emitted: Emitted,
) -> Vec<Vec<usize>> {
    let slice = slice(lowering, value, emitted).into_iter();
    let groups = slice.filter_map(|(op, places)| {
        let groups = match ttg::LocalLoadOp::of(op) {
            _ if places == Places::Elsewhere => return None,
            Some(load) => local::loaded_together(lowering, load).ok(),
            None => Some(global::loaded_together(lowering, op)?.groups),
        };
        Some(
            groups?
                .into_iter()
                .map(move |group| places.reached_by(group)),
        )
    });
    groups.flatten().collect()
}

/// The needed registers of a late value, emitted here, and those that are loaded with them, which are added to
/// `wanted`: an access uses the address of its first register.
pub(crate) fn registers<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    value: Value<'_, '_>,
    emitted: Emitted,
    wanted: &mut [bool],
) -> Lowered<Registers<'ctx>> {
    let mut groups = groups(lowering, value, emitted);
    loop {
        let (reached, others): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| group.iter().any(|register| wanted[*register]));
        if reached.is_empty() {
            break;
        }
        for register in reached.into_iter().flatten() {
            wanted[register] = true;
        }
        groups = others;
    }
    let before = emit_slice(lowering, value, emitted, Some(Rc::from(&*wanted)))?;
    let registers = lowering.registers(value);
    restore(lowering, before);
    Ok(registers)
}

/// Emits the operations on which `value` depends again, and returns the earlier registers of their results.
fn emit_slice<'c: 'a, 'a, 'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    value: Value<'c, 'a>,
    emitted: Emitted,
    part: Option<Rc<[bool]>>,
) -> Lowered<Vec<(Value<'c, 'a>, Option<Registers<'ctx>>)>> {
    let slice = slice(lowering, value, emitted);
    let results = slice.iter().flat_map(|(op, _)| op.result_values());
    let before = results
        .map(|value| (value, lowering.known_registers(value)))
        .collect();
    for (op, places) in slice {
        lowering.late.part = part.as_ref().and_then(|part| places.part(part));
        lowering.operation(op)?;
    }
    lowering.late.part = None;
    Ok(before)
}

fn restore<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    before: Vec<(Value<'_, '_>, Option<Registers<'ctx>>)>,
) {
    for (value, registers) in before {
        match registers {
            Some(registers) => lowering.bind(value, registers),
            None => lowering.unbind(value),
        }
    }
}

/// From here on code uses a copy of the thread's number, if that is useful.
pub(crate) fn copy_threads<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
) -> Option<Copied<'ctx>> {
    let (e, hooks) = (lowering.e, lowering.hooks());
    if !hooks.target().llvm_allocates_registers() {
        return None;
    }
    // The scheduler's time grows with the length of what it schedules at once, so it is stopped here.
    hooks.schedule(e, Scheduling::Barrier { may_pass: 0 });
    let thread = hooks.copy_of(e, lowering.threads.thread(e, hooks));
    let function = e.function();
    let (entry, next) = (e.new_block(function), e.new_block(function));
    e.branch(entry);
    e.enter(next);
    let threads = lowering.threads.by_copy(e, entry, thread);
    let threads = std::mem::replace(&mut lowering.threads, threads);
    Some(Copied {
        threads,
        entry,
        next,
    })
}

/// Code uses the thread's own number again.
pub(crate) fn end_copy<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    copied: Option<Copied<'ctx>>,
) {
    if let Some(copied) = copied {
        let here = lowering.e.block();
        lowering.e.enter(copied.entry);
        lowering.e.branch(copied.next);
        lowering.e.enter(here);
        lowering.threads = copied.threads;
    }
}

/// Whether an operation computes in each thread by itself, without scratch memory.
fn moves_nothing(op: OperationRef<'_, '_>) -> bool {
    let facts = OpFacts::of(op);
    facts.control == Control::Computes
        && op.is_memory_effect_free()
        && op.region_refs().next().is_none()
        && integer_attribute(op, ALLOCATION_OFFSET).is_none()
        && match facts.layouts {
            Transfer::Same | Transfer::ExpandDims | Transfer::Transpose => true,
            Transfer::Unknown
            | Transfer::Reshape
            | Transfer::Join
            | Transfer::Split
            | Transfer::Unpack
            | Transfer::Reduce
            | Transfer::Gather
            | Transfer::Histogram
            | Transfer::Product => false,
        }
}
