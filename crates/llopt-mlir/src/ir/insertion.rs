//! A module under construction and the block to which new operations are appended.

use melior::ir::{BlockLike, BlockRef, Location, Module, Operation, OperationRef};
use std::cell::Cell;

/// A module under construction.
///
/// Everything goes through a shared reference, so that values of the module may be held while more
/// operations are made.
pub struct Insertion<'c> {
    module: Module<'c>,
    /// A block of the module; raw, because the module is in the same structure.
    block: Cell<mlir_sys::MlirBlock>,
}

impl<'c> Insertion<'c> {
    /// An empty module; operations go to its body.
    pub fn new(location: Location<'c>) -> Self {
        let module = Module::new(location);
        let block = Cell::new(BlockLike::to_raw(&module.body()));
        Self { module, block }
    }

    /// The module.
    pub fn module(&self) -> &Module<'c> {
        &self.module
    }

    /// Appends an operation to the current block.
    pub fn append<'a>(&'a self, operation: Operation<'c>) -> OperationRef<'c, 'a> {
        // SAFETY: it is the module's body or came from `append_to` or `within`, whose callers hold
        // a reference to a block of this module; blocks go only with the module or by `erase`, after
        // which no handle may be used.
        let block: BlockRef<'c, 'a> = unsafe { BlockRef::from_raw(self.block.get()) };
        block.append_operation(operation)
    }

    /// From now on operations are appended to this block.
    pub fn append_to<'a>(&'a self, block: BlockRef<'c, 'a>) {
        self.block.set(BlockLike::to_raw(&block));
    }

    /// While `body` runs, operations are appended to this block.
    pub fn within<'a, T>(&'a self, block: BlockRef<'c, 'a>, body: impl FnOnce() -> T) -> T {
        /// Restores the block even if the body panics.
        struct Back<'b>(&'b Cell<mlir_sys::MlirBlock>, mlir_sys::MlirBlock);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _back = Back(&self.block, self.block.replace(BlockLike::to_raw(&block)));
        body()
    }

    /// The finished module.
    pub fn into_module(self) -> Module<'c> {
        self.module
    }
}
