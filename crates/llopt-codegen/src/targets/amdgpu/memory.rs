//! Global and buffer accesses on AMD.
//!
//! A masked global access is a branch around a plain one: the hardware has no predicates, and LLVM turns
//! the branch into a change of the execution mask. Loads that follow each other under one condition have one branch around
//! all of them, so that the block of instructions that LLVM schedules does not end at each. A buffer access needs no branch: an offset beyond the
//! descriptor's range reads zero and writes nothing, so masking selects such an offset.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, PhiValue};
use llopt_target::{Feature, Target};

use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{
    Access, AccessCounts, BufferAccess, Cache, Caching, Eviction, MaskedLoad, Words,
};

/// Loads `access.words`.
pub fn load<'ctx>(
    e: &Emitter<'ctx>,
    access: &Access<'ctx>,
    other: Option<&[V<'ctx>]>,
) -> Vec<V<'ctx>> {
    let load = MaskedLoad {
        access: *access,
        other: other.map(<[_]>::to_vec),
    };
    load_all(e, &[load]).swap_remove(0)
}

/// Whether one branch serves two accesses.
pub fn share_condition<'ctx>(one: &Access<'ctx>, next: &Access<'ctx>) -> bool {
    let masks = one.mask.zip(next.mask);
    masks.is_some_and(|(one, next)| is_same(one, next, DEPTH))
}

/// Loads the words of accesses under the mask of the first one.
pub fn load_all<'ctx>(e: &Emitter<'ctx>, loads: &[MaskedLoad<'ctx>]) -> Vec<Vec<V<'ctx>>> {
    let of = |load: &MaskedLoad<'ctx>| -> BasicTypeEnum<'ctx> {
        let Words { bits, count } = load.access.words;
        let word = e.int(bits).into();
        match count {
            1 => word,
            _ => e.vector(word, count).into(),
        }
    };
    let read = |load: &MaskedLoad<'ctx>| {
        let access = load.access;
        let value = e.load(of(load), access.pointer, access.words.bytes());
        if let Some(instruction) = value.as_instruction_value() {
            let nontemporal = matches!(
                access.caching.cache,
                Cache::Global | Cache::Streaming | Cache::Volatile
            ) || is_read_once(access.caching);
            hint(
                e,
                instruction,
                access.caching,
                nontemporal,
                access.caching.cache == Cache::Volatile,
            );
        }
        value
    };
    let Some(mask) = loads.first().and_then(|load| load.access.mask) else {
        return loads.iter().map(|load| e.unpack(read(load))).collect();
    };
    let before = e.block();
    let function = e.function();
    let (then, after) = (e.new_block(function), e.new_block(function));
    let otherwise = loads.iter().map(|load| match &load.other {
        Some(words) => e.pack(words),
        None => e.zero(of(load)),
    });
    let otherwise: Vec<V<'ctx>> = otherwise.collect();
    e.branch_if(mask, then, after);
    let from = e.block();
    debug_assert_eq!(before, from);
    e.enter(then);
    let loaded: Vec<V<'ctx>> = loads.iter().map(read).collect();
    e.branch(after);
    e.enter(after);
    let phis = loads.iter().map(|load| e.phi(of(load)));
    let phis: Vec<PhiValue<'ctx>> = phis.collect();
    for ((phi, loaded), otherwise) in phis.iter().zip(&loaded).zip(&otherwise) {
        phi.add_incoming(&[(loaded, then), (otherwise, from)]);
    }
    phis.iter()
        .map(|phi| e.unpack(phi.as_basic_value()))
        .collect()
}

/// Instructions between two conditions and what they have in common, at most.
const DEPTH: u32 = 4;

/// Whether two values are the same by what they are computed of: each register of a mask is computed by itself, also where
/// all are equal.
fn is_same<'ctx>(one: V<'ctx>, other: V<'ctx>, depth: u32) -> bool {
    if one == other {
        return true;
    }
    let made = one.as_instruction_value().zip(other.as_instruction_value());
    let Some((one, other)) = made.filter(|_| depth > 0) else {
        return false;
    };
    let is_known = matches!(
        one.get_opcode(),
        InstructionOpcode::And | InstructionOpcode::Or | InstructionOpcode::Xor
    );
    let is_compared = one.get_opcode() == InstructionOpcode::ICmp
        && one.get_icmp_predicate() == other.get_icmp_predicate();
    one.get_opcode() == other.get_opcode()
        && (is_known || is_compared)
        && (0..one.get_num_operands()).all(|index| {
            let operand = |of: InstructionValue<'ctx>| of.get_operand(index)?.value();
            let operands = operand(one).zip(operand(other));
            operands.is_some_and(|(one, other)| is_same(one, other, depth - 1))
        })
}

/// Stores `words`.
pub fn store<'ctx>(e: &Emitter<'ctx>, access: &Access<'ctx>, words: &[V<'ctx>]) {
    let value = e.pack(words);
    let write = || {
        let store = e.store(value, access.pointer, access.words.bytes());
        let nontemporal = matches!(access.caching.cache, Cache::Streaming | Cache::WriteThrough);
        hint(
            e,
            store,
            access.caching,
            nontemporal,
            access.caching.cache == Cache::WriteThrough,
        );
    };
    let Some(mask) = access.mask else {
        return write();
    };
    let function = e.function();
    let (then, after) = (e.new_block(function), e.new_block(function));
    e.branch_if(mask, then, after);
    e.enter(then);
    write();
    e.branch(after);
    e.enter(after);
}

/// Whether loaded data should leave the caches first, which is what these call nontemporal.
fn is_read_once(caching: Caching) -> bool {
    caching.cache == Cache::Default && caching.eviction == Eviction::First
}

/// LLVM has two hints about caches: volatile and nontemporal.
fn hint<'ctx>(
    e: &Emitter<'ctx>,
    access: InstructionValue<'ctx>,
    caching: Caching,
    nontemporal: bool,
    volatile: bool,
) {
    if volatile || caching.volatile {
        access
            .set_volatile(true)
            .expect("bug in llopt: loads and stores can be volatile");
    }
    if nontemporal {
        let one = e
            .context
            .metadata_node(&[e.context.i32_type().const_int(1, false).into()]);
        access
            .set_metadata(one, e.context.get_kind_id("nontemporal"))
            .expect("bug in llopt: the metadata is a node");
    }
}

/// A descriptor of raw memory from `base` on: stride 0, and nearly 2^31 bytes, so that an offset with the
/// highest bit set is out of range.
pub fn descriptor<'ctx>(e: &Emitter<'ctx>, target: Target, base: V<'ctx>) -> V<'ctx> {
    // Data format 7 (float) and number format 4 (32 bits): ignored by raw accesses, but not zero.
    let mut flags = (7i64 << 12) | (4 << 15);
    if target.has(Feature::BufferBoundsSelect) {
        // A reserved bit that must be set, and bounds checks against the byte offset.
        flags |= (1 << 24) | (3 << 28);
    }
    let overload = [e.ptr(llopt_plan::element::space::BUFFER), base.get_type()];
    let stride = e.context.i16_type().const_zero().into();
    e.intrinsic(
        "llvm.amdgcn.make.buffer.rsrc",
        &overload,
        &[base, stride, e.i64(i64::from(i32::MAX) - 1), e.i32(flags)],
    )
}

/// The offset of a lane, out of range where the mask is false.
pub(super) fn masked_offset<'ctx>(
    e: &Emitter<'ctx>,
    mask: Option<V<'ctx>>,
    offset: V<'ctx>,
) -> V<'ctx> {
    match mask {
        Some(mask) => e.select(mask, offset, e.i32(i64::from(i32::MIN))),
        None => offset,
    }
}

/// Loads `access.words`; zero where the mask is false.
pub fn buffer_load<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    access: &BufferAccess<'ctx>,
) -> Vec<V<'ctx>> {
    let Words { bits, count } = access.words;
    let word = e.int(bits).into();
    let of = if count == 1 {
        word
    } else {
        e.vector(word, count).into()
    };
    let auxiliary = e.i32(cache_bits(target, access.caching, true));
    e.unpack(e.intrinsic(
        "llvm.amdgcn.raw.ptr.buffer.load",
        &[of],
        &[
            access.descriptor,
            masked_offset(e, access.mask, access.offset),
            e.i32(0),
            auxiliary,
        ],
    ))
}

/// Stores `words` where the mask is true.
pub fn buffer_store<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    access: &BufferAccess<'ctx>,
    words: &[V<'ctx>],
) {
    let value = e.pack(words);
    let auxiliary = e.i32(cache_bits(target, access.caching, false));
    e.intrinsic_call(
        "llvm.amdgcn.raw.ptr.buffer.store",
        &[value.get_type()],
        &[
            value,
            access.descriptor,
            masked_offset(e, access.mask, access.offset),
            e.i32(0),
            auxiliary,
        ],
    );
}

/// The auxiliary word of a buffer access. gfx942 and gfx950 have bits for the coherence scope (sc0, sc1)
/// and for nontemporal data (nt).
pub(super) fn cache_bits(target: Target, caching: Caching, is_load: bool) -> i64 {
    const SC0: i64 = 1;
    const NT: i64 = 1 << 1;
    const SC1: i64 = 1 << 4;
    if !target.has(Feature::CoherenceBits) {
        return 0;
    }
    match caching.cache {
        Cache::Default if is_load && is_read_once(caching) => NT,
        Cache::Global if is_load => SC0 | NT,
        Cache::Streaming => SC0 | NT,
        Cache::Volatile | Cache::WriteThrough => SC0 | SC1,
        Cache::Default | Cache::All | Cache::Global | Cache::WriteBack => 0,
    }
}

/// Waits until the wave has at most so many accesses outstanding.
///
/// If two kinds of access share a counter, the wait is long enough for both.
pub fn wait(e: &Emitter<'_>, target: Target, most: AccessCounts) {
    let AccessCounts {
        loads,
        stores,
        shared,
    } = most;
    if target.has(Feature::SeparateWaits) {
        let waits = [
            ("llvm.amdgcn.s.wait.loadcnt", loads),
            ("llvm.amdgcn.s.wait.storecnt", stores),
            ("llvm.amdgcn.s.wait.dscnt", shared),
        ];
        for (wait, most) in waits {
            if let Some(most) = most {
                let most = e.int(16).const_int(most.min(63).into(), false);
                e.intrinsic_call(wait, &[], &[most.into()]);
            }
        }
        return;
    }
    let own_counter = target.has(Feature::StoreCounter);
    let vector = match (loads, stores) {
        (Some(loads), Some(stores)) if !own_counter => Some(loads.min(stores)),
        (None, stores) if !own_counter => stores,
        (loads, _) => loads,
    };
    if vector.is_some() || shared.is_some() {
        let operand = counters(own_counter, vector, shared);
        e.intrinsic_call("llvm.amdgcn.s.waitcnt", &[], &[e.i32(operand)]);
    }
    if let (Some(stores), true) = (stores, own_counter) {
        let text = format!("s_waitcnt_vscnt null, {}", stores.min(63));
        e.inline_asm(&text, "~{memory}", &[], &[], AsmEffect::Anything);
    }
}

/// The operand of `s_waitcnt`: fields for vector memory, exports and LDS; the largest value of a field waits for
/// nothing. The fields are those of RDNA3 (bits 10 to 15, 0 to 2, 4 to 9) where stores have a counter of their own,
/// and those of CDNA (bits 0 to 3 with 14 and 15, 4 to 6, 8 to 11) elsewhere.
fn counters(own_counter: bool, vector: Option<u32>, shared: Option<u32>) -> i64 {
    let vector = vector.unwrap_or(63).min(63);
    i64::from(if own_counter {
        vector << 10 | 7 | shared.unwrap_or(63).min(63) << 4
    } else {
        let low = vector & 15 | vector >> 4 << 14;
        low | 7 << 4 | shared.unwrap_or(15).min(15) << 8
    })
}
