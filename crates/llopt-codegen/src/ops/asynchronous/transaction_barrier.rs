//! Barriers in shared memory that count arrivals and bytes, fences between the program and the copy unit,
//! and the barrier of a cluster.
//!
//! One thread of the block does what is counted; all threads wait. That the threads of a block know of
//! each other what they must is the business of barriers in the IR.

use llopt_dialects::ttg::effects::ARRIVES_BY_WARP;
use llopt_dialects::ttng;
use llopt_mlir::ir::OperationExt;
use llopt_target::Feature;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::V;
use crate::targets::hooks::BulkHooks;
use crate::walk::function::{FunctionLowering, Lowered};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// The vendor's instructions, for a target that has the capability.
    pub(crate) fn bulk(
        &self,
        op: OperationRef<'c, 'a>,
        feature: Feature,
    ) -> Lowered<&'r dyn BulkHooks> {
        self.require(op, feature)?;
        self.hooks()
            .bulk()
            .ok_or_else(|| self.unsupported(op, None))
    }

    /// Whether this is the block's first thread, and a condition holds.
    fn first_thread_if(&self, condition: Option<V<'ctx>>) -> V<'ctx> {
        let e = self.e;
        let all = self.context.warps * self.program.threads_per_warp - 1;
        let first = self.threads.acts_under(e, self.hooks(), all);
        let first = first.unwrap_or_else(|| e.bool(true));
        condition.map_or(first, |condition| e.and(first, condition))
    }

    /// The address of a barrier.
    pub(crate) fn barrier_address(
        &self,
        op: OperationRef<'c, 'a>,
        barrier: Value<'c, 'a>,
    ) -> Lowered<V<'ctx>> {
        let place = self.view(op, barrier)?.place;
        Ok(self.e.byte_offset(place.base, i64::from(place.xor)))
    }

    /// `ttng.init_barrier`.
    pub(crate) fn init_barrier(&mut self, op: ttng::InitBarrierOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::SharedBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.alloc())?;
        bulk.make_barrier(self.e, barrier, op.count(), self.first_thread_if(None));
        Ok(())
    }

    /// `ttng.inval_barrier`.
    pub(crate) fn inval_barrier(&mut self, op: ttng::InvalBarrierOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::SharedBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.alloc())?;
        bulk.end_barrier(self.e, barrier, self.first_thread_if(None));
        Ok(())
    }

    /// `ttng.barrier_expect`.
    pub(crate) fn barrier_expect(&mut self, op: ttng::BarrierExpectOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::TransactionBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.alloc())?;
        let acts = self.first_thread_if(Some(self.scalar(op.pred())));
        bulk.expect(self.e, barrier, op.size(), acts);
        Ok(())
    }

    /// `ttng.arrive_barrier`.
    pub(crate) fn arrive_barrier(&mut self, op: ttng::ArriveBarrierOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::SharedBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.alloc())?;
        if op.operation().attr(ARRIVES_BY_WARP).is_some() {
            let (warps, lanes) = (self.context.warps, self.program.threads_per_warp);
            if op.count() % i64::from(warps) != 0 {
                let reason = "its count is not divided among the warps";
                return Err(self.invalid(op.operation(), reason));
            }
            // What the other lanes have read is read before the first one says so.
            self.hooks().warp_barrier(self.e);
            let first = self.threads.acts_under(self.e, self.hooks(), lanes - 1);
            let first = first.unwrap_or_else(|| self.e.bool(true));
            let acts = match op.pred() {
                Some(pred) => self.e.and(first, self.scalar(pred)),
                None => first,
            };
            bulk.arrive(self.e, barrier, op.count() / i64::from(warps), acts);
            return Ok(());
        }
        let acts = self.first_thread_if(op.pred().map(|pred| self.scalar(pred)));
        bulk.arrive(self.e, barrier, op.count(), acts);
        Ok(())
    }

    /// `ttng.wait_barrier`.
    pub(crate) fn wait_barrier(&mut self, op: ttng::WaitBarrierOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::SharedBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.alloc())?;
        let condition = op
            .pred()
            .map(|pred| self.scalar(pred))
            .filter(|pred| !self.e.is_true(*pred));
        bulk.wait(self.e, barrier, self.scalar(op.phase()), condition);
        Ok(())
    }

    /// `ttng.async_copy_mbarrier_arrive`.
    pub(crate) fn async_copy_arrive(
        &mut self,
        op: ttng::AsyncCopyMbarrierArriveOp<'c, 'a>,
    ) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::SharedBarrier)?;
        let barrier = self.barrier_address(op.operation(), op.barrier())?;
        bulk.arrive_after_copies(self.e, barrier, !op.no_increment());
        Ok(())
    }

    /// `ttng.fence_async_shared`.
    pub(crate) fn fence_async(&mut self, op: ttng::FenceAsyncSharedOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::BulkTensorCopy)?;
        bulk.fence(self.e, op.b_cluster());
        Ok(())
    }

    /// `ttng.cluster_arrive`.
    pub(crate) fn cluster_arrive(&mut self, op: ttng::ClusterArriveOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::Cluster)?;
        bulk.cluster_arrive(self.e, op.relaxed() != 0);
        Ok(())
    }

    /// `ttng.cluster_wait`.
    pub(crate) fn cluster_wait(&mut self, op: ttng::ClusterWaitOp<'c, 'a>) -> Lowered {
        let bulk = self.bulk(op.operation(), Feature::Cluster)?;
        bulk.cluster_wait(self.e);
        Ok(())
    }
}
