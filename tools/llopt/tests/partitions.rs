//! Loops that request partitions: a warp copies, the others multiply. The machine with its sanitizer, compared with
//! the reference interpreter; and its findings when one of the operations by which they wait for one another is
//! missing.

mod agreement;
mod missing;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use agreement::{LLOPT, agree, npy};
use missing::missed;

/// Columns of the first factor: blocks of 64.
const BLOCKS: usize = 7;

type Files = [(&'static str, Vec<u8>); 3];

/// The arguments for three tiles of that many rows.
fn files(rows: usize) -> Files {
    // Small whole numbers, whose products are summed exactly.
    let digits = |shape: &[usize]| {
        npy("<f2", shape, |i| {
            [0u16, 0x3c00, 0x4000, 0xc000, 0x4200][i * 7 % 5]
                .to_le_bytes()
                .to_vec()
        })
    };
    let ones = |_: usize| 1f32.to_le_bytes().to_vec();
    [
        ("x.npy", digits(&[3 * rows, 64 * BLOCKS])),
        ("y.npy", digits(&[64 * BLOCKS, 64])),
        ("o.npy", npy("<f4", &[3 * rows, 64], ones)),
    ]
}

/// A folder with the kernel for three tiles of that many rows, and its arguments.
fn folder(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/divided_tiles.ttir");
    let kernel = fs::read_to_string(kernel).expect("the kernel is there");
    let write = |name: &str, contents: &[u8]| {
        fs::write(folder.path().join(name), contents).expect("the file is written");
    };
    write(
        "tiles.ttir",
        kernel.replace("ROWS", &rows.to_string()).as_bytes(),
    );
    for (name, contents) in files(rows) {
        write(name, &contents);
    }
    folder
}

/// Runs a kernel of the folder for that many tiles and blocks.
fn run(folder: &Path, kernel: &str, tiles: usize, blocks: usize, more: &[&str]) -> Output {
    let arguments = format!("desc:x.npy,desc:y.npy,desc:o.npy,{tiles},{blocks}");
    Command::new(LLOPT)
        .current_dir(folder)
        .args(["run", kernel, "--target", "cuda:90", "--grid", "1"])
        .args(["--args", &arguments, "--out-dir", "out"])
        .args(more)
        .output()
        .expect("the command starts")
}

#[test]
fn a_warp_copies_for_all_tiles() {
    let folder = folder(64);
    // No block, one, fewer than there are slots, as many, and other counts than multiples.
    for (tiles, blocks) in [(1, 0), (1, 1), (3, 2), (2, 3), (3, 4), (3, 7)] {
        let arguments = format!("desc:x.npy,desc:y.npy,desc:o.npy,{tiles},{blocks}");
        let kernel = folder.path().join("tiles.ttir");
        agree(&kernel, "cuda:90", "1", &arguments, &files(64));
    }
}

#[test]
fn two_groups_of_warps_read_what_one_warp_copies() {
    let folder = folder(128);
    for (tiles, blocks) in [(0, 3), (1, 0), (3, 2), (3, 7)] {
        let result = |more: &[&str]| {
            let done = run(folder.path(), "tiles.ttir", tiles, blocks, more);
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{tiles} {blocks}: {said}");
            fs::read(folder.path().join("out/o.npy")).expect("a result")
        };
        let expected = result(&["--reference"]);
        assert!(
            result(&["--num-warps", "8"]) == expected,
            "{tiles} {blocks}"
        );
    }
}

#[test]
fn nothing_by_which_partitions_wait_is_needless() {
    let folder = folder(64);
    let done = Command::new(LLOPT)
        .current_dir(folder.path())
        .args(["compile", "tiles.ttir", "--target", "cuda:90"])
        .args(["--emit", "ttgir", "-o", "tiles.ttgir"])
        .output()
        .expect("the command starts");
    assert!(done.status.success());
    let all = missed(folder.path(), "tiles.ttgir", |kernel| {
        run(folder.path(), kernel, 3, BLOCKS, &[]).status.success()
    });
    // Both sides wait, the consumers arrive in the loop and after it, and wait for products in both places.
    assert_eq!(all, (7, Vec::new()));
}

#[test]
fn a_kernel_that_goes_through_tiles_need_not_ask() {
    let folder = folder(64);
    let kernel = folder.path().join("tiles.ttir");
    let asking = fs::read_to_string(&kernel).expect("the kernel is there");
    let plain = asking.replace(" {tt.warp_specialize}", "");
    assert_ne!(plain, asking);
    fs::write(&kernel, plain).expect("it is written");
    let done = Command::new(LLOPT)
        .args(["compile", "--target", "cuda:90", "--emit", "ttgir"])
        .arg(&kernel)
        .output()
        .expect("the command starts");
    assert!(String::from_utf8_lossy(&done.stdout).contains("ttg.warp_specialize("));
    for (tiles, blocks) in [(1, 0), (3, 2), (3, 7)] {
        let arguments = format!("desc:x.npy,desc:y.npy,desc:o.npy,{tiles},{blocks}");
        agree(&kernel, "cuda:90", "1", &arguments, &files(64));
    }
}
