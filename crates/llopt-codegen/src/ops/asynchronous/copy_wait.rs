//! Groups of copies that run beside the program, and waits for them.
//!
//! Where the hardware counts groups, the ops are its instructions. Where it counts instructions
//! ([`WarpCopies`]), what is emitted is written down, with the branches between, until the function is
//! complete: then it is known how many instructions each wait may leave under way ([`copy_count`]).

use inkwell::values::InstructionValue;
use llopt_dialects::{amdg, ttg};
use llopt_plan::copy_count::{Event, NOTHING, allowed_at_waits};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::targets::hooks::WarpCopies;
use crate::walk::copy_log::Wait;
use crate::walk::function::{FunctionLowering, Lowered, result};
use crate::walk::names::key;

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// A copy has been emitted, as so many instructions that run beside the program.
    pub(crate) fn copied(&mut self, op: OperationRef<'c, 'a>, instructions: u32) {
        self.copies.has_copies |= instructions > 0;
        self.copies.happens(Event::Copy {
            token: key(result(op, 0)),
            instructions,
        });
    }

    /// `ttg.async_commit_group`.
    pub(crate) fn async_commit(&mut self, op: ttg::AsyncCommitGroupOp<'c, 'a>) -> Lowered {
        match self.hooks().warp_copies() {
            Some(counted) => self.copies.commits.push(counted.end_group(self.e)),
            None => self.hooks().async_commit(self.e),
        }
        let token = key(result(op.operation(), 0));
        self.copies.happens(Event::Commit { token });
        self.bind_token(op.operation());
        Ok(())
    }

    /// `ttg.async_wait`.
    pub(crate) fn async_wait(&mut self, op: ttg::AsyncWaitOp<'c, 'a>) -> Lowered {
        let groups = u32::try_from(op.num()).unwrap_or(0);
        match self.hooks().warp_copies() {
            Some(counted) => self.wait_for_count(counted, op.operation(), groups, None),
            None => self.hooks().async_wait(self.e, groups),
        }
        self.bind_token(op.operation());
        Ok(())
    }

    /// `amdg.async_wait`: it counts instructions, and waits for what its tokens name if that is more.
    pub(crate) fn wait_for_copies(&mut self, op: amdg::AsyncWaitOp<'c, 'a>) -> Lowered {
        let most = u32::try_from(op.num_inst()).unwrap_or(0);
        match self.hooks().warp_copies() {
            Some(counted) => self.wait_for_count(counted, op.operation(), 0, Some(most)),
            None => self.hooks().async_wait(self.e, 0),
        }
        self.bind_token(op.operation());
        Ok(())
    }

    fn wait_for_count(
        &mut self,
        counted: &dyn WarpCopies,
        op: OperationRef<'c, 'a>,
        groups: u32,
        most: Option<u32>,
    ) {
        let tokens: Vec<usize> = op.operands().map(key).collect();
        self.copies.waits.push(Wait {
            instruction: counted.wait(self.e),
            most,
            is_analysed: most.is_none() || !tokens.is_empty(),
        });
        self.copies.happens(Event::Wait {
            tokens,
            groups,
            token: key(result(op, 0)),
        });
    }

    /// A token is nothing but a name.
    pub(crate) fn bind_token(&mut self, op: OperationRef<'c, 'a>) {
        let token = self.e.zero(self.e.int(1).into());
        self.bind_result(op, vec![token]);
    }

    /// The function is complete: now it is known how long each wait has to take.
    pub(crate) fn settle_waits(&mut self) {
        let Some(counted) = self.hooks().warp_copies() else {
            return;
        };
        let log = std::mem::take(&mut self.copies);
        let allowed = allowed_at_waits(&log.blocks, self.is_kernel);
        for (wait, known) in log.waits.iter().zip(allowed) {
            let known = if wait.is_analysed { known } else { NOTHING };
            let allowed = known.min(wait.most.unwrap_or(NOTHING));
            match allowed {
                NOTHING => wait.instruction.erase_from_basic_block(),
                _ => counted.set_wait(self.e, wait.instruction, allowed),
            }
        }
        if log.has_copies {
            counted.keep_apart(self.e);
        } else {
            log.commits
                .into_iter()
                .for_each(InstructionValue::erase_from_basic_block);
        }
    }
}
