//! A few hundred programs for each vendor, and all cases that failed earlier.

use std::path::Path;

use llopt_fuzz::Program;
use llopt_fuzz::case::Case;
use llopt_fuzz::check::{Verdict, check};
use llopt_fuzz::generate::{generate, generate_without_layouts};
use llopt_fuzz::program::Speller;
use llopt_target::Target;

/// Programs of consecutive seeds, all of which must agree.
fn agree(target: &str, seeds: std::ops::Range<u64>, made: fn(Target, u64) -> Program) {
    let target = Target::parse(target).unwrap();
    let speller = Speller::new().unwrap();
    let mut agreed = 0;
    for seed in seeds.clone() {
        let case = Case::of(&made(target, seed), &speller);
        match check(&case) {
            Verdict::Agreed => agreed += 1,
            Verdict::Unsupported(_) => {}
            Verdict::Failed(failure) => panic!("{}", case.file(&failure.to_string())),
        }
    }
    let all = seeds.end - seeds.start;
    assert!(
        agreed * 10 >= all * 9,
        "only {agreed} of {all} could be run"
    );
}

#[test]
fn random_programs_agree_on_nvidia() {
    agree("cuda:90", 0..100, generate);
}

#[test]
fn random_programs_agree_on_amd_with_64_lanes() {
    agree("hip:gfx942", 0..100, generate);
}

#[test]
fn random_programs_agree_on_amd_with_32_lanes() {
    agree("hip:gfx1100", 0..50, generate);
}

#[test]
fn random_programs_agree_in_layouts_that_are_chosen_for_nvidia() {
    agree("cuda:90", 0..50, generate_without_layouts);
}

#[test]
fn random_programs_agree_in_layouts_that_are_chosen_for_amd() {
    agree("hip:gfx942", 0..40, generate_without_layouts);
    agree("hip:gfx1200", 40..60, generate_without_layouts);
}

#[test]
fn cases_that_once_failed_agree() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let case = Case::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(check(&case), Verdict::Agreed, "{}", path.display());
    }
}
