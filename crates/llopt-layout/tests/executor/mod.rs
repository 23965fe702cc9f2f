//! Follows a plan with a tag for every element, as a code generator's output would.
#![allow(dead_code, reason = "each test binary uses a part")]

use llopt_layout::instruction::{Bit, InstructionKind};
use llopt_layout::plan::{Machine, Movement, Plan, Scope, SharedAccess, SharedPlan, ShufflePlan};
use llopt_layout::{Dim, LinearLayout};

/// The flattened element that each place holds, by block, warp, lane, register.
pub type Values = Vec<Vec<Vec<Vec<u32>>>>;

/// What happens to a cell of memory for a block, warp, lane and register.
type Visit<'a> = dyn FnMut(&mut Option<u32>, [u32; 4]) -> Result<(), String> + 'a;

fn size(layout: &LinearLayout, dim: Dim) -> u32 {
    layout.in_dim_size(dim) as u32
}

/// The element that `layout` has at each place, with the outputs in the order of `order`.
pub fn held(layout: &LinearLayout, order: &LinearLayout) -> Values {
    let layout = layout
        .transpose_outs(order.out_dims())
        .expect("the same dimensions");
    let at = |b: u32, w: u32, l: u32, r: u32| {
        let point: Vec<_> = layout
            .in_dims()
            .iter()
            .map(|&d| match d {
                Dim::REGISTER => (d, r),
                Dim::LANE => (d, l),
                Dim::WARP => (d, w),
                _ => (d, b),
            })
            .collect();
        layout.apply_flat(layout.flatten_input(&point).expect("a point"))
    };
    let range = |dim| 0..size(&layout, dim);
    range(Dim::BLOCK)
        .map(|b| {
            range(Dim::WARP)
                .map(|w| {
                    range(Dim::LANE)
                        .map(|l| range(Dim::REGISTER).map(|r| at(b, w, l, r)).collect())
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// Follows the plan from the values of `from`; `Err` says what went wrong.
pub fn follow(
    plan: &Plan,
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<Values, String> {
    let source = held(from, from);
    let registers = size(to, Dim::REGISTER);
    match &plan.movement {
        Movement::Nothing => Ok(source),
        Movement::Registers { sources } => Ok(map_threads(&source, |_, _, _, thread| {
            (0..registers)
                .map(|r| thread[sources.apply(r) as usize])
                .collect()
        })),
        Movement::Shuffle(shuffle) => Ok(follow_shuffle(shuffle, &source, registers)),
        Movement::Shared(shared) => {
            follow_shared(shared, &source, registers, element_bits, machine)
        }
    }
}

fn map_threads(values: &Values, f: impl Fn(u32, u32, u32, &[u32]) -> Vec<u32>) -> Values {
    (0..)
        .zip(values)
        .map(|(b, block)| {
            (0..)
                .zip(block)
                .map(|(w, warp)| {
                    (0..)
                        .zip(warp)
                        .map(|(l, thread)| f(b, w, l, thread))
                        .collect()
                })
                .collect()
        })
        .collect()
}

fn follow_shuffle(plan: &ShufflePlan, source: &Values, registers: u32) -> Values {
    let slots = 1u32 << plan.slots_log2;
    // Threads of words of slots.
    let packed: Vec<Vec<Vec<Vec<Vec<u32>>>>> = (0..)
        .zip(source)
        .map(|(b, block)| {
            (0..)
                .zip(block)
                .map(|(w, warp)| {
                    (0..)
                        .zip(warp)
                        .map(|(l, thread)| {
                            let mut words: Vec<Vec<u32>> = (0..1u32 << plan.words_log2)
                                .map(|word| {
                                    (0..slots)
                                        .map(|slot| thread[plan.source(word, slot) as usize])
                                        .collect()
                                })
                                .collect();
                            for exchange in &plan.before {
                                if exchange.condition.holds(l, w, b) {
                                    words = (0..words.len())
                                        .map(|i| words[i ^ exchange.xor as usize].clone())
                                        .collect();
                                }
                            }
                            words
                        })
                        .collect()
                })
                .collect()
        })
        .collect();
    let mut packed = packed;
    for swap in &plan.swaps {
        for warp in packed.iter_mut().flatten() {
            let before = warp.clone();
            for (first, second) in swap.pairs(1 << plan.words_log2) {
                for lane in (0..warp.len()).filter(|lane| *lane as u32 & swap.lane != 0) {
                    let (with, without) = (lane, lane ^ swap.lane as usize);
                    let (first, second) = (first as usize, second as usize);
                    warp[with][first] = before[without][second].clone();
                    warp[without][second] = before[with][first].clone();
                }
            }
        }
    }
    map_threads(source, |b, w, l, _| {
        let warp = &packed[b as usize][w as usize];
        let mut words: Vec<Vec<u32>> = plan
            .steps
            .iter()
            .map(|step| {
                let lane = plan.lane(l, w, b) ^ step.lane_xor;
                assert!(step.moves || lane == l, "a round that moves is marked so");
                let word = &warp[lane as usize][step.word as usize];
                (0..slots)
                    .map(|slot| word[(slot ^ step.slot_xor) as usize])
                    .collect()
            })
            .collect();
        for exchange in &plan.after {
            if exchange.condition.holds(l, w, b) {
                words = (0..words.len())
                    .map(|i| words[i ^ exchange.xor as usize].clone())
                    .collect();
            }
        }
        (0..registers)
            .map(|r| {
                let (word, slot) = plan.target(r);
                words[word as usize][slot as usize]
            })
            .collect()
    })
}

/// Index in the chunk, and index of the address, of element `slot` of a lane.
fn locate(access: &SharedAccess, lane: u32, slot: u32) -> (u32, u32) {
    let index = |bits: &[Bit]| {
        bits.iter().enumerate().fold(0, |acc, (i, bit)| {
            let value = match *bit {
                Bit::Register(r) => slot >> r & 1,
                Bit::Lane(l) => lane >> l & 1,
            };
            acc | value << i
        })
    };
    (
        index(&access.instruction.chunk),
        index(&access.instruction.address),
    )
}

/// Offset and block of an address.
fn address(access: &SharedAccess, lane: u32, warp: u32, block: u32, repeat: u32) -> (u32, u32) {
    let image = access
        .address
        .apply(&[
            (Dim::LANE, lane),
            (Dim::WARP, warp),
            (Dim::BLOCK, block),
            (SharedAccess::REPEAT, repeat),
        ])
        .expect("an address");
    (image[0].1, image[1].1)
}

fn follow_shared(
    plan: &SharedPlan,
    source: &Values,
    registers: u32,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<Values, String> {
    let (blocks, warps, lanes) = (
        source.len() as u32,
        source[0].len() as u32,
        source[0][0].len() as u32,
    );
    let offsets = size(&plan.memory, Dim::OFFSET);
    if offsets * (element_bits / 8) != plan.bytes || plan.bytes > machine.shared_bytes {
        return Err(format!("{} bytes for {offsets} offsets", plan.bytes));
    }
    if plan.scope == Scope::Cluster && plan.load.instruction.kind != InstructionKind::Vector {
        return Err("a matrix instruction reads the memory of another block".to_owned());
    }
    for access in [&plan.store, &plan.load] {
        check_wavefronts(access, element_bits, machine, plan.scope != Scope::Cluster)?;
    }
    let mut loaded: Values = map_threads(source, |_, _, _, _| vec![u32::MAX; registers as usize]);
    for round in 0..1u32 << plan.rounds.len() {
        let (mut from_xor, mut to_xor) = (0, 0);
        for (i, bit) in plan.rounds.iter().enumerate() {
            if round >> i & 1 == 1 {
                from_xor ^= bit.store;
                to_xor ^= bit.load;
            }
        }
        let mut memory = vec![vec![None; offsets as usize]; blocks as usize];
        let mut each = |access: &SharedAccess, visit: &mut Visit<'_>| -> Result<(), String> {
            let slots = 1u32 << access.instruction.registers_log2();
            let chunk = 1u32 << access.instruction.chunk.len();
            for b in 0..blocks {
                for w in 0..warps {
                    for repeat in 0..access.instructions {
                        for l in 0..lanes {
                            for slot in 0..slots {
                                let (inside, index) = locate(access, l, slot);
                                let (base, block) = address(access, index, w, b, repeat);
                                if base % chunk != 0 {
                                    return Err(format!("offset {base} is not aligned"));
                                }
                                let register = access.register(repeat, slot);
                                let cell = &mut memory[block as usize][(base | inside) as usize];
                                visit(cell, [b, w, l, register])?;
                            }
                        }
                    }
                }
            }
            Ok(())
        };
        each(&plan.store, &mut |cell, [b, w, l, r]| {
            let tag = source[b as usize][w as usize][l as usize][(r ^ from_xor) as usize];
            match cell.replace(tag) {
                Some(other) if other != tag => Err(format!("{other} and {tag} in one place")),
                _ => Ok(()),
            }
        })?;
        each(&plan.load, &mut |cell, [b, w, l, r]| {
            let tag = cell.ok_or_else(|| "a place that was not written".to_owned())?;
            loaded[b as usize][w as usize][l as usize][(r ^ to_xor) as usize] = tag;
            Ok(())
        })?;
    }
    Ok(map_threads(&loaded, |_, _, _, thread| {
        (0..registers)
            .map(|r| thread[plan.load.fold.apply(r) as usize])
            .collect()
    }))
}

/// The wavefronts by counting words in banks, for every instruction of warp 0, against the claim.
fn check_wavefronts(
    access: &SharedAccess,
    element_bits: u32,
    machine: &Machine<'_>,
    one_block: bool,
) -> Result<(), String> {
    let instruction = &access.instruction;
    let bytes = element_bits / 8;
    let mut total = 0;
    for repeat in 0..access.instructions {
        let addresses: Vec<u32> = (0..1u32 << instruction.addresses_log2())
            .map(|lane| address(access, lane, 0, 0, repeat).0 * bytes)
            .collect();
        if instruction.kind == InstructionKind::Vector && one_block {
            // The same by the definition, which looks for lanes that share addresses itself.
            let bytes = 1 << instruction.chunk_bytes_log2();
            let counted = machine.banks.count(instruction.access, bytes, &addresses);
            let claimed = access.wavefronts / access.instructions;
            if counted != Some(claimed) {
                return Err(format!(
                    "{counted:?} wavefronts where {claimed} were claimed"
                ));
            }
        }
        total += machine.banks.count_in_phases(
            &instruction.phase,
            1 << instruction.chunk_bytes_log2(),
            &addresses,
        );
    }
    if total != access.wavefronts || access.bound > access.wavefronts {
        return Err(format!(
            "{total} wavefronts where {} were claimed, bound {}",
            access.wavefronts, access.bound
        ));
    }
    Ok(())
}
