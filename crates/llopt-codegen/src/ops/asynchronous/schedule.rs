//! Hints to the instruction scheduler, and barriers that some threads pass by: `rocdl.sched.*`, `rocdl.s.setprio`,
//! `amdg.cond_barrier`.

use llopt_dialects::amdg;
use melior::ir::OperationRef;

use crate::targets::hooks::Scheduling;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute, name};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of the `rocdl` dialect that guides the scheduler.
    pub(crate) fn schedule(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let number = |attribute| integer_attribute(op, attribute).unwrap_or(0);
        let guide = match name(op).as_str() {
            "rocdl.sched.barrier" => Scheduling::Barrier {
                may_pass: number("mask"),
            },
            "rocdl.sched.group.barrier" => Scheduling::Group {
                kinds: number("mask"),
                instructions: number("size"),
                pipeline: number("groupId"),
            },
            "rocdl.s.setprio" => Scheduling::Priority(number("priority")),
            _ => return Err(self.unsupported(op, None)),
        };
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
