//! What the ops of a function do to shared memory, as the graph in which barriers are placed.

use std::ops::Range;

use llopt_dialects::meaning::facts::{Asynchronous, Control, OpFacts, Step, Synchronization, Unit};
use llopt_dialects::meaning::resource::{
    BULK_SHARED_MEMORY, PRODUCT_SHARED_MEMORY, SHARED_MEMORY, TRANSACTION_BARRIER,
};
use llopt_dialects::tables::module::num_warps;
use llopt_dialects::ttg::WarpSpecializeOp;
use llopt_dialects::ttg::effects::ARRIVES_BY_WARP;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::{EffectKind, Resource};
use llopt_mlir::ir::{AttributeExt, Effect, OperationExt};
use llopt_plan::scratch::Readers;
use llopt_plan::warp_parts::WarpParts;
use melior::ir::{OperationRef, Value};

use super::placement::{Access, AccessKind, ClusterBarrier, Graph, Node};
use super::slots::Slots;
use crate::allocation::{ALLOCATION_OFFSET, BufferOwner, FunctionBuffers};
use crate::program::Point;

/// All of shared memory.
const EVERYTHING: Range<u64> = 0..u64::MAX;

/// The bytes from the first to the last buffer of a function.
///
/// # Errors
/// A buffer without an offset.
pub(super) fn frame(buffers: &FunctionBuffers<'_, '_>) -> Result<u64, Complaint> {
    let ranges: Result<Vec<Range<u64>>, Complaint> = (0..buffers.list.len())
        .map(|index| bytes(buffers, index))
        .collect();
    Ok(ranges?
        .into_iter()
        .map(|range| range.end)
        .max()
        .unwrap_or(0))
}

/// The graph of a function, and for each of its nodes the program point that it belongs to.
///
/// An op with scratch memory for the whole block has two nodes: it writes, and after its own barrier it reads. If it
/// accesses the memory of other blocks, it has one more barrier, before it writes there or after it has read there.
///
/// # Errors
/// A buffer without an offset.
pub(super) fn graph(buffers: &FunctionBuffers<'_, '_>) -> Result<(Graph, Vec<usize>), Complaint> {
    let points = &buffers.program.points;
    let scratch = scratch_of_points(buffers);
    let slots = Slots::of(points);
    let arrived = arrivals(buffers, &slots)?;

    let mut graph = Graph::default();
    let mut owners = Vec::new();
    let mut first = Vec::with_capacity(points.len());
    let mut after_concurrent = false;
    // The ways in which ops divide their memory among the warps.
    let mut divisions: Vec<WarpParts> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let operation = point.operation;
        let facts = OpFacts::of(operation);
        let concurrent = facts.control == Control::Concurrent;
        first.push(graph.nodes.len());
        let mut node = Node {
            accesses: effects(buffers, operation, &arrived, &slots)?,
            successors: Vec::new(),
            // All warp partitions synchronise where they start and where they end.
            is_barrier: facts.synchronization == Synchronization::Block
                || concurrent
                || after_concurrent,
            is_fence: facts.synchronization == Synchronization::Proxies,
            ..Node::default()
        };
        // The warp that waits knows that the products have read; the others learn it by a barrier.
        for buffer in buffers.read_until(number) {
            let read = Access::new(AccessKind::BulkReadEnd, bytes(buffers, buffer)?);
            node.accesses.push(read);
        }
        // The next op in the text is the one after a warp specialisation.
        after_concurrent = facts.control == Control::PartitionEnd;
        if let Some(index) = scratch[number] {
            let range = bytes(buffers, index)?;
            match &buffers.list[index].owner {
                BufferOwner::Scratch(
                    readers @ (Readers::Block | Readers::ClusterReads | Readers::ClusterWrites),
                ) => {
                    let (before, last) = exchange(node, readers, range, concurrent);
                    owners.extend(before.iter().map(|_| number));
                    graph.nodes.extend(before);
                    node = last;
                }
                BufferOwner::Scratch(Readers::Warp { parts: Some(parts) }) => {
                    let known = divisions.iter().position(|known| known == parts);
                    let division = known.unwrap_or_else(|| {
                        divisions.push(parts.clone());
                        divisions.len() - 1
                    });
                    node.accesses
                        .push(Access::by_warp(AccessKind::Write, range, division as u64));
                }
                BufferOwner::Scratch(Readers::Warp { parts: None }) => {
                    node.accesses.push(Access::new(AccessKind::Write, range));
                }
                BufferOwner::Frame | BufferOwner::Allocation | BufferOwner::Function => {
                    node.accesses.push(Access::new(AccessKind::Write, range));
                }
            }
        }
        graph.nodes.push(node);
        owners.push(number);
    }
    first.push(graph.nodes.len());
    connect(&mut graph, points, &first);
    // The loop of a turn is a point so far.
    for access in graph.nodes.iter_mut().flat_map(|node| &mut node.accesses) {
        if let Some(turn) = &mut access.turn {
            turn.entry = first[turn.entry];
        }
    }
    Ok((graph, owners))
}

/// The scratch memory of each program point.
fn scratch_of_points(buffers: &FunctionBuffers<'_, '_>) -> Vec<Option<usize>> {
    let mut scratch = vec![None; buffers.program.points.len()];
    for (index, buffer) in buffers.list.iter().enumerate() {
        if buffer.owner != BufferOwner::Allocation
            && let Some(number) = buffers.program.number(buffer.operation)
        {
            scratch[number] = Some(index);
        }
    }
    scratch
}

/// The nodes of an op through whose scratch memory the warps of the block or of the cluster exchange data: those
/// before the last, and the last. `node` has the other effects of the op.
fn exchange(
    mut node: Node,
    readers: &Readers,
    range: Range<u64>,
    concurrent: bool,
) -> (Vec<Node>, Node) {
    let crosses = *readers != Readers::Block;
    if *readers == Readers::ClusterWrites {
        node.is_barrier = true;
        node.cluster_barrier = ClusterBarrier::IfNeeded;
    }
    node.accesses
        .push(Access::new(AccessKind::Write, range.clone()));
    // The values for the partitions are written before these start.
    node.is_barrier &= !concurrent;
    let reads = Node {
        accesses: vec![Access::new(AccessKind::Read, range)],
        is_barrier: true,
        cluster_barrier: if crosses {
            ClusterBarrier::Always
        } else {
            ClusterBarrier::Never
        },
        ..Node::default()
    };
    if *readers != Readers::ClusterReads {
        return (vec![node], reads);
    }
    let end = Node {
        is_barrier: true,
        cluster_barrier: ClusterBarrier::Always,
        ..Node::default()
    };
    (vec![node, reads], end)
}

/// Sets the successors of each node, and the loop that it is in. `first` has the first node of each point.
fn connect(graph: &mut Graph, points: &[Point<'_, '_>], first: &[usize]) {
    for (number, point) in points.iter().enumerate() {
        let nodes = first[number]..first[number + 1];
        for node in nodes.clone() {
            graph.nodes[node].entry = point.inside_loop.map(|entry| first[entry]);
            graph.nodes[node].successors = match node + 1 == nodes.end {
                true => point.successors.iter().map(|&next| first[next]).collect(),
                false => vec![node + 1],
            };
        }
    }
}

/// The bytes of a buffer.
fn bytes(buffers: &FunctionBuffers<'_, '_>, index: usize) -> Result<Range<u64>, Complaint> {
    let buffer = &buffers.list[index];
    let offset = buffer
        .operation
        .attr(ALLOCATION_OFFSET)
        .and_then(AttributeExt::as_bits);
    let offset = offset.ok_or_else(|| {
        let name = buffer.operation.name_str();
        Complaint::new(format!("has a '{name}' without {ALLOCATION_OFFSET}"))
    })?;
    Ok(offset..offset + buffer.bytes)
}

/// Whether an op does only what the ops inside of it do, each a point of its own.
fn has_points_inside(control: Control) -> bool {
    matches!(
        control,
        Control::For
            | Control::While
            | Control::Choice
            | Control::Masked
            | Control::Concurrent
            | Control::Partitions
    )
}

/// The accesses that are complete after a wait: everything that copies may have written.
fn arrivals(buffers: &FunctionBuffers<'_, '_>, slots: &Slots) -> Result<Vec<Access>, Complaint> {
    let mut arrived = Vec::new();
    for point in &buffers.program.points {
        let accesses = effects(buffers, point.operation, &[], slots)?;
        let copies = accesses
            .into_iter()
            .filter(|access| access.kind == AccessKind::Copy);
        arrived.extend(copies.map(|access| Access {
            kind: AccessKind::Arrival,
            turn: None,
            ..access
        }));
    }
    arrived.sort();
    arrived.dedup();
    Ok(arrived)
}

/// The accesses of an op to shared memory, except its scratch memory.
fn effects(
    buffers: &FunctionBuffers<'_, '_>,
    operation: OperationRef<'_, '_>,
    arrived: &[Access],
    slots: &Slots,
) -> Result<Vec<Access>, Complaint> {
    let facts = OpFacts::of(operation);
    let waits_for_copies = Asynchronous {
        step: Step::Waits,
        unit: Unit::Copy,
    };
    if facts.asynchronous == Some(waits_for_copies) {
        return Ok(arrived.to_vec());
    }
    if has_points_inside(facts.control) {
        return Ok(Vec::new());
    }
    let mut accesses = Vec::new();
    for effect in operation.effects().unwrap_or_default() {
        let Some(kind) = kind_of(&effect, operation, facts.asynchronous) else {
            continue;
        };
        match effect.value {
            Some(value) => accesses.extend(viewed(buffers, slots, value, kind)?),
            // The thread that waits knows that the copies have read; the others learn it by a barrier.
            None if is_of(&effect, &BULK_SHARED_MEMORY) => {
                let kind = match kind {
                    AccessKind::BulkRead => AccessKind::BulkReadEnd,
                    other => other,
                };
                for buffer in buffers.bulk_reads() {
                    accesses.push(Access::new(kind, bytes(buffers, buffer)?));
                }
            }
            // Each warp signals only what it has done itself.
            None if kind == AccessKind::Read && operation.attr(ARRIVES_BY_WARP).is_some() => {}
            None if is_of(&effect, &SHARED_MEMORY) => {
                let kind = match kind {
                    AccessKind::Read => AccessKind::Publish,
                    other => other,
                };
                accesses.push(Access::new(kind, EVERYTHING));
            }
            None => {}
        }
    }
    complete_signals(operation, &mut accesses, facts.asynchronous.is_some());
    Ok(accesses)
}

fn is_of(effect: &Effect<'_, '_>, memory: &'static Resource) -> bool {
    effect
        .resource
        .is_some_and(|resource| std::ptr::eq(resource, memory))
}

/// Whether the lanes of more than one warp execute an op; those of a single one wait together.
fn has_several_warps(operation: OperationRef<'_, '_>) -> bool {
    num_warps(operation) != Some(1)
}

/// The kind of access that an effect of an op is; `None` for an allocation or its end.
fn kind_of(
    effect: &Effect<'_, '_>,
    operation: OperationRef<'_, '_>,
    asynchronous: Option<Asynchronous>,
) -> Option<AccessKind> {
    let bulk = is_of(effect, &BULK_SHARED_MEMORY);
    let barrier = is_of(effect, &TRANSACTION_BARRIER);
    let waits = asynchronous.is_some_and(|of| of.step == Step::Waits);
    let issues_copies = asynchronous
        == Some(Asynchronous {
            step: Step::Issues,
            unit: Unit::Copy,
        });
    Some(match effect.kind {
        EffectKind::Allocate if barrier => AccessKind::Begin,
        EffectKind::Free if barrier => AccessKind::End,
        EffectKind::Allocate | EffectKind::Free => return None,
        EffectKind::Read | EffectKind::Write if barrier => match waits {
            true if has_several_warps(operation) => AccessKind::Await,
            _ => AccessKind::Signal,
        },
        EffectKind::Read if bulk => AccessKind::BulkRead,
        EffectKind::Read if is_of(effect, &PRODUCT_SHARED_MEMORY) => AccessKind::ProductRead,
        EffectKind::Read => AccessKind::Read,
        EffectKind::Write if bulk => AccessKind::BulkCopy,
        EffectKind::Write if issues_copies => AccessKind::Copy,
        EffectKind::Write => AccessKind::Write,
    })
}

/// Accesses to the buffers that a value views.
fn viewed(
    buffers: &FunctionBuffers<'_, '_>,
    slots: &Slots,
    value: Value<'_, '_>,
    kind: AccessKind,
) -> Result<Vec<Access>, Complaint> {
    let mut accesses = Vec::new();
    for buffer in buffers.viewed(value) {
        let whole = bytes(buffers, buffer)?;
        // What copies access is compared with what waits for them find, by whole rings.
        let part = match kind {
            AccessKind::Read | AccessKind::Write => slots.bytes(value, &whole),
            _ => None,
        };
        let turn = match kind {
            AccessKind::Read | AccessKind::Write | AccessKind::Copy => slots.turn(value, &whole),
            _ => None,
        };
        accesses.push(Access {
            turn,
            ..Access::new(kind, part.unwrap_or(whole))
        });
    }
    Ok(accesses)
}

/// Completes what an op does to transaction barriers: one that begins or ends a barrier does nothing else to it, and an arrival
/// in a partition of warps releases what all of them have done.
fn complete_signals(
    operation: OperationRef<'_, '_>,
    accesses: &mut Vec<Access>,
    is_asynchronous: bool,
) {
    // The initialisation or invalidation of a barrier is not a use of it like others.
    if let Some(own) = accesses
        .iter()
        .map(|access| access.kind)
        .find(|kind| matches!(kind, AccessKind::Begin | AccessKind::End))
    {
        for access in accesses.iter_mut() {
            if access.kind == AccessKind::Signal {
                access.kind = own;
            }
        }
    } else if !is_asynchronous
        && accesses
            .iter()
            .any(|access| access.kind == AccessKind::Signal)
        && operation.attr(ARRIVES_BY_WARP).is_none()
        && operation.parent_named(WarpSpecializeOp::NAME).is_some()
        && has_several_warps(operation)
    {
        accesses.push(Access::new(AccessKind::Release, EVERYTHING));
    }
}
