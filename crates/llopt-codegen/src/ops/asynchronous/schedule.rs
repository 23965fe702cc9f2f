//! Hints to the instruction scheduler, conditional barriers with the thread number that decides about them, and waits
//! for accesses by their count: `rocdl.sched.*`, `rocdl.s.setprio`, `rocdl.s.barrier`, `amdg.cond_barrier`,
//! `amdg.memory_counter_wait`.

use llopt_dialects::{amdg, rocdl};
use llopt_mlir::ir::AttributeExt;
use melior::ir::Attribute;

use crate::targets::hooks::{AccessCounts, Scheduling};
use crate::values::threads;
use crate::walk::function::{FunctionLowering, Lowered};

/// `rocdl.workitem.id.x`: the number of the thread in its block, by which a conditional barrier selects threads.
fn thread_number(
    lowering: &mut FunctionLowering<'_, '_>,
    op: rocdl::ThreadIdXOp<'_, '_>,
) -> Lowered {
    let number = lowering.hooks().thread_in_block(lowering.e);
    lowering.bind_result(op.operation(), vec![number]);
    Ok(())
}

/// An operation of the `rocdl` dialect.
pub(crate) fn hint(lowering: &mut FunctionLowering<'_, '_>, op: rocdl::Op<'_, '_>) -> Lowered {
    let number =
        |attribute: Option<Attribute<'_>>| attribute.and_then(AttributeExt::as_i64).unwrap_or(0);
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
            // The threads only synchronise there; other barriers order what they have stored.
            lowering.hooks().execution_barrier(lowering.e);
            return Ok(());
        }
        rocdl::Op::ThreadIdX(op) => return thread_number(lowering, op),
    };
    let op = op.operation();
    if lowering.hooks().schedule(lowering.e, guide) {
        return Ok(());
    }
    Err(lowering.unsupported(op, None))
}

/// `amdg.cond_barrier`: the threads that skip it arrive at another one.
pub(crate) fn conditional_barrier(
    lowering: &FunctionLowering<'_, '_>,
    op: amdg::CondBarrierOp<'_, '_>,
) -> Lowered {
    let acts = lowering.scalar(op.pred());
    threads::only_if(lowering.e, Some(acts), || {
        lowering.hooks().execution_barrier(lowering.e)
    });
    Ok(())
}

/// `amdg.memory_counter_wait`.
pub(crate) fn wait_for_accesses(
    lowering: &FunctionLowering<'_, '_>,
    op: amdg::MemoryCounterWaitOp<'_, '_>,
) -> Lowered {
    let count = |most: Option<i64>| most.map(|most| u32::try_from(most).unwrap_or(0));
    let most = AccessCounts {
        loads: count(op.load()),
        stores: count(op.store()),
        shared: count(op.ds()),
    };
    if lowering.hooks().wait_for_accesses(lowering.e, most) {
        return Ok(());
    }
    Err(lowering.unsupported(op.operation(), None))
}
