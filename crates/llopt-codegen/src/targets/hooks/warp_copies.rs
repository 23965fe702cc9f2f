//! The requirements of copies to shared memory for which a warp gives one address.

use inkwell::values::InstructionValue;

use super::caching::Caching;
use crate::llvm::emitter::{Emitter, V};

/// The source of a lane for a copy of a warp.
#[derive(Clone, Copy, Debug)]
pub enum CopySource<'ctx> {
    /// In global memory.
    Pointer(V<'ctx>),
    /// In a buffer.
    Buffer {
        /// The descriptor, from `BufferHooks::descriptor`.
        descriptor: V<'ctx>,
        /// Bytes from the base.
        offset: V<'ctx>,
    },
}

/// An asynchronous copy of a whole warp from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct WarpCopy<'ctx> {
    /// The destination of the first lane in shared memory; the data of the other lanes follow.
    pub to: V<'ctx>,
    /// The source of this lane.
    pub from: CopySource<'ctx>,
    /// The number of bytes of each lane.
    pub bytes: u32,
    /// Cache hints.
    pub caching: Caching,
}

/// Copies from global to shared memory for which a warp gives one address: the data of its lanes are stored from
/// there in their order. They complete in order, and waits count their instructions.
pub trait WarpCopies {
    /// A word of the first lane, in all lanes.
    fn of_first_lane<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx>;

    /// Starts a copy of as many bytes as `Hooks::async_copy_bytes` allows.
    fn copy<'ctx>(&self, e: &Emitter<'ctx>, copy: &WarpCopy<'ctx>);

    /// Keeps the order of the copies before and after this point, since waits count the copies that follow.
    fn end_group<'ctx>(&self, e: &Emitter<'ctx>) -> InstructionValue<'ctx>;

    /// Waits until none is outstanding, unless [`WarpCopies::set_wait`] changes that.
    fn wait<'ctx>(&self, e: &Emitter<'ctx>) -> InstructionValue<'ctx>;

    /// Sets how many may be outstanding when a wait is over.
    fn set_wait<'ctx>(&self, e: &Emitter<'ctx>, wait: InstructionValue<'ctx>, instructions: u32);

    /// Tells LLVM that only the program's waits order the copies of the current function and its other accesses of
    /// shared memory; LLVM would wait for all copies before each access.
    fn keep_apart(&self, e: &Emitter<'_>);
}
