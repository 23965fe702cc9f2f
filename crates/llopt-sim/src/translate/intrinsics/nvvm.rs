//! NVIDIA's intrinsics: special registers, barriers, operations between lanes; arithmetic and memory are in
//! [`super::nvvm_math`] and [`super::nvvm_memory`]. (LLVM: "NVPTX usage guide"; PTX ISA.)

use crate::error::Decoded;
use crate::machine::block::REMOTE;
use crate::machine::bytecode::{
    Async, AtomicOp, Barrier, BarrierVote, Collective, Fence, LaneMask, Op, ShuffleMode, Slot,
    Special, Terminator, Vote,
};
use crate::machine::row::{Real, row1, row2};
use crate::memory::global::SHARED_WINDOW;
use crate::translate::emit::Emitter;

use super::{Invocation, nvvm_math, nvvm_memory};

/// Translates `llvm.nvvm.<name>`.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Vec<Slot>> {
    if let Some(register) = name.strip_prefix("read.ptx.sreg.") {
        let slot = special_register(e, register).ok_or_else(|| call.unknown())?;
        return Ok(vec![slot]);
    }
    if let Some(rest) = name.strip_prefix("shfl.sync.") {
        return shuffle(e, rest, call);
    }
    if let Some(slots) = lanes_meet(e, name, call)? {
        return Ok(slots);
    }
    if let Some(slots) = barriers(e, name, call)? {
        return Ok(slots);
    }
    if let Some(slots) = nvvm_memory::translate(e, name, call)? {
        return Ok(slots);
    }
    nvvm_math::translate(e, name, call)
}

/// The address in the cluster's window of a shared address in the block of a rank.
pub(crate) fn map_address(e: &mut Emitter<'_>, address: Slot, rank: Slot) -> Slot {
    e.map2(
        row2!(|a, rank| (a & SHARED_WINDOW) | ((rank + 1) * REMOTE) | (a % REMOTE)),
        address,
        rank,
    )
}

/// The value of a special register, by its PTX name.
pub(crate) fn special_register(e: &mut Emitter<'_>, name: &str) -> Option<Slot> {
    let axis = |text: &str| match text {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    let what = match name.rsplit_once('.') {
        Some(("tid", a)) => Special::ThreadId(axis(a)?),
        Some(("ntid", a)) => Special::BlockThreads(axis(a)?),
        Some(("ctaid", a)) => Special::BlockId(axis(a)?),
        Some(("clusterid", a)) => Special::ClusterId(axis(a)?),
        Some(("nctaid", a)) => Special::GridBlocks(axis(a)?),
        Some(("nclusterid", a)) => Special::GridClusters(axis(a)?),
        // Clusters extend along x.
        Some(("cluster.ctaid" | "cluster_ctaid", "x")) => Special::ClusterRank,
        Some(("cluster.nctaid" | "cluster_nctaid", "x")) => Special::ClusterBlocks,
        Some(("cluster.ctaid" | "cluster_ctaid", a)) => {
            axis(a)?;
            return Some(e.constant(0));
        }
        Some(("cluster.nctaid" | "cluster_nctaid", a)) => {
            axis(a)?;
            return Some(e.constant(1));
        }
        Some(("lanemask", "eq")) => Special::LaneMask(LaneMask::Eq),
        Some(("lanemask", "le")) => Special::LaneMask(LaneMask::Le),
        Some(("lanemask", "lt")) => Special::LaneMask(LaneMask::Lt),
        Some(("lanemask", "ge")) => Special::LaneMask(LaneMask::Ge),
        Some(("lanemask", "gt")) => Special::LaneMask(LaneMask::Gt),
        _ => match name {
            "laneid" => Special::Lane,
            "warpid" => Special::WarpId,
            "nwarpid" => Special::WarpCount,
            "warpsize" | "WARP_SZ" => Special::WarpSize,
            "lanemask_eq" => Special::LaneMask(LaneMask::Eq),
            "lanemask_le" => Special::LaneMask(LaneMask::Le),
            "lanemask_lt" => Special::LaneMask(LaneMask::Lt),
            "lanemask_ge" => Special::LaneMask(LaneMask::Ge),
            "lanemask_gt" => Special::LaneMask(LaneMask::Gt),
            "clock" | "clock64" | "clock_hi" | "globaltimer" | "globaltimer_lo" => Special::Clock,
            "smid" => Special::Processor,
            "dynamic_smem_size" => Special::DynamicSharedBytes,
            "total_smem_size" => Special::TotalSharedBytes,
            "cluster.ctarank" | "cluster_ctarank" => Special::ClusterRank,
            "cluster.nctarank" | "cluster_nctarank" => Special::ClusterBlocks,
            "is_explicit_cluster" => return Some(e.constant(0)),
            _ => return None,
        },
    };
    Some(e.special(what))
}

/// `shfl.sync.<mode>.<type>[p]`.
fn shuffle(e: &mut Emitter<'_>, name: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let (mode, ty) = name.split_once('.').ok_or_else(|| call.unknown())?;
    let mode = shuffle_mode(mode).ok_or_else(|| call.unknown())?;
    let (members, value, lane, clamp) = (
        call.scalar(0)?,
        call.scalar(1)?,
        call.scalar(2)?,
        call.scalar(3)?,
    );
    let dst = e.slot();
    let in_range = ty.ends_with('p').then(|| e.slot());
    let what = Collective::Shuffle {
        mode,
        dst,
        in_range,
        value,
        lane,
        clamp,
    };
    e.collective(what, Some(members));
    Ok(std::iter::once(dst).chain(in_range).collect())
}

/// The mode of a shuffle by its PTX name.
pub(crate) fn shuffle_mode(name: &str) -> Option<ShuffleMode> {
    Some(match name {
        "up" => ShuffleMode::Up,
        "down" => ShuffleMode::Down,
        "bfly" => ShuffleMode::Butterfly,
        "idx" => ShuffleMode::Index,
        _ => return None,
    })
}

/// The operation of `redux.sync` by its PTX name and type.
pub(crate) fn reduction(op: &str, signed: bool) -> Option<AtomicOp> {
    Some(match op {
        "add" => AtomicOp::Add,
        "min" if signed => AtomicOp::SMin,
        "max" if signed => AtomicOp::SMax,
        "min" | "umin" => AtomicOp::UMin,
        "max" | "umax" => AtomicOp::UMax,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        _ => return None,
    })
}

/// Votes, matches, reductions and other collective operations.
fn lanes_meet(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    let vote = match name {
        "vote.all.sync" => Some(Vote::All),
        "vote.any.sync" => Some(Vote::Any),
        "vote.uni.sync" => Some(Vote::Uniform),
        "vote.ballot.sync" => Some(Vote::Ballot),
        _ => None,
    };
    if let Some(vote) = vote {
        let (members, predicate, dst) = (call.scalar(0)?, call.scalar(1)?, e.slot());
        e.collective(
            Collective::Vote {
                vote,
                dst,
                predicate,
            },
            Some(members),
        );
        return Ok(Some(vec![dst]));
    }
    if let Some(op) = name.strip_prefix("redux.sync.") {
        let op = match op {
            "fmin" => AtomicOp::FMin(Real::F32),
            "fmax" => AtomicOp::FMax(Real::F32),
            _ => reduction(op, true).ok_or_else(|| call.unknown())?,
        };
        let (value, members, dst) = (call.scalar(0)?, call.scalar(1)?, e.slot());
        e.collective(Collective::Reduce { op, dst, value }, Some(members));
        return Ok(Some(vec![dst]));
    }
    Ok(Some(match name {
        "activemask" => vec![e.special(Special::ActiveMask)],
        "match.any.sync.i32" | "match.any.sync.i64" => {
            let (members, value, dst) = (call.scalar(0)?, call.scalar(1)?, e.slot());
            e.collective(
                Collective::Match {
                    all: false,
                    dst,
                    agree: None,
                    value,
                },
                Some(members),
            );
            vec![dst]
        }
        "match.all.sync.i32p" | "match.all.sync.i64p" => {
            let (members, value) = (call.scalar(0)?, call.scalar(1)?);
            let (dst, agree) = (e.slot(), e.slot());
            let what = Collective::Match {
                all: true,
                dst,
                agree: Some(agree),
                value,
            };
            e.collective(what, Some(members));
            vec![dst, agree]
        }
        "elect.sync" => {
            let members = call.scalar(0)?;
            let (leader, chosen) = (e.slot(), e.slot());
            e.collective(Collective::Elect { leader, chosen }, Some(members));
            vec![leader, chosen]
        }
        "bar.warp.sync" => {
            let members = call.scalar(0)?;
            e.collective(Collective::Meet, Some(members));
            Vec::new()
        }
        _ => return Ok(None),
    }))
}

/// Barriers of the block and of the cluster, which is executed as one block.
fn barriers(e: &mut Emitter<'_>, name: &str, call: &Invocation<'_>) -> Decoded<Option<Vec<Slot>>> {
    let zero = e.constant(0);
    let sync = |e: &mut Emitter<'_>, id: Slot, threads: Option<Slot>| {
        let site = e.site();
        e.push(Op::Barrier(
            Box::new(Barrier::Sync {
                id,
                threads,
                reduce: None,
            }),
            site,
        ));
    };
    match name {
        "barrier0" => sync(e, zero, None),
        "barrier.n"
        | "bar.sync"
        | "barrier.sync"
        | "barrier.cta.sync.all"
        | "barrier.cta.sync.aligned.all" => {
            let id = call.scalar(0)?;
            sync(e, id, None);
        }
        "barrier"
        | "barrier.sync.cnt"
        | "barrier.cta.sync.count"
        | "barrier.cta.sync.aligned.count" => {
            let (id, threads) = (call.scalar(0)?, call.scalar(1)?);
            sync(e, id, Some(threads));
        }
        "barrier.cta.arrive.count" | "barrier.cta.arrive.aligned.count" => {
            let (id, threads) = (call.scalar(0)?, call.scalar(1)?);
            let site = e.site();
            e.push(Op::Barrier(Box::new(Barrier::Arrive { id, threads }), site));
        }
        "barrier0.popc" | "barrier0.and" | "barrier0.or" => {
            return barrier_vote(e, zero, name, call).map(|slot| Some(vec![slot]));
        }
        "barrier.cluster.arrive"
        | "barrier.cluster.arrive.aligned"
        | "barrier.cluster.arrive.relaxed"
        | "barrier.cluster.arrive.relaxed.aligned" => {
            let site = e.site();
            e.push(Op::Barrier(Box::new(Barrier::ClusterArrive), site));
        }
        "barrier.cluster.wait" | "barrier.cluster.wait.aligned" => {
            let site = e.site();
            e.push(Op::Barrier(Box::new(Barrier::ClusterWait), site));
        }
        "mapa" | "mapa.shared.cluster" => {
            let (address, rank) = (call.scalar(0)?, call.scalar(1)?);
            return Ok(Some(vec![map_address(e, address, rank)]));
        }
        "membar.cta"
        | "membar.gl"
        | "membar.sys"
        | "fence.sc.cluster"
        | "fence.proxy.alias"
        | "fence.proxy.async.global" => e.fence(Fence::default()),
        // What is known to be initialised is visible to the engine, which counts bytes there.
        "fence.mbarrier_init.release.cluster" => e.asynchronous(Async::ProxyFence),
        "setmaxnreg.inc.sync.aligned.u32" | "setmaxnreg.dec.sync.aligned.u32" => {
            let count = call.constant(0)? as u32;
            let more = name.starts_with("setmaxnreg.inc");
            let site = e.site();
            e.push(Op::Barrier(
                Box::new(Barrier::Registers { count, more }),
                site,
            ));
        }
        "griddepcontrol.wait" => e.grid_wait(),
        "griddepcontrol.launch.dependents"
        | "nanosleep"
        | "pm.event.mask"
        | "discard.global.L2"
        | "discard.L2" => {
            e.push(Op::Nothing);
        }
        _ if name.starts_with("fence.proxy.tensormap_generic.acquire") => {
            let address = call.scalar(0)?;
            e.asynchronous(Async::DescriptorAcquire(address));
        }
        _ if name.starts_with("prefetch") || name.starts_with("fence.proxy.tensormap") => {
            e.push(Op::Nothing)
        }
        "exit" => {
            e.terminate(Terminator::Exit);
            let unreached = e.new_block();
            e.enter(unreached);
        }
        "isspacep.shared"
        | "isspacep.shared.cluster"
        | "isspacep.local"
        | "isspacep.global"
        | "isspacep.const" => return is_in_space(e, name, call).map(|slot| Some(vec![slot])),
        _ => return Ok(None),
    }
    Ok(Some(Vec::new()))
}

/// Whether a generic address lies in a space.
fn is_in_space(e: &mut Emitter<'_>, name: &str, call: &Invocation<'_>) -> Decoded<Slot> {
    use crate::memory::global::{LOCAL_WINDOW, SHARED_WINDOW};
    let address = call.scalar(0)?;
    let (bit, f) = match name {
        "isspacep.shared" | "isspacep.shared.cluster" => {
            (SHARED_WINDOW, row2!(|a, bit| u64::from(a & bit != 0)))
        }
        "isspacep.local" => (LOCAL_WINDOW, row2!(|a, bit| u64::from(a & bit != 0))),
        "isspacep.const" => (0, row2!(|_a, _bit| 0)),
        _ => (
            SHARED_WINDOW | LOCAL_WINDOW,
            row2!(|a, bit| u64::from(a & bit == 0)),
        ),
    };
    let bit = e.constant(bit);
    Ok(e.map2(f, address, bit))
}

/// A barrier that reduces a predicate over its threads.
fn barrier_vote(e: &mut Emitter<'_>, id: Slot, name: &str, call: &Invocation<'_>) -> Decoded<Slot> {
    let predicate = call.scalar(0)?;
    let predicate = e.map1(row1!(|a| u64::from(a != 0)), predicate);
    let dst = e.slot();
    let reduce = Some(BarrierVote {
        vote: if name.ends_with("or") {
            Vote::Any
        } else {
            Vote::All
        },
        predicate,
        dst,
        count: name.ends_with("popc"),
    });
    let site = e.site();
    e.push(Op::Barrier(
        Box::new(Barrier::Sync {
            id,
            threads: None,
            reduce,
        }),
        site,
    ));
    Ok(dst)
}
