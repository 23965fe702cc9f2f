//! A loop whose loads are issued earlier: rings of buffers, copies to them, waits, and reads of the data.

use llopt_dialects::tables::types::{MemDesc, MemDescParts};
use llopt_dialects::ttg::effects::CACHED_BLOCK;
use llopt_dialects::ttg::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp, LocalAllocOp, LocalDeallocOp,
    LocalLoadOp, LocalStoreOp, MemDescIndexOp,
};
use llopt_dialects::ttng::{InitBarrierOp, InvalBarrierOp, WaitBarrierOp};
use llopt_mlir::ir::{OperationExt, ValueExt, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Operation, OperationRef, Value, ValueLike};

use super::design::Design;
use super::loads::{self, BulkLoad, Source};
use super::order::Parts;
use super::reads::Read;
use super::ring;
use super::running::{complete_behind, keep_running};
use super::waits::Event;
use crate::loops::builder::Arithmetic;
use crate::loops::carried;
use crate::loops::view::For;

/// Numbers of slots: the slot that is written next, and the one that is read next.
struct Indices<'c, 'a> {
    written: Value<'c, 'a>,
    read: Value<'c, 'a>,
    /// The phase in which the barrier of the next slot completes, if there is one: it alternates from round to round.
    phase: Option<Value<'c, 'a>>,
}

/// A barrier for each slot of the data that are read at one place: the operations before the loop.
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

/// Loads that are read first at the same place, and are waited for together.
struct Group<'c, 'a> {
    /// The first operation that reads any of them.
    reader: OperationRef<'c, 'a>,
    /// The numbers of the loads.
    members: Vec<usize>,
}

/// Pipelines a loop, which is erased. An error is a bug in the design.
pub(super) fn rewrite<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    mut design: Design<'c, 'a>,
) -> Option<For<'c, 'a>> {
    let rings = rings(rewriter, &design)?;
    let (of, indices) = count_slots(rewriter, &design);
    design.of = of;
    leave(rewriter, &design, &rings)?;

    let groups = groups(&design);
    let mut body = Body {
        rewriter: &mut *rewriter,
        design: &design,
        rings,
        indices,
        ahead: Vec::new(),
        first: Vec::new(),
        reads: Vec::new(),
        events: Vec::new(),
    };
    let tokens = body.issue();
    for (number, group) in groups.iter().enumerate() {
        body.await_copies(number, group, &tokens)?;
        body.await_bulk_copies(group)?;
        body.read(group)?;
    }
    for load in &design.loads {
        if let Source::Load(load_of, Some(_)) = load.source {
            load_of.operation().erase();
        }
    }
    let parts = Parts {
        ahead: body.ahead,
        first: body.first,
        reads: body.reads,
        events: body.events,
    };
    keep_running(rewriter, of, &design.running)?;
    parts.pipeline(rewriter, &design, groups.len())
}

/// Rings of buffers before the loop, one for each load.
fn rings<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    design: &Design<'c, 'a>,
) -> Option<Vec<Value<'c, 'a>>> {
    rewriter.set_before(design.of.operation());
    let mut rings = Vec::new();
    for load in &design.loads {
        let r#type = ring::of_slots(&load.slot, design.slots());
        let ring = LocalAllocOp::build(load.operation().loc(), r#type, None, None);
        let ring = rewriter.insert(ring);
        rings.push(ring.result_value(0)?);
    }
    Some(rings)
}

/// Makes the loop carry the numbers of slots, if there is more than one slot, and phases, if there are barriers.
fn count_slots<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    design: &Design<'c, 'a>,
) -> (For<'c, 'a>, Indices<'c, 'a>) {
    let (of, slots) = (design.of, design.slots());
    let location = of.operation().loc();
    let number = IntegerType::new(rewriter.context(), 32).into();
    let zero = Arithmetic { rewriter, location }.constant(number, 0);
    let has_phase = design
        .loads
        .iter()
        .any(|load| matches!(load.source, Source::Bulk(_)));
    if slots == 1 && !has_phase {
        let indices = Indices {
            written: zero,
            read: zero,
            phase: None,
        };
        return (of, indices);
    }
    let begin = vec![zero; 2 + usize::from(has_phase)];
    let before = of.carried().len();
    let of = carried::add(rewriter, of, &begin, |rewriter, _, arguments| {
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
    });
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
    (of, indices)
}

/// After the loop no product is running, and the rings are released.
fn leave<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    design: &Design<'c, 'a>,
    rings: &[Value<'c, 'a>],
) -> Option<()> {
    let operation = design.of.operation();
    let behind = complete_behind(rewriter, design.of, &design.running)?.pop();
    rewriter.set_after(behind.unwrap_or(operation));
    let has_copies = design
        .loads
        .iter()
        .any(|load| matches!(load.source, Source::Load(_, Some(_))));
    if has_copies {
        rewriter.insert(AsyncWaitOp::build(operation.loc(), &[], 0));
    }
    for &ring in rings.iter().rev() {
        rewriter.insert(LocalDeallocOp::build(operation.loc(), ring));
    }
    Some(())
}

/// Loads that are read first at the same place are one group. Data that are copied two or more iterations ahead have
/// arrived, and one wait for all needs one barrier.
fn groups<'c: 'a, 'a>(design: &Design<'c, 'a>) -> Vec<Group<'c, 'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, load) in design.loads.iter().enumerate() {
        let is_one = design.stages > 2 || design.early;
        let group = groups
            .iter_mut()
            .find(|group| is_one || group.reader == load.reader);
        match group {
            Some(group) => {
                group.members.push(index);
                if load.reader.is_before(group.reader) {
                    group.reader = load.reader;
                }
            }
            None => groups.push(Group {
                reader: load.reader,
                members: vec![index],
            }),
        }
    }
    groups
}

/// The parts of a pipelined body during their insertion.
struct Body<'r, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    design: &'r Design<'c, 'a>,
    /// The ring of each load.
    rings: Vec<Value<'c, 'a>>,
    indices: Indices<'c, 'a>,
    /// Operations of the first stage that have effects.
    ahead: Vec<OperationRef<'c, 'a>>,
    /// Those of them that come before all other operations.
    first: Vec<OperationRef<'c, 'a>>,
    /// The operations that read tensors from slots to registers.
    reads: Vec<OperationRef<'c, 'a>>,
    /// Commits of copies, and waits for them.
    events: Vec<(OperationRef<'c, 'a>, Event)>,
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

    /// Replaces loads by copies, and inserts stores after those that go through registers. Answers the token of each
    /// copy. The barrier of a bulk copy is that of its group.
    fn issue(&mut self) -> Vec<Option<Value<'c, 'a>>> {
        let design = self.design;
        let mut tokens = vec![None; design.loads.len()];
        for (index, load) in design.loads.iter().enumerate() {
            let (at, ring, written) = (load.operation(), self.rings[index], self.indices.written);
            match load.source {
                Source::Load(load_of, Some(width)) => {
                    self.rewriter.set_before(at);
                    let to = self.slot(&load.slot, true, ring, written, at);
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
                    let token = self.put(copy);
                    if let (Some(copy), Some(bytes)) = (token.defining_op(), load.cached_block) {
                        let bytes = attr::i32(copy.ctx(), bytes.cast_signed());
                        copy.set_discardable_attr(CACHED_BLOCK, bytes);
                    }
                    self.ahead.extend(token.defining_op());
                    tokens[index] = Some(token);
                }
                Source::Bulk(_) => {}
                Source::Load(load_of, None) => {
                    self.rewriter.set_after(at);
                    let to = self.slot(&load.slot, true, ring, written, at);
                    let store = LocalStoreOp::build(at.loc(), load_of.result(), to);
                    let store = self.rewriter.insert(store);
                    self.ahead.push(store);
                    self.first.push(at);
                }
            }
        }
        tokens
    }

    /// Commits the copies of a group after the last one, and waits for them before the first reader.
    fn await_copies(
        &mut self,
        number: usize,
        group: &Group<'c, 'a>,
        tokens: &[Option<Value<'c, 'a>>],
    ) -> Option<()> {
        let members = group.members.iter();
        let copied: Vec<Value> = members.filter_map(|&load| tokens[load]).collect();
        let Some(last) = copied.last().and_then(|token| token.defining_op()) else {
            return Some(());
        };
        self.rewriter.set_after(last);
        let token = self.put(AsyncCommitGroupOp::build(last.loc(), &copied));
        let commit = token.defining_op()?;
        self.ahead.push(commit);
        self.events.push((commit, Event::Commit(number)));
        self.rewriter.set_before(group.reader);
        let token = self.put(AsyncWaitOp::build(group.reader.loc(), &[token], 0));
        self.events
            .push((token.defining_op()?, Event::Wait(number)));
        Some(())
    }

    /// Makes the bulk copies of a group arrive at one barrier. The first copy sets the number of bytes of all, and
    /// the first reader waits for the barrier.
    fn await_bulk_copies(&mut self, group: &Group<'c, 'a>) -> Option<()> {
        let design = self.design;
        let bulk_copies = || {
            let members = group.members.iter().copied();
            members.filter_map(|index| match design.loads[index].source {
                Source::Bulk(bulk) => Some((index, bulk)),
                Source::Load(..) => None,
            })
        };
        let bytes = bulk_copies().map(|(_, bulk)| bulk.expect.size()).sum();
        let mut barrier = None;
        for (index, bulk) in bulk_copies() {
            let view = match barrier {
                Some(view) => {
                    bulk.expect.operation().erase();
                    view
                }
                None => self.barrier(group, bulk, bytes)?,
            };
            barrier = Some(view);
            self.copy_to_slot(index, bulk, view);
        }
        Some(())
    }

    /// A barrier for each slot of a group, made from that of its first bulk copy. Answers the one of the slot that is
    /// written next.
    fn barrier(
        &mut self,
        group: &Group<'c, 'a>,
        bulk: BulkLoad<'c, 'a>,
        bytes: i64,
    ) -> Option<Value<'c, 'a>> {
        let (of, slots) = (self.design.of, self.design.slots());
        let location = of.operation().loc();
        let at = bulk.expect.operation();
        let slot = MemDesc::of(bulk.expect.alloc().r#type())?.parts()?;
        let ring = barriers(self.rewriter, of, &slot, slots)?;
        self.rewriter.set_after(of.operation());
        for one in each(self.rewriter, location, &slot, slots, ring) {
            self.rewriter.insert(InvalBarrierOp::build(location, one));
        }
        self.rewriter.insert(LocalDeallocOp::build(location, ring));
        bulk.expect.set_size(bytes);
        self.rewriter.set_before(at);
        let view = self.slot(&slot, true, ring, self.indices.written, at);
        at.set_operand_value(0, view);
        self.ahead.push(at);
        self.rewriter.set_before(group.reader);
        let read = self.slot(&slot, true, ring, self.indices.read, at);
        let phase = self.indices.phase?;
        let wait = WaitBarrierOp::build(group.reader.loc(), read, phase, None, &[]);
        self.rewriter.insert(wait);
        Some(view)
    }

    /// Makes a bulk copy write to the next slot of its ring and arrive at a barrier. Its own barrier and wait are
    /// erased.
    fn copy_to_slot(&mut self, index: usize, bulk: BulkLoad<'c, 'a>, barrier: Value<'c, 'a>) {
        let copy = bulk.copy.operation();
        self.rewriter.set_before(copy);
        let slot = &self.design.loads[index].slot;
        let to = self.slot(slot, true, self.rings[index], self.indices.written, copy);
        let operands: Vec<Value> = copy.operand_values().collect();
        for (position, value) in operands.into_iter().enumerate() {
            if value == bulk.copy.barrier() {
                copy.set_operand_value(position, barrier);
            } else if value == bulk.copy.result() {
                copy.set_operand_value(position, to);
            }
        }
        self.ahead.push(copy);
        bulk.wait.operation().erase();
        for operation in bulk.barrier {
            operation.erase();
        }
    }

    /// Where registers are read: in the conditional that contains all readers, or before the first one.
    fn place(
        &self,
        readers: Vec<OperationRef<'c, 'a>>,
        first: OperationRef<'c, 'a>,
    ) -> OperationRef<'c, 'a> {
        let mut readers = readers;
        readers.retain(|reader| !self.ahead.contains(reader));
        let inner = loads::first_of_block(&readers);
        let is_inner = |inner: &OperationRef<'c, 'a>| inner.parent_block() != first.parent_block();
        inner.filter(is_inner).unwrap_or(first)
    }

    /// Makes the readers of the tensors of a group read slots.
    fn read(&mut self, group: &Group<'c, 'a>) -> Option<()> {
        for &index in &group.members {
            let load = &self.design.loads[index];
            let (ring, read) = (self.rings[index], self.indices.read);
            let at = load.operation();
            let firsts = load.first_readers(self.design.of, &self.ahead);
            let buffers = &load.reads.buffers;
            if let Some(buffer) = buffers.first() {
                let all = buffers.iter().map(|buffer| buffer.operation());
                let first = loads::first_of_block(&all.collect::<Vec<_>>());
                let place = first.unwrap_or(load.reader);
                self.rewriter.set_before(place);
                let mutable = MemDesc::of(buffer.result().r#type())?.is_mutable();
                let view = self.slot(&load.slot, mutable, ring, read, place);
                for buffer in buffers {
                    buffer.result().replace_all_uses(view);
                    buffer.operation().erase();
                }
            }
            for (Read { to, conversions }, first) in load.reads.registers.iter().zip(firsts) {
                let users = || at.result_values().flat_map(|result| result.users());
                let readers = match conversions.is_empty() {
                    true => users().collect(),
                    false => conversions.iter().map(|op| op.operation()).collect(),
                };
                self.rewriter.set_before(self.place(readers, first));
                let view = self.slot(&load.slot, true, ring, read, at);
                let tensor = self.put(LocalLoadOp::build(at.loc(), *to, view, None));
                let made = [view, tensor].into_iter().filter_map(ValueExt::defining_op);
                self.reads.extend(made);
                for conversion in conversions {
                    conversion.result().replace_all_uses(tensor);
                    conversion.operation().erase();
                }
                if let (true, Source::Load(load_of, _)) = (conversions.is_empty(), &load.source) {
                    load_of.result().replace_uses_except(tensor, &self.ahead);
                }
            }
        }
        Some(())
    }
}
