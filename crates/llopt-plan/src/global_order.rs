//! Whether the barriers between accesses of shared memory have to order global memory, too.
//!
//! Threads of a block agree by barriers on what is in shared memory. About global memory these promise nothing; explicit
//! barriers do. But what an atomic operation of one thread acquires for its block, the others learn of by a barrier in
//! front of its result, and what they wrote before, they hand to it by a barrier as well. So if a module has an operation
//! that both reads and writes global memory, or may do anything, all its barriers are for all memory. Otherwise loads and
//! stores of global memory need not be complete at a barrier: on AMD's RDNA a block may run on two compute units, each with
//! a cache of its own, and a barrier for all memory waits for every load and empties these caches.

use llopt_dialects::meaning::facts::{Control, OpFacts, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{Effect, OperationExt, Walk};
use melior::ir::OperationRef;

/// Whether the threads of a block may learn of one another's accesses to global memory otherwise than by explicit barriers.
#[must_use]
pub fn is_ordered_by_all_barriers(module: OperationRef<'_, '_>) -> bool {
    let mut is_ordered = false;
    module.for_each_op(Walk::PreOrder, |operation| {
        is_ordered |= communicates(operation);
    });
    is_ordered
}

/// Whether an operation itself both reads and writes global memory, or memory of which nothing is said.
fn communicates(operation: OperationRef<'_, '_>) -> bool {
    let is_global = |effect: &Effect<'_, '_>| {
        let resource = effect.resource;
        resource.is_none_or(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
    };
    match operation.effects() {
        Some(effects) => {
            let has = |kind: EffectKind| {
                let mut effects = effects.iter();
                effects.any(|effect| effect.kind == kind && is_global(effect))
            };
            has(EffectKind::Read) && has(EffectKind::Write)
        }
        // Control flow and barriers declare no effects; what is in a region is visited by itself.
        None => {
            let facts = OpFacts::of(operation);
            facts.control == Control::Computes
                && facts.synchronization == Synchronization::None
                && operation.region_refs().next().is_none()
                && operation.successor_refs().next().is_none()
                && !operation.is_memory_effect_free()
        }
    }
}
