//! Hints to the instruction scheduler, barriers that some threads pass by with the number of a thread that tells them
//! apart, and waits for accesses by their number: `rocdl.sched.*`, `rocdl.s.setprio`, `rocdl.s.barrier`,
//! `amdg.cond_barrier`, `amdg.memory_counter_wait`.

use llopt_dialects::{amdg, rocdl};
use llopt_mlir::ir::AttributeExt;
use melior::ir::Attribute;

use crate::targets::hooks::{AccessCounts, Scheduling};
use crate::walk::function::{FunctionLowering, Lowered};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `rocdl.workitem.id.x`: the number of the thread in its block, by which some threads pass a barrier by.
    fn thread_number(&mut self, op: rocdl::ThreadIdXOp<'c, 'a>) -> Lowered {
        let number = self.hooks().thread_in_block(self.e);
        self.bind_result(op.operation(), vec![number]);
        Ok(())
    }

    /// An operation of the `rocdl` dialect.
    pub(crate) fn schedule(&mut self, op: rocdl::Op<'c, 'a>) -> Lowered {
        let number = |attribute: Option<Attribute<'c>>| {
            attribute.and_then(AttributeExt::as_i64).unwrap_or(0)
        };
        let guide = match op {
            rocdl::Op::SchedBarrier(op) => Scheduling::Barrier {
                may_pass: number(op.mask()),
            },
            rocdl::Op::SchedGroupBarrier(op) => Scheduling::Group {
                kinds: number(op.mask()),
                instructions: number(op.size()),
                pipeline: number(op.group_id()),
            },
            rocdl::Op::SetPrio(op) => Scheduling::Priority(number(op.priority())),
            rocdl::Op::SBarrier(_) => {
                // Only threads meet there; what they have stored is a matter of other barriers.
                self.hooks().execution_barrier(self.e);
                return Ok(());
            }
            rocdl::Op::ThreadIdX(op) => return self.thread_number(op),
        };
        let op = op.operation();
        if self.hooks().schedule(self.e, guide) {
            return Ok(());
        }
        Err(self.unsupported(op, None))
    }

    /// `amdg.cond_barrier`: the threads that pass it by come to another one.
    pub(crate) fn conditional_barrier(&mut self, op: amdg::CondBarrierOp<'c, 'a>) -> Lowered {
        let acts = self.scalar(op.pred());
        self.only_if(Some(acts), || self.hooks().execution_barrier(self.e));
        Ok(())
    }

    /// `amdg.memory_counter_wait`.
    pub(crate) fn wait_for_accesses(&mut self, op: amdg::MemoryCounterWaitOp<'c, 'a>) -> Lowered {
        let count = |most: Option<i64>| most.map(|most| u32::try_from(most).unwrap_or(0));
        let most = AccessCounts {
            loads: count(op.load()),
            stores: count(op.store()),
            shared: count(op.ds()),
        };
        if self.hooks().wait_for_accesses(self.e, most) {
            return Ok(());
        }
        Err(self.unsupported(op.operation(), None))
    }
}
