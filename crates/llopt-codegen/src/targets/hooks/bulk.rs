//! Barriers in shared memory and bulk copies of boxes, on a target that has them.
//!
//! `acts` says which threads perform an action; all threads that the neutral code names reach the call.

use inkwell::values::FunctionValue;

use super::Caching;
use crate::llvm::emitter::{Emitter, V};

/// A copy of one box of a tensor between global and shared memory, by the bulk copy unit.
#[derive(Clone, Debug)]
pub struct BoxCopy<'ctx> {
    /// The address of the descriptor object.
    pub descriptor: V<'ctx>,
    /// The box's first element in the tensor, last dimension first.
    pub coordinates: Vec<V<'ctx>>,
    /// The address of the box in shared memory.
    pub shared: V<'ctx>,
    /// Which thread starts it: a single one.
    pub acts: V<'ctx>,
}

/// The fields of a descriptor object, innermost dimension first.
#[derive(Clone, Debug)]
pub struct Descriptor<'ctx> {
    /// The tensor's first element.
    pub address: V<'ctx>,
    /// The box's extents, in elements.
    pub box_dim: Vec<V<'ctx>>,
    /// The tensor's extents, in elements.
    pub global_dim: Vec<V<'ctx>>,
    /// The distance in bytes of neighbours along each dimension but the innermost.
    pub global_stride: Vec<V<'ctx>>,
    /// The distance in elements of the elements that are copied.
    pub element_stride: Vec<V<'ctx>>,
    /// The hardware's number of the element type.
    pub elem_type: i64,
    /// The hardware's number of the interleaving.
    pub interleave_layout: i64,
    /// The hardware's number of the swizzle.
    pub swizzle_mode: i64,
    /// Whether elements outside of the tensor are NaN instead of zero.
    pub fill_mode: i64,
}

/// The instructions for barriers in shared memory and for bulk copies.
pub trait BulkHooks {
    /// Whether this lane is the one that its warp has elected.
    fn elected<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx>;

    /// Initialises a barrier with phases of `count` arrivals.
    fn make_barrier<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, count: i64, acts: V<'ctx>);

    /// Releases the memory of a barrier.
    fn end_barrier<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, acts: V<'ctx>);

    /// Arrives once, and adds to the expected bytes.
    fn expect<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, bytes: i64, acts: V<'ctx>);

    /// Arrives `count` times.
    fn arrive<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, count: i64, acts: V<'ctx>);

    /// Arrives when the thread's copies so far are complete; with `increment` the arrival is not one of those that
    /// the phase counts.
    fn arrive_after_copies<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, increment: bool);

    /// Waits until the phase of this parity is complete, if a condition holds; unconditionally without one.
    fn wait<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        barrier: V<'ctx>,
        phase: V<'ctx>,
        condition: Option<V<'ctx>>,
    );

    /// Orders this thread's accesses to shared memory before those of the copy unit.
    fn fence(&self, e: &Emitter<'_>, cluster: bool);

    /// Starts a copy into shared memory, whose bytes `barrier` counts.
    fn copy_in<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        copy: &BoxCopy<'ctx>,
        barrier: V<'ctx>,
        caching: Caching,
    );

    /// Brings what a copy into shared memory would read into the second-level cache.
    fn prefetch<'ctx>(&self, e: &Emitter<'ctx>, copy: &BoxCopy<'ctx>);

    /// Starts a copy from shared memory, which is combined with the old contents by an operation of this name in the
    /// IR.
    fn copy_out<'ctx>(&self, e: &Emitter<'ctx>, copy: &BoxCopy<'ctx>, combine: Option<&str>);

    /// Makes a group of the copies from shared memory started so far.
    fn commit_copies_out(&self, e: &Emitter<'_>);

    /// Waits until at most so many groups still read shared memory.
    fn wait_for_reads(&self, e: &Emitter<'_>, groups: i64);

    /// Writes a descriptor object to global memory, through 128 bytes of shared memory. All threads of one
    /// warp do this; `lane` is the number of this one.
    fn make_descriptor<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        fields: &Descriptor<'ctx>,
        shared: V<'ctx>,
        global: V<'ctx>,
        lane: V<'ctx>,
    );

    /// Makes a descriptor object that was written visible to the copy unit. All threads of one warp do this.
    fn acquire_descriptor<'ctx>(&self, e: &Emitter<'ctx>, descriptor: V<'ctx>);

    /// Makes a parameter of a kernel a descriptor object that is passed by value.
    fn mark_descriptor<'ctx>(&self, e: &Emitter<'ctx>, kernel: FunctionValue<'ctx>, parameter: u32);

    /// The address of the same offset as `address` in the shared memory of another block of the cluster.
    fn in_other_block<'ctx>(&self, e: &Emitter<'ctx>, address: V<'ctx>, block: V<'ctx>) -> V<'ctx>;

    /// Arrives at the barrier of the cluster; `relaxed` orders nothing.
    fn cluster_arrive(&self, e: &Emitter<'_>, relaxed: bool);

    /// Waits at the barrier of the cluster.
    fn cluster_wait(&self, e: &Emitter<'_>);
}
