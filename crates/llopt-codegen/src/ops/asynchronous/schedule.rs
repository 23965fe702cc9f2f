//! Hints to the instruction scheduler, and barriers that some threads pass by: `rocdl.sched.*`, `rocdl.s.setprio`,
//! `amdg.cond_barrier`.

use llopt_dialects::{amdg, rocdl};
use llopt_mlir::ir::AttributeExt;
use melior::ir::Attribute;

use crate::targets::hooks::Scheduling;
use crate::walk::function::{FunctionLowering, Lowered};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of the `rocdl` dialect that guides the scheduler.
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
}
