//! Atomics on global memory on AMD: LLVM's own, inside of a branch where they are masked.

use inkwell::values::InstructionOpcode;
use llopt_plan::element::Element;
use llopt_target::{Feature, Target};

use crate::llvm::c_api::fence;
use crate::llvm::emitter::{Emitter, V};
use crate::targets::amdgpu::memory::masked_offset;
use crate::targets::hooks::{Atomic, BufferPlace, FenceOrdering, Ordering, Scope, Update};
use crate::values::element::LlvmType;

/// Whether a single 16-bit float is added by an instruction for the pair around it; otherwise LLVM emits a loop.
fn adds_half_of_pair(target: Target, update: Update, element: Element) -> bool {
    match (update, element) {
        (Update::AddFloat, Element::F16) => true,
        (Update::AddFloat, Element::Bf16) => target.has(Feature::PackedBf16Atomic),
        _ => false,
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
    target: Target,
    update: Update,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    if values.len() == 1 && adds_half_of_pair(target, update, atomic.element) {
        return vec![update_half_of_pair(e, atomic, values[0])];
    }
    e.unpack(update_words(e, update, atomic, values))
}

/// LLVM's update of one element or a vector.
fn update_words<'ctx>(
    e: &Emitter<'ctx>,
    update: Update,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> V<'ctx> {
    let value = e.pack(values);
    ordered(e, atomic, || {
        e.masked(atomic.mask, value.get_type(), || {
            let old = e.atomic_update(
                update,
                atomic.pointer,
                value,
                Ordering::Relaxed,
                scope(atomic.scope),
            );
            if update == Update::AddFloat {
                // The hardware's additions work on coarse-grained local memory, which kernels get.
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
        })
    })
}

/// Adds a 16-bit float by the instruction for pairs: negative zero is added to its neighbour in the word, which does
/// not change it.
fn update_half_of_pair<'ctx>(e: &Emitter<'ctx>, atomic: &Atomic<'ctx>, value: V<'ctx>) -> V<'ctx> {
    let word = e.int(64).into();
    let address = e.cast(InstructionOpcode::PtrToInt, atomic.pointer, word);
    let misaligned = e.and(address, e.i64(2));
    let is_high = e.icmp(inkwell::IntPredicate::NE, misaligned, e.i64(0));
    let back = e.sub(e.i64(0), misaligned);
    let pointer = e.gep(e.int(8).into(), atomic.pointer, back);
    let nothing = e.float(value.get_type(), -0.0);
    let pair = [
        e.select(is_high, nothing, value),
        e.select(is_high, value, nothing),
    ];
    let old = e.unpack(update_words(
        e,
        Update::AddFloat,
        &Atomic { pointer, ..*atomic },
        &pair,
    ));
    e.select(is_high, old[1], old[0])
}

/// Writes `new` if the old value is `expected`.
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

/// Updates one element, or a pair, in a buffer.
pub fn buffer_update<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    update: Update,
    place: BufferPlace<'ctx>,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let name = match update {
        Update::And => "llvm.amdgcn.raw.ptr.buffer.atomic.and",
        Update::Or => "llvm.amdgcn.raw.ptr.buffer.atomic.or",
        Update::Xor => "llvm.amdgcn.raw.ptr.buffer.atomic.xor",
        Update::Add => "llvm.amdgcn.raw.ptr.buffer.atomic.add",
        Update::AddFloat => "llvm.amdgcn.raw.ptr.buffer.atomic.fadd",
        Update::Max => "llvm.amdgcn.raw.ptr.buffer.atomic.smax",
        Update::Min => "llvm.amdgcn.raw.ptr.buffer.atomic.smin",
        Update::UnsignedMax => "llvm.amdgcn.raw.ptr.buffer.atomic.umax",
        Update::UnsignedMin => "llvm.amdgcn.raw.ptr.buffer.atomic.umin",
        Update::Exchange => "llvm.amdgcn.raw.ptr.buffer.atomic.swap",
    };
    if values.len() == 1 && adds_half_of_pair(target, update, atomic.element) {
        // A buffer's base may be unaligned, so the start of the pair is only known of pointers.
        let pointer = e.gep(e.int(8).into(), atomic.pointer, place.offset);
        return vec![update_half_of_pair(
            e,
            &Atomic { pointer, ..*atomic },
            values[0],
        )];
    }
    let value = e.pack(values);
    // Exchanges work on any bits.
    let moved = match (update, atomic.element) {
        (Update::Exchange, element) => e.bitcast(value, e.int(element.bits()).into()),
        _ => value,
    };
    let old = ordered(e, atomic, || {
        e.intrinsic(
            name,
            &[moved.get_type()],
            &[
                moved,
                place.descriptor,
                masked_offset(e, atomic.mask, place.offset),
                e.i32(0),
                e.i32(scope_bits(target, atomic.scope)),
            ],
        )
    });
    e.unpack(e.bitcast(old, value.get_type()))
}

/// Writes `new` if the old value is `expected`, in a buffer.
pub fn buffer_compare_and_swap<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    place: BufferPlace<'ctx>,
    atomic: &Atomic<'ctx>,
    expected: V<'ctx>,
    new: V<'ctx>,
) -> V<'ctx> {
    let word = e.int(atomic.element.bits()).into();
    let old = ordered(e, atomic, || {
        e.intrinsic(
            "llvm.amdgcn.raw.ptr.buffer.atomic.cmpswap",
            &[word],
            &[
                e.bitcast(new, word),
                e.bitcast(expected, word),
                place.descriptor,
                masked_offset(e, atomic.mask, place.offset),
                e.i32(0),
                e.i32(scope_bits(target, atomic.scope)),
            ],
        )
    });
    e.bitcast(old, new.get_type())
}

/// The auxiliary word of a buffer atomic: the scope of its coherence, as LLVM sets it for an atomic of the same scope
/// in global memory (LLVM AMDGPU usage, "Memory Model").
fn scope_bits(target: Target, scope: Scope) -> i64 {
    const SC1: i64 = 1 << 4;
    if target.has(Feature::ScopeField) {
        let field = match scope {
            Scope::Block => 1,
            Scope::Device => 2,
            Scope::System => 3,
        };
        return field << 3;
    }
    match scope {
        Scope::Block | Scope::Device => 0,
        Scope::System => SC1,
    }
}

/// Puts fences around a relaxed atomic for its ordering.
fn ordered<'ctx>(
    e: &Emitter<'ctx>,
    atomic: &Atomic<'ctx>,
    emit: impl FnOnce() -> V<'ctx>,
) -> V<'ctx> {
    let ordering = atomic.ordering;
    if matches!(ordering, Ordering::Release | Ordering::AcquireRelease) {
        order_memory(e, FenceOrdering::Release, atomic.scope);
    }
    let old = emit();
    if matches!(ordering, Ordering::Acquire | Ordering::AcquireRelease) {
        order_memory(e, FenceOrdering::Acquire, atomic.scope);
    }
    old
}

/// A fence.
pub fn order_memory(e: &Emitter<'_>, ordering: FenceOrdering, within: Scope) {
    fence(e.context, e.builder(), ordering, scope(within));
}
