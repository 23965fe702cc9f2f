//! The bank models against measurements, and the planner on every target.

use llopt_layout::banks::Access;
use llopt_layout::plan::{SwizzleRequest, plan, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

#[test]
fn the_model_counts_what_an_h200_takes() {
    let banks = Target::parse("cuda:90")
        .expect("a row of the table")
        .banks();
    let mut rows = 0;
    let lines = include_str!("banks_h200.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let access = match fields[0] {
            "load" => Access::Load,
            _ => Access::Store,
        };
        let numbers: Vec<u32> = fields[1..]
            .iter()
            .map(|field| field.parse().expect("a number"))
            .collect();
        let (bits, lanes, cycles) = (numbers[0], &numbers[1..6], numbers[6]);
        let addresses: Vec<u32> = (0u32..32)
            .map(|lane| {
                (0..5)
                    .filter(|i| lane >> i & 1 == 1)
                    .fold(0, |acc, i| acc ^ lanes[i])
            })
            .collect();
        assert_eq!(
            banks.count(access, bits / 8, &addresses),
            Some(cycles),
            "{line}"
        );
        // The lemma says the same.
        let shared = |difference: u32| addresses[difference as usize] == 0;
        let phase = banks.phase(access, bits, shared).expect("a known width");
        let of_phase: Vec<u32> = phase.iter().map(|&lane| addresses[lane as usize]).collect();
        let passes = banks.wavefronts((bits / 8).trailing_zeros(), &of_phase);
        assert_eq!(passes * (32 >> phase.len()), cycles, "{line}");
        rows += 1;
    }
    assert_eq!(rows, 800);
}

#[test]
fn every_target_transposes_without_conflicts() {
    for target in Target::all() {
        let machine = target.machine();
        let lanes = target.warp_size();
        let along = |first: usize, second: usize| {
            LinearLayout::identity_1d(lanes, Dim::LANE, Dim::tensor(first))
                .and_then(|l| {
                    l.product(&LinearLayout::identity_1d(
                        lanes,
                        Dim::REGISTER,
                        Dim::tensor(second),
                    )?)
                })
                .and_then(|l| l.transpose_ins(&[Dim::REGISTER, Dim::LANE]))
                .expect("powers of two")
        };
        for bits in [8, 16, 32, 64] {
            let request = SwizzleRequest::default();
            let shared = synthesize(&along(0, 1), &along(1, 0), bits, &machine, request)
                .unwrap_or_else(|error| panic!("{}: {error}", target.arch()));
            assert_eq!(
                shared.store.wavefronts,
                shared.store.bound,
                "{}",
                target.arch()
            );
            assert_eq!(
                shared.load.wavefronts,
                shared.load.bound,
                "{}",
                target.arch()
            );
            let plans = plan(&along(0, 1), &along(1, 0), bits, &machine).expect("feasible");
            assert!(plans.iter().any(|p| p.kind() == "shuffle"));
        }
    }
}
