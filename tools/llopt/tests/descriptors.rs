//! Tensor descriptors that are parameters, or that control flow hands on: the machine with its sanitizer, compared with
//! the reference interpreter, on targets without a unit that reads them from memory, and with one.

mod agreement;

use std::path::{Path, PathBuf};

use agreement::{agree, npy};

const WITHOUT_UNIT: [&str; 6] = [
    "cuda:80",
    "hip:gfx90a",
    "hip:gfx942",
    "hip:gfx950",
    "hip:gfx1100",
    "hip:gfx1200",
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// Whole numbers in half precision: 1024 to 2047.
fn halves(shape: &[usize]) -> Vec<u8> {
    npy("<f2", shape, |i| {
        (0x6400u16 | (i * 37 % 1024) as u16).to_le_bytes().to_vec()
    })
}

/// Small whole singles, which add exactly.
fn singles(shape: &[usize], seed: usize) -> Vec<u8> {
    npy("<f4", shape, |i| {
        ((i * 7 + seed) as f32 % 251.0).to_le_bytes().to_vec()
    })
}

fn words(shape: &[usize], seed: u32) -> Vec<u8> {
    npy("<i4", shape, |i| {
        let word = (i as u32).wrapping_mul(2_654_435_761) ^ seed;
        (word >> 1).to_le_bytes().to_vec()
    })
}

#[test]
fn a_parameter_is_taken_in_parts() {
    let files = [
        ("x.npy", singles(&[70, 96], 0)),
        ("o.npy", singles(&[70, 96], 1)),
    ];
    let arguments = "desc:x.npy,70,96,96,1,desc:o.npy";
    for target in WITHOUT_UNIT {
        agree(
            &data("host_descriptor.ttir"),
            target,
            "3",
            arguments,
            &files,
        );
    }
}

#[test]
fn a_choice_hands_on_the_padding() {
    for (x, y) in [(":nan", ""), ("", ":nan"), ("", ""), (":nan", ":nan")] {
        let files = [
            ("x.npy", halves(&[40, 64])),
            ("y.npy", halves(&[70, 32])),
            ("o.npy", halves(&[90, 64])),
        ];
        let arguments = format!("desc:x.npy{x},desc:y.npy{y},desc:o.npy,1");
        for target in WITHOUT_UNIT.into_iter().chain(["cuda:90"]) {
            let kernel = data("descriptor_choice.ttir");
            agree(&kernel, target, "3", &arguments, &files);
        }
    }
}

#[test]
fn a_loop_carries_what_changes() {
    for rows in 1..5 {
        let files = [
            ("x.npy", singles(&[5, 68], 0)),
            ("y.npy", singles(&[6, 72], 3)),
            ("p.npy", singles(&[4, 64], 5)),
        ];
        let arguments = format!("desc:x.npy,desc:y.npy:nan,p.npy,{rows}");
        for target in WITHOUT_UNIT {
            let kernel = data("descriptor_turns.ttir");
            agree(&kernel, target, "1", &arguments, &files);
        }
    }
}

#[test]
fn functions_take_and_return_parts() {
    let files = [
        ("x.npy", singles(&[70, 96], 0)),
        ("p.npy", singles(&[40, 96], 2)),
        ("o.npy", singles(&[96, 96], 1)),
    ];
    let arguments = "desc:x.npy,70,96,96,1,p.npy,desc:o.npy";
    for target in WITHOUT_UNIT {
        agree(
            &data("descriptor_call.ttir"),
            target,
            "3",
            arguments,
            &files,
        );
    }
}

#[test]
fn blocks_take_parts() {
    let files = [
        ("x.npy", singles(&[70, 60], 0)),
        ("p.npy", singles(&[40, 96], 2)),
        ("o.npy", singles(&[120, 96], 1)),
    ];
    let arguments = "desc:x.npy:nan,p.npy,desc:o.npy,40";
    for target in WITHOUT_UNIT {
        let kernel = data("descriptor_branches.ttir");
        agree(&kernel, target, "4", arguments, &files);
    }
}

#[test]
fn rows_and_updates_are_those_of_parameters() {
    let files = [
        ("x.npy", words(&[80, 48], 0)),
        ("o.npy", words(&[60, 36], 9)),
        ("s.npy", words(&[40, 40], 5)),
    ];
    let arguments = "desc:x.npy:nan,desc:o.npy,desc:s.npy,20";
    for target in WITHOUT_UNIT {
        agree(
            &data("descriptor_rows.ttir"),
            target,
            "1",
            arguments,
            &files,
        );
    }
}
