//! PTX's bulk copies, descriptor objects and proxy fences.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{
    AccessKind, Address, Async, BulkCopy, BulkExtent, BulkReduce, Direction, Part, Space, Special,
};
use crate::machine::row;
use crate::memory::bulk::{self, DESCRIPTOR_BYTES};

use super::ptx_operands::{Translator, unknown};
use super::ptx_parse::{Instruction, Operand};

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let opcode: Vec<&str> = i
        .opcode
        .iter()
        .map(String::as_str)
        .filter(|m| !m.starts_with("L2::"))
        .collect();
    match opcode[..] {
        ["cp", "async", "bulk", "commit_group"] => push(t, Async::BulkCommit),
        ["cp", "async", "bulk", "wait_group"] | ["cp", "async", "bulk", "wait_group", "read"] => {
            let [Operand::Int(pending)] = i.operands[..] else {
                return Err(unknown(i));
            };
            let pending = u32::try_from(pending).map_err(|_| unknown(i))?;
            push(t, Async::BulkWait(pending));
        }
        // Caches have no contents of their own.
        ["cp", "async", "bulk", "prefetch", ..] => {}
        ["cp", "async", "bulk", "tensor", ref form @ ..] => box_copy(t, i, form, false)?,
        ["cp", "reduce", "async", "bulk", "tensor", ref form @ ..] => box_copy(t, i, form, true)?,
        ["cp", "async", "bulk", to, from, ref rest @ ..] => byte_copy(t, i, to, from, rest)?,
        ["tensormap", "replace", "tile", field, space, "b1024", _] => replace(t, i, field, space)?,
        ["tensormap", "cp_fenceproxy", "global", "shared::cta", ..] => publish(t, i)?,
        ["fence", "proxy", "tensormap::generic", "acquire", ..] => {
            let address = t.address_slot(i.operands.first().ok_or_else(|| unknown(i))?)?;
            push(t, Async::DescriptorAcquire(address));
        }
        ["fence", "proxy", "async"]
        | ["fence", "proxy", "async", "shared::cta" | "shared::cluster"] => {
            push(t, Async::ProxyFence);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn push(t: &mut Translator<'_, '_>, what: Async) {
    t.e.asynchronous(what);
}

/// `cp.async.bulk` of bytes.
fn byte_copy(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    to: &str,
    from: &str,
    rest: &[&str],
) -> Decoded<()> {
    let [target, source, size, more @ ..] = &i.operands[..] else {
        return Err(unknown(i));
    };
    if rest.iter().any(|m| m.starts_with("multicast")) {
        return Err(unknown(i));
    }
    let (target, source) = (t.address_slot(target)?, t.address_slot(source)?);
    let bytes = t.read(size, 32)?;
    let (shared, global, direction) = if to.starts_with("shared") && from == "global" {
        let barrier = t.address_slot(more.first().ok_or_else(|| unknown(i))?)?;
        (target, source, Direction::In { barrier })
    } else if to == "global" && from.starts_with("shared") {
        (source, target, Direction::Out { reduce: None })
    } else {
        return Err(unknown(i));
    };
    let site = t.e.site();
    push(
        t,
        Async::Bulk(BulkCopy {
            shared,
            direction,
            what: BulkExtent::Bytes { global, bytes },
            site,
        }),
    );
    Ok(())
}

/// `cp{.reduce}.async.bulk.tensor` in tiles; `form` are the modifiers after `tensor`.
fn box_copy(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    form: &[&str],
    reduces: bool,
) -> Decoded<()> {
    let [rank, form @ ..] = form else {
        return Err(unknown(i));
    };
    let rank: usize = rank
        .strip_suffix('d')
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| unknown(i))?;
    // Tiles are the default load mode.
    let form: Vec<&str> = form.iter().copied().filter(|m| *m != "tile").collect();
    // The policy of a cache changes no contents.
    let hints = i.opcode.iter().filter(|m| *m == "L2::cache_hint").count();
    let operands = i.operands.len().checked_sub(hints);
    let operands = operands.and_then(|count| i.operands.get(..count));
    let (map, shared, direction) = match (&form[..], operands.ok_or_else(|| unknown(i))?) {
        (
            [
                "shared::cluster" | "shared::cta",
                "global",
                "mbarrier::complete_tx::bytes",
            ],
            [shared, map, barrier],
        ) if !reduces => {
            let barrier = t.address_slot(barrier)?;
            (map, shared, Direction::In { barrier })
        }
        (["global", "shared::cta", "bulk_group"], [map, shared]) if !reduces => {
            (map, shared, Direction::Out { reduce: None })
        }
        (["global", "shared::cta", operation, "bulk_group"], [map, shared]) if reduces => {
            let reduce = Some(match *operation {
                "add" => BulkReduce::Add,
                "min" => BulkReduce::Min,
                "max" => BulkReduce::Max,
                "inc" => BulkReduce::Increment,
                "dec" => BulkReduce::Decrement,
                "and" => BulkReduce::And,
                "or" => BulkReduce::Or,
                "xor" => BulkReduce::Xor,
                _ => return Err(unknown(i)),
            });
            t.e.update_global_memory();
            (map, shared, Direction::Out { reduce })
        }
        _ => return Err(unknown(i)),
    };
    let Operand::Address {
        base,
        offset: 0,
        coordinates,
    } = map
    else {
        return Err(unknown(i));
    };
    if coordinates.len() != rank {
        return Err(Unknown::new(format!(
            "{} coordinates of a copy of rank {rank}",
            coordinates.len()
        )));
    }
    let descriptor = t.register(base)?.0;
    let coordinates = coordinates
        .iter()
        .map(|coordinate| t.read(coordinate, 32))
        .collect::<Decoded<_>>()?;
    let shared = t.address_slot(shared)?;
    let site = t.e.site();
    push(
        t,
        Async::Bulk(BulkCopy {
            shared,
            direction,
            what: BulkExtent::Box {
                descriptor,
                coordinates,
            },
            site,
        }),
    );
    Ok(())
}

/// `tensormap.replace`: a store into the object's field.
fn replace(t: &mut Translator<'_, '_>, i: &Instruction, name: &str, space: &str) -> Decoded<()> {
    let field = bulk::field(name).ok_or_else(|| unknown(i))?;
    let (address, position, value) = match &i.operands[..] {
        [address, value] => (address, 0, value),
        [address, Operand::Int(position), value] => {
            let position = u32::try_from(*position).map_err(|_| unknown(i))?;
            (address, position, value)
        }
        _ => return Err(unknown(i)),
    };
    if position >= field.count {
        return Err(unknown(i));
    }
    let space = match space {
        "shared::cta" => Space::Shared,
        "global" => Space::Global,
        _ => return Err(unknown(i)),
    };
    let slot = t.read(value, 8 * field.bytes.max(4))?;
    let mut parts = vec![Part {
        slot,
        offset: field.at + position * field.bytes,
        bytes: field.bytes,
    }];
    if name == "rank" {
        let slot = t.e.constant(bulk::mark());
        parts.push(Part {
            slot,
            offset: bulk::MAGIC_AT,
            bytes: 4,
        });
    }
    let (base, offset) = t.address(address)?;
    if space == Space::Shared && !matches!(name, "global_address" | "global_dim") {
        // The field is a part of a word, which the hardware reads, changes and writes, as in the code of NVIDIA's
        // assembler for sm_90.
        let slot = t.e.slot();
        let word = Address::Flat {
            base,
            offset: offset + i64::from(parts[0].offset),
        };
        let part = Part {
            slot,
            offset: 0,
            bytes: field.bytes,
        };
        t.e.access(
            AccessKind::Load,
            space,
            word,
            vec![part],
            field.bytes,
            false,
        );
    }
    for part in parts {
        let address = Address::Flat {
            base,
            offset: offset + i64::from(part.offset),
        };
        let align = part.bytes;
        let part = Part { offset: 0, ..part };
        t.e.access(AccessKind::Store, space, address, vec![part], align, false);
    }
    Ok(())
}

/// `tensormap.cp_fenceproxy`: the lanes of the warp copy the object, a word each.
fn publish(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<()> {
    let [to, from, Operand::Int(bytes)] = &i.operands[..] else {
        return Err(unknown(i));
    };
    if *bytes != DESCRIPTOR_BYTES as i128 {
        return Err(unknown(i));
    }
    let members = t.e.constant(row::mask(32));
    t.e.collective(crate::machine::bytecode::Collective::Meet, Some(members));
    let lane = t.e.special(Special::Lane);
    let two = t.e.constant(2);
    let offset = t.e.map2(row::row2!(|lane, two| lane << two), lane, two);
    let at = |t: &mut Translator<'_, '_>, operand: &Operand| -> Decoded<Address> {
        let base = t.address_slot(operand)?;
        let base = t.e.map2(row::ADD64, base, offset);
        Ok(Address::Flat { base, offset: 0 })
    };
    let object = t.address_slot(to)?;
    let (from, to) = (at(t, from)?, at(t, to)?);
    let word = t.e.slot();
    let part = Part {
        slot: word,
        offset: 0,
        bytes: 4,
    };
    t.e.access(AccessKind::Load, Space::Shared, from, vec![part], 4, false);
    t.e.access(AccessKind::Store, Space::Global, to, vec![part], 4, false);
    push(t, Async::DescriptorRelease(object));
    Ok(())
}
