//! Loops with two products in a chain, the first of which runs an iteration ahead: the machine with its sanitizer
//! compared with the reference interpreter; and its findings when one of the operations for waiting is missing.

mod agreement;
mod missing;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use agreement::{LLOPT, agree, npy};
use missing::missed;

/// Rows of the factors of the loop: blocks of 64.
const BLOCKS: usize = 7;

/// No iteration, one, as many as there are buffers, more; from the middle; less than a step.
const RANGES: [[usize; 2]; 8] = [
    [0, 0],
    [64, 0],
    [0, 64],
    [0, 128],
    [0, 192],
    [128, 448],
    [0, 33],
    [64, 448],
];

/// The arguments for that many rows: small whole numbers, whose products are summed exactly, with different blocks.
fn files(rows: usize) -> [(&'static str, Vec<u8>); 4] {
    let digits = |rows: usize, by: usize| {
        npy("<f2", &[rows, 64], |i| {
            [0u16, 0x3c00, 0x4000, 0xc000, 0xbc00][((i * by * 2_654_435_761) >> 13) % 5]
                .to_le_bytes()
                .to_vec()
        })
    };
    let ones = |_: usize| 1f32.to_le_bytes().to_vec();
    [
        ("q.npy", digits(rows, 7)),
        ("k.npy", digits(64 * BLOCKS, 3)),
        ("v.npy", digits(64 * BLOCKS, 11)),
        ("o.npy", npy("<f4", &[rows, 64], ones)),
    ]
}

/// A folder with the kernel for that many rows, and its arguments.
fn folder(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chained_products.ttir");
    let kernel = fs::read_to_string(kernel).expect("the kernel is there");
    let write = |name: &str, contents: &[u8]| {
        fs::write(folder.path().join(name), contents).expect("the file is written");
    };
    write(
        "chain.ttir",
        kernel.replace("ROWS", &rows.to_string()).as_bytes(),
    );
    for (name, contents) in files(rows) {
        write(name, &contents);
    }
    folder
}

fn arguments([first, end]: [usize; 2]) -> String {
    format!("desc:q.npy,desc:k.npy,desc:v.npy,desc:o.npy,{first},{end}")
}

/// Runs a kernel of the folder from one row of the factors to another.
fn run(folder: &Path, kernel: &str, rows: [usize; 2], more: &[&str]) -> Output {
    Command::new(LLOPT)
        .current_dir(folder)
        .args(["run", kernel, "--target", "cuda:90", "--grid", "1"])
        .args(["--args", &arguments(rows), "--out-dir", "out"])
        .args(more)
        .output()
        .expect("the command starts")
}

fn result(folder: &Path, rows: [usize; 2], more: &[&str]) -> Vec<u8> {
    let done = run(folder, "chain.ttir", rows, more);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{rows:?} {more:?}: {said}");
    fs::read(folder.join("out/o.npy")).expect("a result")
}

#[test]
fn a_product_ahead_changes_no_result() {
    let folder = folder(64);
    for range in RANGES {
        let kernel = folder.path().join("chain.ttir");
        agree(&kernel, "cuda:90", "1", &arguments(range), &files(64));
    }
}

#[test]
fn two_groups_of_warps_are_apart() {
    let folder = folder(128);
    for range in RANGES {
        let expected = result(folder.path(), range, &["--reference"]);
        let found = result(folder.path(), range, &["--num-warps", "8"]);
        assert!(found == expected, "{range:?}");
    }
}

#[test]
fn nothing_by_which_it_waits_is_needless() {
    let folder = folder(64);
    let done = Command::new(LLOPT)
        .current_dir(folder.path())
        .args(["compile", "chain.ttir", "--target", "cuda:90"])
        .args(["--emit", "ttgir", "-o", "chain.ttgir"])
        .output()
        .expect("the command starts");
    assert!(done.status.success());
    let (missed, needless) = missed(folder.path(), "chain.ttgir", |kernel| {
        run(folder.path(), kernel, [0, 448], &[]).status.success()
    });
    // There is no wait for the last release of the buffer: no further iteration of an outer loop needs it.
    assert_eq!(needless.len(), 1, "{needless:?}");
    assert!(
        needless[0].starts_with("ttng.arrive_barrier"),
        "{needless:?}"
    );
    assert_eq!(missed, 17);
}
