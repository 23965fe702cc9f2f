//! Every plan of random pairs of layouts, followed with a tag per element.

mod executor;
mod machines;

use executor::{follow, held};
use llopt_layout::plan::{
    Machine, Movement, Outlines, PlanError, Request, Scope, SwizzleRequest, cheapest,
    cheapest_price, plan, plan_as,
};
use llopt_layout::{Dim, LinearLayout};
use machines::{WARP32_MATRIX, WAVE64, WAVE64_BANKS64};

const PAIRS: u64 = 10_000;

/// A generator of numbers that are random enough and the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % u64::from(n.max(1))) as u32
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

#[derive(Clone, Copy)]
struct Threads {
    lanes: u32,
    warps: u32,
    blocks: u32,
}

/// `count` vectors that span all `bits` bits: units, or a random basis; the rest repeats.
fn spanning(random: &mut Random, bits: u32, count: u32, dense: bool) -> Vec<u32> {
    let mut vectors: Vec<u32> = (0..bits).map(|b| 1 << b).collect();
    if dense {
        for _ in 0..3 * bits {
            let (i, j) = (random.below(bits) as usize, random.below(bits) as usize);
            if i != j {
                vectors[i] ^= vectors[j];
            }
        }
    }
    while (vectors.len() as u32) < count {
        let repeat = match random.below(4) {
            0 => vectors[random.below(bits) as usize],
            _ => 0,
        };
        vectors.push(repeat);
    }
    random.shuffle(&mut vectors);
    vectors
}

fn layout(vectors: &[u32], threads: Threads, shape: &[(Dim, u32)]) -> LinearLayout {
    let rows = |list: &[u32]| -> Vec<Vec<u32>> {
        list.iter()
            .map(|&v| {
                let mut rest = v;
                shape
                    .iter()
                    .map(|&(_, size)| {
                        let value = rest % size;
                        rest /= size;
                        value
                    })
                    .collect()
            })
            .collect()
    };
    let (lanes, rest) = vectors.split_at(threads.lanes as usize);
    let (warps, rest) = rest.split_at(threads.warps as usize);
    let (blocks, registers) = rest.split_at(threads.blocks as usize);
    LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &rows(registers)[..]),
            (Dim::LANE, &rows(lanes)),
            (Dim::WARP, &rows(warps)),
            (Dim::BLOCK, &rows(blocks)),
        ],
        shape,
    )
    .expect("in range by construction")
}

/// A random pair that fits together: anything to anything, or with only some threads involved.
fn pair(random: &mut Random, machine: &Machine<'_>) -> (LinearLayout, LinearLayout) {
    let threads = Threads {
        lanes: machine.lanes_log2,
        warps: random.below(3),
        blocks: if machine.cluster { random.below(2) } else { 0 },
    };
    let thread_bits = threads.lanes + threads.warps + threads.blocks;
    let bits = 3 + random.below(9);
    let shape = match random.below(3) {
        0 => vec![(Dim::tensor(0), 1 << bits)],
        _ => vec![
            (Dim::tensor(0), 1 << (bits / 2)),
            (Dim::tensor(1), 1 << (bits - bits / 2)),
        ],
    };
    let dense = random.below(3) == 0;
    let extra = random.below(3);
    let count = (thread_bits + random.below(2)).max(bits) + extra;
    let a = spanning(random, bits, count, dense);
    let b = match random.below(6) {
        // The same, or with other registers.
        5 => {
            let mut b = a.clone();
            let registers = &mut b[thread_bits as usize..];
            if random.below(2) == 0 {
                random.shuffle(registers);
            }
            let count = registers.len() as u32;
            if count > 1 && random.below(3) == 0 {
                registers[0] ^= registers[1];
            }
            b
        }
        // Unrelated.
        0 | 1 => {
            let count = (thread_bits + random.below(2)).max(bits) + random.below(3);
            spanning(random, bits, count, dense)
        }
        // The same vectors elsewhere, over all threads or inside the warp.
        2 => {
            let mut b = a.clone();
            random.shuffle(&mut b);
            b
        }
        kind => {
            let mut b = a.clone();
            let outer = (threads.lanes..thread_bits).collect::<Vec<_>>();
            let inner: Vec<usize> = (0..b.len())
                .filter(|&i| !outer.contains(&(i as u32)))
                .collect();
            let mut values: Vec<u32> = inner.iter().map(|&i| b[i]).collect();
            random.shuffle(&mut values);
            for (&i, value) in inner.iter().zip(values) {
                b[i] = value;
            }
            if kind == 4 && b.len() > 1 {
                // Mixed by a linear map inside the warp, now and then with a warp that depends.
                for _ in 0..2 + random.below(8) {
                    let (i, j) = (
                        random.below(inner.len() as u32),
                        random.below(inner.len() as u32),
                    );
                    if i != j {
                        b[inner[i as usize]] ^= b[inner[j as usize]];
                    }
                }
                if !outer.is_empty() && random.below(2) == 0 {
                    let o = outer[random.below(outer.len() as u32) as usize] as usize;
                    b[o] ^= b[inner[random.below(inner.len() as u32) as usize]];
                }
            }
            b
        }
    };
    let mut b = b;
    if random.below(8) == 0 {
        // The result need not have every element.
        let lost = random.below(b.len() as u32) as usize;
        b[lost] = 0;
    }
    let to = layout(&b, threads, &shape);
    let to = if random.below(4) == 0 && shape.len() == 2 {
        to.transpose_outs(&[Dim::tensor(1), Dim::tensor(0)])
            .expect("a permutation")
    } else {
        to
    };
    (layout(&a, threads, &shape), to)
}

#[test]
fn every_plan_moves_every_element_to_its_place() {
    let machines = [WARP32_MATRIX, WAVE64, WAVE64_BANKS64];
    let mut kinds = std::collections::BTreeMap::new();
    let mut infeasible = 0;
    for seed in 1..=PAIRS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut machine = machines[random.below(3) as usize];
        let (from, to) = pair(&mut random, &machine);
        let element_bits = 8 << random.below(4);
        if random.below(4) == 0 {
            // Little memory, so that conversions take rounds.
            machine.shared_bytes = 1 << (7 + random.below(4));
        }
        let plans = match plan(&from, &to, element_bits, &machine) {
            Ok(plans) => plans,
            Err(error) => {
                let fits = from.total_out_size_log2() + element_bits.trailing_zeros() - 3;
                assert!(
                    machine.shared_bytes < 1 << fits,
                    "seed {seed}: {error}\n{from}\n{to}"
                );
                infeasible += 1;
                continue;
            }
        };
        assert!(plans.windows(2).all(|p| p[0].cost <= p[1].cost));
        // What need not leave its warp has a plan that does not.
        let local = plans
            .iter()
            .any(|p| matches!(p.kind(), "none" | "register" | "shuffle"));
        for plan in &plans {
            if let Movement::Shared(shared) = &plan.movement {
                assert!(
                    shared.scope > Scope::Warp || local,
                    "seed {seed}\n{from}\n{to}"
                );
            }
        }
        let wanted = held(&to, &from);
        for plan in &plans {
            *kinds.entry(plan.kind()).or_insert(0u32) += 1;
            match follow(plan, &from, &to, element_bits, &machine) {
                Ok(values) => assert_eq!(
                    values, wanted,
                    "seed {seed}, {element_bits} bits\n{from}\n{to}\n{plan:#?}"
                ),
                Err(error) => panic!("seed {seed}: {error}\n{from}\n{to}\n{plan:#?}"),
            }
            if let Movement::Shared(shared) = &plan.movement {
                let (store, load) = (&shared.store.instruction, &shared.load.instruction);
                let covers = |chunk: u32| chunk >= machine.banks.bank_bytes_log2;
                let both = covers(store.chunk_bytes_log2()) && covers(load.chunk_bytes_log2());
                if both {
                    assert_eq!(shared.store.wavefronts, shared.store.bound, "seed {seed}");
                    assert_eq!(shared.load.wavefronts, shared.load.bound, "seed {seed}");
                }
            }
        }
    }
    println!("{kinds:?}, {infeasible} without enough memory");
    for kind in ["none", "register", "shuffle", "shared", "cluster"] {
        assert!(
            kinds.get(kind).is_some_and(|&n| n >= 10),
            "{kind}: {kinds:?}"
        );
    }
}

/// The names of all kinds of plans.
const REQUESTS: [&str; 9] = [
    "register",
    "shuffle",
    "shared",
    "shared:vector-vector",
    "shared:matrix-any",
    "shared:any-matrix",
    "shared:transposed-any",
    "shared:any-transposed",
    "shared:matrix-transposed",
];

#[test]
fn plans_that_are_asked_for_are_of_that_kind_and_right() {
    let machines = [WARP32_MATRIX, WAVE64, WAVE64_BANKS64];
    let mut followed = std::collections::BTreeMap::new();
    let mut bounded = 0u32;
    // Ends of all pairs, of which those of one kind share what is known of it.
    let mut all = machines.map(|_| Outlines::default());
    for seed in 1..=PAIRS / 5 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let number = random.below(3) as usize;
        let (machine, all) = (machines[number], &mut all[number]);
        let (from, to) = pair(&mut random, &machine);
        let element_bits = 8 << random.below(4);
        let best = cheapest(&from, &to, element_bits, &machine);
        let priced = cheapest_price(
            &from,
            &to,
            element_bits,
            &machine,
            SwizzleRequest::default(),
        );
        assert_eq!(
            best.as_ref().map(|plan| plan.price(&machine)),
            priced.as_ref().copied()
        );
        let free = best.is_ok_and(|plan| matches!(plan.kind(), "none" | "register"));
        let mut outlines = Outlines::default();
        let ends = [&from, &to].map(|layout| outlines.add(layout, element_bits, &machine));
        if let [Some(of_from), Some(of_to)] = ends {
            let among_all = [&from, &to].map(|layout| all.add(layout, element_bits, &machine));
            let among_all = among_all.map(|end| end.expect("an end"));
            let [least, unhidden] = [false, true].map(|hides_waits| {
                let least = outlines.least(of_from, of_to, &machine, hides_waits);
                let again = all.least(among_all[0], among_all[1], &machine, hides_waits);
                assert_eq!(least, again, "seed {seed}: as others of this kind");
                least.cost
            });
            if let Ok(priced) = priced {
                let (cost, working) = (priced.cost, priced.cost - priced.waiting);
                assert!(least == 0.0 || !free, "seed {seed}");
                assert!(least <= cost, "seed {seed}: {least} is above {cost}");
                assert!(
                    unhidden <= working,
                    "seed {seed}: {unhidden} is above {working}"
                );
                bounded += 1;
            }
        }
        let wanted = held(&to, &from);
        for name in REQUESTS {
            let request: Request = name.parse().expect("a name");
            assert_eq!(request.to_string(), name);
            let plan = match plan_as(&from, &to, element_bits, &machine, request) {
                Ok(plan) => plan,
                Err(error) => {
                    assert!(!free, "seed {seed}, {name}: {error}");
                    let fits = match request {
                        Request::Registers => error == PlanError::LeavesThread,
                        Request::Shuffle => error == PlanError::LeavesWarp,
                        Request::Shared(_) => error == PlanError::NoInstruction,
                    };
                    assert!(fits, "seed {seed}, {name}: {error}");
                    continue;
                }
            };
            match (&plan.movement, request) {
                (Movement::Nothing | Movement::Registers { .. }, _) => assert!(free),
                (Movement::Shuffle(_), Request::Shuffle) => {}
                (Movement::Shared(shared), Request::Shared(kinds)) => {
                    let is = |kind: Option<_>, of| kind.is_none_or(|kind| kind == of);
                    assert!(is(kinds.store, shared.store.instruction.kind));
                    assert!(is(kinds.load, shared.load.instruction.kind));
                    let costs = &machine.costs;
                    if let [Some(of_from), Some(of_to)] = ends
                        && shared.rounds.is_empty()
                    {
                        let stored = outlines.least_store(of_from, &machine);
                        let loaded = outlines.least_load(of_to, &machine);
                        assert!(stored <= shared.store.cost(costs));
                        assert!(loaded <= shared.load.cost(costs));
                    }
                }
                _ => panic!("seed {seed}, {name}: {plan:#?}"),
            }
            *followed.entry(name).or_insert(0u32) += 1;
            match follow(&plan, &from, &to, element_bits, &machine) {
                Ok(values) => assert_eq!(values, wanted, "seed {seed}, {name}\n{plan:#?}"),
                Err(error) => panic!("seed {seed}, {name}: {error}\n{plan:#?}"),
            }
        }
    }
    assert!(bounded > 0, "no conversion has a bound");
    println!("{followed:?}");
    for name in REQUESTS {
        assert!(
            followed.get(name).is_some_and(|&n| n >= 5),
            "{name}: {followed:?}"
        );
    }
}

#[test]
fn lanes_that_registers_hold_are_exchanged_by_swaps() {
    let shape = [(Dim::tensor(0), 1 << 11)];
    let threads = Threads {
        lanes: 6,
        warps: 1,
        blocks: 0,
    };
    for seed in 1..=PAIRS / 10 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let dense = random.below(2) == 0;
        let a = spanning(&mut random, 11, 11, dense);
        let mut b = a.clone();
        let registers = 7..b.len();
        let (mut exchanged, mut mixed) = (0, false);
        for lane in [4, 5] {
            if random.below(3) > 0 {
                let register = registers.start + random.below(4) as usize;
                b.swap(lane, register);
                let more = registers.start + random.below(4) as usize;
                // Along several registers at once.
                if more != register && b[more] != a[4] {
                    b[lane] ^= b[more];
                    mixed = true;
                }
                exchanged += 1;
            }
        }
        random.shuffle(&mut b[registers]);
        let (from, to) = (layout(&a, threads, &shape), layout(&b, threads, &shape));
        let wanted = held(&to, &from);
        for element_bits in [8, 16, 32, 64] {
            let plans = plan(&from, &to, element_bits, &WAVE64_BANKS64).expect("plans");
            // One exchange makes two words, which the bound has to know.
            let mut outlines = Outlines::default();
            let ends = [&from, &to].map(|layout| {
                outlines
                    .add(layout, element_bits, &WAVE64_BANKS64)
                    .expect("an end")
            });
            let least = outlines.least(ends[0], ends[1], &WAVE64_BANKS64, false);
            assert!(least.cost <= plans[0].cost, "seed {seed}: {least:?}");
            let mut by_swaps = 0;
            for plan in &plans {
                if let Movement::Shuffle(shuffle) = &plan.movement
                    && !shuffle.swaps.is_empty()
                {
                    by_swaps += 1;
                    let words = 1 << shuffle.words_log2;
                    let parts = element_bits.div_ceil(32);
                    let swaps = shuffle.swaps.len() as u32;
                    assert_eq!(plan.counts.swaps, swaps * words / 2 * parts);
                    assert_eq!((plan.counts.shuffles, plan.counts.selects), (0, 0));
                }
                let values = follow(plan, &from, &to, element_bits, &WAVE64_BANKS64);
                assert_eq!(values.as_ref(), Ok(&wanted), "seed {seed}\n{plan:#?}");
            }
            if exchanged == 0 {
                assert_eq!(by_swaps, 0, "seed {seed}");
            } else if !mixed {
                assert_eq!(by_swaps, 1, "seed {seed}\n{from}\n{to}");
            }
        }
    }
}

#[test]
fn other_names_are_no_plans() {
    for text in [
        "",
        "warp",
        "shared:",
        "shared:vector",
        "shared:vector-",
        "shared:vector-row",
        "Shared",
    ] {
        let error = text.parse::<Request>().expect_err("no plan");
        assert!(
            error
                .to_string()
                .starts_with("a plan is register, shuffle, shared, or ")
        );
    }
    assert_eq!(
        "shared:any-any".parse::<Request>().map(|r| r.to_string()),
        Ok("shared".to_owned())
    );
}
