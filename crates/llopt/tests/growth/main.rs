//! The time of every phase grows hardly faster than the length of the kernel.
//!
//! Each family of kernels is compiled at two lengths, one eight times the other. The least processor time of a few
//! runs is used, so that other work on the machine matters little; the margin is wide enough for the remaining noise,
//! and narrow enough to distinguish quadratic from linear growth. The benchmark `growth` measures exponents.

mod kernels;
mod measure;

use kernels::FAMILIES;
use llopt::Target;
use measure::{Phases, exponent};

/// How many times longer the long kernel is.
const RATIO: usize = 8;
/// The greatest exponent of a phase.
const EXPONENT: f64 = 1.2;
/// The factor by which a time may be off.
const MARGIN: f64 = 2.2;
/// Seconds; a shorter time is ignored.
const FLOOR: f64 = 4e-3;

/// Phases that are MLIR's own passes. Of these, the one that lowers branches splits a block once for each branch and
/// moves all operations that follow.
const OF_MLIR: [&str; 2] = ["simplify", "control flow"];

#[test]
fn phases_take_time_in_proportion_to_the_kernel() {
    let target = Target::parse("cuda:90").expect("a target");
    let allowed = (RATIO as f64).powf(EXPONENT) * MARGIN;
    let mut too_slow = Vec::new();
    for family in &FAMILIES {
        let short = family.sizes[0] / 2;
        let [short, long] = [short, short * RATIO].map(|size| {
            let kernel = (family.kernel)(size);
            Phases::of(target, &kernel, 2)
                .unwrap_or_else(|error| panic!("{}: {error}", family.name))
        });
        for (phase, before) in short.seconds() {
            let after = long.seconds().find(|&(other, _)| other == phase);
            let (_, after) = after.expect("the same phases run");
            if !OF_MLIR.contains(&phase) && after > before.max(FLOOR) * allowed {
                too_slow.push(format!(
                    "{}, {phase}: {before:.4} s, then {after:.4} s",
                    family.name
                ));
            }
        }
    }
    assert!(
        too_slow.is_empty(),
        "above {allowed:.0} times for {RATIO} times the length:\n{}",
        too_slow.join("\n")
    );
}

#[test]
fn an_exponent_is_that_of_a_power() {
    let times = |power: f64| -> Vec<(usize, f64)> {
        let sizes = [64, 128, 256, 512];
        sizes
            .map(|size| (size, 1e-3 * (size as f64).powf(power)))
            .to_vec()
    };
    for power in [0.5, 1.0, 2.0] {
        let found = exponent(&times(power), 0.0).expect("enough times");
        assert!((found - power).abs() < 1e-9, "{found} for {power}");
    }
    assert_eq!(exponent(&times(1.0), 0.2), None, "two times are too few");
}
