//! AMD's intrinsics: identifiers, barriers and waits, operations between lanes, arithmetic.
//! Memory is in [`super::amdgcn_memory`], conversions are in [`super::amdgcn_convert`], matrices in
//! [`super::amdgcn_matrix`].
//! (LLVM: "User guide for AMDGPU"; AMD's ISA manuals.)
//!
//! Waits on counters cost an instruction and do nothing: the machine completes memory operations in order. Hardware
//! approximations (`rcp`, `rsq`, `exp2`, `log`, 1 ulp; `sin`, `cos`, whose argument is in turns) are computed
//! accurately.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{
    Async, Barrier, Collective, Fence, Op, Slot, Special, Terminator, Vote,
};
use crate::machine::row::{self, Real, RealFunction, RealOp, mask, row1, row2, row3};
use crate::memory::global::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::translate::emit::Emitter;
use crate::units::collective::{is_dpp_control, is_swizzle_pattern};

use super::{
    Invocation, amdgcn_convert, amdgcn_matrix, amdgcn_memory, amdgcn_trigonometry, generic,
    without_types,
};

/// Translates `llvm.amdgcn.<name>`.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Vec<Slot>> {
    if let Some(slots) = amdgcn_matrix::translate(e, name, call)? {
        return Ok(slots);
    }
    if let Some(slots) = amdgcn_convert::translate(e, name, call)? {
        return Ok(slots);
    }
    let base = without_types(name);
    if let Some(slots) = identifiers(e, base, call)? {
        return Ok(slots);
    }
    if let Some(slots) = scheduling(e, base, call)? {
        return Ok(slots);
    }
    if let Some(slots) = between_lanes(e, base, call)? {
        return Ok(slots);
    }
    if let Some(slots) = amdgcn_memory::translate(e, base, call)? {
        return Ok(slots);
    }
    arithmetic(e, base, call)
}

fn identifiers(
    e: &mut Emitter<'_>,
    base: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    let what = match base {
        "workitem.id.x" => Special::ThreadId(0),
        "workitem.id.y" => Special::ThreadId(1),
        "workitem.id.z" => Special::ThreadId(2),
        "workgroup.id.x" => Special::BlockId(0),
        "workgroup.id.y" => Special::BlockId(1),
        "workgroup.id.z" => Special::BlockId(2),
        "implicitarg.ptr" => Special::HiddenArguments,
        "wavefrontsize" => Special::WarpSize,
        "s.memtime" | "s.memrealtime" => Special::Clock,
        "is.shared" | "is.private" => {
            let window = e.constant(if base == "is.shared" {
                SHARED_WINDOW
            } else {
                LOCAL_WINDOW
            });
            let address = call.scalar(0)?;
            return Ok(Some(vec![e.map2(
                row2!(|a, w| u64::from(a & w != 0)),
                address,
                window,
            )]));
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![e.special(what)]))
}

/// A wait for all accesses of shared memory.
const SHARED_DONE: Fence = Fence {
    releases: true,
    acquires: false,
};

/// Number of the hardware register field "MODE, bit 23, one bit": overflow of 16-bit and smaller formats clamps.
const MODE_FP16_OVERFLOW: u64 = 1473;

fn scheduling(
    e: &mut Emitter<'_>,
    base: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    match base {
        "s.barrier" | "s.barrier.wait" => {
            let id = e.constant(0);
            let site = e.site();
            let sync = Barrier::Sync {
                id,
                threads: None,
                reduce: None,
            };
            e.push(Op::Barrier(Box::new(sync), site));
        }
        // Arrival is counted when the same wave waits, which it does before it signals again.
        "s.barrier.signal" => e.push(Op::Nothing),
        "s.setreg" => {
            if call.constant(0)? == MODE_FP16_OVERFLOW {
                e.clamp_overflow = call.constant(1)? & 1 == 1;
            }
            e.push(Op::Nothing);
        }
        "s.waitcnt" => {
            // The counter of loads; its largest value means no wait. (LLVM AMDGPU usage, s_waitcnt.)
            let counters = call.constant(0)? as u32;
            let loads = if e.warp_size() == 64 {
                counters & 0xf | counters >> 10 & 0x30
            } else {
                counters >> 10 & 0x3f
            };
            let shared = if e.warp_size() == 64 {
                counters >> 8 & 0xf
            } else {
                counters >> 4 & 0x3f
            };
            if loads < 63 {
                e.asynchronous(Async::Wait(loads));
            }
            if shared == 0 {
                e.fence(SHARED_DONE);
            }
            if loads >= 63 && shared > 0 {
                e.push(Op::Nothing);
            }
        }
        "s.wait.loadcnt" => {
            let loads = call.constant(0)? as u32;
            e.asynchronous(Async::Wait(loads));
        }
        "s.wait.dscnt" if call.constant(0)? == 0 => e.fence(SHARED_DONE),
        "wave.barrier"
        | "s.nop"
        | "s.sleep"
        | "s.setprio"
        | "s.sendmsg"
        | "s.sendmsghalt"
        | "sched.barrier"
        | "sched.group.barrier"
        | "iglp.opt"
        | "s.sethalt"
        | "s.decperflevel"
        | "s.incperflevel"
        | "s.wait.storecnt"
        | "s.wait.dscnt"
        | "s.wait.kmcnt"
        | "s.wait.samplecnt"
        | "s.wait.bvhcnt"
        | "s.wait.expcnt"
        | "s.wait.asynccnt"
        | "s.wait.tensorcnt"
        | "s.wait.event.export.ready"
        | "s.dcache.inv"
        | "s.dcache.wb"
        | "buffer.wbinvl1"
        | "buffer.wbinvl1.vol"
        | "s.prefetch.data"
        | "s.prefetch.inst"
        | "asyncmark"
        | "wait.asyncmark" => e.push(Op::Nothing),
        "endpgm" => {
            e.terminate(Terminator::Exit);
            let unreached = e.new_block();
            e.enter(unreached);
        }
        _ => return Ok(None),
    }
    Ok(Some(Vec::new()))
}

/// Exchanges between the lanes of a wave.
fn between_lanes(
    e: &mut Emitter<'_>,
    base: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    match base {
        "update.dpp" | "mov.dpp" => data_parallel(e, usize::from(base == "update.dpp"), call),
        "mov.dpp8" => {
            let selector = call.constant(1)? as u32;
            each(e, call, 0, |value, _, dst| Collective::Dpp8 {
                dst,
                value,
                selector,
            })
        }
        "ds.bpermute" => {
            let address = call.scalar(0)?;
            each(e, call, 1, |value, _, dst| Collective::PermuteBackward {
                dst,
                address,
                value,
            })
        }
        "ds.permute" => {
            let address = call.scalar(0)?;
            each(e, call, 1, |value, _, dst| Collective::PermuteForward {
                dst,
                address,
                value,
            })
        }
        "ds.swizzle" => {
            let pattern = call.constant(1)? as u32;
            if !is_swizzle_pattern(pattern) {
                return Err(Unknown::new(format!("the ds_swizzle pattern {pattern:#x}")));
            }
            each(e, call, 0, |value, _, dst| Collective::Swizzle {
                dst,
                value,
                pattern,
            })
        }
        "readlane" => {
            let lane = call.scalar(1)?;
            each(e, call, 0, |value, _, dst| Collective::ReadLane {
                dst,
                value,
                lane,
            })
        }
        "readfirstlane" => each(e, call, 0, |value, _, dst| Collective::ReadFirstLane {
            dst,
            value,
        }),
        "writelane" => {
            let lane = call.scalar(1)?;
            let old = call.argument(2)?.slots.clone();
            each(e, call, 0, |value, leaf, dst| Collective::WriteLane {
                dst,
                value,
                lane,
                old: old[leaf],
            })
        }
        "permlane16" | "permlanex16" => {
            let old = call.argument(0)?.slots.clone();
            let (low, high) = (call.scalar(2)?, call.scalar(3)?);
            let (fetch_inactive, bound_control) = (call.constant(4)? != 0, call.constant(5)? != 0);
            let cross = base == "permlanex16";
            each(e, call, 1, |value, leaf, dst| Collective::PermuteLane16 {
                dst,
                old: old[leaf],
                value,
                low,
                high,
                fetch_inactive,
                bound_control,
                cross,
            })
        }
        "permlane64" => each(e, call, 0, |value, _, dst| Collective::PermuteLane64 {
            dst,
            value,
        }),
        "permlane16.swap" | "permlane32.swap" => {
            swap_lanes(e, if base == "permlane16.swap" { 16 } else { 32 }, call)
        }
        "strict.wwm" | "wwm" | "softwqm" | "wqm" | "strict.wqm" | "set.inactive" => {
            Ok(Some(call.argument(0)?.slots.clone()))
        }
        _ => votes(e, base, call),
    }
}

/// Exchanges every other group of `rows` lanes of two values.
fn swap_lanes(e: &mut Emitter<'_>, rows: u32, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    let (a, b) = (call.scalar(0)?, call.scalar(1)?);
    let (first, second) = (e.slot(), e.slot());

    e.collective(
        Collective::SwapLanes {
            first,
            second,
            a,
            b,
            rows,
        },
        None,
    );
    Ok(Some(vec![first, second]))
}

/// A collective for each leaf of the operand at `index`.
fn each(
    e: &mut Emitter<'_>,
    call: &Invocation<'_>,
    index: usize,
    mut make: impl FnMut(Slot, usize, Slot) -> Collective,
) -> Decoded<Option<Vec<Slot>>> {
    let mut results = Vec::new();
    for (leaf, &value) in call.argument(index)?.slots.iter().enumerate() {
        let dst = e.slot();
        let what = make(value, leaf, dst);
        e.collective(what, None);
        results.push(dst);
    }
    Ok(Some(results))
}

/// `update.dpp` and `mov.dpp`, whose value is the operand `first`: lanes read others of their row.
fn data_parallel(
    e: &mut Emitter<'_>,
    first: usize,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    let control = call.constant(first + 1)? as u32;
    if !is_dpp_control(control) {
        return Err(Unknown::new(format!("the DPP control {control:#x}")));
    }
    let (row_mask, bank_mask) = (
        call.constant(first + 2)? as u32,
        call.constant(first + 3)? as u32,
    );
    let bound_control = call.constant(first + 4)? != 0;
    let zero = e.constant(0);
    let old: Vec<Slot> = if first == 1 {
        call.argument(0)?.slots.clone()
    } else {
        vec![zero; call.argument(0)?.slots.len()]
    };
    each(e, call, first, |value, leaf, dst| Collective::Dpp {
        dst,
        old: old[leaf],
        value,
        control,
        row_mask,
        bank_mask,
        bound_control,
    })
}

/// Votes on predicates between the lanes of a wave.
fn votes(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    match base {
        "ballot" => {
            let predicate = call.scalar(0)?;
            let dst = e.slot();
            e.collective(
                Collective::Vote {
                    vote: Vote::Ballot,
                    dst,
                    predicate,
                },
                None,
            );
            let bits = call.result.first().map_or(64, |l| l.bits);
            Ok(Some(vec![if bits < 64 {
                e.truncate(dst, bits)
            } else {
                dst
            }]))
        }
        "inverse.ballot" => {
            let votes = call.scalar(0)?;
            let lane = e.special(Special::Lane);
            Ok(Some(vec![e.map2(
                row2!(|votes, lane| votes >> lane & 1),
                votes,
                lane,
            )]))
        }
        "mbcnt.lo" | "mbcnt.hi" => {
            // Bits of the mask below the lane, in the lower or upper half of the wave.
            let (bits, base_count) = (call.scalar(0)?, call.scalar(1)?);
            let lane = e.special(Special::Lane);
            let f = if base == "mbcnt.lo" {
                row3!(|bits, count, lane| (count
                    + u64::from((bits & mask(lane.min(32) as u32)).count_ones()))
                    & 0xffff_ffff)
            } else {
                row3!(|bits, count, lane| {
                    let below = mask(lane.saturating_sub(32) as u32);
                    (count + u64::from((bits & below).count_ones())) & 0xffff_ffff
                })
            };
            Ok(Some(vec![e.map3(f, bits, base_count, lane)]))
        }
        _ => Ok(None),
    }
}

/// `v_perm_b32`: bytes of `b` (0-3) and `a` (4-7), signs of halves (8-11), zero (12), all ones (from 13).
pub(crate) const PERM: row::Row3 = row3!(|a, b, selector| {
    let bytes = b & 0xffff_ffff | a << 32;
    (0..4).fold(0, |result, i| {
        let byte = match selector >> (8 * i) & 0xff {
            n @ 0..=7 => bytes >> (8 * n) & 0xff,
            n @ 8..=11 => (bytes >> (16 * (n - 8) + 15) & 1) * 0xff,
            12 => 0,
            _ => 0xff,
        };
        result | byte << (8 * i)
    })
});

/// `v_ffbh_i32`: the number of bits, from the highest on, that are equal to the sign; all ones where all are.
const FIRST_UNLIKE_SIGN: row::Row1 = row1!(|a| {
    let x = if a >> 31 & 1 == 1 {
        !a & 0xffff_ffff
    } else {
        a
    };
    if x == 0 {
        0xffff_ffff
    } else {
        u64::from((x as u32).leading_zeros())
    }
});

/// Arithmetic on up to a few numbers.
fn arithmetic(e: &mut Emitter<'_>, base: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let leaf = call
        .argument(0)
        .ok()
        .and_then(|a| a.leaves.first().copied());
    let real = leaf
        .and_then(|l| l.real)
        .map(|r| if r == Real::F32 { e.single } else { r });
    let function = match base {
        "rcp" => Some(RealFunction::Reciprocal),
        "rsq" => Some(RealFunction::Rsqrt),
        "sqrt" => Some(RealFunction::Sqrt),
        "exp2" => Some(RealFunction::Exp2),
        "log" => Some(RealFunction::Log2),
        "sin" => Some(RealFunction::SinTurns),
        "cos" => Some(RealFunction::CosTurns),
        "fract" => Some(RealFunction::Fraction),
        "tanh" => Some(RealFunction::Tanh),
        _ => None,
    };
    if let (Some(function), Some(real)) = (function, real) {
        let a = call.scalar(0)?;
        return Ok(vec![e.map1(row::real_function(function, real), a)]);
    }
    let binary = |e: &mut Emitter<'_>, f: row::Row2| -> Decoded<Vec<Slot>> {
        let (a, b) = (call.scalar(0)?, call.scalar(1)?);
        Ok(vec![e.map2(f, a, b)])
    };
    let ternary = |e: &mut Emitter<'_>, f: row::Row3| -> Decoded<Vec<Slot>> {
        let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
        Ok(vec![e.map3(f, a, b, c)])
    };
    match (base, real) {
        ("perm", _) => ternary(e, PERM),
        ("alignbit", _) => ternary(e, row3!(|a, b, s| (a << 32 | b) >> (s & 31) & 0xffff_ffff)),
        ("alignbyte", _) => ternary(
            e,
            row3!(|a, b, s| (a << 32 | b) >> (8 * (s & 3)) & 0xffff_ffff),
        ),
        ("ubfe", _) => ternary(
            e,
            row3!(|a, at, n| (a >> (at & 31)) & mask((n & 31) as u32)),
        ),
        ("sbfe", _) => ternary(
            e,
            row3!(|a, at, n| {
                let (at, n) = (at & 31, (n & 31) as u32);
                row::sext(a >> at & mask(n), n.max(1)) as u64 & if n == 0 { 0 } else { 0xffff_ffff }
            }),
        ),
        ("mul.u24", _) => binary(
            e,
            row2!(|a, b| ((a & 0xff_ffff) * (b & 0xff_ffff)) & 0xffff_ffff),
        ),
        ("mul.i24", _) => binary(
            e,
            row2!(|a, b| (row::sext(a, 24) * row::sext(b, 24)) as u64 & 0xffff_ffff),
        ),
        ("mulhi.u24", _) => binary(e, row2!(|a, b| ((a & 0xff_ffff) * (b & 0xff_ffff)) >> 32)),
        ("mulhi.i24", _) => binary(
            e,
            row2!(|a, b| ((row::sext(a, 24) * row::sext(b, 24)) >> 32) as u64 & 0xffff_ffff),
        ),
        ("sffbh", _) => {
            let a = call.scalar(0)?;
            Ok(vec![e.map1(FIRST_UNLIKE_SIGN, a)])
        }
        ("sdot4" | "udot4", _) if call.constant(3).is_ok_and(|clamp| clamp == 0) => {
            let signed = base == "sdot4";
            ternary(e, super::dot4(signed, signed))
        }
        ("fmed3", Some(real)) => median(e, real, call),
        ("fma.legacy", _) => ternary(e, row::real_fma(Real::F32)),
        ("fmul.legacy", _) => binary(e, row::real_binary(RealOp::Mul, Real::F32)),
        ("fdot2" | "fdot2.f32.bf16" | "fdot2.bf16.bf16" | "fdot2.f16.f16", _) => dot2(e, call),
        // The bits of the mask are those of LLVM's own test.
        ("class", Some(real)) => binary(e, generic::is_of_class(real)),
        ("frexp.mant", Some(real)) => {
            let a = call.scalar(0)?;
            Ok(vec![e.map1(generic::split_rows(real).0, a)])
        }
        ("frexp.exp", Some(real)) => {
            let a = call.scalar(0)?;
            let exponent = e.map1(generic::split_rows(real).1, a);
            let bits = call.result.first().map_or(32, |leaf| leaf.bits);
            Ok(vec![e.truncate(exponent, bits)])
        }
        ("trig.preop", Some(Real::F64)) => amdgcn_trigonometry::preop(e, call),
        ("groupstaticsize", _) => Ok(vec![e.special(Special::TotalSharedBytes)]),
        _ => Err(call.unknown()),
    }
}

/// The median of three numbers.
fn median(e: &mut Emitter<'_>, real: Real, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let (min, max) = (
        row::real_binary(RealOp::MinNum, real),
        row::real_binary(RealOp::MaxNum, real),
    );
    let (a, b, c) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
    let low = e.map2(min, a, b);
    let high = e.map2(max, a, b);
    let middle = e.map2(min, high, c);
    Ok(vec![e.map2(max, low, middle)])
}

/// Sum of two products and an accumulator, rounded once.
fn dot2(e: &mut Emitter<'_>, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let (a, b) = (&call.argument(0)?.slots, &call.argument(1)?.slots);
    let input = call
        .argument(0)?
        .leaves
        .first()
        .and_then(|l| l.real)
        .ok_or_else(|| call.unknown())?;
    let output = call
        .argument(2)?
        .leaves
        .first()
        .and_then(|l| l.real)
        .ok_or_else(|| call.unknown())?;
    let ([a0, a1], [b0, b1]) = (&a[..], &b[..]) else {
        return Err(call.unknown());
    };
    let c = call.scalar(2)?;
    let widen = row::real_convert(input, Real::F64);
    let (a0, a1, b0, b1) = (
        e.map1(widen, *a0),
        e.map1(widen, *a1),
        e.map1(widen, *b0),
        e.map1(widen, *b1),
    );
    let c = if output == Real::F64 {
        c
    } else {
        e.map1(row::real_convert(output, Real::F64), c)
    };
    let fma = row::real_fma(Real::F64);
    let sum = e.map3(fma, a0, b0, c);
    let sum = e.map3(fma, a1, b1, sum);
    Ok(vec![e.map1(row::real_convert(Real::F64, output), sum)])
}
