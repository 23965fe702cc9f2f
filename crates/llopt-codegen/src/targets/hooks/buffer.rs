//! Accesses through buffer descriptors: a uniform base with a range, and an offset for each lane.

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::atomic::{Atomic, Update};
use crate::targets::hooks::caching::Caching;
use crate::targets::hooks::memory::Words;

/// One access of a thread through a buffer descriptor: `base` is uniform, `offset` counts bytes.
#[derive(Clone, Copy, Debug)]
pub struct BufferAccess<'ctx> {
    /// The descriptor, from [`BufferHooks::descriptor`].
    pub descriptor: V<'ctx>,
    /// Bytes from the base.
    pub offset: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The words that are transferred.
    pub words: Words,
    /// Cache hints.
    pub caching: Caching,
}

/// A location in memory, given by a descriptor.
#[derive(Clone, Copy, Debug)]
pub struct BufferPlace<'ctx> {
    /// The descriptor, from [`BufferHooks::descriptor`].
    pub descriptor: V<'ctx>,
    /// Bytes from the base.
    pub offset: V<'ctx>,
}

/// Access to memory through buffer descriptors: a uniform base with a range, and an offset per lane.
pub trait BufferHooks {
    /// A descriptor for the memory behind `base`.
    fn descriptor<'ctx>(&self, e: &Emitter<'ctx>, base: V<'ctx>) -> V<'ctx>;

    /// An offset at which nothing is written and zero is read where the mask is false.
    fn masked_offset<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        mask: Option<V<'ctx>>,
        offset: V<'ctx>,
    ) -> V<'ctx>;

    /// Loads words through a descriptor; lanes without mask get zero.
    fn load<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>) -> Vec<V<'ctx>>;

    /// Updates an element, or as many as an instruction takes, at a location that replaces `atomic.pointer`. Answers
    /// the old values.
    fn atomic_update<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        update: Update,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>>;

    /// Writes `new` if the old value is `expected`. Answers the old value.
    fn compare_and_swap<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
    ) -> V<'ctx>;

    /// Stores words through a descriptor.
    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>, words: &[V<'ctx>]);
}
