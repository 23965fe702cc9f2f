//! A loop whose loads come earlier: rings of buffers, copies, waits, products that are not waited for at once.

use llopt_dialects::tables::types::{MemDesc, MemDescParts};
use llopt_dialects::ttg::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp, LocalAllocOp, LocalDeallocOp,
    LocalLoadOp, LocalStoreOp, MemDescIndexOp,
};
use llopt_dialects::ttng::{
    InitBarrierOp, InvalBarrierOp, WaitBarrierOp, WarpGroupDotOp, WarpGroupDotWaitOp,
};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Operation, OperationRef, Value, ValueLike};

use super::guard::guard;
use super::loads::{Load, Reads, Source};
use super::ring;
use super::slice::{Slice, ancestor, maker};
use super::waits::{self, Event};
use crate::loops::builder::Arithmetic;
use crate::loops::carried;
use crate::loops::pipeline::{End, Staged, pipeline};
use crate::loops::view::For;
use crate::products::is_product;

/// What a pipelined loop is made of.
pub(super) struct Design<'c, 'a> {
    pub(super) of: For<'c, 'a>,
    /// The loads that come earlier.
    pub(super) loads: Vec<Load<'c, 'a>>,
    /// Products that run on into the next iteration.
    pub(super) running: Vec<Running<'c, 'a>>,
    /// Stages, of which loads are in the first and everything else in the last.
    pub(super) stages: usize,
    /// Whether copies come before the products of an iteration ([`super::depth`]).
    pub(super) early: bool,
}

impl<'c: 'a, 'a> Design<'c, 'a> {
    /// Buffers of each ring: one for each iteration that loads are ahead, and one that a product still reads or that the
    /// iteration before has read.
    pub(super) fn slots(&self) -> usize {
        self.stages - 1 + usize::from(self.early || !self.running.is_empty())
    }
}

/// A product that runs on into the next iteration.
#[derive(Clone, Copy)]
pub(super) struct Running<'c, 'a> {
    pub(super) product: WarpGroupDotOp<'c, 'a>,
    /// Which of the carried values its result becomes.
    pub(super) index: usize,
    /// The product of the next iteration that it runs beside, and behind which it is waited for; `None` if that is
    /// itself, which adds to the same sum.
    pub(super) beside: Option<WarpGroupDotOp<'c, 'a>>,
    /// Whether its first factor is computed in registers from what the loop loads: then it is waited for when that has
    /// been read for the next iteration, before it is computed with.
    pub(super) computes_factor: bool,
}

/// Products that need not be complete before the next iteration, as far as what they read stays as it is meanwhile:
/// it is in rings or comes from outside, or is in registers.
///
/// - Where all products of a loop add to sums that nobody looks at in the loop, each runs beside its successor.
/// - The only product of a loop whose first factor is computed in registers runs beside what comes before that in the next
///   iteration: the wait for copies, and the reads of what they brought.
/// - Otherwise the result may be wanted later in the next iteration than another product is waited for (the sum of
///   attention, which is scaled when the scores are known). It runs beside that one.
pub(super) fn running<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[Load<'c, 'a>],
    products: &[OperationRef<'c, 'a>],
) -> Vec<Running<'c, 'a>> {
    let (carried, yielded) = (of.carried(), of.yielded());
    let stays = |value: Value<'c, 'a>| {
        if MemDesc::of(value.r#type()).is_none() {
            return false;
        }
        let mut root = value;
        while let Some(view) = root
            .defining_op()
            .filter(|op| op.is_memory_effect_free() && LocalAllocOp::of(*op).is_none())
        {
            match view.operand_value(0) {
                Some(source) => root = source,
                None => return false,
            }
        }
        of.is_outside(root)
            || loads.iter().any(|load| match &load.reads {
                Reads::InMemory(allocations) => {
                    allocations.iter().any(|alloc| alloc.result() == root)
                }
                Reads::InRegisters(..) => false,
            })
    };
    // Which carried value a result becomes, if that is all that becomes of it.
    let becomes = |product: WarpGroupDotOp<'c, 'a>| {
        let index = yielded.iter().position(|value| *value == product.d())?;
        product.d().has_one_use().then_some(index)
    };
    let groups = products.iter().copied().map(WarpGroupDotOp::of);
    let Some(all) = groups.collect::<Option<Vec<WarpGroupDotOp>>>() else {
        return Vec::new();
    };
    let alone = all.iter().map(|&product| {
        let index = becomes(product)?;
        let is_sum = carried[index] == product.c() && product.c().has_one_use();
        let reads = stays(product.a()) && stays(product.b());
        (is_sum && reads).then_some(Running {
            product,
            index,
            beside: None,
            computes_factor: false,
        })
    });
    if let Some(alone) = alone.collect::<Option<Vec<Running>>>() {
        return alone;
    }
    if let [product] = all[..] {
        let read =
            |load: &Load<'c, 'a>| matches!(load.reads, Reads::InRegisters(..)) && load.is_copied();
        let is_computed = MemDesc::of(product.a().r#type()).is_none() && loads.iter().any(read);
        let index = becomes(product).filter(|index| {
            carried[*index] == product.c() && product.c().has_one_use() && is_computed
        });
        if let Some(index) = index.filter(|_| stays(product.b())) {
            return vec![Running {
                product,
                index,
                beside: None,
                computes_factor: true,
            }];
        }
    }
    let Some(&last) = all.last() else {
        return Vec::new();
    };
    let beside = || {
        let index = becomes(last)?;
        let in_registers = MemDesc::of(last.a().r#type()).is_none();
        let wanted = carried[index]
            .users()
            .filter_map(|user| ancestor(of, user))
            .reduce(|one, other| if other.is_before(one) { other } else { one })?;
        let others = all.iter().rev().skip(1);
        let beside = others
            .copied()
            .find(|other| other.operation().is_before(wanted))?;
        let is_read = beside
            .operation()
            .operand_values()
            .any(|value| value == carried[index]);
        let reads = (in_registers || stays(last.a())) && stays(last.b());
        (reads && !is_read).then_some(Running {
            product: last,
            index,
            beside: Some(beside),
            computes_factor: false,
        })
    };
    beside().into_iter().collect()
}

/// Numbers of slots: where the next tensor goes, and where the next one is read.
struct Indices<'c, 'a> {
    written: Value<'c, 'a>,
    read: Value<'c, 'a>,
    /// The phase in which the barrier of what is read next completes, if there is one: another one in each round.
    phase: Option<Value<'c, 'a>>,
}

/// A barrier for each slot of what is read at one place: what stands before the loop.
fn barriers<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    slot: &MemDescParts<'c>,
    slots: usize,
) -> Option<Value<'c, 'a>> {
    let location = of.operation().loc();
    rewriter.set_before(of.operation());
    let ring = LocalAllocOp::build(location, ring::of_slots(slot, slots), None, None);
    let ring = rewriter.insert(ring).result_value(0)?;
    for barrier in each(rewriter, location, slot, slots, ring) {
        rewriter.insert(InitBarrierOp::build(location, barrier, 1));
    }
    Some(ring)
}

/// All slots of a ring.
pub(super) fn each<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    slot: &MemDescParts<'c>,
    slots: usize,
    ring: Value<'c, 'a>,
) -> Vec<Value<'c, 'a>> {
    let number = IntegerType::new(rewriter.context(), 32).into();
    let all = (0..slots).filter_map(|index| {
        let index = Arithmetic { rewriter, location }.constant(number, index as i64);
        let view = MemDescIndexOp::build(location, view_of(slot, true), ring, index);
        rewriter.insert(view).result_value(0)
    });
    all.collect()
}

pub(super) fn view_of<'c>(slot: &MemDescParts<'c>, mutable: bool) -> melior::ir::Type<'c> {
    MemDesc::get(&MemDescParts {
        alloc_shape: slot.alloc_shape.clone(),
        shape: slot.shape.clone(),
        element: slot.element,
        encoding: slot.encoding,
        memory_space: slot.memory_space,
        mutable,
    })
}

/// What the parts of a pipelined body are made of while they are put in.
struct Body<'r, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    indices: Indices<'c, 'a>,
    /// Operations of the first stage that have effects.
    ahead: Vec<OperationRef<'c, 'a>>,
    /// Those of them that come before everything else.
    first: Vec<OperationRef<'c, 'a>>,
    /// What brings tensors from slots to registers.
    reads: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Body<'_, 'c, 'a> {
    fn put(&mut self, operation: Operation<'c>) -> Value<'c, 'a> {
        let operation = self.rewriter.insert(operation);
        operation.result_value(0).expect("it has one result")
    }

    /// A slot of a ring.
    fn slot(
        &mut self,
        slot: &MemDescParts<'c>,
        mutable: bool,
        ring: Value<'c, 'a>,
        index: Value<'c, 'a>,
        at: OperationRef<'c, 'a>,
    ) -> Value<'c, 'a> {
        let view = view_of(slot, mutable);
        self.put(MemDescIndexOp::build(at.loc(), view, ring, index))
    }
}

/// Waits behind a loop for the products that run on; answers the last wait.
pub(super) fn complete_behind<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    running: &[Running<'c, 'a>],
) -> Option<Option<OperationRef<'c, 'a>>> {
    let location = of.operation().loc();
    let mut last = None;
    rewriter.set_after(of.operation());
    for running in running {
        let sum = of.results()[running.index];
        let complete = WarpGroupDotWaitOp::build(location, &[sum.r#type()], &[sum], 0);
        let complete = rewriter.insert(complete);
        sum.replace_uses_except(complete.result_value(0)?, &[complete]);
        last = Some(complete);
    }
    Some(last)
}

/// Lets products run on, and waits in the next iteration for them; answers the wait behind which those of the
/// iteration before are complete.
pub(super) fn keep_running<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    running: &[Running<'c, 'a>],
) -> Option<Option<OperationRef<'c, 'a>>> {
    let location = of.operation().loc();
    let mut behind = None;
    for running in running {
        running.product.set_is_async(true);
        let sum = of.carried()[running.index];
        match running.beside {
            Some(beside) => rewriter.set_after(beside.operation()),
            None if running.computes_factor => {
                rewriter.set_before(first_computed(of, running.product))
            }
            None => continue,
        }
        let complete = WarpGroupDotWaitOp::build(location, &[sum.r#type()], &[sum], 0);
        let complete = rewriter.insert(complete);
        sum.replace_uses_except(complete.result_value(0)?, &[complete]);
        behind = Some(complete);
    }
    let alone: Vec<WarpGroupDotOp> = running
        .iter()
        .filter(|running| running.beside.is_none() && !running.computes_factor)
        .map(|running| running.product)
        .collect();
    if let Some(last) = alone.last() {
        let mut inputs: Vec<Value> = alone.iter().map(|product| product.d()).collect();
        for product in &alone {
            inputs.extend([product.a(), product.b()]);
        }
        let types: Vec<_> = inputs.iter().map(|input| input.r#type()).collect();
        let at = last.operation();
        rewriter.set_after(at);
        let count = alone.len() as i64;
        let wait = WarpGroupDotWaitOp::build(at.loc(), &types, &inputs, count);
        let wait = rewriter.insert(wait);
        for (index, product) in alone.iter().enumerate() {
            let complete = wait.result_value(index)?;
            product.d().replace_uses_except(complete, &[wait]);
        }
        behind = Some(wait);
    }
    Some(behind)
}

/// The first operation of a body that computes the first factor of a product from what is read for it, or the product.
fn first_computed<'c: 'a, 'a>(
    of: For<'c, 'a>,
    product: WarpGroupDotOp<'c, 'a>,
) -> OperationRef<'c, 'a> {
    let mut first = product.operation();
    let mut open = vec![product.a()];
    let mut seen = Vec::new();
    while let Some(value) = open.pop() {
        let Some(operation) = maker(of, value).filter(|op| LocalLoadOp::of(*op).is_none()) else {
            continue;
        };
        if seen.contains(&operation) {
            continue;
        }
        seen.push(operation);
        if operation.is_before(first) {
            first = operation;
        }
        open.extend(operation.operand_values());
    }
    first
}

/// Pipelines a loop. The loop that was there is gone, unless there is an error, which is a bug of the design.
pub(super) fn rewrite<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    design: Design<'c, 'a>,
) -> Option<For<'c, 'a>> {
    let slots = design.slots();
    let Design {
        of,
        loads,
        running,
        stages,
        early,
    } = design;
    let location = of.operation().loc();
    let context = rewriter.context();

    // Rings before the loop, and slots by number.
    rewriter.set_before(of.operation());
    let mut rings = Vec::new();
    for load in &loads {
        let r#type = ring::of_slots(&load.slot, slots);
        let ring = LocalAllocOp::build(load.operation().loc(), r#type, None, None);
        let ring = rewriter.insert(ring);
        rings.push(ring.result_value(0)?);
    }
    let number = IntegerType::new(context, 32).into();
    let zero = Arithmetic { rewriter, location }.constant(number, 0);
    let has_phase = loads
        .iter()
        .any(|load| matches!(load.source, Source::Bulk(_)));
    let needed = 2 + usize::from(has_phase);
    let before = of.carried().len();
    let of = match slots > 1 || has_phase {
        true => carried::add(
            rewriter,
            of,
            &vec![zero; needed],
            |rewriter, _, arguments| {
                let mut arithmetic = Arithmetic { rewriter, location };
                let one = arithmetic.constant(number, 1);
                let count = arithmetic.constant(number, slots as i64);
                let first = arithmetic.constant(number, 0);
                let mut next = |index: Value<'c, 'a>| {
                    let sum = arithmetic.add(index, one);
                    let is_inside = arithmetic.is_below(sum, count, false);
                    (is_inside, arithmetic.select(is_inside, sum, first))
                };
                let (_, written) = next(arguments[0]);
                let (is_inside, read) = next(arguments[1]);
                let mut all = vec![written, read];
                if let Some(&phase) = arguments.get(2) {
                    let other = arithmetic.subtract(one, phase);
                    all.push(arithmetic.select(is_inside, phase, other));
                }
                all
            },
        ),
        false => of,
    };
    let carried = of.carried();
    let index = |number: usize| match slots {
        1 => zero,
        _ => carried[before + number],
    };
    let indices = Indices {
        written: index(0),
        read: index(1),
        phase: has_phase.then(|| carried[before + 2]),
    };

    // Behind the loop nothing is left running.
    let behind = complete_behind(rewriter, of, &running)?;
    rewriter.set_after(behind.unwrap_or(of.operation()));
    let copies = loads
        .iter()
        .any(|load| matches!(load.source, Source::Load(_, Some(_))));
    if copies {
        rewriter.insert(AsyncWaitOp::build(location, &[], 0));
    }
    for &ring in rings.iter().rev() {
        rewriter.insert(LocalDeallocOp::build(location, ring));
    }

    let mut body = Body {
        rewriter,
        indices,
        ahead: Vec::new(),
        first: Vec::new(),
        reads: Vec::new(),
    };
    // Loads that are read first at the same place are one group. What is copied two iterations ahead or more has
    // arrived, and one wait for all takes one barrier.
    let mut groups: Vec<(OperationRef, Vec<usize>)> = Vec::new();
    for (index, load) in loads.iter().enumerate() {
        let group = groups
            .iter_mut()
            .find(|(reader, _)| stages > 2 || early || *reader == load.reader);
        match group {
            Some((_, members)) => members.push(index),
            None => groups.push((load.reader, vec![index])),
        }
    }
    for (reader, members) in &mut groups {
        for &member in members.iter() {
            if loads[member].reader.is_before(*reader) {
                *reader = loads[member].reader;
            }
        }
    }
    let mut tokens: Vec<Option<Value>> = vec![None; loads.len()];
    for (index, load) in loads.iter().enumerate() {
        let at = load.operation();
        match load.source {
            Source::Load(load_of, Some(width)) => {
                body.rewriter.set_before(at);
                let to = body.slot(&load.slot, true, rings[index], body.indices.written, at);
                let copy = AsyncCopyGlobalToLocalOp::build(
                    at.loc(),
                    load_of.ptr(),
                    to,
                    load_of.mask(),
                    load_of.other(),
                    load_of.cache(),
                    load_of.evict(),
                    load_of.is_volatile(),
                    i64::from(width),
                );
                let token = body.put(copy);
                body.ahead.extend(token.defining_op());
                tokens[index] = Some(token);
            }
            // Where its barrier is, its group says.
            Source::Bulk(_) => {}
            Source::Load(load_of, None) => {
                body.rewriter.set_after(at);
                let to = body.slot(&load.slot, true, rings[index], body.indices.written, at);
                let store = LocalStoreOp::build(at.loc(), load_of.result(), to);
                let store = body.rewriter.insert(store);
                body.ahead.push(store);
                body.first.push(at);
            }
        }
    }
    let mut events: Vec<(OperationRef, Event)> = Vec::new();
    for (group, (reader, members)) in groups.iter().enumerate() {
        let copied: Vec<Value> = members.iter().filter_map(|&load| tokens[load]).collect();
        if let Some(last) = copied.last().and_then(|token| token.defining_op()) {
            body.rewriter.set_after(last);
            let token = body.put(AsyncCommitGroupOp::build(last.loc(), &copied));
            let commit = token.defining_op()?;
            body.ahead.push(commit);
            events.push((commit, Event::Commit(group)));
            body.rewriter.set_before(*reader);
            let token = body.put(AsyncWaitOp::build(reader.loc(), &[token], 0));
            events.push((token.defining_op()?, Event::Wait(group)));
        }
        let mut barrier: Option<(Value, MemDescParts)> = None;
        let bytes = members.iter().filter_map(|&load| match loads[load].source {
            Source::Bulk(bulk) => Some(bulk.expect.size()),
            Source::Load(..) => None,
        });
        let bytes: i64 = bytes.sum();
        for &index in members {
            let load = &loads[index];
            let Source::Bulk(bulk) = load.source else {
                continue;
            };
            // Copies of a group arrive at one barrier, which the first of them tells of all bytes.
            let at = bulk.expect.operation();
            let slot = MemDesc::of(bulk.expect.alloc().r#type())?.parts()?;
            if barrier.is_none() {
                let ring = barriers(body.rewriter, of, &slot, slots)?;
                body.rewriter.set_after(of.operation());
                for one in each(body.rewriter, location, &slot, slots, ring) {
                    body.rewriter.insert(InvalBarrierOp::build(location, one));
                }
                body.rewriter.insert(LocalDeallocOp::build(location, ring));
                bulk.expect.set_size(bytes);
                body.rewriter.set_before(at);
                let view = body.slot(&slot, true, ring, body.indices.written, at);
                at.set_operand_value(0, view);
                body.ahead.push(at);
                body.rewriter.set_before(*reader);
                let read = body.slot(&slot, true, ring, body.indices.read, at);
                let phase = body.indices.phase?;
                let wait = WaitBarrierOp::build(reader.loc(), read, phase, None, &[]);
                body.rewriter.insert(wait);
                barrier = Some((view, slot));
            } else {
                at.erase();
            }
            let view = barrier.as_ref().map(|(view, _)| *view)?;
            let copy = bulk.copy.operation();
            body.rewriter.set_before(copy);
            let to = body.slot(&load.slot, true, rings[index], body.indices.written, copy);
            for (position, value) in copy
                .operand_values()
                .collect::<Vec<_>>()
                .into_iter()
                .enumerate()
            {
                if value == bulk.copy.barrier() {
                    copy.set_operand_value(position, view);
                } else if value == bulk.copy.result() {
                    copy.set_operand_value(position, to);
                }
            }
            body.ahead.push(copy);
            bulk.wait.operation().erase();
            for operation in bulk.barrier {
                operation.erase();
            }
        }
        for &index in members {
            let load = &loads[index];
            let ring = rings[index];
            match &load.reads {
                Reads::InMemory(allocations) => {
                    let at = allocations[0].operation();
                    body.rewriter.set_before(at);
                    let mutable = MemDesc::of(allocations[0].result().r#type())?.is_mutable();
                    let view = body.slot(&load.slot, mutable, ring, body.indices.read, at);
                    for alloc in allocations {
                        alloc.result().replace_all_uses(view);
                        alloc.operation().erase();
                    }
                }
                Reads::InRegisters(to, conversions) => {
                    body.rewriter.set_before(load.reader);
                    let at = load.operation();
                    let view = body.slot(&load.slot, true, ring, body.indices.read, at);
                    let tensor = body.put(LocalLoadOp::build(at.loc(), *to, view, None));
                    let read = [view, tensor].into_iter().filter_map(ValueExt::defining_op);
                    body.reads.extend(read);
                    for conversion in conversions {
                        conversion.result().replace_all_uses(tensor);
                        conversion.operation().erase();
                    }
                    if let (true, Source::Load(load_of, _)) = (conversions.is_empty(), &load.source)
                    {
                        load_of.result().replace_uses_except(tensor, &body.ahead);
                    }
                }
            }
        }
    }
    for load in &loads {
        if let Source::Load(load_of, Some(_)) = load.source {
            load_of.operation().erase();
        }
    }

    keep_running(body.rewriter, of, &running)?;

    // What is ahead, with all that it needs.
    let Body {
        ahead,
        first,
        mut reads,
        ..
    } = body;
    let users = [&ahead[..], &first[..]].concat();
    let needed_by = |operations: &[OperationRef<'c, 'a>]| -> Vec<Value<'c, 'a>> {
        let all = operations.iter();
        all.flat_map(|operation| operation.operand_values())
            .collect()
    };
    let mut slice = Slice::of(of, needed_by(&users), &users).ok()?;
    slice.split(of, rewriter, &users);
    let before = Slice::of(of, needed_by(&first), &users).ok()?;
    // What stores registers comes behind the products in any case: it waits for loads.
    let copies: Vec<OperationRef> = ahead
        .iter()
        .copied()
        .filter(|operation| early && LocalStoreOp::of(*operation).is_none())
        .collect();
    let copied = Slice::of(of, needed_by(&copies), &users).ok()?;
    let last = stages - 1;
    let all = of.operations();
    // While the first product waits for what is read, copies are issued, or the product of the iteration before runs.
    let product = all.iter().find(|operation| is_product(**operation));
    let reads_first = early || running.iter().any(|running| running.computes_factor);
    reads.retain(|read| reads_first && product.is_some_and(|product| read.is_before(*product)));
    let is_wait = |operation: &OperationRef<'c, 'a>| {
        let mut waits = events
            .iter()
            .filter(|(_, event)| matches!(event, Event::Wait(_)));
        reads_first && waits.any(|(wait, _)| wait == operation)
    };
    // Loads of registers, waits, reads, copies that come before products, products, and what is left of what is ahead.
    let place = |operation: &OperationRef<'c, 'a>| {
        let is_in = |own: &[OperationRef<'c, 'a>], slice: &Slice<'c, 'a>| {
            own.contains(operation) || slice.operations.contains(operation)
        };
        match () {
            () if is_in(&first, &before) => (0, 0),
            () if is_wait(operation) => (1, last),
            () if is_in(&copies, &copied) => (3, 0),
            () if is_in(&ahead, &slice) => (5, 0),
            () if reads.contains(operation) => (2, last),
            () => (4, last),
        }
    };
    let mut placed: Vec<(usize, Staged)> = all
        .into_iter()
        .map(|operation| {
            let (at, stage) = place(&operation);
            (at, Staged { operation, stage })
        })
        .collect();
    placed.sort_by_key(|(at, _)| *at);
    let order: Vec<Staged> = placed.into_iter().map(|(_, staged)| staged).collect();
    let stage_of = |operation: OperationRef<'c, 'a>| {
        let at = order
            .iter()
            .position(|staged| staged.operation == operation);
        at.map(|at| (at, order[at].stage))
    };
    let mut in_order: Vec<(usize, Event, usize)> = Vec::new();
    for (operation, event) in &events {
        let (at, stage) = stage_of(*operation)?;
        in_order.push((at, *event, stage));
    }
    in_order.sort_by_key(|(at, ..)| *at);
    let in_order: Vec<(Event, usize)> = in_order
        .into_iter()
        .map(|(_, event, stage)| (event, stage))
        .collect();
    let left = waits::left(&in_order, stages, groups.len());
    let wait_for = |counts: &dyn Fn(usize) -> usize| {
        for (operation, event) in &events {
            if let (Event::Wait(group), Some(wait)) = (event, AsyncWaitOp::of(*operation)) {
                wait.set_num(counts(*group) as i64);
            }
        }
    };
    wait_for(&|group| left[group]);
    let pipelined = pipeline(rewriter, of, &order, stages, End::Guarded, guard);
    if pipelined.is_err() {
        // One iteration after the other, it waits for all.
        wait_for(&|_| 0);
    }
    pipelined.ok()
}
