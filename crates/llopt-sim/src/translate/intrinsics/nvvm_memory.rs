//! NVIDIA's intrinsics on memory and matrices: `ldmatrix`, `stmatrix`, asynchronous copies, `mbarrier`, `mma`.

use crate::error::Decoded;
use crate::machine::bytecode::{AccessKind, Async, Slot};
use crate::translate::assembly::matrix::{MmaTypes, mma, tiles};
use crate::translate::emit::Emitter;

use super::Invocation;

/// Translates `llvm.nvvm.<name>` if it is one of this family.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    if let Some(rest) = name.strip_prefix("ldmatrix.sync.aligned.") {
        let form: Vec<&str> = rest.split('.').collect();
        let address = call.scalar(0)?;
        let registers =
            tiles(e, &form, AccessKind::Load, address, &[]).ok_or_else(|| call.unknown())?;
        return Ok(Some(registers));
    }
    if let Some(rest) = name.strip_prefix("stmatrix.sync.aligned.") {
        let form: Vec<&str> = rest.split('.').collect();
        let address = call.scalar(0)?;
        let values = (1..call.arguments.len())
            .map(|i| call.scalar(i))
            .collect::<Decoded<Vec<_>>>()?;
        tiles(e, &form, AccessKind::Store, address, &values).ok_or_else(|| call.unknown())?;
        return Ok(Some(Vec::new()));
    }
    if let Some(rest) = name.strip_prefix("mma.") {
        return matrix(e, rest, call).map(Some);
    }
    let name = name.strip_suffix(".shared").unwrap_or(name);
    let copy = name
        .strip_prefix("cp.async.ca.shared.global.")
        .or_else(|| name.strip_prefix("cp.async.cg.shared.global."));
    if let Some(size) = copy {
        copy_later(e, size, call)?;
        return Ok(Some(Vec::new()));
    }
    wait_or_count(e, name, call)
}

/// An asynchronous operation.
fn push(e: &mut Emitter<'_>, what: Async) {
    e.asynchronous(what);
}

/// A copy of `size` bytes from global to shared memory.
fn copy_later(e: &mut Emitter<'_>, size: &str, call: &Invocation<'_>) -> Decoded<()> {
    let size: u32 = size
        .trim_end_matches(".s")
        .parse()
        .map_err(|_| call.unknown())?;
    let valid = if call.arguments.len() > 2 {
        Some(call.scalar(2)?)
    } else {
        None
    };
    let what = Async::Copy {
        shared: call.scalar(0)?,
        global: call.scalar(1)?,
        size,
        valid,
        site: e.site(),
    };
    push(e, what);
    Ok(())
}

/// Groups of copies, and the barriers in memory that count arrivals.
fn wait_or_count(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    match name {
        "cp.async.commit.group" => push(e, Async::Commit),
        "cp.async.wait.group" => push(e, Async::Wait(call.constant(0)? as u32)),
        "cp.async.wait.all" => push(e, Async::WaitAll),
        "cp.async.bulk.commit.group" => push(e, Async::BulkCommit),
        "cp.async.bulk.wait.group" | "cp.async.bulk.wait.group.read" => {
            push(e, Async::BulkWait(call.constant(0)? as u32));
        }
        "fence.proxy.async"
        | "fence.proxy.async.shared_cta"
        | "fence.proxy.async.shared_cluster" => push(e, Async::ProxyFence),
        "mbarrier.init" => {
            let (address, count, site) = (call.scalar(0)?, call.scalar(1)?, e.site());
            push(
                e,
                Async::BarrierInit {
                    address,
                    count,
                    site,
                },
            );
        }
        "mbarrier.inval" => {
            let address = call.scalar(0)?;
            push(e, Async::BarrierInvalidate { address });
        }
        "mbarrier.arrive" | "mbarrier.arrive.noComplete" => {
            let state = e.slot();
            let count = if call.arguments.len() > 1 {
                Some(call.scalar(1)?)
            } else {
                None
            };
            let (address, site) = (call.scalar(0)?, e.site());
            push(
                e,
                Async::BarrierArrive {
                    address,
                    state: Some(state),
                    count,
                    expect_bytes: None,
                    arrive: true,
                    site,
                },
            );
            return Ok(Some(vec![state]));
        }
        "mbarrier.test.wait" => {
            let done = e.slot();
            let (address, parity, site) = (call.scalar(0)?, call.scalar(1)?, e.site());
            push(
                e,
                Async::BarrierTest {
                    address,
                    done,
                    parity,
                    by_state: true,
                    site,
                },
            );
            return Ok(Some(vec![done]));
        }
        "cp.async.mbarrier.arrive" | "cp.async.mbarrier.arrive.noinc" => {
            let (address, site) = (call.scalar(0)?, e.site());
            push(
                e,
                Async::BarrierTrackCopies {
                    address,
                    increment: !name.ends_with("noinc"),
                    site,
                },
            );
        }
        _ => return Ok(None),
    }
    Ok(Some(Vec::new()))
}

/// `mma.m16n8k16.row.col.<types>`: LLVM's name contains D and C where these determine A and B, or only A, or A and B.
fn matrix(e: &mut Emitter<'_>, rest: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let parts: Vec<&str> = rest.split('.').collect();
    let [shape, "row", "col", types @ ..] = &parts[..] else {
        return Err(call.unknown());
    };
    let saturate = types.contains(&"satfinite");
    let types: Vec<&str> = types
        .iter()
        .copied()
        .filter(|t| *t != "satfinite")
        .collect();
    let types = match types[..] {
        [d @ ("f16" | "f32"), c @ ("f16" | "f32")] => MmaTypes {
            d,
            a: "f16",
            b: "f16",
            c,
        },
        ["f64"] => MmaTypes {
            d: "f64",
            a: "f64",
            b: "f64",
            c: "f64",
        },
        [a @ ("bf16" | "tf32")] => MmaTypes {
            d: "f32",
            a,
            b: a,
            c: "f32",
        },
        [a @ ("s8" | "u8" | "s4" | "u4")] => MmaTypes {
            d: "s32",
            a,
            b: a,
            c: "s32",
        },
        [a, b] => MmaTypes {
            d: "s32",
            a,
            b,
            c: "s32",
        },
        [d, a, b, c] => MmaTypes { d, a, b, c },
        _ => return Err(call.unknown()),
    };
    // Operands come as one argument per register; packed halves as vectors of two, to be repacked.
    let mut registers = Vec::new();
    for argument in call.arguments {
        registers.push(match argument.slots[..] {
            [one] => one,
            _ => e.pack(&argument.slots, argument.leaves[0].bits),
        });
    }
    let results = mma(e, shape, &types, &registers, saturate).ok_or_else(|| call.unknown())?;
    // The result's packed halves are vectors.
    let mut slots = Vec::new();
    if call.result.first().is_some_and(|l| l.bits == 16) {
        for register in results {
            slots.extend(e.unpack(register, 16, 2));
        }
    } else {
        slots = results;
    }
    Ok(slots)
}
