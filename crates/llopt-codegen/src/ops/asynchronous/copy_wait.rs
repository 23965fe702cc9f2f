//! Groups of asynchronous copies, and waits for them.
//!
//! Where the hardware counts groups, the ops are its instructions. Where it counts instructions ([`WarpCopies`]), the
//! emitted copies are recorded, with the branches between them, until the function is complete: then it is known how
//! many instructions each wait may leave outstanding ([`llopt_plan::copy_count`]).

use inkwell::values::InstructionValue;
use llopt_dialects::{amdg, ttg};
use llopt_mlir::ir::key;
use llopt_plan::copy_count::{Event, NOTHING, allowed_at_waits};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::targets::hooks::WarpCopies;
use crate::walk::copy_log::Wait;
use crate::walk::function::{FunctionLowering, Lowered, result};

/// The asynchronous instructions of a copy.
#[derive(Clone, Copy, Default)]
pub(crate) struct Issued {
    pub(crate) instructions: u32,
    /// Whether some warps skip them.
    pub(crate) is_skipped: bool,
}

/// Records a copy that was emitted as such instructions.
pub(crate) fn copied(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    issued: Issued,
) {
    let Issued {
        instructions,
        is_skipped,
    } = issued;
    lowering.copies.has_copies |= instructions > 0;
    lowering.copies.has_skipped |= is_skipped;
    lowering.copies.happens(Event::Copy {
        token: key(result(op, 0)),
        instructions,
        by_all: !is_skipped,
    });
}

/// `ttg.async_commit_group`.
pub(crate) fn commit(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::AsyncCommitGroupOp<'_, '_>,
) -> Lowered {
    match lowering.hooks().warp_copies() {
        Some(counted) => lowering.copies.commits.push(counted.end_group(lowering.e)),
        None => lowering.hooks().async_commit(lowering.e),
    }
    let token = key(result(op.operation(), 0));
    lowering.copies.happens(Event::Commit { token });
    bind_token(lowering, op.operation());
    Ok(())
}

/// `ttg.async_wait`.
pub(crate) fn wait_for_groups(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::AsyncWaitOp<'_, '_>,
) -> Lowered {
    let groups = u32::try_from(op.num()).unwrap_or(0);
    match lowering.hooks().warp_copies() {
        Some(counted) => wait_for_count(lowering, counted, op.operation(), groups, None),
        None => lowering.hooks().async_wait(lowering.e, groups),
    }
    bind_token(lowering, op.operation());
    Ok(())
}

/// `amdg.async_wait`: it counts instructions, and also waits for the copies that its tokens name.
pub(crate) fn wait_for_copies(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::AsyncWaitOp<'_, '_>,
) -> Lowered {
    let most = u32::try_from(op.num_inst()).unwrap_or(0);
    match lowering.hooks().warp_copies() {
        Some(counted) => wait_for_count(lowering, counted, op.operation(), 0, Some(most)),
        None => lowering.hooks().async_wait(lowering.e, 0),
    }
    bind_token(lowering, op.operation());
    Ok(())
}

fn wait_for_count(
    lowering: &mut FunctionLowering<'_, '_>,
    counted: &dyn WarpCopies,
    op: OperationRef<'_, '_>,
    groups: u32,
    most: Option<u32>,
) {
    let tokens: Vec<usize> = op.operands().map(key).collect();
    lowering.copies.waits.push(Wait {
        instruction: counted.wait(lowering.e),
        most,
        is_analysed: most.is_none() || !tokens.is_empty(),
    });
    lowering.copies.happens(Event::Wait {
        tokens,
        groups,
        token: key(result(op, 0)),
    });
}

/// A token is only a name.
pub(crate) fn bind_token(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) {
    let token = lowering.e.zero(lowering.e.int(1).into());
    lowering.bind_result(op, vec![token]);
}

/// At the end of the function, sets the count of each wait.
pub(crate) fn settle(lowering: &mut FunctionLowering<'_, '_>) {
    let Some(counted) = lowering.hooks().warp_copies() else {
        return;
    };
    let log = std::mem::take(&mut lowering.copies);
    let allowed = allowed_at_waits(&log.blocks, lowering.is_kernel);
    for (wait, known) in log.waits.iter().zip(allowed) {
        let known = if wait.is_analysed { known } else { NOTHING };
        // A number that the program gives counts what all warps issue.
        let most = wait.most.map(|most| if log.has_skipped { 0 } else { most });
        let allowed = known.min(most.unwrap_or(NOTHING));
        match allowed {
            NOTHING => wait.instruction.erase_from_basic_block(),
            _ => counted.set_wait(lowering.e, wait.instruction, allowed),
        }
    }
    if log.has_copies {
        counted.keep_apart(lowering.e);
    } else {
        log.commits
            .into_iter()
            .for_each(InstructionValue::erase_from_basic_block);
    }
}
