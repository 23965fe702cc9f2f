//! A few hundred unusual kernels: each has an answer, and none is a bug of llopt.

use std::path::{Path, PathBuf};

use llopt_fuzz::mutate::{Answer, answer, mutate};
use llopt_target::Target;

/// The examples of a target, in the order of their names.
fn examples(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|end| end == "ttir" || end == "ttgir")
    });
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

fn all_are_answered(folder: &str, target: &str, seeds: std::ops::Range<u64>) {
    let target = Target::parse(target).unwrap();
    // Large ones take long and find nothing that small ones do not.
    let mut examples = examples(folder);
    examples.retain(|text| text.len() < 12_000);
    let mut results = 0;
    for seed in seeds {
        let example = &examples[seed as usize % examples.len()];
        let text = mutate(example, seed);
        match answer(&text, target) {
            Answer::Result => results += 1,
            Answer::Refused(_) => {}
            Answer::Bug(message) => panic!("seed {seed} on {target}: {message}\n{text}"),
        }
    }
    assert!(results > 0);
}

#[test]
fn mutated_kernels_are_answered_on_nvidia() {
    all_are_answered("cuda-90", "cuda:90", 0..120);
}

#[test]
fn mutated_kernels_are_answered_on_amd_with_64_lanes() {
    all_are_answered("hip-gfx942", "hip:gfx942", 0..120);
}

#[test]
fn mutated_kernels_are_answered_on_amd_with_32_lanes() {
    all_are_answered("hip-gfx1100", "hip:gfx1100", 0..60);
}
