//! Conversions between layouts of every kind through shared memory: no access has a bank conflict.
//!
//! The pairs are those of `tools/bench/conversion_pairs.py`, which runs the emitted code and compares with Triton.

use llopt_layout::plan::Movement;
use llopt_target::Target;
use llopt_view::{Shape, conversion, read};

const MMA: &str = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";

fn layouts() -> Vec<String> {
    let blocked = |registers: &str, lanes: &str, warps: &str, order: &str| {
        format!(
            "#ttg.blocked<{{sizePerThread = [{registers}], threadsPerWarp = [{lanes}], \
             warpsPerCTA = [{warps}], order = [{order}]}}>"
        )
    };
    let operand = |index: u32, parent: &str, width: &str| {
        format!("#ttg.dot_op<{{opIdx = {index}, parent = {parent}{width}}}>")
    };
    vec![
        blocked("1, 4", "4, 8", "4, 1", "1, 0"),
        blocked("4, 1", "8, 4", "1, 4", "0, 1"),
        blocked("1, 1", "1, 32", "4, 1", "1, 0"),
        blocked("2, 2", "8, 4", "2, 2", "1, 0"),
        MMA.to_owned(),
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], \
         instrShape = [16, 32, 16]}>"
            .to_owned(),
        operand(0, MMA, ", kWidth = 2"),
        operand(1, MMA, ", kWidth = 2"),
        "#ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 2, 2], \
         threadsPerWarp = [4, 4, 2], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>"
            .to_owned(),
        operand(0, &blocked("2, 2", "4, 8", "2, 2", "1, 0"), ""),
        "#ttg.linear<{register = [[0, 1], [2, 0], [0, 8]], lane = [[8, 0], [0, 4], [1, 0], [0, 2], \
         [4, 0]], warp = [[16, 0], [0, 16]], block = []}>"
            .to_owned(),
    ]
}

#[test]
fn no_pair_of_layouts_has_bank_conflicts() {
    for name in ["cuda:80", "cuda:90", "hip:gfx1100"] {
        let target = Target::parse(name).unwrap();
        let mut through_memory = 0;
        for shape in [[32, 32], [64, 32], [32, 128], [64, 64]] {
            let shape = Shape(shape.to_vec());
            let all: Vec<_> = layouts()
                .iter()
                .map(|text| read(text, Some(&shape)).unwrap())
                .collect();
            for (i, from) in all.iter().enumerate() {
                for (j, to) in all.iter().enumerate() {
                    for bits in [8, 16, 32, 64] {
                        let found = conversion(from, to, bits, target).unwrap();
                        for plan in found.plans() {
                            let Movement::Shared(_) = &plan.movement else {
                                continue;
                            };
                            through_memory += 1;
                            let counts = &plan.counts;
                            assert_eq!(
                                counts.store_wavefronts + counts.load_wavefronts,
                                counts.store_bound + counts.load_bound,
                                "{name}, {bits} bits, {:?}: layout {i} to layout {j}\n{plan}",
                                shape.0,
                            );
                        }
                    }
                }
            }
        }
        assert!(through_memory > 1700, "{name}: {through_memory}");
    }
}
