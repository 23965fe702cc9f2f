//! Where source blocks went, and where regions that are being inlined are left to.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use melior::ir::BlockRef;

use crate::values::registers::Registers;
use crate::walk::carried::Carried;
use crate::walk::names::block_key;

/// Where the source blocks of a function went, and the regions that are being inlined.
#[derive(Default)]
pub(crate) struct Blocks<'ctx> {
    known: HashMap<usize, Block<'ctx>>,
    exits: Vec<Exit<'ctx>>,
}

/// Where a source block went.
#[derive(Clone)]
pub(crate) struct Block<'ctx> {
    pub(crate) llvm: BasicBlock<'ctx>,
    /// The phis of its arguments.
    pub(crate) carried: Vec<Carried<'ctx>>,
}

/// Where the terminators of an inlined region lead.
pub(crate) struct Exit<'ctx> {
    pub(crate) to: BasicBlock<'ctx>,
    /// The blocks that come from there, each with what its terminator yields.
    pub(crate) arrivals: Vec<(BasicBlock<'ctx>, Vec<Registers<'ctx>>)>,
}

impl<'ctx> Blocks<'ctx> {
    /// Says where a block goes.
    pub(crate) fn insert(
        &mut self,
        block: BlockRef<'_, '_>,
        llvm: BasicBlock<'ctx>,
        carried: Vec<Carried<'ctx>>,
    ) {
        self.known.insert(block_key(block), Block { llvm, carried });
    }

    /// Where a block went.
    pub(crate) fn of(&self, block: BlockRef<'_, '_>) -> &Block<'ctx> {
        &self.known[&block_key(block)]
    }

    /// A region is inlined from here on; its terminators lead to `to`.
    pub(crate) fn begin_region(&mut self, to: BasicBlock<'ctx>) {
        self.exits.push(Exit {
            to,
            arrivals: Vec::new(),
        });
    }

    /// Where the innermost region that is being inlined is left to.
    pub(crate) fn exit(&mut self) -> Option<&mut Exit<'ctx>> {
        self.exits.last_mut()
    }

    /// The innermost region that was being inlined is complete.
    pub(crate) fn end_region(&mut self) -> Exit<'ctx> {
        self.exits
            .pop()
            .expect("bug in llopt: regions are left in the order they were entered")
    }
}
