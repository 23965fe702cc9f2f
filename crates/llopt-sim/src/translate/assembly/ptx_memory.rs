//! PTX's memory instructions: `ld`, `st`, `atom`, `red`, `cp.async`, `ldmatrix`, `mbarrier` and address conversions.

use crate::error::{Decoded, Unknown};
use crate::machine::block::REMOTE;
use crate::machine::bytecode::{
    AccessKind, Address, Async, Atomic, AtomicOp, Part, Slot, Space, Special,
};
use crate::machine::row::{self, row2};
use crate::memory::global::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::translate::intrinsics::map_address;

use super::matrix::{MmaTypes, mma, tiles};
use super::ptx_operands::{Kind, Translator, Type, unknown};
use super::ptx_parse::{Instruction, Operand};

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let modifiers: Vec<&str> = i.opcode[1..].iter().map(String::as_str).collect();
    match i.opcode[0].as_str() {
        "ld" | "ldu" => load(t, i, &modifiers),
        "st" => store(t, i, &modifiers),
        "atom" | "red" if !modifiers.starts_with(&["async"]) => atomic(t, i, &modifiers),
        "ldmatrix" | "stmatrix" => matrix_tiles(t, i, &modifiers),
        "mma" => matrix_product(t, i, &modifiers),
        "cp" => copy(t, i, &modifiers),
        "mbarrier" => transaction_barrier(t, i, &modifiers),
        "cvta" => convert_address(t, i, &modifiers),
        "mapa" => {
            let [d, a, rank] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let bits = if modifiers.contains(&"u32") { 32 } else { 64 };
            let (value, rank) = (t.read(a, bits)?, t.read(rank, 32)?);
            let mapped = map_address(t.e, value, rank);
            t.write(d, mapped, bits)?;
            Ok(())
        }
        "getctarank" => {
            let [d, a] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let own = t.e.special(Special::ClusterRank);
            let address = t.read(a, 64)?;
            let rank = t.e.map2(
                row2!(|own, a| match (a & !SHARED_WINDOW) / REMOTE {
                    0 => own,
                    number => number - 1,
                }),
                own,
                address,
            );
            t.write(d, rank, 32)
        }
        "isspacep" => {
            let [d, a] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let address = t.read(a, 64)?;
            let bit = match modifiers[..] {
                ["shared" | "shared::cta" | "shared::cluster"] => SHARED_WINDOW,
                ["local"] => LOCAL_WINDOW,
                ["global"] => {
                    let windows = t.e.constant(SHARED_WINDOW | LOCAL_WINDOW);
                    let is =
                        t.e.map2(row2!(|a, bits| u64::from(a & bits == 0)), address, windows);
                    t.write(d, is, 1)?;
                    return Ok(true);
                }
                _ => return Err(unknown(i)),
            };
            let bit = t.e.constant(bit);
            let is =
                t.e.map2(row2!(|a, bit| u64::from(a & bit != 0)), address, bit);
            t.write(d, is, 1)
        }
        "createpolicy" => {
            let zero = t.e.constant(0);
            t.write(&i.operands[0], zero, 64)
        }
        "prefetch" | "prefetchu" | "applypriority" | "discard" => {
            t.nothing();
            Ok(())
        }
        _ => return Ok(false),
    }
    .map(|()| true)
}

/// The modifiers of a memory instruction.
struct Form<'a> {
    space: Space,
    vector: usize,
    ty: Option<Type>,
    synchronizing: bool,
    /// Modifiers that this family does not have.
    rest: Vec<&'a str>,
}

fn form<'a>(modifiers: &[&'a str]) -> Form<'a> {
    let mut form = Form {
        space: Space::Generic,
        vector: 1,
        ty: None,
        synchronizing: false,
        rest: Vec::new(),
    };
    for &modifier in modifiers {
        match modifier {
            "global" => form.space = Space::Global,
            "shared" | "shared::cta" | "shared::cluster" => form.space = Space::Shared,
            "local" => form.space = Space::Local,
            "const" => form.space = Space::Constant,
            "v2" => form.vector = 2,
            "v4" => form.vector = 4,
            "v8" => form.vector = 8,
            "volatile" | "relaxed" | "acquire" | "release" | "acq_rel" | "mmio" => {
                form.synchronizing = true
            }
            "weak" | "cta" | "cluster" | "gpu" | "sys" | "ca" | "cg" | "cs" | "lu" | "cv"
            | "wb" | "wt" | "nc" | "L2::cache_hint" | "L2::64B" | "L2::128B" | "L2::256B" => {}
            m if m.starts_with("L1::") || m.starts_with("L2::evict") => {}
            m => match Type::parse(m) {
                Some(ty) => form.ty = Some(ty),
                None => form.rest.push(m),
            },
        }
    }
    form
}

/// The elements of a vector operand, or the operand itself.
fn elements(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(elements) => elements,
        other => std::slice::from_ref(other),
    }
}

fn load(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let form = form(modifiers);
    let (Some(ty), [target, address, ..]) = (form.ty, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let targets = elements(target);
    if !form.rest.is_empty() || targets.len() != form.vector || ty.register_bits() > 64 {
        return Err(unknown(i));
    }
    let (base, offset) = t.address(address)?;
    let bytes = ty.register_bits() / 8;
    let mut parts = Vec::new();
    let mut after = Vec::new();
    for (n, operand) in targets.iter().enumerate() {
        let (slot, width) = match operand {
            Operand::Sink => (t.e.slot(), ty.bits),
            _ => t.target(operand)?,
        };
        parts.push(Part {
            slot,
            offset: n as u32 * bytes,
            bytes,
        });
        if ty.is_signed() && width > ty.bits {
            after.push((slot, width));
        }
    }
    let align = bytes * form.vector as u32;
    t.e.access(
        AccessKind::Load,
        form.space,
        Address::Flat { base, offset },
        parts,
        align,
        form.synchronizing,
    );
    for (slot, width) in after {
        let wide = t.e.sign_extend(slot, ty.bits);
        let wide = t.e.truncate(wide, width);
        t.e.copy(slot, wide);
    }
    Ok(())
}

fn store(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let form = form(modifiers);
    let (Some(ty), [address, source, ..]) = (form.ty, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let sources = elements(source);
    if !form.rest.is_empty() || sources.len() != form.vector || ty.register_bits() > 64 {
        return Err(unknown(i));
    }
    let bytes = ty.register_bits() / 8;
    let mut parts = Vec::new();
    for (n, operand) in sources.iter().enumerate() {
        parts.push(Part {
            slot: t.read(operand, ty.register_bits())?,
            offset: n as u32 * bytes,
            bytes,
        });
    }
    let (base, offset) = t.address(address)?;
    let align = bytes * form.vector as u32;
    t.e.access(
        AccessKind::Store,
        form.space,
        Address::Flat { base, offset },
        parts,
        align,
        form.synchronizing,
    );
    Ok(())
}

/// The operation of `atom` and `red` by its PTX name.
fn atomic_op(name: &str, ty: Type) -> Option<AtomicOp> {
    let real = ty.real(false);
    Some(match (name, real) {
        ("add", Some(real)) => AtomicOp::FAdd(real),
        ("min", Some(real)) => AtomicOp::FMin(real),
        ("max", Some(real)) => AtomicOp::FMax(real),
        ("add", None) => AtomicOp::Add,
        ("exch", _) => AtomicOp::Exchange,
        ("cas", _) => AtomicOp::CompareExchange,
        ("and", None) => AtomicOp::And,
        ("or", None) => AtomicOp::Or,
        ("xor", None) => AtomicOp::Xor,
        ("min", None) if ty.is_signed() => AtomicOp::SMin,
        ("max", None) if ty.is_signed() => AtomicOp::SMax,
        ("min", None) => AtomicOp::UMin,
        ("max", None) => AtomicOp::UMax,
        ("inc", None) => AtomicOp::IncrementWrap,
        ("dec", None) => AtomicOp::DecrementWrap,
        _ => return None,
    })
}

fn atomic(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let form = form(modifiers);
    let rest: Vec<&str> = form
        .rest
        .iter()
        .copied()
        .filter(|m| *m != "noftz")
        .collect();
    let (Some(ty), &[op]) = (form.ty, &rest[..]) else {
        return Err(unknown(i));
    };
    let op = atomic_op(op, ty).ok_or_else(|| unknown(i))?;
    let (target, operands) = if i.opcode[0] == "atom" {
        (
            Some(i.operands.first().ok_or_else(|| unknown(i))?),
            &i.operands[1..],
        )
    } else {
        (None, &i.operands[..])
    };
    let [address, value, more @ ..] = operands else {
        return Err(unknown(i));
    };
    let bits = ty.bits;
    // A packed value, or a vector of them, is several elements at consecutive addresses.
    let per_register = if ty.packed { 2 } else { 1 };
    let registers = elements(value).len();
    if registers != form.vector {
        return Err(unknown(i));
    }
    let split = |t: &mut Translator<'_, '_>, operand: &Operand| -> Decoded<Vec<Slot>> {
        let mut slots = Vec::new();
        for element in elements(operand) {
            let register = t.read_typed(element, ty)?;
            if per_register == 1 {
                slots.push(register);
            } else {
                slots.extend(t.e.unpack(register, bits, per_register));
            }
        }
        Ok(slots)
    };
    let (value, compare) = if op == AtomicOp::CompareExchange {
        let compare = split(t, value)?;
        (split(t, more.first().ok_or_else(|| unknown(i))?)?, compare)
    } else {
        (split(t, value)?, Vec::new())
    };
    let (base, offset) = t.address(address)?;
    let old = match target {
        Some(_) => t.e.slots(value.len()),
        None => Vec::new(),
    };
    t.e.atomic(Atomic {
        op,
        address: Address::Flat { base, offset },
        space: form.space,
        bits,
        old: old.clone(),
        value,
        compare,
        site: 0,
    });
    if let Some(target) = target {
        for (n, operand) in elements(target).iter().enumerate() {
            let register =
                t.e.pack(&old[n * per_register..(n + 1) * per_register], bits);
            t.write(operand, register, ty.register_bits())?;
        }
    }
    Ok(())
}

fn matrix_tiles(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let form: Vec<&str> = modifiers
        .iter()
        .copied()
        .filter(|m| !matches!(*m, "sync" | "aligned"))
        .collect();
    let kind = match &*i.opcode[0] {
        "stmatrix" => AccessKind::Store,
        _ => AccessKind::Load,
    };
    let [first, second] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let (address, registers) = if kind == AccessKind::Store {
        (first, second)
    } else {
        (second, first)
    };
    let address = t.address_slot(address)?;
    let mut values = Vec::new();
    if kind == AccessKind::Store {
        for operand in elements(registers) {
            values.push(t.read(operand, 32)?);
        }
    }
    let loaded = tiles(t.e, &form, kind, address, &values).ok_or_else(|| unknown(i))?;
    if kind == AccessKind::Load {
        if elements(registers).len() != loaded.len() {
            return Err(unknown(i));
        }
        for (operand, slot) in elements(registers).iter().zip(loaded) {
            t.write(operand, slot, 32)?;
        }
    }
    Ok(())
}

fn matrix_product(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let saturate = modifiers.contains(&"satfinite");
    let plain: Vec<&str> = modifiers
        .iter()
        .copied()
        .filter(|m| !matches!(*m, "sync" | "aligned" | "satfinite" | "kind::f8f6f4"))
        .collect();
    let ([shape, "row", "col", d, a, b, c], [out, in_a, in_b, in_c]) =
        (&plain[..], &i.operands[..])
    else {
        return Err(unknown(i));
    };
    let types = MmaTypes { d, a, b, c };
    let width = |name: &str| if name == "f64" { 64 } else { 32 };
    let mut registers = Vec::new();
    for (operand, name) in [(in_a, a), (in_b, b), (in_c, c)] {
        for element in elements(operand) {
            registers.push(t.read(element, width(name))?);
        }
    }
    let results = mma(t.e, shape, &types, &registers, saturate).ok_or_else(|| unknown(i))?;
    if results.len() != elements(out).len() {
        return Err(unknown(i));
    }
    for (operand, slot) in elements(out).iter().zip(results) {
        t.write(operand, slot, width(d))?;
    }
    Ok(())
}

fn constant(operand: &Operand) -> Decoded<u32> {
    match operand {
        Operand::Int(value) => {
            u32::try_from(*value).map_err(|_| Unknown::new("a PTX immediate of this size"))
        }
        other => Err(Unknown::new(format!(
            "the PTX operand {other:?} where an immediate is needed"
        ))),
    }
}

fn copy(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let plain: Vec<&str> = modifiers
        .iter()
        .copied()
        .filter(|m| !m.starts_with("L2::"))
        .collect();
    let push = |t: &mut Translator<'_, '_>, what: Async| t.e.asynchronous(what);
    match plain[..] {
        ["async", "commit_group"] => push(t, Async::Commit),
        ["async", "wait_group"] => {
            let pending = constant(i.operands.first().ok_or_else(|| unknown(i))?)?;
            push(t, Async::Wait(pending));
        }
        ["async", "wait_all"] => push(t, Async::WaitAll),
        ["async", "ca" | "cg", "shared" | "shared::cta", "global"] => {
            let [to, from, size, more @ ..] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let size = constant(size)?;
            if !matches!(size, 4 | 8 | 16) {
                return Err(unknown(i));
            }
            // The policy of a cache comes last.
            let has_policy = modifiers.contains(&"L2::cache_hint");
            let more = &more[..more.len().saturating_sub(usize::from(has_policy))];
            let valid = match more {
                [ignored, ..] if t.is_predicate(ignored) => {
                    let ignored = t.read(ignored, 1)?;
                    let (none, all) = (t.e.constant(0), t.e.constant(u64::from(size)));
                    Some(t.e.select(ignored, none, all))
                }
                [valid, ..] => Some(t.read(valid, 32)?),
                [] => None,
            };
            let (shared, global) = (t.address_slot(to)?, t.address_slot(from)?);
            let site = t.e.site();
            push(
                t,
                Async::Copy {
                    shared,
                    global,
                    size,
                    valid,
                    site,
                },
            );
        }
        ["async", "mbarrier", "arrive", ref rest @ ..] => {
            let address = t.address_slot(i.operands.first().ok_or_else(|| unknown(i))?)?;
            let site = t.e.site();
            let increment = !rest.contains(&"noinc");
            push(
                t,
                Async::BarrierTrackCopies {
                    address,
                    increment,
                    site,
                },
            );
        }
        _ => return Err(unknown(i)),
    }
    Ok(())
}

fn transaction_barrier(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    modifiers: &[&str],
) -> Decoded<()> {
    let what = modifiers.first().copied().unwrap_or("");
    let site = t.e.site();
    let has = |wanted: &str| modifiers.contains(&wanted);
    let made = match (what, &i.operands[..]) {
        ("init", [address, count]) => Async::BarrierInit {
            address: t.address_slot(address)?,
            count: t.read(count, 32)?,
            site,
        },
        ("inval", [address]) => Async::BarrierInvalidate {
            address: t.address_slot(address)?,
        },
        ("expect_tx", [address, bytes]) => Async::BarrierArrive {
            address: t.address_slot(address)?,
            state: None,
            count: None,
            expect_bytes: Some(t.read(bytes, 32)?),
            arrive: false,
            site,
        },
        ("arrive", [state, address, more @ ..]) => {
            let number = match more {
                [number] => Some(t.read(number, 32)?),
                [] => None,
                _ => return Err(unknown(i)),
            };
            let expects = has("expect_tx");
            let address = t.address_slot(address)?;
            let token = t.e.slot();
            let made = Async::BarrierArrive {
                address,
                state: Some(token),
                count: if expects { None } else { number },
                expect_bytes: if expects { number } else { None },
                arrive: true,
                site,
            };
            t.e.asynchronous(made);
            return t.write(state, token, 64);
        }
        ("test_wait" | "try_wait", [done, address, parity, ..]) => {
            let by_state = !has("parity");
            let parity = t.read(parity, if by_state { 64 } else { 32 })?;
            let address = t.address_slot(address)?;
            let answer = t.e.slot();
            let made = Async::BarrierTest {
                address,
                done: answer,
                parity,
                by_state,
                site,
            };
            t.e.asynchronous(made);
            return t.write(done, answer, 1);
        }
        _ => return Err(unknown(i)),
    };
    t.e.asynchronous(made);
    Ok(())
}

fn convert_address(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let [d, a] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let to_space = modifiers.contains(&"to");
    let window = if modifiers.contains(&"shared") || modifiers.contains(&"shared::cta") {
        SHARED_WINDOW
    } else if modifiers.contains(&"local") {
        LOCAL_WINDOW
    } else if modifiers.contains(&"global") || modifiers.contains(&"const") {
        0
    } else {
        return Err(unknown(i));
    };
    let bits = modifiers
        .last()
        .and_then(|m| Type::parse(m))
        .filter(|ty| ty.kind == Kind::Unsigned)
        .ok_or_else(|| unknown(i))?
        .bits;
    let value = t.read(a, bits)?;
    let result = if to_space {
        let keep = t.e.constant(!window);
        t.e.map2(row::AND, value, keep)
    } else {
        let window = t.e.constant(window);
        t.e.map2(row::OR, value, window)
    };
    t.write(d, result, bits)
}
