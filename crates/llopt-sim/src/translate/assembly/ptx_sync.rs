//! PTX's operations between lanes and threads: shuffles, votes, barriers, fences.

use crate::error::Decoded;
use crate::machine::bytecode::{Barrier, BarrierVote, Collective, Fence, Op, Special, Vote};
use crate::translate::intrinsics::{reduction, shuffle_mode};

use super::ptx_operands::{Kind, Translator, Type, unknown};
use super::ptx_parse::{Instruction, Operand};

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let modifiers: Vec<&str> = i.opcode[1..].iter().map(String::as_str).collect();
    match i.opcode[0].as_str() {
        "shfl" => shuffle(t, i, &modifiers)?,
        "vote" => vote(t, i, &modifiers)?,
        "match" => matches(t, i, &modifiers)?,
        "redux" => reduce(t, i, &modifiers)?,
        "activemask" => {
            let active = t.e.special(Special::ActiveMask);
            t.write(&i.operands[0], active, 32)?;
        }
        "elect" => {
            let [target, members] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let members = t.read(members, 32)?;
            let (leader, chosen) = (t.e.slot(), t.e.slot());
            t.e.collective(Collective::Elect { leader, chosen }, Some(members));
            if let Operand::Pair(first, second) = target {
                t.write(first, leader, 32)?;
                t.write(second, chosen, 1)?;
            } else {
                t.write(target, leader, 32)?;
            }
        }
        "bar" | "barrier" => barrier(t, i, &modifiers)?,
        "membar" | "fence" => t.e.fence(Fence::default()),
        "griddepcontrol" if modifiers[..] == ["wait"] => t.e.grid_wait(),
        "griddepcontrol" | "nanosleep" | "pmevent" => t.nothing(),
        "setmaxnreg" => {
            let (["inc" | "dec", "sync", "aligned", "u32"], [Operand::Int(count)]) =
                (&modifiers[..], &i.operands[..])
            else {
                return Err(unknown(i));
            };
            let count = u32::try_from(*count).map_err(|_| unknown(i))?;
            let more = modifiers[0] == "inc";
            let site = t.e.site();
            t.e.push(Op::Barrier(
                Box::new(Barrier::Registers { count, more }),
                site,
            ));
        }
        "trap" => {
            let site = t.e.site();
            t.e.push(Op::Trap(site));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn shuffle(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let (["sync", mode, "b32"], [target, value, lane, clamp, members]) =
        (modifiers, &i.operands[..])
    else {
        return Err(unknown(i));
    };
    let mode = shuffle_mode(mode).ok_or_else(|| unknown(i))?;
    let (value, lane) = (t.read(value, 32)?, t.read(lane, 32)?);
    let (clamp, members) = (t.read(clamp, 32)?, t.read(members, 32)?);
    let (dst, flag) = (t.e.slot(), t.e.slot());
    let what = Collective::Shuffle {
        mode,
        dst,
        in_range: Some(flag),
        value,
        lane,
        clamp,
    };
    t.e.collective(what, Some(members));
    if let Operand::Pair(first, second) = target {
        t.write(first, dst, 32)?;
        return t.write(second, flag, 1);
    }
    t.write(target, dst, 32)
}

fn vote(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let (["sync", what, ty], [target, predicate, members]) = (modifiers, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let vote = match (*what, *ty) {
        ("all", "pred") => Vote::All,
        ("any", "pred") => Vote::Any,
        ("uni", "pred") => Vote::Uniform,
        ("ballot", "b32") => Vote::Ballot,
        _ => return Err(unknown(i)),
    };
    let (predicate, members) = (t.read(predicate, 1)?, t.read(members, 32)?);
    let dst = t.e.slot();
    t.e.collective(
        Collective::Vote {
            vote,
            dst,
            predicate,
        },
        Some(members),
    );
    t.write(target, dst, if vote == Vote::Ballot { 32 } else { 1 })
}

fn matches(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let ([what, "sync", ty], [target, value, members]) = (modifiers, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let bits = Type::parse(ty).ok_or_else(|| unknown(i))?.bits;
    let (value, members) = (t.read(value, bits)?, t.read(members, 32)?);
    let (dst, agree) = (t.e.slot(), t.e.slot());
    let all = match *what {
        "all" => true,
        "any" => false,
        _ => return Err(unknown(i)),
    };
    let what = Collective::Match {
        all,
        dst,
        agree: all.then_some(agree),
        value,
    };
    t.e.collective(what, Some(members));
    if let Operand::Pair(first, second) = target {
        t.write(first, dst, 32)?;
        return t.write(second, agree, 1);
    }
    t.write(target, dst, 32)
}

fn reduce(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let (["sync", op, ty], [target, value, members]) = (modifiers, &i.operands[..]) else {
        return Err(unknown(i));
    };
    let ty = Type::parse(ty)
        .filter(|ty| ty.bits == 32 && !ty.packed)
        .ok_or_else(|| unknown(i))?;
    if matches!(ty.kind, Kind::Float | Kind::BFloat) {
        return Err(unknown(i));
    }
    let op = reduction(op, ty.is_signed()).ok_or_else(|| unknown(i))?;
    let (value, members) = (t.read(value, 32)?, t.read(members, 32)?);
    let dst = t.e.slot();
    t.e.collective(Collective::Reduce { op, dst, value }, Some(members));
    t.write(target, dst, 32)
}

fn barrier(t: &mut Translator<'_, '_>, i: &Instruction, modifiers: &[&str]) -> Decoded<()> {
    let plain: Vec<&str> = modifiers
        .iter()
        .copied()
        .filter(|m| !matches!(*m, "cta" | "aligned" | "release" | "acquire" | "relaxed"))
        .collect();
    match plain[..] {
        ["warp", "sync"] => {
            let members = t.read(&i.operands[0], 32)?;
            t.e.collective(Collective::Meet, Some(members));
        }
        ["cluster", "arrive"] => {
            let site = t.e.site();
            t.e.push(Op::Barrier(Box::new(Barrier::ClusterArrive), site));
        }
        ["cluster", "wait"] => {
            let site = t.e.site();
            t.e.push(Op::Barrier(Box::new(Barrier::ClusterWait), site));
        }
        ["sync"] => {
            let (id, threads) = match &i.operands[..] {
                [id] => (t.read(id, 32)?, None),
                [id, threads] => (t.read(id, 32)?, Some(t.read(threads, 32)?)),
                _ => return Err(unknown(i)),
            };
            let site = t.e.site();
            t.e.push(Op::Barrier(
                Box::new(Barrier::Sync {
                    id,
                    threads,
                    reduce: None,
                }),
                site,
            ));
        }
        ["arrive"] => {
            let [id, threads] = &i.operands[..] else {
                return Err(unknown(i));
            };
            let (id, threads) = (t.read(id, 32)?, t.read(threads, 32)?);
            let site = t.e.site();
            t.e.push(Op::Barrier(Box::new(Barrier::Arrive { id, threads }), site));
        }
        ["red", op @ ("and" | "or" | "popc"), _] => {
            let (target, id, threads, predicate) = match &i.operands[..] {
                [d, id, p] => (d, id, None, p),
                [d, id, n, p] => (d, id, Some(n), p),
                _ => return Err(unknown(i)),
            };
            let id = t.read(id, 32)?;
            let threads = threads.map(|n| t.read(n, 32)).transpose()?;
            let predicate = t.read(predicate, 1)?;
            let dst = t.e.slot();
            let reduce = Some(BarrierVote {
                vote: if op == "or" { Vote::Any } else { Vote::All },
                predicate,
                dst,
                count: op == "popc",
            });
            let site = t.e.site();
            t.e.push(Op::Barrier(
                Box::new(Barrier::Sync {
                    id,
                    threads,
                    reduce,
                }),
                site,
            ));
            t.write(target, dst, if op == "popc" { 32 } else { 1 })?;
        }
        _ => return Err(unknown(i)),
    }
    Ok(())
}
