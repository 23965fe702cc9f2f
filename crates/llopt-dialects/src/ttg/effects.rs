//! Memory effects of ttg operations that depend on the instance.

use super::LocalAllocOp;
use crate::{meaning::resource::SHARED_MEMORY, tables::types::MemDesc};
use llopt_mlir::dialect::{EffectKind, EffectSink, EffectTarget};
use melior::ir::{ValueLike, operation::OperationLike};

/// The attribute with the address, once memory has been assigned.
pub const ALLOCATION_OFFSET: &str = "allocation.offset";

/// The attribute of an op that writes to the memory of other blocks of a cluster, if its scratch memory is no longer
/// in use: there was a cluster barrier since its last use.
pub const CLUSTER_HAS_MET: &str = "allocation.cluster_has_met";

/// The attribute of an op that reads the memory of other blocks of a cluster, if a `ttng.cluster_wait` after it is where
/// this block waits until others have read its own: the op itself only arrives.
pub const CLUSTER_WAITS_LATER: &str = "allocation.cluster_waits_later";

/// The attribute of an asynchronous copy: the bytes of the aligned blocks of global memory that it brings into the
/// second-level cache, because iterations to come read the rest of them.
pub const CACHED_BLOCK: &str = "pipeline.cached_block";

/// The attribute of an arrival at a barrier in memory that needs no barrier between warps: each warp arrives on its
/// own, with its share of the count.
pub const ARRIVES_BY_WARP: &str = "barrier.by_warp";

/// The attribute of such an arrival if the lanes of each warp need not meet before one of them arrives.
pub const LANES_HAVE_MET: &str = "barrier.lanes_have_met";

/// An allocation; with an initial value also a write. A buffer that is never written again has
/// no effect until it has an address, so that equal ones can be merged and unused ones dropped.
pub fn local_alloc<'c, 'a>(operation: LocalAllocOp<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    let mutable = MemDesc::of(operation.result().r#type()).is_some_and(MemDesc::is_mutable);
    if !mutable && !operation.operation().has_attribute(ALLOCATION_OFFSET) {
        return;
    }
    effects.add(
        EffectKind::Allocate,
        EffectTarget::Result(0),
        Some(&SHARED_MEMORY),
    );
    if operation.src().is_some() {
        effects.add(
            EffectKind::Write,
            EffectTarget::Result(0),
            Some(&SHARED_MEMORY),
        );
    }
}
