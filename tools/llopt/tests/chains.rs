//! Loops with two products in a chain, of which the first runs an iteration ahead: the machine with its sanitizer
//! against the reference interpreter; and what it says when one of the operations is missing by which it waits.

mod agreement;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use agreement::{LLOPT, missed, npy};

/// Rows of the factors that the loop goes through: blocks of 64.
const BLOCKS: usize = 7;

/// A folder with the kernel for so many rows, and its arguments.
fn folder(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chained_products.ttir");
    let kernel = fs::read_to_string(kernel).expect("the kernel is there");
    let write = |name: &str, contents: &[u8]| {
        fs::write(folder.path().join(name), contents).expect("the file is written");
    };
    let kernel = kernel.replace("ROWS", &rows.to_string());
    write("chain.ttir", kernel.as_bytes());
    // Small whole numbers, whose products add exactly, and no two blocks alike.
    let digits = |shape: &[usize], by: usize| {
        npy("<f2", shape, |i| {
            [0u16, 0x3c00, 0x4000, 0xc000, 0xbc00][(i * by * 2_654_435_761 >> 13) % 5]
                .to_le_bytes()
                .to_vec()
        })
    };
    write("q.npy", &digits(&[rows, 64], 7));
    write("k.npy", &digits(&[64 * BLOCKS, 64], 3));
    write("v.npy", &digits(&[64 * BLOCKS, 64], 11));
    let ones = |_: usize| 1f32.to_le_bytes().to_vec();
    write("o.npy", &npy("<f4", &[rows, 64], ones));
    folder
}

/// Runs a kernel of the folder from one row of the factors to another.
fn run(folder: &Path, kernel: &str, rows: [usize; 2], more: &[&str]) -> Output {
    let [first, end] = rows;
    let arguments = format!("desc:q.npy,desc:k.npy,desc:v.npy,desc:o.npy,{first},{end}");
    Command::new(LLOPT)
        .current_dir(folder)
        .args(["run", kernel, "--target", "cuda:90", "--grid", "1"])
        .args(["--args", &arguments, "--out-dir", "out"])
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
    for (rows, warps) in [(64, "4"), (128, "8")] {
        let folder = folder(rows);
        // No iteration, one, as many as there are buffers, more; from the middle; less than a step.
        for range in [
            [0, 0],
            [64, 0],
            [0, 64],
            [0, 128],
            [0, 192],
            [128, 448],
            [0, 33],
            [64, 448],
        ] {
            let expected = result(folder.path(), range, &["--reference"]);
            for more in [
                &["--num-warps", warps][..],
                &["--num-warps", warps, "--no-optimize"],
            ] {
                assert!(
                    result(folder.path(), range, more) == expected,
                    "{range:?} {more:?}"
                );
            }
        }
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
    // Nobody waits for the buffer that is given back last: no other iteration of a loop around this one needs it.
    assert_eq!(needless.len(), 1, "{needless:?}");
    assert!(
        needless[0].starts_with("ttng.arrive_barrier"),
        "{needless:?}"
    );
    assert_eq!(missed, 17);
}
