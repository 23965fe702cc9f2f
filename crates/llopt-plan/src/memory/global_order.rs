//! Whether the barriers between accesses to shared memory have to order global memory, too.
//!
//! Threads of a block order their accesses to shared memory by barriers. These promise nothing about global memory;
//! explicit barriers do. But the other threads of a block learn what an atomic operation of one thread has acquired
//! by the barrier in front of its result, and they hand to it what they wrote before by a barrier as well. So if a
//! module has an operation that both reads and writes global memory, or whose effects are unknown, all its barriers
//! order all memory. Otherwise loads and stores of global memory need not be complete at a barrier. That matters on
//! AMD's RDNA: a block may run on two compute units with a cache each, and a barrier for all memory waits for every
//! load and invalidates these caches.
//! a cache of its own, and a barrier for all memory waits for every load and empties these caches.

use llopt_dialects::meaning::facts::{Control, OpFacts, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{Effect, OperationExt, Walk};
use melior::ir::OperationRef;

/// Whether threads of a block may learn of one another's accesses to global memory by something other than explicit
/// barriers.
#[must_use]
pub fn is_ordered_by_all_barriers(module: OperationRef<'_, '_>) -> bool {
    let mut is_ordered = false;
    module.for_each_op(Walk::PreOrder, |operation| {
        is_ordered |= communicates(operation);
    });
    is_ordered
}

/// Whether an operation itself both reads and writes global memory, or memory of an unknown kind.
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
        // Control flow and barriers declare no effects; the operations of a region are visited themselves.
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
