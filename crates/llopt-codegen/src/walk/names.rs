//! What names values and blocks of the source while a function is emitted.

use melior::ir::{BlockLike, BlockRef, Value, ValueLike};

/// What names a value.
pub(crate) fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

/// What names a block.
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
