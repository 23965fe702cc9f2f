//! Operations that are emitted late, anew, or set aside, during the emission of a function;
//! [`crate::walk::emit_late`] gives the reason.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use llopt_plan::global_access::Groups;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::values::threads::Threads;

/// Registers of an operand that are loaded together: as many loads as should be outstanding at once.
pub(crate) const TOGETHER: usize = 32;

/// Operations that are emitted late, anew, or set aside.
#[derive(Default)]
pub(crate) struct Late<'ctx> {
    /// Operations that are not emitted at their position.
    pub(crate) deferred: HashSet<usize>,
    /// Gathers that emit their operands.
    pub(crate) gathers: HashSet<usize>,
    /// Products that emit their operands.
    pub(crate) products: HashSet<usize>,
    /// Stores before which addresses are computed anew.
    pub(crate) stores: HashSet<usize>,
    /// The registers that are needed, while a part is emitted.
    pub(crate) part: Option<Rc<[bool]>>,
    /// Operations of which a part has been emitted.
    begun: RefCell<HashSet<usize>>,
    /// Values that lie in private memory.
    pub(crate) aside: HashMap<usize, Aside<'ctx>>,
}

/// What is emitted with a late value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// The deferred operations.
    Deferred,
    /// Also operations that have been emitted before, if possible: their results are computed again instead of kept.
    Anew,
}

/// The registers of an operation's result that are needed with those of a value that depends on it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Places {
    /// The same.
    Same,
    /// Those with the bytes of each register, if the value was unpacked from a tensor of so many registers of bytes.
    Bytes { of: Rc<[u32]>, registers: usize },
    /// All, because nothing is known.
    Elsewhere,
}

impl Places {
    /// The part of the result that is needed for a part of the value; `None` for all of it.
    pub(crate) fn part(&self, part: &Rc<[bool]>) -> Option<Rc<[bool]>> {
        match self {
            Self::Same => Some(Rc::clone(part)),
            Self::Bytes { of, registers } => {
                let mut wanted = vec![false; *registers];
                for (byte, _) in of.iter().zip(&**part).filter(|(_, wanted)| **wanted) {
                    wanted[*byte as usize] = true;
                }
                Some(wanted.into())
            }
            Self::Elsewhere => None,
        }
    }

    /// The registers of the value that depend on these of the result.
    pub(crate) fn reached_by(&self, from: Vec<usize>) -> Vec<usize> {
        match self {
            Self::Same | Self::Elsewhere => from,
            Self::Bytes { of, registers } => {
                let mut is_of = vec![false; *registers];
                for register in from {
                    is_of[register] = true;
                }
                let reached = (0..of.len()).filter(|register| is_of[of[*register] as usize]);
                reached.collect()
            }
        }
    }
}

/// A value in private memory.
#[derive(Clone, Copy)]
pub(crate) struct Aside<'ctx> {
    pub(crate) base: V<'ctx>,
    pub(crate) element: BasicTypeEnum<'ctx>,
    pub(crate) bytes: u32,
}

/// The key of an operation.
pub(crate) fn key(op: OperationRef<'_, '_>) -> usize {
    op.to_raw().ptr as usize
}

/// The threads that other code uses, and the start of the code that uses a copy.
pub(crate) struct Copied<'ctx> {
    pub(crate) threads: Threads<'ctx>,
    /// The block in which the copy's numbers are computed, and the one that follows it.
    pub(crate) entry: BasicBlock<'ctx>,
    pub(crate) next: BasicBlock<'ctx>,
}

impl Late<'_> {
    /// Whether an operation emits its operands.
    pub(crate) fn is_awaited(&self, op: OperationRef<'_, '_>) -> bool {
        self.gathers.contains(&key(op)) || self.products.contains(&key(op))
    }

    /// Whether a part without this one of `count` registers is emitted.
    pub(crate) fn leaves_out(&self, register: usize, count: usize) -> bool {
        let part = self.part.as_ref().filter(|part| part.len() == count);
        part.is_some_and(|part| !part[register])
    }

    /// Whether a part of an operation other than the first is emitted.
    pub(crate) fn is_again(&self, op: OperationRef<'_, '_>) -> bool {
        self.is_part() && !self.begun.borrow_mut().insert(key(op))
    }

    /// Whether a part is emitted.
    pub(crate) fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// The groups of an access that are needed.
    pub(crate) fn wanted(&self, mut groups: Groups) -> Groups {
        if let Some(part) = &self.part {
            groups
                .groups
                .retain(|group| group.iter().any(|register| part[*register]));
        }
        groups
    }
}

impl<'ctx> Aside<'ctx> {
    /// The value in slot `index`.
    pub(crate) fn place(&self, e: &Emitter<'ctx>, index: usize) -> V<'ctx> {
        e.gep(self.element, self.base, e.i32(index as i64))
    }
}
