//! Operations between lanes against plain models.

use proptest::prelude::*;

use crate::harness::{lanes, noise};

/// PTX's definition of `shfl`, lane by lane.
fn shuffle(mode: &str, lane: u32, by: u32, clamp: u32) -> (u32, bool) {
    let (segment, bound) = (clamp >> 8 & 31, clamp & 31);
    let max = lane & segment | bound & !segment;
    let (source, inside) = match mode {
        "up" => (
            lane.wrapping_sub(by),
            i64::from(lane) - i64::from(by) >= i64::from(max),
        ),
        "down" => (lane + by, lane + by <= max),
        "bfly" => (lane ^ by, lane ^ by <= max),
        _ => {
            let source = lane & segment | by & !segment;
            (source, source <= max)
        }
    };
    if inside {
        (source, true)
    } else {
        (lane, false)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_shuffle_reads_the_lane_that_the_ptx_manual_names(mode in prop::sample::select(vec!["up", "down", "bfly", "idx"]), by in 0u32..32, width in 0u32..6, seed in any::<u32>()) {
        // Segments of 2^width lanes, as __shfl_*_sync encodes them.
        let segment = (32 - (1 << width)) << 8;
        let clamp = if mode == "up" { segment } else { segment | 31 };
        let input = noise(32, seed);
        let body = format!(
            "%p = call {{i32, i1}} @llvm.nvvm.shfl.sync.{mode}.i32p(i32 -1, i32 %x, i32 {by}, i32 {clamp})
             %v = extractvalue {{i32, i1}} %p, 0
             %f = extractvalue {{i32, i1}} %p, 1
             %y = select i1 %f, i32 %v, i32 7");
        let output = lanes("cuda:90", &body, &input);
        for lane in 0..32 {
            let (source, inside) = shuffle(mode, lane, by, clamp);
            let expected = if inside { input[source as usize] } else { 7 };
            prop_assert_eq!(output[lane as usize], expected, "{} by {} lane {}", mode, by, lane);
        }
    }

    #[test]
    fn a_backward_permute_reads_the_lane_of_its_address(seed in any::<u32>()) {
        let input = noise(64, seed);
        let body = "%a = mul i32 %x, 4\n %y = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %x)";
        let output = lanes("hip:gfx942", body, &input);
        for (x, y) in input.iter().zip(output) {
            prop_assert_eq!(y, input[(x % 64) as usize]);
        }
    }

    #[test]
    fn a_swizzle_reads_the_lane_that_its_masks_name(and in 0u32..32, or in 0u32..32, xor in 0u32..32) {
        let pattern = and | or << 5 | xor << 10;
        let body = format!("%y = call i32 @llvm.amdgcn.ds.swizzle(i32 %x, i32 {pattern})");
        let input: Vec<u32> = (100..164).collect();
        let output = lanes("hip:gfx90a", &body, &input);
        for lane in 0..64 {
            let source = lane & 32 | (lane & and | or) ^ xor;
            prop_assert_eq!(output[lane as usize], input[source as usize]);
        }
    }

    #[test]
    fn a_row_is_permuted_by_its_selectors(low in any::<i32>(), high in any::<i32>(), cross in any::<bool>()) {
        let name = if cross { "permlanex16" } else { "permlane16" };
        let body = format!("%y = call i32 @llvm.amdgcn.{name}.i32(i32 poison, i32 %x, i32 {low}, i32 {high}, i1 true, i1 false)");
        let input: Vec<u32> = (0..32).collect();
        let output = lanes("hip:gfx1100", &body, &input);
        let selectors = u64::from(low as u32) | u64::from(high as u32) << 32;
        for lane in 0..32u32 {
            let row = lane & 16 ^ if cross { 16 } else { 0 };
            prop_assert_eq!(output[lane as usize], row | (selectors >> (4 * (lane & 15)) & 15) as u32);
        }
    }
}

#[test]
fn dpp_moves_within_rows() {
    let input: Vec<u32> = (0..64).collect();
    // (control, source lane or none)
    type Model = fn(u32) -> Option<u32>;
    let cases: [(u32, Model); 12] = [
        (0xb1, |l| Some(l ^ 1)),
        (0x4e, |l| Some(l ^ 2)),
        (0x101, |l| (l % 16 < 15).then(|| l + 1)),
        (0x118, |l| (l % 16 >= 8).then(|| l - 8)),
        (0x124, |l| Some(l & !15 | (l.wrapping_sub(4) & 15))),
        (0x138, |l| l.checked_sub(1)),
        (0x140, |l| Some(l & !15 | (15 - l % 16))),
        (0x141, |l| Some(l & !7 | (7 - l % 8))),
        (0x142, |l| (l >= 16).then(|| (l & !15) - 1)),
        (0x143, |l| (l >= 32).then_some(31)),
        (0x153, |l| Some(l & !15 | 3)),
        (0x165, |l| Some(l & !15 | (l & 15) ^ 5)),
    ];
    for (control, model) in cases {
        let body = format!(
            "%y = call i32 @llvm.amdgcn.update.dpp.i32(i32 99, i32 %x, i32 {control}, i32 15, i32 15, i1 false)"
        );
        let output = lanes("hip:gfx90a", &body, &input);
        for lane in 0..64 {
            assert_eq!(
                output[lane as usize],
                model(lane).unwrap_or(99),
                "{control:#x} lane {lane}"
            );
        }
        let body = format!(
            "%y = call i32 @llvm.amdgcn.update.dpp.i32(i32 99, i32 %x, i32 {control}, i32 5, i32 15, i1 true)"
        );
        let output = lanes("hip:gfx90a", &body, &input);
        for lane in 0..64 {
            let expected = if lane / 16 % 2 == 0 {
                model(lane).unwrap_or(0)
            } else {
                99
            };
            assert_eq!(output[lane as usize], expected, "{control:#x} lane {lane}");
        }
    }
}

#[test]
fn votes_ballots_and_matches_see_all_lanes() {
    let input = noise(64, 3);
    let odd = |n: usize| {
        (0..n)
            .filter(|&l| input[l] & 1 == 1)
            .fold(0u64, |m, l| m | 1 << l)
    };
    let body = "%p = trunc i32 %x to i1\n %y = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %p)";
    assert_eq!(lanes("cuda:80", body, &input[..32]), [odd(32) as u32; 32]);
    let body = "%p = trunc i32 %x to i1
        %b = call i64 @llvm.amdgcn.ballot.i64(i1 %p)
        %l = trunc i64 %b to i32
        %w = lshr i64 %b, 32
        %h = trunc i64 %w to i32
        %c = call i32 @llvm.amdgcn.mbcnt.lo(i32 %l, i32 0)
        %y = call i32 @llvm.amdgcn.mbcnt.hi(i32 %h, i32 %c)";
    let output = lanes("hip:gfx942", body, &input);
    for (lane, &count) in output.iter().enumerate() {
        assert_eq!(count, (odd(64) & ((1 << lane) - 1)).count_ones());
    }
    let body = "%k = and i32 %x, 3\n %y = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %k)";
    let output = lanes("cuda:90", body, &input[..32]);
    for lane in 0..32 {
        let same = (0..32)
            .filter(|&l| input[l] & 3 == input[lane] & 3)
            .fold(0u32, |m, l| m | 1 << l);
        assert_eq!(output[lane], same);
    }
}

#[test]
fn a_warp_reduction_gives_every_lane_the_result() {
    let input = noise(32, 9);
    for (name, model) in [
        ("add", input.iter().fold(0u32, |a, &b| a.wrapping_add(b))),
        ("umax", *input.iter().max().unwrap()),
        ("max", input.iter().map(|&x| x as i32).max().unwrap() as u32),
        ("xor", input.iter().fold(0, |a, b| a ^ b)),
    ] {
        let body = format!("%y = call i32 @llvm.nvvm.redux.sync.{name}(i32 %x, i32 -1)");
        assert_eq!(lanes("cuda:90", &body, &input), [model; 32], "{name}");
    }
}

#[test]
fn lanes_are_read_written_and_swapped() {
    let input: Vec<u32> = (100..164).collect();
    let body = "%y = call i32 @llvm.amdgcn.readlane.i32(i32 %x, i32 37)";
    assert_eq!(lanes("hip:gfx942", body, &input), [137; 64]);
    let body = "%y = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %x)";
    assert_eq!(lanes("hip:gfx942", body, &input), [100; 64]);
    let body = "%y = call i32 @llvm.amdgcn.writelane.i32(i32 5, i32 2, i32 %x)";
    let output = lanes("hip:gfx942", body, &input);
    assert!((0..64).all(|l| output[l] == if l == 2 { 5 } else { input[l] }));
    let body = "%o = add i32 %x, 1000
        %s = call {i32, i32} @llvm.amdgcn.permlane32.swap(i32 %x, i32 %o, i1 false, i1 false)
        %a = extractvalue {i32, i32} %s, 0
        %b = extractvalue {i32, i32} %s, 1
        %m = mul i32 %b, 10000
        %y = add i32 %a, %m";
    let output = lanes("hip:gfx950", body, &input);
    for lane in 0..64u32 {
        let (x, o) = (|l: u32| 100 + l, |l: u32| 1100 + l);
        let (a, b) = if lane < 32 {
            (x(lane), x(lane + 32))
        } else {
            (o(lane - 32), o(lane))
        };
        assert_eq!(output[lane as usize], a + 10000 * b);
    }
}

#[test]
fn bytes_are_chosen_by_selectors() {
    let input = noise(32, 4);
    let body = "%y = call i32 @llvm.nvvm.prmt(i32 %x, i32 287454020, i32 37991)"; // 0x11223344, selector 0x9467
    for (x, y) in input.iter().zip(lanes("cuda:90", body, &input)) {
        let bytes: Vec<u32> = (0..4)
            .map(|i| x >> (8 * i) & 255)
            .chain([0x44, 0x33, 0x22, 0x11])
            .collect();
        let sign = if bytes[1] & 0x80 != 0 { 0xff } else { 0 };
        assert_eq!(y, bytes[7] | bytes[6] << 8 | bytes[4] << 16 | sign << 24);
    }
    let body = "%y = call i32 @llvm.amdgcn.perm(i32 %x, i32 287454020, i32 201785345)"; // 0x0c070001
    for (x, y) in input.iter().zip(lanes("hip:gfx942", body, &input)) {
        assert_eq!(y, 0x33 | 0x44 << 8 | (x >> 24) << 16, "{x:#x}");
    }
}
