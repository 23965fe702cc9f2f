//! Blocks and regions: iteration, arguments, structure.

use melior::ir::{
    Block, BlockLike, BlockRef, Location, OperationRef, Region, RegionLike, RegionRef, Type,
    TypeLike, Value,
};
use mlir_sys::*;

/// Blocks.
pub trait BlockExt<'c: 'a, 'a>: Copy {
    /// The operations in order. The current operation may be erased or moved while iterating;
    /// the next one must stay.
    fn operations(self) -> impl Iterator<Item = OperationRef<'c, 'a>>;
    /// The arguments in order.
    fn argument_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>>;
    /// The argument at a position.
    fn argument_value(self, index: usize) -> Option<Value<'c, 'a>>;
    /// Appends an argument.
    fn append_argument(self, r#type: Type<'c>, location: Location<'c>) -> Value<'c, 'a>;
    /// Inserts an argument before a position, at most their number.
    fn insert_argument(
        self,
        index: usize,
        r#type: Type<'c>,
        location: Location<'c>,
    ) -> Value<'c, 'a>;
    /// Removes an argument without uses; ignores a position past the end.
    fn remove_argument(self, index: usize);
    /// The blocks that branch here.
    fn predecessor_blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>>;
    /// The blocks that the terminator branches to.
    fn successor_blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>>;
    /// Whether this is the first block of its region.
    fn is_entry(self) -> bool;
    /// Removes the block and everything in it from its region. No handle to it, to its operations or arguments may be
    /// used afterwards.
    fn erase(self);
}

impl<'c: 'a, 'a> BlockExt<'c, 'a> for BlockRef<'c, 'a> {
    fn operations(self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        // SAFETY: the block is live; null ends the chain. The successor is taken before the current operation is
        // returned, so that it may be erased.
        let mut next = unsafe { mlirBlockGetFirstOperation(BlockLike::to_raw(&self)) };
        std::iter::from_fn(move || unsafe {
            let current = OperationRef::from_option_raw(next)?;
            next = mlirOperationGetNextInBlock(next);
            Some(current)
        })
    }

    fn argument_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>> {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live and positions are in range.
        unsafe {
            let count = mlirBlockGetNumArguments(raw) as usize;
            (0..count).map(move |index| Value::from_raw(mlirBlockGetArgument(raw, index as isize)))
        }
    }

    fn argument_value(self, index: usize) -> Option<Value<'c, 'a>> {
        self.argument_values().nth(index)
    }

    fn append_argument(self, r#type: Type<'c>, location: Location<'c>) -> Value<'c, 'a> {
        self.add_argument(r#type, location)
    }

    fn insert_argument(
        self,
        index: usize,
        r#type: Type<'c>,
        location: Location<'c>,
    ) -> Value<'c, 'a> {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live and the position in range.
        unsafe {
            let index = (index as isize).min(mlirBlockGetNumArguments(raw));
            Value::from_raw(mlirBlockInsertArgument(
                raw,
                index,
                r#type.to_raw(),
                location.to_raw(),
            ))
        }
    }

    fn remove_argument(self, index: usize) {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live and the position in range.
        unsafe {
            if (index as isize) < mlirBlockGetNumArguments(raw) {
                mlirBlockEraseArgument(raw, index as u32);
            }
        }
    }

    fn predecessor_blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>> {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live and positions are in range.
        unsafe {
            (0..mlirBlockGetNumPredecessors(raw))
                .map(move |index| BlockRef::from_raw(mlirBlockGetPredecessor(raw, index)))
        }
    }

    fn successor_blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>> {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live and positions are in range. A block under construction has no
        // terminator, and then no successors.
        unsafe {
            let terminator = mlirBlockGetTerminator(raw);
            let count = if terminator.ptr.is_null() {
                0
            } else {
                mlirOperationGetNumSuccessors(terminator)
            };
            (0..count)
                .map(move |index| BlockRef::from_raw(mlirOperationGetSuccessor(terminator, index)))
        }
    }

    fn is_entry(self) -> bool {
        let raw = BlockLike::to_raw(&self);
        // SAFETY: the block is live; a detached block has no region.
        unsafe {
            let region = mlirBlockGetParentRegion(raw);
            !region.ptr.is_null() && mlirBlockEqual(mlirRegionGetFirstBlock(region), raw)
        }
    }

    fn erase(self) {
        // SAFETY: detaching gives ownership; dropping destroys.
        unsafe { drop(self.detach()) }
    }
}

/// Regions.
pub trait RegionExt<'c: 'a, 'a>: Copy {
    /// The blocks in order.
    fn blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>>;
    /// Whether there is no block.
    fn is_empty(self) -> bool {
        self.blocks().next().is_none()
    }
    /// The first block.
    fn entry(self) -> Option<BlockRef<'c, 'a>> {
        self.blocks().next()
    }
    /// The only block; `None` when there are none or several.
    fn single_block(self) -> Option<BlockRef<'c, 'a>> {
        let mut blocks = self.blocks();
        let first = blocks.next();
        if blocks.next().is_some() { None } else { first }
    }
    /// The operation that the region belongs to.
    fn owner(self) -> Option<OperationRef<'c, 'a>>;
    /// Appends a block with these arguments.
    fn append_block_with(self, arguments: &[(Type<'c>, Location<'c>)]) -> BlockRef<'c, 'a>;
    /// Takes all blocks from another region and appends them here.
    fn take_body(self, from: RegionRef<'c, 'a>);
    /// Takes all blocks from an owned region and appends them here.
    fn take_owned_body(self, from: Region<'c>);
}

impl<'c: 'a, 'a> RegionExt<'c, 'a> for RegionRef<'c, 'a> {
    fn blocks(self) -> impl Iterator<Item = BlockRef<'c, 'a>> {
        // SAFETY: the region is live; null ends the chain.
        let mut next = unsafe { mlirRegionGetFirstBlock(RegionLike::to_raw(&self)) };
        std::iter::from_fn(move || unsafe {
            let current = BlockRef::from_option_raw(next)?;
            next = mlirBlockGetNextInRegion(next);
            Some(current)
        })
    }

    fn owner(self) -> Option<OperationRef<'c, 'a>> {
        let block = self.entry()?;
        // SAFETY: the block is live; null is checked.
        unsafe { OperationRef::from_option_raw(mlirBlockGetParentOperation(block.to_raw())) }
    }

    fn append_block_with(self, arguments: &[(Type<'c>, Location<'c>)]) -> BlockRef<'c, 'a> {
        self.append_block(Block::new(arguments))
    }

    fn take_body(self, from: RegionRef<'c, 'a>) {
        let blocks: Vec<_> = from.blocks().collect();
        for block in blocks {
            // SAFETY: the block moves from one live region to another.
            unsafe {
                mlirBlockDetach(block.to_raw());
                mlirRegionAppendOwnedBlock(RegionLike::to_raw(&self), block.to_raw());
            }
        }
    }

    fn take_owned_body(self, from: Region<'c>) {
        // SAFETY: the owned region is live until the end of this function.
        self.take_body(unsafe { RegionRef::from_raw(from.to_raw()) });
    }
}
