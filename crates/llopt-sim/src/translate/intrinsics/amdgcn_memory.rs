//! AMD's intrinsics on memory: copies to shared memory, transposing loads, buffers.

use crate::error::Decoded;
use crate::machine::bytecode::{
    AccessKind, Address, Async, Atomic, AtomicOp, Collective, Op, Part, Slot, Space, Special,
    TransposeLoad,
};
use crate::machine::row::{self, IntOp, mask, row2};
use crate::translate::decode::Leaf;
use crate::translate::emit::Emitter;

use super::Invocation;

/// Translates `llvm.amdgcn.<name>`, without its type suffixes, if it is an access to memory.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    base: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    if base == "make.buffer.rsrc" {
        let (pointer, stride, records, flags) = (
            call.scalar(0)?,
            call.scalar(1)?,
            call.scalar(2)?,
            call.scalar(3)?,
        );
        let low = e.map2(
            row2!(|p, stride| p & mask(48) | (stride & 0x3fff) << 48),
            pointer,
            stride,
        );
        let high = e.map2(
            row2!(|records, flags| records.min(0xffff_ffff) | flags << 32),
            records,
            flags,
        );
        return Ok(Some(vec![low, high]));
    }
    if let Some(rest) = base.strip_prefix("raw.ptr.buffer.") {
        return buffer(e, rest, call);
    }
    if base == "global.load.lds" {
        // Each lane's data is stored at the wave's base plus the lane's offset.
        let (from, to) = (call.scalar(0)?, call.scalar(1)?);
        let (size, offset) = (call.constant(2)? as u32, call.constant(3)? as i64);
        let address = Address::Flat { base: from, offset };
        copy_to_shared(e, Space::Global, address, to, size, offset as u64);
        return Ok(Some(Vec::new()));
    }
    let transposed = match base {
        "ds.read.tr16.b64" => Some((Space::Shared, 16, 8)),
        "ds.read.tr8.b64" | "ds.load.tr8.b64" => Some((Space::Shared, 8, 8)),
        "ds.read.tr4.b64" | "ds.load.tr4.b64" => Some((Space::Shared, 4, 8)),
        _ => None,
    };
    if let Some((space, element_bits, bytes)) = transposed {
        let address = call.scalar(0)?;
        let parts: Vec<(Slot, u32)> = call
            .result
            .iter()
            .map(|leaf| (e.slot(), leaf.bits))
            .collect();
        let slots = parts.iter().map(|p| p.0).collect();
        let site = e.site();
        e.push(Op::TransposeLoad(Box::new(TransposeLoad {
            space,
            address,
            element_bits,
            bytes,
            parts,
            site,
        })));
        return Ok(Some(slots));
    }
    Ok(None)
}

/// Two slots of a buffer resource.
fn resource(call: &Invocation<'_>, index: usize) -> Decoded<(Slot, Slot)> {
    match call.argument(index)?.slots[..] {
        [low, high] => Ok((low, high)),
        _ => Err(call.unknown()),
    }
}

/// Loads `size` bytes per lane; once the wave has waited for the load they are in shared memory, at `to + offset +
/// lane * size`.
fn copy_to_shared(
    e: &mut Emitter<'_>,
    space: Space,
    address: Address,
    to: Slot,
    size: u32,
    offset: u64,
) {
    let words: Vec<Slot> = e.slots(size.div_ceil(4) as usize);
    let parts: Vec<Part> = words
        .iter()
        .enumerate()
        .map(|(i, &slot)| Part {
            slot,
            offset: 4 * i as u32,
            bytes: (size - 4 * i as u32).min(4),
        })
        .collect();
    let align = size.min(4);
    e.access(
        AccessKind::Load,
        space,
        address,
        parts.clone(),
        align,
        false,
    );
    let wave = e.slot();
    e.collective(
        Collective::ReadFirstLane {
            dst: wave,
            value: to,
        },
        None,
    );
    let lane = e.special(Special::Lane);
    // Elements smaller than a word still take a word each.
    let stride = e.constant(u64::from(size.max(4)));
    let base = e.map3(row::SCALE_ADD, wave, lane, stride);
    let fixed = e.constant(offset);
    let address = e.map2(row::ADD64, base, fixed);
    let site = e.site();
    e.asynchronous(Async::StoreLater {
        address,
        words,
        size,
        site,
    });
    // Each load is its own group, for waits on the counter of loads.
    e.asynchronous(Async::Commit);
}

/// Accesses to raw buffers.
fn buffer(e: &mut Emitter<'_>, rest: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    if rest == "load" {
        let slots = e.slots(call.result.len());
        access_buffer(e, AccessKind::Load, 0, (call.result, &slots), call)?;
        return Ok(Some(slots));
    }
    if rest == "store" {
        let data = call.argument(0)?;
        access_buffer(e, AccessKind::Store, 1, (&data.leaves, &data.slots), call)?;
        return Ok(Some(Vec::new()));
    }
    if rest == "load.lds" {
        load_to_shared(e, call)?;
        return Ok(Some(Vec::new()));
    }
    let Some(op) = rest.strip_prefix("atomic.") else {
        return Ok(None);
    };
    atomic_of_buffer(e, op, call).map(Some)
}

/// An access to the buffer whose resource is the argument `at`, with the registers and their contents.
fn access_buffer(
    e: &mut Emitter<'_>,
    kind: AccessKind,
    at: usize,
    (leaves, slots): (&[Leaf], &[Slot]),
    call: &Invocation<'_>,
) -> Decoded<()> {
    let (low, high) = resource(call, at)?;
    let address = Address::Buffer {
        low,
        high,
        offset: call.scalar(at + 1)?,
        scalar_offset: call.scalar(at + 2)?,
    };
    let parts: Vec<Part> = leaves
        .iter()
        .zip(slots)
        .map(|(leaf, &slot)| Part {
            slot,
            offset: leaf.offset as u32,
            bytes: leaf.bits.div_ceil(8),
        })
        .collect();
    let align = buffer_alignment(&parts);
    e.access(kind, Space::Global, address, parts, align, false);
    Ok(())
}

/// A copy from a buffer to shared memory.
fn load_to_shared(e: &mut Emitter<'_>, call: &Invocation<'_>) -> Decoded<()> {
    let (low, high) = resource(call, 0)?;
    let to = call.scalar(1)?;
    let size = call.constant(2)? as u32;
    let fixed = call.constant(5)?;
    let offset = e.constant(fixed);
    let offset = {
        let variable = call.scalar(3)?;
        e.int_binary(IntOp::Add, 32, variable, offset)
    };
    let address = Address::Buffer {
        low,
        high,
        offset,
        scalar_offset: call.scalar(4)?,
    };
    copy_to_shared(e, Space::Global, address, to, size, fixed);
    Ok(())
}

/// An atomic of a buffer; returns the old value.
fn atomic_of_buffer(e: &mut Emitter<'_>, op: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let real = call.argument(0)?.leaves.first().and_then(|l| l.real);
    let exchange = op == "cmpswap";
    let op = match (op, real) {
        ("swap", _) => AtomicOp::Exchange,
        ("cmpswap", _) => AtomicOp::CompareExchange,
        ("add", _) => AtomicOp::Add,
        ("sub", _) => AtomicOp::Sub,
        ("smin", _) => AtomicOp::SMin,
        ("smax", _) => AtomicOp::SMax,
        ("umin", _) => AtomicOp::UMin,
        ("umax", _) => AtomicOp::UMax,
        ("and", _) => AtomicOp::And,
        ("or", _) => AtomicOp::Or,
        ("xor", _) => AtomicOp::Xor,
        ("inc", _) => AtomicOp::IncrementWrap,
        ("dec", _) => AtomicOp::DecrementWrap,
        ("fadd", Some(real)) if call.argument(0)?.slots.len() > 1 => AtomicOp::FAddTogether(real),
        ("fadd", Some(real)) => AtomicOp::FAdd(real),
        ("fmin", Some(real)) => AtomicOp::FMin(real),
        ("fmax", Some(real)) => AtomicOp::FMax(real),
        _ => return Err(call.unknown()),
    };
    let at = if exchange { 2 } else { 1 };
    let (low, high) = resource(call, at)?;
    let value = call.argument(0)?.slots.clone();
    let compare = if exchange {
        call.argument(1)?.slots.clone()
    } else {
        Vec::new()
    };
    let old = e.slots(value.len());
    e.atomic(Atomic {
        op,
        address: Address::Buffer {
            low,
            high,
            offset: call.scalar(at + 1)?,
            scalar_offset: call.scalar(at + 2)?,
        },
        space: Space::Global,
        bits: call.bits(0)?,
        old: old.clone(),
        value,
        compare,
        site: 0,
    });
    Ok(old)
}

/// Buffer accesses are aligned to their size, at most a word.
fn buffer_alignment(parts: &[Part]) -> u32 {
    let bytes: u32 = parts.iter().map(|p| p.bytes).sum();
    if bytes.is_multiple_of(4) {
        4
    } else {
        bytes.clamp(1, 2)
    }
}
