//! `--sink-operands`: moves the ops that load and compute the operands of a product next to it, where the operands do
//! not fit into registers together with the accumulators.
//!
//! The ops between the loads of the operands and the product then no longer need them in registers, and code
//! generation can load and compute a fragment at a time ([`llopt_plan::late_operands`]). Loads also move into a
//! conditional that contains the product. Buffers are placed and barriers inserted afterwards, so both see the new
//! positions of the loads.
//!
//! An operand that is converted through the shared memory of the block comes from there as well, but a conversion
//! moves all of it at once. So the conversion becomes a store to a buffer and a load from it, and the load is moved
//! next to the product.

use llopt_dialects::meaning::facts::{OpFacts, Step, Unit};
use llopt_dialects::tables::module::{num_warps, threads_per_warp};
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::ttg::{ConvertLayoutOp, LocalAllocOp, LocalLoadOp};
use llopt_layout::plan::{Movement, Scope};
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::late_operands::{
    LATE, chain, computing_exceeds_registers, disturbs_shared_memory, exceeds_registers,
    is_elementwise, room, words,
};
use llopt_plan::plans::Plans;
use llopt_plan::product::{MatrixProduct, is_by_threads};
use llopt_plan::request::conversion_request;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::allocation::plans_of;
use crate::layouts::parts_of;
use crate::pipelining::ring;

/// The pass.
pub static SINK: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "sink-operands",
        "bring the operands of products next to them where registers are scarce",
        |module, run| {
            sink(module, &*plans_of(module, run)?);
            Ok(())
        },
    )
};

/// Moves the chains of all products whose registers are scarce.
fn sink(module: OperationRef<'_, '_>, plans: &Plans) {
    let mut products = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        products.extend(MatrixProduct::of(operation));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for dot in products {
        let operation = dot.operation();
        let threads = num_warps(operation).unwrap_or(1) * threads_per_warp(operation);
        let beside = stored_between(dot, plans);
        let (types, target) = (plans.types(), plans.target());
        if exceeds_registers(dot, types, target, threads, beside)
            || computing_exceeds_registers(dot, types, target, threads)
        {
            issue_behind(dot, &mut rewriter);
            for conversion in conversions(dot, plans) {
                // Nothing else writes the buffer, so it can be read behind what disturbs other memory.
                let here = conversion.operation();
                let is_operand = conversion.result().users().all(|user| user == operation);
                let read_at = if is_operand { operation } else { here };
                through_buffer(conversion, [here, read_at], &mut rewriter, plans);
            }
            let mut chain = chain(dot);
            order_reads(&mut chain, operation);
            for made in &chain {
                rewriter.move_before(*made, operation);
            }
            let room = room(dot, &chain, plans.types(), plans.target(), threads);
            let room = attr::i32(operation.ctx(), room.cast_signed());
            operation.set_attr(LATE, room);
        }
    }
}

/// Issues copies behind a product that are issued between the reads of its factors and the product, and nothing else
/// there changes memory: they write buffers of other iterations, past which no read moves. A copy may be late, because
/// nothing reads what it brings before a wait.
fn issue_behind<'c: 'a, 'a>(dot: MatrixProduct<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) {
    let product = dot.operation();
    let block = product.parent_block();
    let mut open = vec![dot.a(), dot.b()];
    let mut reads = Vec::new();
    while let Some(value) = open.pop() {
        let made = value.defining_op();
        match made.filter(|made| made.parent_block() == block) {
            Some(made) if LocalLoadOp::of(made).is_some() => reads.push(made),
            Some(made) if is_elementwise(made) => open.extend(made.operand_values()),
            _ => {}
        }
    }
    let Some(first) = reads
        .into_iter()
        .reduce(|one, other| match one.is_before(other) {
            true => one,
            false => other,
        })
    else {
        return;
    };
    let behind = std::iter::successors(first.next_op(), |operation| operation.next_op());
    let between: Vec<OperationRef<'_, '_>> = behind
        .take_while(|operation| *operation != product)
        .collect();
    let is_copy = |operation: OperationRef<'c, 'a>| {
        let work = OpFacts::of(operation).asynchronous;
        work.is_some_and(|work| work.unit == Unit::Copy && work.step != Step::Waits)
    };
    let (copies, others): (Vec<_>, Vec<_>) = between
        .into_iter()
        .partition(|operation| is_copy(*operation));
    let is_free = |other: &OperationRef<'c, 'a>| {
        let uses_copy = |value: Value<'c, 'a>| {
            let made = value.defining_op();
            made.is_some_and(|made| copies.contains(&made))
        };
        !disturbs_shared_memory(*other) && !other.operand_values().any(uses_copy)
    };
    if !others.iter().all(is_free) {
        return;
    }
    let mut last = product;
    for copy in copies {
        rewriter.move_after(copy, last);
        last = copy;
    }
}

/// Registers of 32 bits that are needed in addition to those of the product while the source of another operand is
/// computed and stored after the first read of an operand. The product waits for that other operand, so an earlier
/// first read has no benefit.
fn stored_between(dot: MatrixProduct<'_, '_>, plans: &Plans) -> u32 {
    let chain = chain(dot);
    let loads: Vec<LocalLoadOp<'_, '_>> = chain
        .iter()
        .filter_map(|made| LocalLoadOp::of(*made))
        .collect();
    let beyond = loads.iter().filter_map(|load| {
        let buffer = LocalAllocOp::defining(load.src())?;
        let own = buffer.operation();
        let is_behind = |other: &LocalLoadOp<'_, '_>| {
            let other = other.operation();
            other.parent_block() == own.parent_block() && other.is_before(own)
        };
        if !loads.iter().any(is_behind) {
            return None;
        }
        let stored = buffer.src()?;
        let needed = words(stored, plans.types())? + computed_from(stored, plans);
        Some(needed.saturating_sub(words(load.result(), plans.types())?))
    });
    beyond.max().unwrap_or(0)
}

/// Registers of 32 bits for the tensors of its block from which a value is computed; none if they are those of the
/// value itself, which then is only renamed.
fn computed_from<'c: 'a, 'a>(value: Value<'c, 'a>, plans: &Plans) -> u32 {
    let block = value.defining_op().and_then(|made| made.parent_block());
    let mut open = vec![value];
    let mut seen: Vec<Value<'c, 'a>> = Vec::new();
    let (mut from, mut is_computed) = (0, false);
    while let Some(value) = open.pop() {
        if seen.contains(&value) {
            continue;
        }
        seen.push(value);
        match value.defining_op() {
            Some(made) if made.parent_block() != block => {}
            Some(made) if made.is_memory_effect_free() && made.operand_values().len() > 0 => {
                is_computed |= is_elementwise(made);
                open.extend(made.operand_values());
            }
            _ => from += words(value, plans.types()).unwrap_or(0),
        }
    }
    match is_computed {
        true => from,
        false => 0,
    }
}

/// Puts reads first, and among them the reads of buffers that were written last: a barrier that orders these also
/// orders the others. A barrier between two parts of the chain would break it, as nothing is moved past a barrier.
fn order_reads<'c: 'a, 'a>(chain: &mut [OperationRef<'c, 'a>], product: OperationRef<'c, 'a>) {
    chain.sort_by_cached_key(|made| match LocalLoadOp::of(*made) {
        Some(load) => (false, since_write(load.src(), product)),
        None => (true, 0),
    });
}

/// The operations between the last write to a buffer, or its creation, and a later operation of the block; all
/// operations before that one if there is none.
fn since_write<'c: 'a, 'a>(buffer: Value<'c, 'a>, later: OperationRef<'c, 'a>) -> usize {
    let whole = memory(buffer);
    let is_of = |other: Option<Value<'c, 'a>>| other.is_some_and(|it| memory(it) == whole);
    let is_write = |operation: &OperationRef<'c, 'a>| {
        if whole.defining_op() == Some(*operation) {
            return true;
        }
        let effects = operation.effects().unwrap_or_default();
        let mut writes = effects
            .iter()
            .filter(|effect| effect.kind == EffectKind::Write);
        writes.any(|effect| is_of(effect.value))
    };
    let before = std::iter::successors(later.previous_op(), |operation| operation.previous_op());
    before.take_while(|operation| !is_write(operation)).count()
}

/// The memory that a view refers to.
fn memory<'c: 'a, 'a>(view: Value<'c, 'a>) -> Value<'c, 'a> {
    let mut of = view;
    while let Some(made) = of.defining_op() {
        let is_view = made.is_memory_effect_free() && LocalAllocOp::of(made).is_none();
        match made.operand_value(0).filter(|_| is_view) {
            Some(operand) => of = operand,
            None => break,
        }
    }
    of
}

/// The conversions through shared memory of the operands of a product in its block; elementwise ops may come between,
/// nothing else.
fn conversions<'c: 'a, 'a>(
    dot: MatrixProduct<'c, 'a>,
    plans: &Plans,
) -> Vec<ConvertLayoutOp<'c, 'a>> {
    let product = dot.operation();
    // Threads that multiply by themselves take more elements than they give.
    let nearest = match is_by_threads(dot, plans.types(), plans.target()) {
        true => Crossing::Lanes,
        false => Crossing::BlockMemory,
    };
    let mut found = Vec::new();
    let mut open = vec![dot.a(), dot.b()];
    while let Some(value) = open.pop() {
        let made = value.defining_op();
        let Some(made) = made.filter(|made| made.parent_block() == product.parent_block()) else {
            continue;
        };
        if value.users().nth(1).is_some() {
            continue;
        }
        match ConvertLayoutOp::of(made) {
            Some(conversion) if crossing(conversion, plans) >= Some(nearest) => {
                found.push(conversion)
            }
            Some(_) => {}
            None if is_elementwise(made) => open.extend(made.operand_values()),
            None => {}
        }
    }
    found
}

/// How far the cheapest plan of a conversion moves elements, and through what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crossing {
    /// Between the lanes of a warp, by shuffles.
    Lanes,
    /// Between the lanes of a warp, through shared memory.
    WarpMemory,
    /// Between warps, through shared memory.
    BlockMemory,
}

/// How far a conversion moves elements; `None` if they stay in their threads or the user asks for a plan.
pub(crate) fn crossing(conversion: ConvertLayoutOp<'_, '_>, plans: &Plans) -> Option<Crossing> {
    let operation = conversion.operation();
    let tensor = |value: Value<'_, '_>| ring::tensor(plans, value.r#type());
    let (from, to) = (tensor(conversion.src())?, tensor(conversion.result())?);
    let plan = plans.conversion(operation, &from, &to).ok()?;
    if !matches!(conversion_request(operation), Ok(None)) {
        return None;
    }
    match &plan.movement {
        Movement::Nothing | Movement::Registers { .. } => None,
        Movement::Shuffle(_) => Some(Crossing::Lanes),
        Movement::Shared(shared) if shared.scope == Scope::Block => Some(Crossing::BlockMemory),
        Movement::Shared(_) => Some(Crossing::WarpMemory),
    }
}

/// The buffer through which a conversion goes that becomes a store and a load; `None` if there is none that fits.
pub(crate) fn buffer_of<'c>(
    conversion: ConvertLayoutOp<'c, '_>,
    plans: &Plans,
) -> Option<MemDesc<'c>> {
    let from = RankedTensor::of(conversion.src().r#type())?;
    let to = conversion.result();
    let parts = parts_of(conversion.result(), plans);
    let pairs = plans.makes_factor(conversion.operation());
    let passage = ring::between(plans, from, &[to.r#type()], None, None, parts, pairs)?;
    MemDesc::of(MemDesc::get(&MemDescParts {
        mutable: false,
        ..ring::slot(from, passage.encoding)
    }))
}

/// A buffer with what a conversion takes, which is stored before an operation; `None` if there is none that fits.
pub(crate) fn store_to_buffer<'c: 'a, 'a>(
    conversion: ConvertLayoutOp<'c, 'a>,
    store_at: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
    plans: &Plans,
) -> Option<Value<'c, 'a>> {
    let memory = buffer_of(conversion, plans)?.r#type();
    let (location, source) = (conversion.operation().loc(), conversion.src());
    rewriter.set_before(store_at);
    let alloc = LocalAllocOp::build(location, memory, Some(source), None);
    rewriter.insert(alloc).result_value(0)
}

/// Replaces a conversion by a store to a buffer and a load from it, each before an operation.
pub(crate) fn through_buffer<'c: 'a, 'a>(
    conversion: ConvertLayoutOp<'c, 'a>,
    [store_at, load_at]: [OperationRef<'c, 'a>; 2],
    rewriter: &mut Rewriter<'c, 'a>,
    plans: &Plans,
) {
    let operation = conversion.operation();
    let Some(buffer) = store_to_buffer(conversion, store_at, rewriter, plans) else {
        return;
    };
    let loaded = conversion.result().r#type();
    let load = LocalLoadOp::build(operation.loc(), loaded, buffer, None);
    rewriter.set_before(load_at);
    if let Some(loaded) = rewriter.insert(load).result_value(0) {
        rewriter.replace(operation, &[loaded]);
    }
}
