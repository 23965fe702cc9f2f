//! Dominance between operations, values and blocks.

use crate::ffi;
use melior::ir::{BlockLike, BlockRef, OperationRef, ValueLike};
use std::{ffi::c_void, marker::PhantomData};

/// Dominance within an operation and all below it. Valid as long as no block is added, removed
/// or rewired.
pub struct Dominance<'c, 'a> {
    raw: *mut c_void,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl<'c, 'a> Dominance<'c, 'a> {
    /// Analyses an operation; the trees of single regions are built on demand.
    pub fn new(operation: OperationRef<'c, 'a>) -> Self {
        Self {
            // SAFETY: the operation is live.
            raw: unsafe { ffi::llopt_dominance_create(operation.to_raw()) },
            ir: PhantomData,
        }
    }

    /// Whether `first` is executed before `second` on every path; true for equal operations.
    pub fn dominates(&mut self, first: OperationRef<'c, '_>, second: OperationRef<'c, '_>) -> bool {
        // SAFETY: all handles are live.
        unsafe { ffi::llopt_dominance_operation(self.raw, first.to_raw(), second.to_raw()) }
    }

    /// Whether a value may be used by an operation.
    pub fn value_dominates(
        &mut self,
        value: impl ValueLike<'c>,
        user: OperationRef<'c, '_>,
    ) -> bool {
        // SAFETY: all handles are live.
        unsafe { ffi::llopt_dominance_value(self.raw, value.to_raw(), user.to_raw()) }
    }

    /// Whether every path to `second` passes through `first`; true for equal blocks.
    pub fn block_dominates(&mut self, first: BlockRef<'c, '_>, second: BlockRef<'c, '_>) -> bool {
        // SAFETY: all handles are live.
        unsafe {
            ffi::llopt_dominance_block(
                self.raw,
                BlockLike::to_raw(&first),
                BlockLike::to_raw(&second),
            )
        }
    }
}

impl Drop for Dominance<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: created in `new`, freed once.
        unsafe { ffi::llopt_dominance_free(self.raw) }
    }
}
