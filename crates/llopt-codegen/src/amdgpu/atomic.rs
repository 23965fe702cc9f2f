//! Atomics on global memory on AMD: LLVM's own, inside of a branch where they are masked.

use llopt_target::{Feature, Target};

use crate::element::Element;
use crate::emitter::{Emitter, V};
use crate::hooks::{Atomic, Scope, Update};

/// Elements per instruction: pairs of 16-bit floats.
pub fn width(target: Target, update: Update, element: Element) -> u32 {
    match (update, element) {
        (Update::AddFloat, Element::F16) => 2,
        (Update::AddFloat, Element::Bf16) if target.has(Feature::PackedBf16Atomic) => 2,
        _ => 1,
    }
}

fn scope(of: Scope) -> &'static str {
    match of {
        Scope::Block => "workgroup",
        Scope::Device => "agent",
        Scope::System => "",
    }
}

/// Updates one element, or a pair.
pub fn update<'ctx>(
    e: &Emitter<'ctx>,
    _target: Target,
    update: Update,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let value = e.pack(values);
    let old = e.masked(atomic.mask, value.get_type(), || {
        let old = e.atomic_update(
            update,
            atomic.pointer,
            value,
            atomic.ordering,
            scope(atomic.scope),
        );
        if update == Update::AddFloat {
            // The hardware's additions work on coarse-grained local memory, which is what kernels get.
            e.annotate(
                old,
                &[
                    "amdgpu.no.fine.grained.memory",
                    "amdgpu.no.remote.memory",
                    "amdgpu.ignore.denormal.mode",
                ],
            );
        }
        old
    });
    e.unpack(old)
}

/// Puts `new` where `expected` is.
pub fn compare_and_swap<'ctx>(
    e: &Emitter<'ctx>,
    atomic: &Atomic<'ctx>,
    expected: V<'ctx>,
    new: V<'ctx>,
) -> V<'ctx> {
    let word: inkwell::types::BasicTypeEnum<'ctx> = e.int(atomic.element.bits()).into();
    let of = atomic.element.llvm(e.context);
    let (expected, new) = (e.bitcast(expected, word), e.bitcast(new, word));
    let old = e.masked(atomic.mask, word, || {
        e.compare_exchange(
            atomic.pointer,
            expected,
            new,
            atomic.ordering,
            scope(atomic.scope),
        )
    });
    e.bitcast(old, of)
}
