//! Ops that read the memory of other blocks of a cluster: waiting for the other readers later.
//!
//! Such an op ends with a barrier of the cluster, since only the readers know when the memory of a block may be written
//! again, or released. A barrier of the cluster takes as long as the slowest block; but a block that has read has
//! arrived, and needs to wait only where shared memory is used next, or at the end:
//!
//! ```text
//! sum = cluster_sum x        arrive, wait          sum = cluster_sum x        arrive
//! y = truncf sum                                   y = truncf sum
//! store p, y                                       store p, y
//! return                                           cluster_wait
//!                                                  return
//! ```
//!
//! So the wait moves past ops that only compute in registers or access global memory. It stays in the block of
//! operations of its op: both are executed equally often.

use std::collections::HashSet;

use llopt_dialects::meaning::facts::{Control, OpFacts, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::ttg::effects::CLUSTER_WAITS_LATER;
use llopt_dialects::ttng::ClusterWaitOp;
use llopt_mlir::dialect::Resource;
use llopt_mlir::ir::{BlockExt, OperationExt, attr};
use llopt_plan::scratch::Readers;
use melior::ir::{BlockLike, OperationRef};

use crate::allocation::{BufferOwner, FunctionBuffers};

/// Defers the waits of a function.
pub(super) fn defer<'c: 'a, 'a>(buffers: &FunctionBuffers<'c, 'a>) {
    let number = |operation| buffers.program.number(operation);
    // Allocations are places in memory; all other owners access it themselves.
    let owners = buffers.list.iter();
    let owners = owners.filter(|buffer| buffer.owner != BufferOwner::Allocation);
    let using: HashSet<usize> = owners
        .filter_map(|buffer| number(buffer.operation))
        .collect();
    let uses = |operation| number(operation).is_none_or(|number| using.contains(&number));
    for buffer in &buffers.list {
        if buffer.owner != BufferOwner::Scratch(Readers::ClusterReads) {
            continue;
        }
        let of = buffer.operation;
        let Some(block) = of.parent_block() else {
            continue;
        };
        let mut after = block.operations().skip_while(|other| *other != of).skip(1);
        let next = after.find(|other| uses(*other) || !is_apart(*other));
        if let Some(next) = next.filter(|next| of.next_op() != Some(*next)) {
            of.set_attr(CLUSTER_WAITS_LATER, attr::unit(of.ctx()));
            block.insert_operation_before(next, ClusterWaitOp::build(of.loc()));
        }
    }
}

/// Whether an operation has nothing to do with shared memory, nor with other threads.
fn is_apart(operation: OperationRef<'_, '_>) -> bool {
    let facts = OpFacts::of(operation);
    let is_global =
        |resource: Option<&Resource>| resource.is_some_and(|of| std::ptr::eq(of, &GLOBAL_MEMORY));
    let mut effects = operation.effects().into_iter().flatten();
    facts.control == Control::Computes
        && facts.asynchronous.is_none()
        && facts.synchronization == Synchronization::None
        && operation.region_refs().len() == 0
        && operation.effects().is_some()
        && effects.all(|effect| is_global(effect.resource))
}
