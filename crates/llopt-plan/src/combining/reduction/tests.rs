//! Plans of reductions, followed on sets of elements and on expressions.

use std::collections::HashMap;

use llopt_target::Target;
use proptest::prelude::*;

use super::warp::{WarpReduction, Way};
use super::*;
use crate::cluster::distances;
use crate::combining::reduction::combination::SUM;

/// Bases as row-major numbers.
#[derive(Clone, Debug)]
struct Places {
    registers: Vec<u32>,
    lanes: Vec<u32>,
    warps: Vec<u32>,
    blocks: Vec<u32>,
}

/// The sum of the chosen vectors.
fn sum(vectors: &[u32], chosen: u32) -> u32 {
    (0..vectors.len())
        .filter(|i| chosen >> i & 1 == 1)
        .fold(0, |all, i| all ^ vectors[i])
}

/// The places outside of the axis, in the order of their first registers, with all their registers.
fn keys(tensor: &TensorType, axis: &Axis) -> Vec<(u32, Vec<usize>)> {
    let mut keys: Vec<(u32, Vec<usize>)> = Vec::new();
    for register in (0..tensor.registers()).filter(|register| tensor.is_canonical(*register)) {
        let rest = axis.rest(tensor.element_in(register));
        match keys.iter_mut().find(|(key, _)| *key == rest) {
            Some((_, all)) => all.push(register),
            None => keys.push((rest, vec![register])),
        }
    }
    keys
}

/// Follows a plan on sets of elements: in the memory of every block, each row that the block holds must in the
/// end be complete, with each element once, whether each lane writes all results of its warp or those that it has kept.
fn check(shape: &[u32], axis: usize, places: &Places) -> ReductionPlan {
    let bits: u32 = shape.iter().map(|extent| extent.trailing_zeros()).sum();
    let numbers = [
        (Dim::REGISTER, places.registers.clone()),
        (Dim::LANE, places.lanes.clone()),
        (Dim::WARP, places.warps.clone()),
        (Dim::BLOCK, places.blocks.clone()),
    ];
    let tensor = TensorType::from_numbers(Element::F32, shape.to_vec(), &numbers).unwrap();
    let plan = ReductionPlan::new(&tensor, axis);
    let axis = Axis::of(&tensor, axis);

    assert_eq!(plan.keys, keys(&tensor, &axis));

    let threads = 1u32 << (places.lanes.len() + places.warps.len());
    let lane_mask = (1u32 << places.lanes.len()) - 1;
    let thread_bases = tensor.thread_bases();
    // For every block and every thread in it, the elements in each key.
    let held_by = |block: u32| -> Vec<Vec<Vec<u32>>> {
        let mut held: Vec<Vec<Vec<u32>>> = (0..threads)
            .map(|t| {
                let own = sum(&thread_bases, t) ^ sum(&places.blocks, block);
                let of_key = |registers: &Vec<usize>| {
                    registers
                        .iter()
                        .map(|r| tensor.element_in(*r) ^ own)
                        .collect()
                };
                plan.keys.iter().map(|(_, all)| of_key(all)).collect()
            })
            .collect();
        for step in &plan.lane_steps {
            assert_eq!(step.lanes & !lane_mask, 0);
            let of_key = |t: u32, i: usize| {
                let wanted = plan.keys[i].0 ^ step.rest;
                let other = plan.keys.iter().position(|(key, _)| *key == wanted);
                let mut all = held[t as usize][i].clone();
                all.extend(&held[(t ^ step.lanes) as usize][other.unwrap()]);
                all
            };
            held = (0..threads)
                .map(|t| (0..plan.keys.len()).map(|i| of_key(t, i)).collect())
                .collect();
        }
        held
    };
    let blocks = 1u32 << places.blocks.len();
    for may_divide in [false, true] {
        let lanes = Lanes {
            may_divide,
            ..plan.lanes(&SUM)
        };
        let lane_bits = places.lanes.len() as u32;
        let target = Target::parse("hip:gfx942").unwrap();
        let in_warp = WarpReduction::new(&lanes, &[Element::F32], &SUM, lane_bits, target);
        let kept = in_warp.kept(&lanes.keys, lane_bits);
        let writers = plan.writers(&kept);
        let mut memories: Vec<HashMap<u32, Vec<u32>>> = vec![HashMap::new(); blocks as usize];
        for block in 0..blocks {
            let held = held_by(block);
            for t in (0..threads).filter(|t| t & writers.idle == 0) {
                let own = sum(&writers.thread_places, t) ^ sum(&plan.block_places, block);
                let moved = sum(&kept.lanes, t & lane_mask);
                for (place, key) in writers.key_places.iter().zip(&kept.keys) {
                    let mut known = plan.keys.iter();
                    let found = known.position(|(known, _)| *known == key ^ moved);
                    let set = &held[t as usize][found.unwrap()];
                    for distance in distances(&plan.exchanges) {
                        let memory = &mut memories[(block ^ distance) as usize];
                        let before = memory.insert(place ^ own, set.clone());
                        assert!(before.is_none(), "two threads write one place");
                    }
                }
            }
        }
        for (block, memory) in (0u32..).zip(&memories) {
            assert_eq!(memory.len(), 1 << (plan.rest_bits + plan.partial_bits));
            let own = sum(&places.blocks, block);
            let mut rests: Vec<u32> = (0..threads)
                .flat_map(|t| {
                    let own = own ^ sum(&thread_bases, t);
                    (0..1u32 << places.registers.len())
                        .map(move |r| own ^ sum(&places.registers, r))
                })
                .map(|element| axis.rest(element))
                .collect();
            rests.sort_unstable();
            rests.dedup();
            assert_eq!(rests.len(), 1 << plan.rest_bits);
            for rest in rests {
                let first = plan.first_place(rest);
                let mut all: Vec<u32> = (0..1u32 << plan.partial_bits)
                    .flat_map(|q| memory[&(first | q)].clone())
                    .collect();
                all.sort_unstable();
                let wanted: Vec<u32> = (0..1u32 << bits)
                    .filter(|element| axis.rest(*element) == rest)
                    .collect();
                assert_eq!(all, wanted, "{shape:?} {places:?}, block {block}");
            }
        }
    }
    plan
}

/// Follows the plan of a reduction whose region depends on the order of its arguments, on expressions: all threads
/// of a block that hold a result must have computed it in the same way.
fn check_copies(shape: &[u32], axis: usize, places: &Places, target: &str) {
    let target = Target::parse(target).unwrap();
    let lane_bits = target.warp_size().ilog2();
    let mut lanes = places.lanes.clone();
    lanes.resize(lane_bits as usize, 0);
    let numbers = [
        (Dim::REGISTER, places.registers.clone()),
        (Dim::LANE, lanes),
        (Dim::WARP, places.warps.clone()),
        (Dim::BLOCK, places.blocks.clone()),
    ];
    let tensor = TensorType::from_numbers(Element::F32, shape.to_vec(), &numbers).unwrap();
    let plan = ReductionPlan::new(&tensor, axis);
    let axis = Axis::of(&tensor, axis);
    let combination = Combination {
        is_commutative: false,
        ..SUM
    };
    if plan.goes_through_memory(&combination) {
        check_in_warps(&tensor, axis, &plan, target);
        return;
    }
    let lanes = plan.lanes(&combination);
    let in_warp = WarpReduction::new(&lanes, &[Element::F32], &combination, lane_bits, target);
    let Way::Stages(stages) = in_warp.way else {
        panic!("no instruction combines like this");
    };
    // An expression is the number of a pair of others, or of an element.
    let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
    let mut combine = |a: u32, b: u32| {
        let next = 1 << 16 | pairs.len() as u32;
        *pairs.entry((a, b)).or_insert(next)
    };
    let threads = tensor.thread_bases();
    let count = 1u32 << threads.len();
    let held: Vec<HashMap<u32, u32>> = (0..count)
        .map(|t| {
            let own = sum(&threads, t);
            let mut of_key = |(key, registers): &(u32, Vec<usize>)| {
                let elements = registers.iter().map(|r| tensor.element_in(*r) ^ own);
                let mut level: Vec<u32> = elements.collect();
                while level.len() > 1 {
                    let pairs = level.chunks(2);
                    level = pairs.map(|pair| combine(pair[0], pair[1])).collect();
                }
                (*key, level[0])
            };
            plan.keys.iter().map(&mut of_key).collect()
        })
        .collect();
    let held = follow(&stages, held, lane_bits, &mut combine);
    let mut results: HashMap<u32, u32> = HashMap::new();
    for (t, values) in (0..count).zip(&held) {
        for (key, value) in values {
            let rest = key ^ axis.rest(sum(&threads, t));
            let known = *results.entry(rest).or_insert(*value);
            assert_eq!(known, *value, "{shape:?} {places:?} thread {t}, row {rest}");
        }
    }
}

/// What each thread holds for each key after some stages.
fn follow(
    stages: &warp::Stages,
    mut held: Vec<HashMap<u32, u32>>,
    lane_bits: u32,
    combine: &mut impl FnMut(u32, u32) -> u32,
) -> Vec<HashMap<u32, u32>> {
    for stage in &stages.0 {
        let is_second =
            |share: &warp::Share, lane: u32| (lane & share.told_by).count_ones() & 1 == 1;
        held = (0..held.len() as u32)
            .map(|t| {
                let own = &held[t as usize];
                let at = |distance: u32| &held[(t ^ distance) as usize];
                match stage {
                    warp::Stage::Exchange(step) => own
                        .iter()
                        .map(|(key, value)| {
                            let received = at(step.lanes)[&(key ^ step.rest)];
                            (*key, combine(*value, received))
                        })
                        .collect(),
                    warp::Stage::Halve(share) => own
                        .keys()
                        .filter(|key| share.is_first(**key))
                        .map(|key| {
                            let kept = if is_second(share, t) { share.keys } else { 0 };
                            let received = at(share.lanes)[&(key ^ kept)];
                            (*key, combine(own[&(key ^ kept)], received))
                        })
                        .collect(),
                    warp::Stage::Agree(source) => {
                        let lane = t & ((1 << lane_bits) - 1);
                        at(lane ^ sum(source, lane)).clone()
                    }
                    warp::Stage::Join(share) => own
                        .iter()
                        .flat_map(|(key, value)| {
                            let pair = [*value, at(share.lanes)[key]];
                            let second = usize::from(is_second(share, t));
                            [(*key, pair[second]), (key ^ share.keys, pair[1 - second])]
                        })
                        .collect(),
                }
            })
            .collect();
    }
    held
}

/// Follows the plan in memory of a block on expressions: each thread must in the end have combined every partial
/// result of its elements once, and all threads in the same way.
fn check_in_warps(tensor: &TensorType, axis: Axis, plan: &ReductionPlan, target: Target) {
    let (lane_bits, _) = tensor.thread_bits();
    // A combination that takes long is divided among lanes.
    let combination = Combination {
        is_commutative: false,
        instructions: 30.0,
        ..SUM
    };
    let needed: Vec<u32> = plan.keys.iter().map(|(key, _)| *key).collect();
    let work = plan.work(lane_bits, &needed, &[Element::F32], &combination);
    let memory::Combining::Warps(warps) = work.cheapest(target) else {
        return;
    };
    let Way::Stages(stages) = &warps.steps.way else {
        panic!("no instruction combines like this");
    };
    // Of an expression, the partial results in it, in order.
    let mut all: Vec<Vec<u32>> = Vec::new();
    fn number(all: &mut Vec<Vec<u32>>, leaves: Vec<u32>) -> u32 {
        let found = all.iter().position(|other| *other == leaves);
        found.unwrap_or_else(|| {
            all.push(leaves);
            all.len() - 1
        }) as u32
    }
    let threads = tensor.thread_bases();
    let lane_places = warps.lane_places(lane_bits);
    let mut held: Vec<HashMap<u32, u32>> = Vec::new();
    for t in 0..1u32 << threads.len() {
        let own = plan.first_place(axis.rest(sum(&threads, t)))
            ^ sum(&lane_places, t & ((1 << lane_bits) - 1));
        let read = |key: &u32| {
            let first = plan.first_place(*key) ^ own;
            let leaves = (0..1 << warps.own_bits).map(|i| first ^ i);
            (*key, number(&mut all, leaves.collect()))
        };
        held.push(needed.iter().map(read).collect());
    }
    let mut combine = |a: u32, b: u32| {
        let both = [&all[a as usize][..], &all[b as usize]].concat();
        number(&mut all, both)
    };
    assert_eq!(warps.keys, [0]);
    let mut all_held = vec![HashMap::new(); held.len()];
    for key in &needed {
        let of_key = held.iter().map(|values| HashMap::from([(0, values[key])]));
        let of_key = follow(stages, of_key.collect(), lane_bits, &mut combine);
        for (all, values) in all_held.iter_mut().zip(of_key) {
            all.insert(*key, values[&0]);
        }
    }
    let held = all_held;
    let mut results: HashMap<u32, Vec<u32>> = HashMap::new();
    for (t, values) in (0..).zip(&held) {
        for (key, value) in values {
            let rest = key ^ axis.rest(sum(&threads, t));
            let leaves = &all[*value as usize];
            assert_eq!(results.entry(rest).or_insert(leaves.clone()), leaves);
            let mut sorted = leaves.clone();
            sorted.sort_unstable();
            let first = plan.first_place(rest);
            let wanted: Vec<u32> = (0..1 << plan.partial_bits).map(|q| first + q).collect();
            assert_eq!(sorted, wanted, "thread {t}, row {rest}");
        }
    }
}

fn in_one_block(registers: &[u32], lanes: &[u32], warps: &[u32]) -> Places {
    in_blocks(registers, lanes, warps, &[])
}

fn in_blocks(registers: &[u32], lanes: &[u32], warps: &[u32], blocks: &[u32]) -> Places {
    Places {
        registers: registers.to_vec(),
        lanes: lanes.to_vec(),
        warps: warps.to_vec(),
        blocks: blocks.to_vec(),
    }
}

#[test]
fn blocked_layouts_reduce_each_element_once() {
    // 8 x 16, two columns in registers, four lanes along the row, two along the column, two warps.
    for axis in 0..2 {
        let columns = in_one_block(&[1, 2], &[4, 8, 16], &[32, 64]);
        check(&[8, 16], axis, &columns);
        let mixed = in_one_block(&[16, 1], &[2, 32, 4], &[8, 64]);
        check(&[8, 16], axis, &mixed);
    }
}

#[test]
fn repeated_registers_lanes_and_warps_count_once() {
    for axis in 0..2 {
        check(
            &[4, 8],
            axis,
            &in_one_block(&[0, 1, 8], &[0, 2, 4], &[16, 0]),
        );
        check(
            &[4, 8],
            axis,
            &in_one_block(&[1, 1], &[2, 4, 8, 3], &[16, 8]),
        );
    }
}

#[test]
fn vectors_that_mix_both_dimensions_are_fine() {
    for axis in 0..2 {
        check(&[8, 8], axis, &in_one_block(&[9, 2], &[1, 20, 36], &[32]));
        let diagonal = [1 | 8, 2 | 16, 4 | 32];
        check(&[8, 8], axis, &in_one_block(&diagonal, &[8, 16], &[32]));
        check(
            &[2, 32],
            axis,
            &in_one_block(&[33], &[1, 2, 4 | 32, 8], &[16]),
        );
    }
}

#[test]
fn copies_agree_where_lanes_share_keys_and_repeat_each_other() {
    for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
        // Four keys, whose axis is in four lanes; others repeat them, one with its registers exchanged.
        let places = in_one_block(&[1, 8, 16], &[2, 4, 0, 1], &[]);
        check_copies(&[4, 8], 1, &places, target);
        // The first lane repeats a step of the second.
        check_copies(
            &[4, 8],
            1,
            &in_one_block(&[8, 16], &[3, 1, 3, 4], &[0]),
            target,
        );
        // The axis is in all lanes.
        check_copies(
            &[32],
            0,
            &in_one_block(&[], &[1, 2, 4, 8, 16], &[0]),
            target,
        );
    }
}

#[test]
fn results_that_warps_would_not_agree_on_go_through_memory() {
    let combination = |is_commutative| Combination {
        is_commutative,
        ..SUM
    };
    // The second warp has the elements of the first in another order.
    let plan = check(&[8], 0, &in_one_block(&[1], &[2, 4], &[2]));
    assert!(plan.repeats.is_far && plan.partial_bits == 0);
    assert!(plan.goes_through_memory(&combination(false)));
    assert!(!plan.goes_through_memory(&combination(true)));
    // Warps that are equal lane by lane agree.
    let plan = check(&[8], 0, &in_one_block(&[1], &[2, 4], &[0]));
    assert!(!plan.goes_through_memory(&combination(false)));
}

#[test]
fn lanes_write_the_results_that_they_have_kept() {
    // Sixteen columns in a thread, the rows in eight lanes and two warps, four lanes beside each other.
    let numbers = in_one_block(&[1, 2, 16, 32], &[4, 8, 64, 128, 256], &[512]);
    let plan = check(&[16, 64], 0, &numbers);
    let lanes = plan.lanes(&SUM);
    assert!(lanes.may_divide);
    let target = Target::parse("hip:gfx1100").unwrap();
    let in_warp = WarpReduction::new(&lanes, &[Element::F32], &SUM, 5, target);
    // Eight, four and two columns are given away, and nothing comes back.
    assert_eq!(in_warp.shuffles, 8 + 4 + 2);
    let kept = in_warp.kept(&lanes.keys, 5);
    assert_eq!(kept.keys.len(), 2);
    let writers = plan.writers(&kept);
    assert_eq!(writers.key_places.len(), 2);
    assert_eq!(writers.idle, 0, "each lane has results of its own");
}

#[test]
fn blocks_exchange_along_the_axis_only() {
    // 8 x 16 on four blocks that halve both dimensions.
    let places = in_blocks(&[1, 2], &[4, 16], &[32], &[64, 8]);
    assert_eq!(check(&[8, 16], 0, &places).exchanges, [1]);
    let along_rows = check(&[8, 16], 1, &places);
    assert_eq!(along_rows.exchanges, [2]);
    // Each block holds half of the rows, and has memory for this half.
    assert_eq!(along_rows.rest_bits, 2);
    assert_eq!(along_rows.scratch_elements(&SUM), 8);
}

#[test]
fn blocks_that_repeat_others_exchange_apart() {
    // Blocks 0 and 1 share the row, 2 and 3 hold the same.
    let places = in_blocks(&[1], &[2, 4], &[0], &[8, 0]);
    assert_eq!(check(&[16], 0, &places).exchanges, [1]);
    // Each block holds all of it.
    let places = in_blocks(&[1], &[2, 4], &[8], &[0, 0]);
    assert_eq!(check(&[16], 0, &places).exchanges, [0u32; 0]);
    // Blocks 1 and 2 hold the same.
    let places = in_blocks(&[1], &[2, 4], &[], &[8, 8]);
    assert_eq!(check(&[16], 0, &places).exchanges, [1]);
}

/// A shape, an axis of it, and places that reach every element, each in any way.
fn arrangement() -> impl Strategy<Value = (Vec<u32>, usize, Places)> {
    (prop::collection::vec(0..4u32, 1..4), any::<usize>()).prop_flat_map(|(extents, axis)| {
        let bits: u32 = extents.iter().sum();
        let shape: Vec<u32> = extents.iter().map(|bits| 1 << bits).collect();
        let axis = axis % shape.len();
        let below = prop::collection::vec(0..1u32 << bits, (bits + 3) as usize);
        let owners = prop::collection::vec(0..4usize, (bits + 3) as usize);
        (below, owners).prop_map(move |(vectors, owners)| {
            // Unit vectors, each with random lower bits, are a basis; then some that repeat.
            let all = vectors.iter().enumerate().map(|(i, vector)| {
                if (i as u32) < bits {
                    1 << i | vector & ((1 << i) - 1)
                } else {
                    *vector
                }
            });
            let mut lists: [Vec<u32>; 4] = Default::default();
            for (vector, owner) in all.zip(owners) {
                // At most eight blocks and sixteen warps.
                let full = owner >= 2 && lists[owner].len() > 5 - owner;
                lists[if full { 0 } else { owner }].push(vector);
            }
            let [registers, lanes, warps, blocks] = lists;
            let places = Places {
                registers,
                lanes,
                warps,
                blocks,
            };
            (shape.clone(), axis, places)
        })
    })
}

proptest! {
    #[test]
    fn any_arrangement_reduces_each_element_once((shape, axis, places) in arrangement()) {
        check(&shape, axis, &places);
    }

    #[test]
    fn copies_of_a_result_agree((shape, axis, places) in arrangement()) {
        for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
            check_copies(&shape, axis, &places, target);
        }
    }
}
