//! The events of a function with counted copies: the events in each block, and the branches between blocks. When the
//! function is complete, they determine how many instructions each wait may leave outstanding.

use llopt_mlir::ir::key;
use std::collections::HashMap;

use inkwell::values::InstructionValue;
use llopt_plan::copy_count::{Block, Edge, Event};
use melior::ir::{BlockRef, Value};

use crate::walk::names::{argument, block_key};

/// The events of a function with counted copies.
#[derive(Default)]
pub(crate) struct CopyLog<'ctx> {
    pub(crate) blocks: Vec<Block>,
    /// Numbers of source blocks.
    numbers: HashMap<usize, usize>,
    /// The block that is being emitted.
    current: usize,
    /// The ends of groups.
    pub(crate) commits: Vec<InstructionValue<'ctx>>,
    pub(crate) waits: Vec<Wait<'ctx>>,
    pub(crate) has_copies: bool,
    /// Whether some warps skip a copy.
    pub(crate) has_skipped: bool,
}

/// A wait that has been emitted.
pub(crate) struct Wait<'ctx> {
    pub(crate) instruction: InstructionValue<'ctx>,
    /// Instructions that may be outstanding, if the op gives a number.
    pub(crate) most: Option<u32>,
    /// Whether the analysis knows for which copies it waits.
    pub(crate) is_analysed: bool,
}

impl CopyLog<'_> {
    fn number(&mut self, block: BlockRef<'_, '_>) -> usize {
        let blocks = &mut self.blocks;
        *self.numbers.entry(block_key(block)).or_insert_with(|| {
            blocks.push(Block::default());
            blocks.len() - 1
        })
    }

    /// Registers the source blocks in the order of emission; the very first one is the entry.
    pub(crate) fn expect(&mut self, order: &[BlockRef<'_, '_>]) {
        for block in order {
            self.number(*block);
        }
    }

    /// Begins a source block.
    pub(crate) fn enter(&mut self, block: BlockRef<'_, '_>) {
        self.current = self.number(block);
    }

    /// The position of the log, for [`CopyLog::go_back`].
    pub(crate) fn place(&self) -> usize {
        self.current
    }

    /// Continues the block that was being emitted at that position.
    pub(crate) fn go_back(&mut self, place: usize) {
        self.current = place;
    }

    /// Records a branch of the block.
    pub(crate) fn branch(&mut self, to: BlockRef<'_, '_>, arguments: &[Value<'_, '_>]) {
        let passed = |(i, value): (usize, &Value<'_, '_>)| (key(argument(to, i)), key(*value));
        let edge = Edge {
            to: self.number(to),
            arguments: arguments.iter().enumerate().map(passed).collect(),
        };
        self.blocks[self.current].edges.push(edge);
    }

    /// Records an event.
    pub(crate) fn happens(&mut self, event: Event) {
        self.blocks[self.current].events.push(event);
    }
}
