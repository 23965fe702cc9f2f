//! The LLVM blocks of source blocks, and the exits of regions that are being inlined.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use melior::ir::BlockRef;

use crate::values::registers::Registers;
use crate::walk::carried::Carried;
use crate::walk::names::block_key;

/// The LLVM blocks of the source blocks of a function, and the regions that are being inlined.
#[derive(Default)]
pub(crate) struct Blocks<'ctx> {
    known: HashMap<usize, Block<'ctx>>,
    exits: Vec<Exit<'ctx>>,
}

/// The LLVM block of a source block.
#[derive(Clone)]
pub(crate) struct Block<'ctx> {
    pub(crate) llvm: BasicBlock<'ctx>,
    /// The phis of its arguments.
    pub(crate) carried: Vec<Carried<'ctx>>,
}

/// The destination of the terminators of an inlined region.
pub(crate) struct Exit<'ctx> {
    pub(crate) to: BasicBlock<'ctx>,
    /// The blocks that branch there, each with the values that its terminator yields.
    pub(crate) arrivals: Vec<(BasicBlock<'ctx>, Vec<Registers<'ctx>>)>,
}

impl<'ctx> Blocks<'ctx> {
    /// Sets the LLVM block of a block.
    pub(crate) fn insert(
        &mut self,
        block: BlockRef<'_, '_>,
        llvm: BasicBlock<'ctx>,
        carried: Vec<Carried<'ctx>>,
    ) {
        self.known.insert(block_key(block), Block { llvm, carried });
    }

    /// The LLVM block of a block.
    pub(crate) fn of(&self, block: BlockRef<'_, '_>) -> &Block<'ctx> {
        &self.known[&block_key(block)]
    }

    /// Begins to inline a region; its terminators branch to `to`.
    pub(crate) fn begin_region(&mut self, to: BasicBlock<'ctx>) {
        self.exits.push(Exit {
            to,
            arrivals: Vec::new(),
        });
    }

    /// The exit of the innermost region that is being inlined.
    pub(crate) fn exit(&mut self) -> Option<&mut Exit<'ctx>> {
        self.exits.last_mut()
    }

    /// Ends the innermost region that is being inlined.
    pub(crate) fn end_region(&mut self) -> Exit<'ctx> {
        self.exits
            .pop()
            .expect("bug in llopt: regions are left in the order they were entered")
    }
}
