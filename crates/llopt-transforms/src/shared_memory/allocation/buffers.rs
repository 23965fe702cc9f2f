//! The buffers of one function: their owners, sizes and live ranges.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::meaning::resource::BULK_SHARED_MEMORY;
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::LocalAllocOp;
use llopt_dialects::ttng::TMAStoreWaitOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{AttributeExt, OperationExt, key};
use llopt_plan::buffer::room;
use llopt_plan::plans::Plans;
use llopt_plan::scratch::{Readers, scratch};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::placement;
use crate::flow::{self, Symbols};
use crate::products;
use crate::program::Program;

/// Alignment of scratch memory and of the frames of functions, in bytes: a row of all banks.
const ROW: u64 = 128;
/// Bytes of the number that tells warp partitions what to run next.
const NUMBER_BYTES: u64 = 4;

/// What a buffer belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BufferOwner {
    /// A `ttg.local_alloc`.
    Allocation,
    /// Any other op, while it executes.
    Scratch(Readers),
    /// A call, for the callee.
    Frame,
    /// The function, for as long as it runs.
    Function,
}

/// A buffer of a function.
pub(crate) struct Buffer<'c, 'a> {
    pub(crate) operation: OperationRef<'c, 'a>,
    pub(crate) owner: BufferOwner,
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
    live: Range<usize>,
}

/// The buffers of a function, and which of them each memory descriptor may view.
pub(crate) struct FunctionBuffers<'c, 'a> {
    pub(crate) program: Program<'c, 'a>,
    pub(crate) list: Vec<Buffer<'c, 'a>>,
    views: HashMap<usize, BTreeSet<usize>>,
    /// The buffers that asynchronous copies read until they are waited for.
    bulk_reads: BTreeSet<usize>,
    /// For each point, the points of the products for which it may wait.
    waited: Vec<Vec<usize>>,
}

impl<'c: 'a, 'a> FunctionBuffers<'c, 'a> {
    /// Finds the buffers of a function; `frames` has the sizes in bytes of the functions that it calls.
    ///
    /// # Errors
    /// A buffer whose size is not known.
    pub(crate) fn of(
        function: OperationRef<'c, 'a>,
        plans: &Plans,
        frames: &HashMap<&'c str, u64>,
    ) -> Result<Self, Complaint> {
        let program = Program::of(function);
        let mut list = Vec::new();
        for (number, point) in program.points.iter().enumerate() {
            let operation = point.operation;
            let found = if LocalAllocOp::of(operation).is_some() {
                allocation(operation)?
            } else if Control::of(operation) == Control::Call {
                let bytes = flow::callee(operation).and_then(|name| frames.get(name));
                bytes
                    .filter(|&&bytes| bytes > 0)
                    .map(|&bytes| (BufferOwner::Frame, bytes, ROW))
            } else {
                scratch(operation, plans).map(|scratch| {
                    let owner = BufferOwner::Scratch(scratch.readers);
                    (owner, scratch.bytes, scratch.alignment.max(ROW))
                })
            };
            if let Some((owner, bytes, alignment)) = found {
                list.push(Buffer {
                    operation,
                    owner,
                    bytes,
                    alignment,
                    live: number..number + 1,
                });
            }
        }
        if !program.concurrent.is_empty() {
            // Here the kernel's warps tell the partitions what to run.
            list.push(Buffer {
                operation: function,
                owner: BufferOwner::Function,
                bytes: NUMBER_BYTES,
                alignment: ROW,
                live: 0..program.points.len(),
            });
        }
        let mut buffers = Self {
            views: HashMap::new(),
            bulk_reads: BTreeSet::new(),
            waited: products::waited_for(&program),
            program,
            list,
        };
        buffers.find_views();
        buffers.find_live_ranges();
        Ok(buffers)
    }

    /// The buffers to be placed, in the order of [`FunctionBuffers::list`].
    pub(crate) fn requests(&self) -> Vec<placement::Buffer> {
        self.list
            .iter()
            .map(|buffer| placement::Buffer {
                live: buffer.live.clone(),
                bytes: buffer.bytes,
                alignment: buffer.alignment,
            })
            .collect()
    }

    /// The bytes that are in use at the same time as an operation and its regions, except those of some operations.
    pub(crate) fn bytes_during(
        &self,
        of: OperationRef<'c, 'a>,
        but: &[OperationRef<'c, 'a>],
    ) -> u64 {
        let points = &self.program.points;
        let is_inside = |number: usize| points[number].operation.is_within(of);
        self.list
            .iter()
            .filter(|buffer| !but.contains(&buffer.operation))
            .filter(|buffer| buffer.live.clone().any(is_inside))
            .map(|buffer| buffer.bytes.next_multiple_of(buffer.alignment))
            .sum()
    }

    /// The buffers that a value may view.
    pub(crate) fn viewed(&self, value: Value<'_, '_>) -> impl Iterator<Item = usize> + '_ {
        self.views.get(&key(value)).into_iter().flatten().copied()
    }

    /// The buffers that are read by the products for which a point may wait.
    pub(crate) fn read_until(&self, point: usize) -> impl Iterator<Item = usize> {
        let mut read = BTreeSet::new();
        for &product in &self.waited[point] {
            for value in products::operands(self.program.points[product].operation) {
                read.extend(self.viewed(value));
            }
        }
        read.into_iter()
    }

    /// The buffers that asynchronous copies read until they are waited for.
    pub(crate) fn bulk_reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.bulk_reads.iter().copied()
    }

    /// Follows memory descriptors from the allocations through views and control flow.
    fn find_views(&mut self) {
        for (index, buffer) in self.list.iter().enumerate() {
            if buffer.owner == BufferOwner::Allocation
                && let Some(value) = buffer.operation.result_value(0)
            {
                self.views.insert(key(value), BTreeSet::from([index]));
            }
        }
        if self.views.is_empty() {
            return;
        }
        // Calls pass no descriptors on: their buffers would outlive what this analysis sees.
        let symbols = Symbols::none();
        loop {
            let mut changed = false;
            for point in &self.program.points {
                let operation = point.operation;
                for edge in flow::step(operation, &symbols).edges {
                    for source in edge.sources {
                        changed |= flow_into(&mut self.views, source, edge.target);
                    }
                }
                for result in operation.result_values().filter(|v| is_shared(v.r#type())) {
                    for operand in operation.operand_values() {
                        changed |= flow_into(&mut self.views, operand, result);
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The waits for copies, each with the buffers from which copies may read there: those of copies that are started at
    /// some points, from which a path without another wait for all copies leads to it.
    fn waits_for_reads(
        &self,
        started: &[(usize, Vec<usize>)],
        waits: &[usize],
    ) -> Vec<(usize, usize)> {
        let points = &self.program.points;
        let mut found = Vec::new();
        for (start, buffers) in started {
            let mut seen = vec![false; points.len()];
            let mut stack = points[*start].successors.clone();
            while let Some(number) = stack.pop() {
                if std::mem::replace(&mut seen[number], true) {
                    continue;
                }
                let is_wait = waits.contains(&number);
                if is_wait {
                    found.extend(buffers.iter().map(|buffer| (number, *buffer)));
                }
                if !is_wait || !waits_for_all(points[number].operation) {
                    stack.extend(&points[number].successors);
                }
            }
        }
        found
    }

    /// Extends the range of each allocation to all points from which a use of a view is reached
    /// without passing the allocation again.
    fn find_live_ranges(&mut self) {
        let points = &self.program.points;
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); points.len()];
        for (number, point) in points.iter().enumerate() {
            for &successor in &point.successors {
                predecessors[successor].push(number);
            }
        }
        let mut uses: Vec<Vec<usize>> = vec![Vec::new(); self.list.len()];
        let mut started: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut waits = Vec::new();
        for (number, point) in points.iter().enumerate() {
            for operand in point.operation.operand_values() {
                for buffer in self.views.get(&key(operand)).into_iter().flatten() {
                    uses[*buffer].push(number);
                }
            }
            for buffer in self.read_until(number) {
                uses[buffer].push(number);
            }
            for read in bulk_read_by(point.operation) {
                match read {
                    Some(value) => {
                        let viewed = self.views.get(&key(value));
                        let viewed: Vec<usize> = viewed.into_iter().flatten().copied().collect();
                        self.bulk_reads.extend(&viewed);
                        started.push((number, viewed));
                    }
                    None => waits.push(number),
                }
            }
        }
        // A wait for copies keeps the buffers that they read alive.
        for (wait, buffer) in self.waits_for_reads(&started, &waits) {
            uses[buffer].push(wait);
        }
        // For each point, the last buffer that was found to be live there.
        let mut live_at = vec![usize::MAX; points.len()];
        for (index, (buffer, uses)) in self.list.iter_mut().zip(uses).enumerate() {
            let made = buffer.live.start;
            let mut stack = uses;
            while let Some(number) = stack.pop() {
                if std::mem::replace(&mut live_at[number], index) == index {
                    continue;
                }
                buffer.live.start = buffer.live.start.min(number);
                buffer.live.end = buffer.live.end.max(number + 1);
                if number != made {
                    stack.extend(&predecessors[number]);
                }
            }
            // Buffers of concurrent partitions must not share memory at any time.
            for range in &self.program.concurrent {
                if buffer.live.start < range.end && range.start < buffer.live.end {
                    buffer.live.start = buffer.live.start.min(range.start);
                    buffer.live.end = buffer.live.end.max(range.end);
                }
            }
        }
    }
}

/// Whether after a wait for copies none of them reads any longer.
fn waits_for_all(operation: OperationRef<'_, '_>) -> bool {
    TMAStoreWaitOp::of(operation).is_some_and(|wait| wait.pendings() == 0)
}

/// The buffer that an op starts to read asynchronously; `None` stands for a wait for such reads.
fn bulk_read_by<'c, 'a>(operation: OperationRef<'c, 'a>) -> Vec<Option<Value<'c, 'a>>> {
    let effects = operation.effects().unwrap_or_default();
    effects
        .into_iter()
        .filter(|effect| {
            effect.kind == EffectKind::Read
                && effect
                    .resource
                    .is_some_and(|resource| std::ptr::eq(resource, &BULK_SHARED_MEMORY))
        })
        .map(|effect| effect.value)
        .collect()
}

/// Adds the buffers of one value to those of another; returns whether anything changed.
fn flow_into(
    views: &mut HashMap<usize, BTreeSet<usize>>,
    from: Value<'_, '_>,
    to: Value<'_, '_>,
) -> bool {
    let Some(buffers) = views.get(&key(from)).cloned() else {
        return false;
    };
    let target = views.entry(key(to)).or_default();
    let before = target.len();
    target.extend(buffers);
    target.len() > before
}

fn is_shared(r#type: Type<'_>) -> bool {
    MemDesc::of(r#type).is_some_and(MemDesc::is_shared)
}

/// The buffer of a `ttg.local_alloc`; `None` if it is not in shared memory.
fn allocation(
    operation: OperationRef<'_, '_>,
) -> Result<Option<(BufferOwner, u64, u64)>, Complaint> {
    let memory = operation
        .result_value(0)
        .and_then(|result| MemDesc::of(result.r#type()))
        .filter(|memory| memory.is_shared());
    let Some(memory) = memory else {
        return Ok(None);
    };
    let room = room(memory)
        .map_err(|reason| Complaint::new(format!("has a buffer of unknown size: {reason}")))?;
    let asked = operation.attr("alignment").and_then(AttributeExt::as_bits);
    let alignment = asked.unwrap_or(room.alignment);
    Ok(Some((BufferOwner::Allocation, room.bytes, alignment)))
}
