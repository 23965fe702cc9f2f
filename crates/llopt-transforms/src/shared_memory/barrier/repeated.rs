//! Reads of global memory that several warps repeat, before one of them writes what was read.
//!
//! All warps load a scalar, and where a layout has fewer elements than the block has threads several warps load the
//! same elements; but one thread stores each element. A program that loads, and then stores to the same place,
//!
//! ```text
//! count = load p
//! store p, 1
//! if count == 0 …
//! ```
//!
//! has no race: its order is that of the text. Its warps run independently, however. If the first one has stored
//! before the last one loads, the last one continues with a value that `count` never had, takes the other branch, and
//! reads the next barrier of its own path. So such a write waits until all warps have read. The same is true if the two
//! layouts divide the elements differently among the warps. Where load and store have the same layout and nothing is
//! repeated, each thread overwrites only what it has loaded itself.
//!
//! They wait right after the last such read, not before the write: what is computed between, and loaded from elsewhere, then
//! overlaps with the reads, and no assembler leaves a load to the end because nothing needs it in front of the barrier. A
//! recurrence of log-probabilities, whose states are handed on in global memory, takes 1.6 times as long otherwise.
//!
//! # Alternatives rejected
//!
//! Scalars are stored by the first thread, and a running count, `count += load p[i]; store p[i], count`, is of use to it alone. Over 224
//! parts by four warps it takes 25 microseconds with a barrier in each iteration, and Triton's code, which has none, 6 (H100,
//! 2026-11-28). *The first thread alone loads*: 45, as `ptxas` makes a branch of each load, and none passes the store before it.
//! *No barrier where the number decides nothing*: 5.5, but the other threads' loads, whose values are dropped, are races, and the
//! sanitizer reports them.
//!
//! Accesses may touch the same memory if their addresses come from the same parameter, or from the same op that makes
//! an address. What warps read after another one has written is left to explicit barriers, as in Triton.

use std::collections::{BTreeSet, HashMap};

use llopt_dialects::layout::encoding::layout_of;
use llopt_dialects::meaning::facts::OpFacts;
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::module::num_warps;
use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_dialects::ttg::WarpSpecializeOp;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{OperationExt, key};
use melior::ir::{OperationRef, Value, ValueLike};

use super::placement::{Access, AccessKind, Graph};
use crate::flow::{self, Symbols};
use crate::program::Point;

/// An access to global memory by the warps of the whole block.
struct Global<'c, 'a> {
    point: usize,
    kind: AccessKind,
    address: Value<'c, 'a>,
}

/// The nodes before which all warps must have read global memory. `owners` has the program point of each node.
pub(super) fn nodes(graph: &Graph, points: &[Point<'_, '_>], owners: &[usize]) -> Vec<usize> {
    let accesses: Vec<Global> = (0..points.len())
        .flat_map(|point| accesses(points, point))
        .collect();
    let has = |kind| accesses.iter().any(|access| access.kind == kind);
    if !has(AccessKind::Read) || !has(AccessKind::Write) {
        return Vec::new();
    }
    let origins = origins(points);
    let mut layouts = Vec::new();
    let mut global = graph.clone();
    for node in &mut global.nodes {
        node.accesses.clear();
    }
    for access in accesses {
        let Ok(node) = owners.binary_search(&access.point) else {
            continue;
        };
        // Of several nodes of an op, the first has what it does before its own barrier.
        let node = owners[..node].partition_point(|&owner| owner < access.point);
        let parts = parts(points[access.point].operation, &mut layouts);
        for &origin in origins.get(&key(access.address)).into_iter().flatten() {
            global.nodes[node].accesses.push(Access {
                by_warp: parts,
                ..Access::new(access.kind, origin..origin + 1)
            });
        }
    }
    let nodes = global.barriers_after_reads().into_iter();
    let early = nodes.map(|node| after_last_read(node, graph, &global, points, owners));
    early.collect()
}

/// The first node from which on no op up to a write reads what is written: a barrier there does the same as before the write.
/// No op that accesses shared memory comes between, for which a barrier behind it may be of use.
fn after_last_read(
    write: usize,
    graph: &Graph,
    global: &Graph,
    points: &[Point<'_, '_>],
    owners: &[usize],
) -> usize {
    let operation = |node: usize| points[owners[node]].operation;
    let block = operation(write).parent_block();
    let reads = |node: usize| {
        let mut accesses = global.nodes[node].accesses.iter();
        accesses.any(|access| {
            let written = &global.nodes[write].accesses;
            access.kind == AccessKind::Read && written.iter().any(|of| access.overlaps(of))
        })
    };
    let may_come_after = |node: &usize| {
        let own = &graph.nodes[*node];
        operation(*node).parent_block() == block
            && operation(*node).region_refs().len() == 0
            && own.accesses.is_empty()
            && !own.is_barrier
            && !reads(*node)
    };
    (0..write)
        .rev()
        .take_while(may_come_after)
        .last()
        .unwrap_or(write)
}

/// The accesses of an op to global memory, if it reads or writes. An atomic operation reads with the thread that writes.
fn accesses<'c: 'a, 'a>(points: &[Point<'c, 'a>], point: usize) -> Vec<Global<'c, 'a>> {
    let operation = points[point].operation;
    if OpFacts::of(operation).asynchronous.is_some()
        || num_warps(operation) == Some(1)
        || operation.parent_named(WarpSpecializeOp::NAME).is_some()
    {
        return Vec::new();
    }
    let effects = operation.effects().unwrap_or_default();
    let of_global: Vec<_> = effects
        .into_iter()
        .filter(|effect| {
            let is_global = |of| std::ptr::eq(of, &raw const GLOBAL_MEMORY);
            effect.resource.is_some_and(|of| is_global(of))
        })
        .collect();
    let has = |kind| of_global.iter().any(|effect| effect.kind == kind);
    let kind = match (has(EffectKind::Read), has(EffectKind::Write)) {
        (_, true) => AccessKind::Write,
        (true, false) => AccessKind::Read,
        (false, false) => return Vec::new(),
    };
    let addresses: Vec<Value> = of_global.iter().filter_map(|effect| effect.value).collect();
    let of = |address| Global {
        point,
        kind,
        address,
    };
    addresses.first().copied().map(of).into_iter().collect()
}

/// Whether a value is an address or a tensor of addresses.
fn is_address(value: Value<'_, '_>) -> bool {
    Pointer::of(element_or_self(value.r#type())).is_some()
}

/// What the addresses of a function come from: numbers of parameters and of ops.
fn origins(points: &[Point<'_, '_>]) -> HashMap<usize, BTreeSet<u64>> {
    let mut origins: HashMap<usize, BTreeSet<u64>> = HashMap::new();
    let function = points.first().and_then(|point| point.operation.parent_op());
    let parameters = function.into_iter().flat_map(flow::parameters);
    let mut seeds: Vec<Value> = parameters.filter(|value| is_address(*value)).collect();
    let computes = |operation: OperationRef<'_, '_>| {
        operation.is_memory_effect_free() && operation.operand_values().any(is_address)
    };
    let symbols = Symbols::none();
    let mut hands_on = Vec::new();
    for point in points {
        let operation = point.operation;
        for edge in flow::step(operation, &symbols).edges {
            let sources = edge.sources.into_iter().filter(|value| is_address(*value));
            hands_on.extend(sources.map(|source| (key(source), key(edge.target))));
        }
        let passed_on = operation.region_refs().len() > 0;
        for result in operation.result_values().filter(|value| is_address(*value)) {
            if computes(operation) {
                let sources = operation
                    .operand_values()
                    .filter(|value| is_address(*value));
                hands_on.extend(sources.map(|source| (key(source), key(result))));
            } else if !passed_on {
                seeds.push(result);
            }
        }
    }
    for (number, seed) in (0..).zip(seeds) {
        origins.insert(key(seed), BTreeSet::from([number]));
    }
    loop {
        let mut changed = false;
        for (source, target) in &hands_on {
            let from = origins.get(source).cloned().unwrap_or_default();
            let to = origins.entry(*target).or_default();
            let before = to.len();
            to.extend(from);
            changed |= to.len() > before;
        }
        if !changed {
            return origins;
        }
    }
}

/// A number for the way in which an op divides its elements among the warps, if each element belongs to one.
fn parts(operation: OperationRef<'_, '_>, layouts: &mut Vec<LinearLayout>) -> Option<u64> {
    let values = operation.result_values().chain(operation.operand_values());
    let mut types = values.map(|value| value.r#type());
    let layout = layout_of(types.find(|of| RankedTensor::of(*of).is_some())?).ok()?;
    let free = layout.free_variable_masks();
    if free
        .iter()
        .any(|(dim, mask)| *dim == Dim::WARP && *mask != 0)
    {
        return None;
    }
    let known = layouts.iter().position(|known| *known == layout);
    let number = known.unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len() - 1
    });
    Some(number as u64)
}
