//! What a function does with copies whose instructions are counted: what happens in each block, and the branches
//! between blocks. When the function is complete, it is known how many instructions each wait may leave pending.

use std::collections::HashMap;

use inkwell::values::InstructionValue;
use llopt_plan::copy_count::{Block, Edge, Event};
use melior::ir::{BlockRef, Value};

use crate::walk::names::{argument, block_key, key};

/// What a function does with copies whose instructions are counted.
#[derive(Default)]
pub(crate) struct CopyLog<'ctx> {
    pub(crate) blocks: Vec<Block>,
    /// Numbers of source blocks.
    numbers: HashMap<usize, usize>,
    /// The block that is being emitted.
    current: usize,
    /// Where groups end.
    pub(crate) commits: Vec<InstructionValue<'ctx>>,
    pub(crate) waits: Vec<Wait<'ctx>>,
    pub(crate) has_copies: bool,
}

/// A wait that has been emitted.
pub(crate) struct Wait<'ctx> {
    pub(crate) instruction: InstructionValue<'ctx>,
    /// Instructions that may be under way, if the op says so itself.
    pub(crate) most: Option<u32>,
    /// Whether the analysis knows what is waited for.
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

    /// Source blocks will be emitted in this order; the very first is the entry.
    pub(crate) fn expect(&mut self, order: &[BlockRef<'_, '_>]) {
        for block in order {
            self.number(*block);
        }
    }

    /// A source block is emitted from here on.
    pub(crate) fn enter(&mut self, block: BlockRef<'_, '_>) {
        self.current = self.number(block);
    }

    /// Where the log stands, for [`CopyLog::go_back`].
    pub(crate) fn place(&self) -> usize {
        self.current
    }

    /// The block that was being emitted at that place goes on.
    pub(crate) fn go_back(&mut self, place: usize) {
        self.current = place;
    }

    /// The block branches.
    pub(crate) fn branch(&mut self, to: BlockRef<'_, '_>, arguments: &[Value<'_, '_>]) {
        let passed = |(i, value): (usize, &Value<'_, '_>)| (key(argument(to, i)), key(*value));
        let edge = Edge {
            to: self.number(to),
            arguments: arguments.iter().enumerate().map(passed).collect(),
        };
        self.blocks[self.current].edges.push(edge);
    }

    /// Something happens.
    pub(crate) fn happens(&mut self, event: Event) {
        self.blocks[self.current].events.push(event);
    }
}
