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
//! - A slot has a pair of barriers for each group of copies that is read first at the same place. `full` completes by
//!   the bytes of the copies, `empty` by one arrival of each warp of the consumers, so that these need no barrier of
//!   the block.
//! - The first phase of `empty` counts as complete before any warp has arrived: a newly initialised barrier is in the
//!   phase after it.
//!
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

mod consumers;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::ttg::{
    LocalAllocOp, LocalDeallocOp, MemDescIndexOp, WarpReturnOp, WarpSpecializeOp,
    WarpSpecializePartitionsOp, WarpYieldOp,
};
use llopt_dialects::ttng::{
    AsyncTMACopyGlobalToLocalOp, BarrierExpectOp, InitBarrierOp, InvalBarrierOp, WaitBarrierOp,
};
use llopt_mlir::ir::{OperationExt, RegionExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Block, BlockLike, Location, OperationRef, Region, RegionLike, Type, Value, ValueLike,
};

use super::indirect;
use super::loads::{BulkLoad, Load, Source};
use super::rewrite::{each, view_of};
use super::ring;
use super::running::Running;
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;
use crate::loops::needs::ancestor;
use crate::loops::view::For;

/// The attribute of a loop that asks for partitions.
pub(crate) const ASKS: &str = "tt.warp_specialize";
/// Warps of the producer.
pub(super) const PRODUCER_WARPS: u32 = 1;
/// The fewest slots with which a product may run on.
const FEWEST_SLOTS: u64 = 2;

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

/// The parts of the loops that a producer needs.
struct Needs<'c, 'a> {
    /// Operations directly in one of the loops.
    operations: Vec<OperationRef<'c, 'a>>,
    /// For each loop, the positions of the carried values.
    carried: Vec<Vec<usize>>,
    /// Values from outside of all loops.
    outside: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Needs<'c, 'a> {
    /// The needs of copies in loops that store to these parameters.
    fn of(
        nest: &[For<'c, 'a>],
        copies: impl IntoIterator<Item = BulkLoad<'c, 'a>>,
        stored: &[Option<Value<'c, 'a>>],
    ) -> Result<Self, String> {
        let mut needs = Self {
            operations: Vec::new(),
            carried: vec![Vec::new(); nest.len()],
            outside: Vec::new(),
        };
        let mut queue: Vec<Value> = Vec::new();
        for of in nest {
            queue.extend([of.lower(), of.upper(), of.step()]);
        }
        for bulk in copies {
            queue.push(bulk.copy.desc());
            queue.extend(bulk.copy.coord());
        }
        let level_of = |operation: OperationRef<'c, 'a>| {
            nest.iter().position(|of| of.operation() == operation)
        };
        while let Some(value) = queue.pop() {
            if RankedTensor::of(value.r#type()).is_some() {
                return Err("where it loads from depends on a tensor".to_owned());
            }
            if nest[0].is_outside(value) {
                if !needs.outside.contains(&value) {
                    needs.outside.push(value);
                }
                continue;
            }
            let of_loop = match value.argument_of() {
                Some((block, index)) => {
                    let level = block.parent_operation().and_then(level_of);
                    // Arguments of other blocks are created with the copy of their operation.
                    let Some(level) = level else { continue };
                    match index.checked_sub(1) {
                        Some(index) => Some((level, index)),
                        None => continue,
                    }
                }
                None => {
                    let level = value.defining_op().and_then(level_of);
                    level.zip(value.result_index())
                }
            };
            if let Some((level, index)) = of_loop {
                if !needs.carried[level].contains(&index) {
                    needs.carried[level].push(index);
                    queue.extend([nest[level].initial()[index], nest[level].yielded()[index]]);
                }
                continue;
            }
            let operation = value
                .defining_op()
                .and_then(|maker| nest.iter().rev().find_map(|of| directly_in(*of, maker)));
            let Some(operation) = operation.filter(|op| !needs.operations.contains(op)) else {
                continue;
            };
            let loads = indirect::may_feed(operation, stored);
            if !loads && !operation.is_memory_effect_free() {
                return Err(format!(
                    "where it loads from depends on {}",
                    operation.name_str()
                ));
            }
            needs.operations.push(operation);
            operation.for_each_op(Walk::PreOrder, |inner| queue.extend(inner.operand_values()));
        }
        for carried in &mut needs.carried {
            carried.sort_unstable();
        }
        Ok(needs)
    }
}

/// The operation of a loop's body that an operation is or is nested in, if it is in that loop.
fn directly_in<'c: 'a, 'a>(
    of: For<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    (operation.is_within(of.operation()) && operation != of.operation())
        .then(|| ancestor(of, operation))
        .flatten()
}

/// Copies that are read first at one place.
struct Group<'c, 'a> {
    /// The positions of the loads.
    members: Vec<usize>,
    /// Bytes of all copies.
    bytes: i64,
    /// The first operation that reads them.
    first: OperationRef<'c, 'a>,
    /// The last operation that reads them; `None` if that is a product that runs on.
    last: Option<OperationRef<'c, 'a>>,
    /// The type of one of its barriers.
    barrier: MemDescParts<'c>,
}

/// Loads of a loop that go through rings of buffers.
pub(super) struct Rings<'c, 'a> {
    pub(super) loads: Vec<Load<'c, 'a>>,
    copies: Vec<BulkLoad<'c, 'a>>,
    groups: Vec<Group<'c, 'a>>,
    slots: usize,
}

/// A division of loops between producer and consumers.
pub(super) struct Division<'c, 'a> {
    nest: Vec<For<'c, 'a>>,
    /// The loads of the innermost loop.
    rings: Rings<'c, 'a>,
    /// Those of the loop around it that products of the innermost one read.
    around: Rings<'c, 'a>,
    running: Vec<Running<'c, 'a>>,
    needs: Needs<'c, 'a>,
}

impl<'c: 'a, 'a> Division<'c, 'a> {
    /// Divides loops, which store to these parameters; the innermost has these loads, with at most so many slots, and the
    /// one around it has loads in rings of their own.
    ///
    /// # Errors
    /// Why they cannot be divided.
    pub(super) fn of(
        nest: Vec<For<'c, 'a>>,
        loads: Vec<Load<'c, 'a>>,
        around: Rings<'c, 'a>,
        running: Vec<Running<'c, 'a>>,
        slots: u64,
        stored: &[Option<Value<'c, 'a>>],
    ) -> Result<Self, String> {
        if slots < FEWEST_SLOTS {
            return Err("two buffers for each load do not fit in shared memory".to_owned());
        }
        let of = *nest.last().ok_or("there is no loop")?;
        let rings = Rings::of(of, loads, &running, slots)?;
        let copies = rings.copies.iter().chain(&around.copies);
        let needs = Needs::of(&nest, copies.copied(), stored)?;
        Ok(Self {
            nest,
            rings,
            around,
            running,
            needs,
        })
    }

    /// Buffers for each load.
    pub(super) fn slots(&self) -> u32 {
        self.rings.slots as u32
    }

    /// The loads.
    pub(super) fn loads(&self) -> &[Load<'c, 'a>] {
        &self.rings.loads
    }

    /// Products that run on.
    pub(super) fn running(&self) -> &[Running<'c, 'a>] {
        &self.running
    }
}

impl<'c: 'a, 'a> Rings<'c, 'a> {
    /// Rings for no loads.
    pub(super) fn none() -> Self {
        Self {
            loads: Vec::new(),
            copies: Vec::new(),
            groups: Vec::new(),
            slots: 0,
        }
    }

    /// Rings of so many slots for loads of a loop, in which these products run on.
    ///
    /// # Errors
    /// Why they cannot go through rings.
    pub(super) fn of(
        of: For<'c, 'a>,
        loads: Vec<Load<'c, 'a>>,
        running: &[Running<'c, 'a>],
        slots: u64,
    ) -> Result<Self, String> {
        let mut copies = Vec::new();
        for load in &loads {
            match load.source {
                Source::Bulk(bulk) => copies.push(bulk),
                Source::Load(..) => {
                    return Err("a factor is loaded by pointers, by many threads".to_owned());
                }
            }
        }
        let always = |value: Value<'c, 'a>| {
            ConstantOp::defining(value)
                .is_some_and(|constant| !fold::is_zero(constant.operation().attr("value")))
        };
        if !copies
            .iter()
            .all(|bulk| always(bulk.copy.pred()) && always(bulk.expect.pred()))
        {
            return Err("a copy is under a condition".to_owned());
        }
        let mut groups: Vec<Group> = Vec::new();
        for (index, (load, bulk)) in loads.iter().zip(&copies).enumerate() {
            let readers = readers(of, load, bulk).ok_or("nothing is known of who reads it")?;
            let runs = |reader: &OperationRef<'c, 'a>| {
                running
                    .iter()
                    .any(|running| running.product.operation() == *reader)
            };
            let last = match readers.iter().any(runs) {
                true => None,
                false => readers.iter().copied().reduce(later),
            };
            let bytes = bulk.expect.size();
            let group = groups.iter_mut().find(|group| group.first == load.reader);
            let Some(group) = group else {
                let barrier = MemDesc::of(bulk.expect.alloc().r#type());
                groups.push(Group {
                    members: vec![index],
                    bytes,
                    first: load.reader,
                    last,
                    barrier: barrier
                        .and_then(MemDesc::parts)
                        .ok_or("its barrier has no layout")?,
                });
                continue;
            };
            group.members.push(index);
            group.bytes += bytes;
            group.last = match (group.last, last) {
                (Some(one), Some(other)) => Some(later(one, other)),
                _ => None,
            };
        }
        Ok(Self {
            loads,
            copies,
            groups,
            slots: usize::try_from(slots).unwrap_or(usize::MAX),
        })
    }
}

fn later<'c: 'a, 'a>(
    one: OperationRef<'c, 'a>,
    other: OperationRef<'c, 'a>,
) -> OperationRef<'c, 'a> {
    if one.is_before(other) { other } else { one }
}

/// The operations of a body that read the data of a copy.
fn readers<'c: 'a, 'a>(
    of: For<'c, 'a>,
    load: &Load<'c, 'a>,
    bulk: &BulkLoad<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut values = vec![buffer_of(load)?.result()];
    let mut readers = Vec::new();
    while let Some(value) = values.pop() {
        for user in value.users().filter(|user| *user != bulk.copy.operation()) {
            let views = user
                .result_values()
                .filter(|view| MemDesc::of(view.r#type()).is_some());
            let views: Vec<Value> = views.collect();
            match views.is_empty() || !user.is_memory_effect_free() {
                true => readers.push(ancestor(of, user)?),
                false => values.extend(views),
            }
        }
    }
    (!readers.is_empty()).then_some(readers)
}

fn buffer_of<'c: 'a, 'a>(load: &Load<'c, 'a>) -> Option<LocalAllocOp<'c, 'a>> {
    load.reads.buffers.first().copied()
}

/// What both sides share: a ring for each load, and barriers for each group.
#[derive(Clone, Default)]
struct Channels<'c, 'a> {
    rings: Vec<Value<'c, 'a>>,
    full: Vec<Value<'c, 'a>>,
    empty: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Channels<'c, 'a> {
    /// Allocates rings for consumers of so many warps, and initialises their barriers.
    fn build(
        rewriter: &mut Rewriter<'c, 'a>,
        rings: &Rings<'c, 'a>,
        warps: u32,
        location: Location<'c>,
    ) -> Option<Self> {
        let ring_of = |rewriter: &mut Rewriter<'c, 'a>, of: &MemDescParts<'c>, at: Location<'c>| {
            let ring = LocalAllocOp::build(at, ring::of_slots(of, rings.slots), None, None);
            rewriter.insert(ring).result_value(0)
        };
        let mut channels = Channels::default();
        for load in &rings.loads {
            let ring = ring_of(rewriter, &load.slot, load.operation().loc())?;
            channels.rings.push(ring);
        }
        for group in &rings.groups {
            for (barriers, arrivals) in [(&mut channels.full, 1), (&mut channels.empty, warps)] {
                let ring = ring_of(rewriter, &group.barrier, location)?;
                barriers.push(ring);
                for barrier in each(rewriter, location, &group.barrier, rings.slots, ring) {
                    rewriter.insert(InitBarrierOp::build(location, barrier, i64::from(arrivals)));
                }
            }
        }
        Some(channels)
    }

    /// Invalidates the barriers, and releases all memory.
    fn give_back(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        rings: &Rings<'c, 'a>,
        location: Location<'c>,
    ) {
        for (group, of) in rings.groups.iter().enumerate() {
            for ring in [self.empty[group], self.full[group]] {
                for barrier in each(rewriter, location, &of.barrier, rings.slots, ring) {
                    rewriter.insert(InvalBarrierOp::build(location, barrier));
                }
                rewriter.insert(LocalDeallocOp::build(location, ring));
            }
        }
        for &ring in &self.rings {
            rewriter.insert(LocalDeallocOp::build(location, ring));
        }
    }

    fn all(&self) -> Vec<Value<'c, 'a>> {
        [&self.rings[..], &self.full, &self.empty].concat()
    }

    /// The same, by the names in a partition.
    fn renamed(&self, mapping: &Mapping<'c, 'a>) -> Self {
        let renamed = |values: &[Value<'c, 'a>]| values.iter().map(|v| mapping.get(*v)).collect();
        Self {
            rings: renamed(&self.rings),
            full: renamed(&self.full),
            empty: renamed(&self.empty),
        }
    }
}

/// One of the slots of a ring.
fn slot<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    of: &MemDescParts<'c>,
    ring: Value<'c, 'a>,
    index: Value<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let view = MemDescIndexOp::build(location, view_of(of, true), ring, index);
    rewriter.insert(view).result_value(0)
}

/// The slot and the phase after these.
fn next<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    state: [Value<'c, 'a>; 2],
    slots: usize,
) -> [Value<'c, 'a>; 2] {
    let number = state[0].r#type();
    let mut arithmetic = Arithmetic { rewriter, location };
    let one = arithmetic.constant(number, 1);
    let count = arithmetic.constant(number, slots as i64);
    let first = arithmetic.constant(number, 0);
    let sum = arithmetic.add(state[0], one);
    let is_inside = arithmetic.is_below(sum, count, false);
    let other = arithmetic.subtract(one, state[1]);
    [
        arithmetic.select(is_inside, sum, first),
        arithmetic.select(is_inside, state[1], other),
    ]
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

    // Before and after all loops.
    rewriter.set_before(root.operation());
    let channels = Channels::build(rewriter, &division.rings, warps, location)?;
    let around = Channels::build(rewriter, &division.around, warps, location)?;

    // The operation, with the loops in its default region.
    let is_constant = |value: &Value<'c, 'a>| {
        value
            .defining_op()
            .is_some_and(|op| ConstantOp::of(op).is_some())
    };
    let (constants, captured): (Vec<Value>, Vec<Value>) = division
        .needs
        .outside
        .iter()
        .partition(|value| is_constant(value));
    let captured = [captured, channels.all(), around.all()].concat();
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
    let operation = rewriter.insert(WarpSpecializeOp::build(
        location,
        &types,
        &captured,
        &[PRODUCER_WARPS as i32],
        None,
        registers.as_deref(),
        None,
        vec![default, partitions],
    ));
    rewriter.set_after(operation);
    channels.give_back(rewriter, &division.rings, location);
    around.give_back(rewriter, &division.around, location);
    let body = operation.region_ref(0).and_then(RegionExt::entry)?;
    rewriter.set_to_end(body);
    let end = rewriter.insert(WarpYieldOp::build(location, &results));
    for (index, result) in results.iter().enumerate() {
        result.replace_uses_except(operation.result_value(index)?, &[end]);
    }
    rewriter.move_before(root.operation(), end);

    // The producer is built before the loops change.
    let partition = WarpSpecializeOp::of(operation)?.partition_regions();
    let block = partition.first().copied().and_then(RegionExt::entry)?;
    rewriter.set_to_end(block);
    let mut mapping = Mapping::new();
    for constant in constants {
        mapping.copy(rewriter, constant.defining_op()?);
    }
    for (index, &value) in captured.iter().enumerate() {
        mapping.map(value, Value::from(block.argument(index).ok()?));
    }
    let mut producer = Producer {
        rewriter,
        channels: channels.renamed(&mapping),
        around: around.renamed(&mapping),
        mapping,
        division,
    };
    let number = IntegerType::new(producer.rewriter.context(), 32).into();
    let mut arithmetic = Arithmetic {
        rewriter: producer.rewriter,
        location,
    };
    let first = [
        arithmetic.constant(number, 0),
        arithmetic.constant(number, 1),
    ];
    producer.run(0, first)?;
    producer.rewriter.set_to_end(block);
    producer.rewriter.insert(WarpReturnOp::build(location));

    consumers::consume(rewriter, division, [&channels, &around], warps)
}

/// The code of the producer during its insertion.
struct Producer<'r, 'd, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    /// Those of the innermost loop, and of the loop around it.
    channels: Channels<'c, 'a>,
    around: Channels<'c, 'a>,
    mapping: Mapping<'c, 'a>,
    division: &'d Division<'c, 'a>,
}

impl<'c: 'a, 'a> Producer<'_, '_, 'c, 'a> {
    /// One of the loops with its contents, from a slot and a phase on; returns the slot and the phase after it.
    fn run(&mut self, level: usize, state: [Value<'c, 'a>; 2]) -> Option<[Value<'c, 'a>; 2]> {
        let of = self.division.nest[level];
        let location = of.operation().loc();
        let kept = &self.division.needs.carried[level];
        let mut initial: Vec<Value> = kept
            .iter()
            .map(|&index| self.mapping.get(of.initial()[index]))
            .collect();
        initial.extend(state);
        // A ring of the loop around begins as the others do.
        let has_around = level == 0 && !self.division.around.loads.is_empty();
        if has_around {
            initial.extend(state);
        }
        let attributes = of.operation().attrs();
        let attributes: Vec<_> = attributes
            .into_iter()
            .filter(|(name, _)| *name == "unsignedCmp")
            .collect();
        let bounds = [of.lower(), of.upper(), of.step()].map(|bound| self.mapping.get(bound));
        let own = For::build(self.rewriter, location, bounds, &initial, &attributes);
        self.mapping.map(of.number(), own.number());
        let arguments = own.carried();
        for (&index, &argument) in kept.iter().zip(&arguments) {
            self.mapping.map(of.carried()[index], argument);
        }
        let mut state = [arguments[kept.len()], arguments[kept.len() + 1]];
        let of_around = has_around.then(|| [arguments[kept.len() + 2], arguments[kept.len() + 3]]);
        self.rewriter.set_to_end(own.body());
        let inner = self.division.nest.get(level + 1).copied();
        let mut open = vec![false; self.division.rings.groups.len()];
        let mut open_around = vec![false; self.division.around.groups.len()];
        let division = self.division;
        for operation in of.operations() {
            let copied = |rings: &Rings<'c, 'a>| {
                let mut copies = rings.copies.iter();
                copies.position(|bulk| bulk.copy.operation() == operation)
            };
            if inner.is_some_and(|inner| inner.operation() == operation) {
                state = self.run(level + 1, state)?;
                self.rewriter.set_to_end(own.body());
            } else if let Some(load) = copied(&division.rings) {
                let channels = self.channels.clone();
                self.copy(&division.rings, &channels, load, state, &mut open)?;
            } else if let Some((load, state)) = copied(&division.around).zip(of_around) {
                let channels = self.around.clone();
                self.copy(&division.around, &channels, load, state, &mut open_around)?;
            } else if self.division.needs.operations.contains(&operation) {
                self.mapping.copy(self.rewriter, operation);
            }
        }
        if inner.is_none() {
            state = next(self.rewriter, location, state, division.rings.slots);
        }
        let of_around =
            of_around.map(|state| next(self.rewriter, location, state, division.around.slots));
        let yielded = of.yielded();
        let mut values: Vec<Value> = kept
            .iter()
            .map(|&index| self.mapping.get(yielded[index]))
            .collect();
        values.extend(state);
        values.extend(of_around.into_iter().flatten());
        crate::loops::builder::yield_values(self.rewriter, location, &values);
        let results = own.results();
        for (&index, &result) in kept.iter().zip(&results) {
            self.mapping.map(of.results()[index], result);
        }
        Some([results[kept.len()], results[kept.len() + 1]])
    }

    /// A copy; before the first one of its group, the producer waits for the slot and sets the number of expected
    /// bytes.
    fn copy(
        &mut self,
        rings: &Rings<'c, 'a>,
        channels: &Channels<'c, 'a>,
        load: usize,
        [index, phase]: [Value<'c, 'a>; 2],
        open: &mut [bool],
    ) -> Option<()> {
        let bulk = rings.copies[load];
        let location = bulk.copy.operation().loc();
        let groups = &rings.groups;
        let number = groups
            .iter()
            .position(|group| group.members.contains(&load))?;
        let group = &groups[number];
        let truth = IntegerType::new(self.rewriter.context(), 1).into();
        let mut arithmetic = Arithmetic {
            rewriter: self.rewriter,
            location,
        };
        let always = arithmetic.constant(truth, 1);
        if !std::mem::replace(&mut open[number], true) {
            let empty = channels.empty[number];
            let empty = slot(self.rewriter, location, &group.barrier, empty, index)?;
            self.rewriter
                .insert(WaitBarrierOp::build(location, empty, phase, None, &[]));
            let full = channels.full[number];
            let full = slot(self.rewriter, location, &group.barrier, full, index)?;
            let expect = BarrierExpectOp::build(location, full, group.bytes, always);
            self.rewriter.insert(expect);
        }
        let full = channels.full[number];
        let full = slot(self.rewriter, location, &group.barrier, full, index)?;
        let (of, ring) = (&rings.loads[load].slot, channels.rings[load]);
        let to = slot(self.rewriter, location, of, ring, index)?;
        let coordinates = bulk.copy.coord();
        let coordinates: Vec<Value> = coordinates
            .into_iter()
            .map(|value| self.mapping.get(value))
            .collect();
        self.rewriter.insert(AsyncTMACopyGlobalToLocalOp::build(
            location,
            self.mapping.get(bulk.copy.desc()),
            &coordinates,
            full,
            to,
            always,
            bulk.copy.cache(),
            bulk.copy.evict(),
            bulk.copy.is_volatile(),
        ));
        Some(())
    }
}
