//! Keys of blocks and arguments of the source during the emission of a function.

use melior::ir::{BlockLike, BlockRef, Value};

/// The key of a block.
pub(crate) fn block_key(block: BlockRef<'_, '_>) -> usize {
    block.to_raw().ptr as usize
}

/// A block's argument.
pub(crate) fn argument<'c, 'a>(block: BlockRef<'c, 'a>, index: usize) -> Value<'c, 'a> {
    block
        .argument(index)
        .expect("bug in llopt: the block has this argument")
        .into()
}
