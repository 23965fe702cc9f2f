//! Access to the shared memory of other blocks of a cluster.
//!
//! # Reads
//!
//! Each block writes to its own memory, the cluster meets, and each block reads from the memory of others. Only the
//! readers know when the memory may be written again, or released at the end of the block, so the cluster meets a
//! second time. A block has arrived there as soon as it has read; if what follows needs no shared memory, it waits for
//! the others later (`CLUSTER_WAITS_LATER`).
//!
//! # Writes
//!
//! No block may write to another block's memory while that one still reads its old contents, or before that one has
//! started. So there are two cluster barriers: before any block writes, and when everything is written. From then on
//! each block reads its own memory, to which no other block writes before the next such barrier; so any block may
//! end. The first barrier can be begun early (*announced*): work in between overlaps with the wait. It is omitted if
//! there was a cluster barrier since the memory was last used; the pass that inserts barriers finds that out.
//!
//! The blocks that a block writes to are given by *distances*: masks of the block's number, given by generators.

use llopt_dialects::ttg::effects::{CLUSTER_HAS_MET, CLUSTER_WAITS_LATER};
use llopt_layout::plan::Scope;
use llopt_mlir::ir::OperationExt;
use llopt_plan::cluster::distances;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::ops::asynchronous::transaction_barrier;
use crate::values::threads;
use crate::walk::function::{FunctionLowering, Lowered};

/// An announced write to other blocks.
pub(crate) struct Announced<'p> {
    generators: &'p [u32],
    /// Whether there is a cluster barrier to wait for.
    meets: bool,
}

/// Arrives at the first cluster barrier, if there are blocks at the distances: this block has read the contents of
/// its memory.
pub(crate) fn announce<'p>(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    generators: &'p [u32],
) -> Lowered<Announced<'p>> {
    let meets = !generators.is_empty() && op.attr(CLUSTER_HAS_MET).is_none();
    if !generators.is_empty() {
        let cluster = transaction_barrier::bulk_hooks(lowering, op, Feature::Cluster)?;
        if meets {
            cluster.cluster_arrive(lowering.e, false);
        }
    }
    Ok(Announced { generators, meets })
}

/// Lets the threads that act write to memory at `bases` in their own block and in those at the distances, and all
/// threads wait until that is complete. `write` gets the bases in one block.
pub(crate) fn write_to_blocks<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    announced: &Announced<'_>,
    acts: Option<V<'ctx>>,
    bases: &[V<'ctx>],
    write: impl Fn(&[V<'ctx>]),
) {
    let e = lowering.e;
    let generators = announced.generators;
    let others = lowering.hooks().bulk().filter(|_| !generators.is_empty());
    if let Some(cluster) = others.filter(|_| announced.meets) {
        cluster.cluster_wait(e);
    }
    threads::only_if(e, acts, || {
        write(bases);
        if let Some(cluster) = others {
            let block = lowering.threads.block(e, lowering.hooks());
            for distance in distances(generators).skip(1) {
                let other = e.xor(block, e.i32(i64::from(distance)));
                let there: Vec<V<'ctx>> = bases
                    .iter()
                    .map(|base| cluster.in_other_block(e, *base, other))
                    .collect();
                write(&there);
            }
        }
    });
    wait(
        lowering,
        match others {
            Some(_) => Scope::Cluster,
            None => Scope::Block,
        },
    );
}

/// Ends the reads of an op from the memory of other blocks: they may write to theirs again once they know of it.
pub(crate) fn end_reads(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) {
    match lowering.hooks().bulk() {
        Some(bulk) if op.attr(CLUSTER_WAITS_LATER).is_some() => {
            bulk.cluster_arrive(lowering.e, false);
        }
        _ => wait(lowering, Scope::Cluster),
    }
}

/// Orders shared memory among the threads of a scope.
pub(crate) fn wait(lowering: &FunctionLowering<'_, '_>, scope: Scope) {
    match scope {
        Scope::Warp => lowering.hooks().warp_barrier(lowering.e),
        Scope::Block => lowering.barrier(),
        Scope::Cluster => match lowering.hooks().bulk() {
            Some(bulk) => {
                bulk.cluster_arrive(lowering.e, false);
                bulk.cluster_wait(lowering.e);
            }
            None => lowering.barrier(),
        },
    }
}
