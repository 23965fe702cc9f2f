//! Barriers in shared memory that count arrivals and bytes, fences between accesses of threads and the copy unit, and
//! the barrier of a cluster.
//!
//! One thread of the block arrives and expects; all threads wait. Barriers in the IR order the accesses of the
//! threads of the block among themselves.

use llopt_dialects::ttg::effects::{ARRIVES_BY_WARP, LANES_HAVE_MET};
use llopt_dialects::ttng;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::OperationExt;
use llopt_target::Feature;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::V;
use crate::ops::memory::local;
use crate::targets::hooks::BulkHooks;
use crate::walk::function::{FunctionLowering, Lowered};

/// The vendor's instructions, for a target that has the capability.
pub(crate) fn bulk_hooks<'r>(
    lowering: &FunctionLowering<'r, '_>,
    op: OperationRef<'_, '_>,
    feature: Feature,
) -> Lowered<&'r dyn BulkHooks> {
    lowering.require(op, feature)?;
    lowering
        .hooks()
        .bulk()
        .ok_or_else(|| lowering.unsupported(op, None))
}

/// Whether this is the block's first thread, and a condition holds.
fn first_thread_if<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    condition: Option<V<'ctx>>,
) -> V<'ctx> {
    let e = lowering.e;
    let all = lowering.own_threads() - 1;
    let first = lowering.threads.acts_under(e, lowering.hooks(), all);
    let first = first.unwrap_or_else(|| e.bool(true));
    condition.map_or(first, |condition| e.and(first, condition))
}

/// The address of a barrier.
pub(crate) fn address<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    barrier: Value<'_, '_>,
) -> Lowered<V<'ctx>> {
    let place = local::view(lowering, op, barrier)?.place;
    Ok(lowering.e.byte_offset(place.base, i64::from(place.xor)))
}

/// `ttng.init_barrier`.
pub(crate) fn init(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::InitBarrierOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::SharedBarrier)?;
    let barrier = address(lowering, op.operation(), op.alloc())?;
    bulk.make_barrier(
        lowering.e,
        barrier,
        op.count(),
        first_thread_if(lowering, None),
    );
    // The copy unit counts bytes there, through its own proxy: one fence after the last of several initialisations.
    let target = lowering.hooks().target();
    if target.has(Feature::BulkTensorCopy) && !another_follows(op.operation()) {
        bulk.fence(lowering.e, lowering.program.blocks_per_cluster() > 1);
    }
    Ok(())
}

/// Whether another barrier is initialised after this one, with nothing between the two that has an effect except the
/// allocation of memory.
fn another_follows(op: OperationRef<'_, '_>) -> bool {
    let following = std::iter::successors(op.next_op(), |op| op.next_op());
    let is_idle = |op: &OperationRef<'_, '_>| {
        let effects = op.effects();
        effects.is_some_and(|all| all.iter().all(|effect| effect.kind == EffectKind::Allocate))
    };
    let mut rest = following.skip_while(is_idle);
    rest.next()
        .is_some_and(|op| ttng::InitBarrierOp::of(op).is_some())
}

/// `ttng.inval_barrier`.
pub(crate) fn invalidate(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::InvalBarrierOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::SharedBarrier)?;
    let barrier = address(lowering, op.operation(), op.alloc())?;
    bulk.end_barrier(lowering.e, barrier, first_thread_if(lowering, None));
    Ok(())
}

/// `ttng.barrier_expect`.
pub(crate) fn expect(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::BarrierExpectOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::TransactionBarrier)?;
    let barrier = address(lowering, op.operation(), op.alloc())?;
    let acts = first_thread_if(lowering, Some(lowering.scalar(op.pred())));
    bulk.expect(lowering.e, barrier, op.size(), acts);
    Ok(())
}

/// `ttng.arrive_barrier`.
pub(crate) fn arrive(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::ArriveBarrierOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::SharedBarrier)?;
    let barrier = address(lowering, op.operation(), op.alloc())?;
    if op.operation().attr(ARRIVES_BY_WARP).is_some() {
        let (warps, lanes) = (lowering.context.warps, lowering.program.threads_per_warp);
        if op.count() % i64::from(warps) != 0 {
            let reason = "its count is not divided among the warps";
            return Err(lowering.invalid(op.operation(), reason));
        }
        // What the other lanes have read must be read before the first lane arrives.
        if op.operation().attr(LANES_HAVE_MET).is_none() {
            lowering.hooks().warp_barrier(lowering.e);
        }
        let first = lowering
            .threads
            .acts_under(lowering.e, lowering.hooks(), lanes - 1);
        let first = first.unwrap_or_else(|| lowering.e.bool(true));
        let acts = match op.pred() {
            Some(pred) => lowering.e.and(first, lowering.scalar(pred)),
            None => first,
        };
        bulk.arrive(lowering.e, barrier, op.count() / i64::from(warps), acts);
        return Ok(());
    }
    let acts = first_thread_if(lowering, op.pred().map(|pred| lowering.scalar(pred)));
    bulk.arrive(lowering.e, barrier, op.count(), acts);
    Ok(())
}

/// `ttng.wait_barrier`.
pub(crate) fn wait(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::WaitBarrierOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::SharedBarrier)?;
    let barrier = address(lowering, op.operation(), op.alloc())?;
    let condition = op
        .pred()
        .map(|pred| lowering.scalar(pred))
        .filter(|pred| !lowering.e.is_true(*pred));
    bulk.wait(lowering.e, barrier, lowering.scalar(op.phase()), condition);
    Ok(())
}

/// `ttng.async_copy_mbarrier_arrive`.
pub(crate) fn arrive_after_copies(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::AsyncCopyMbarrierArriveOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::SharedBarrier)?;
    let barrier = address(lowering, op.operation(), op.barrier())?;
    bulk.arrive_after_copies(lowering.e, barrier, !op.no_increment());
    Ok(())
}

/// `ttng.fence_async_shared`.
pub(crate) fn fence_async(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::FenceAsyncSharedOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::BulkTensorCopy)?;
    bulk.fence(lowering.e, op.b_cluster());
    Ok(())
}

/// `ttng.cluster_arrive`.
pub(crate) fn cluster_arrive(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::ClusterArriveOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::Cluster)?;
    bulk.cluster_arrive(lowering.e, op.relaxed() != 0);
    Ok(())
}

/// `ttng.cluster_wait`.
pub(crate) fn cluster_wait(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::ClusterWaitOp<'_, '_>,
) -> Lowered {
    let bulk = bulk_hooks(lowering, op.operation(), Feature::Cluster)?;
    bulk.cluster_wait(lowering.e);
    Ok(())
}
