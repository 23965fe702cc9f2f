//! `llopt run`: the same kernel on the machine, optimised and not, and on the reference interpreter.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// A `.npy` file of singles.
fn npy(values: &[f32]) -> Vec<u8> {
    let mut header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
        values.len()
    );
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

/// The singles at the end of a file.
fn values(file: &[u8], count: usize) -> Vec<f32> {
    file[file.len() - 4 * count..]
        .chunks_exact(4)
        .map(|c| f32::from_le_bytes(c.try_into().expect("four bytes")))
        .collect()
}

fn run(folder: &Path, file: &Path, target: &str, arguments: &str, more: &[&str]) -> Output {
    Command::new(LLOPT)
        .current_dir(folder)
        .arg("run")
        .arg(file)
        .args([
            "--target",
            target,
            "--grid",
            "1",
            "--out-dir",
            "out",
            "--args",
            arguments,
        ])
        .args(more)
        .output()
        .expect("the command starts")
}

#[test]
fn a_sum_is_the_same_everywhere() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let x: Vec<f32> = (0..1024).map(|i| i as f32 * 0.25).collect();
    let y: Vec<f32> = (0..1024).map(|i| 1.0 / (i as f32 + 1.0)).collect();
    for (name, data) in [("x", &x), ("y", &y), ("o", &vec![-1.0; 1024])] {
        fs::write(folder.path().join(format!("{name}.npy")), npy(data))
            .expect("the input is written");
    }
    for (target, directory) in [("cuda:90", "cuda-90"), ("hip:gfx942", "hip-gfx942")] {
        let file = examples.join(directory).join("vecadd_fp32.ttgir");
        for more in [&[][..], &["--no-optimize"], &["--reference"]] {
            let done = run(folder.path(), &file, target, "x.npy,y.npy,o.npy,1000", more);
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{target} {more:?}: {said}");
            let file = fs::read(folder.path().join("out/o.npy")).expect("the result is there");
            for (i, value) in values(&file, 1024).into_iter().enumerate() {
                let expected = if i < 1000 { x[i] + y[i] } else { -1.0 };
                assert_eq!(value, expected, "{target} {more:?} [{i}]");
            }
        }
        let done = run(
            folder.path(),
            &file,
            target,
            "x.npy,y.npy,o.npy,1000",
            &["--report", "report.json"],
        );
        assert!(done.status.success());
        let text = fs::read(folder.path().join("report.json")).expect("the report is there");
        let report: serde_json::Value = serde_json::from_slice(&text).expect("the report is JSON");
        // Each of the 1000 singles of both inputs is in one of 125 sectors, counted at least once.
        assert!(report["global"]["load_sectors"].as_u64() >= Some(2 * 125));
        assert_eq!(report["findings"].as_array().map(Vec::len), Some(0));
        // A buffer that is too short is found, and fails the run.
        fs::write(folder.path().join("short.npy"), npy(&x[..100])).expect("the input is written");
        let done = run(
            folder.path(),
            &file,
            target,
            "short.npy,y.npy,o.npy,1000",
            &[],
        );
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success());
        if target == "cuda:90" {
            assert!(said.contains("out of bounds"), "{said}");
        }
    }
}

#[test]
fn mistakes_are_explained() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = examples.join("cuda-90/vecadd_fp32.ttgir");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (arguments, message) in [
        ("missing.npy,1,2,3", "cannot read 'missing.npy'"),
        ("1,2,banana,4", "neither a .npy file nor a number"),
        ("1,2", "arguments, 2 given"),
    ] {
        let done = run(folder.path(), &file, "cuda:90", arguments, &[]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(message), "{said}");
    }
}

/// Both vendors' printing reaches the user, with and without optimisation; a failed assertion says which.
#[test]
fn kernels_print_and_assert() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |changed: i32| {
        let numbers: Vec<f32> = (0..128)
            .map(|i| f32::from_bits(if i == 17 { changed } else { i } as u32))
            .collect();
        fs::write(folder.path().join("x.npy"), npy(&numbers)).expect("the input is written");
    };
    for (target, directory) in [
        ("cuda:90", "cuda-90"),
        ("hip:gfx942", "hip-gfx942"),
        ("hip:gfx1100", "hip-gfx942"),
    ] {
        let text = fs::read_to_string(examples.join(directory).join("print_and_assert.ttgir"))
            .expect("the example is there");
        // The same kernel on warps of 32.
        let text = if target == "hip:gfx1100" {
            text.replace("gfx942", "gfx1100")
                .replace("threadsPerWarp = [64]", "threadsPerWarp = [32]")
                .replace(
                    "\"ttg.threads-per-warp\" = 64",
                    "\"ttg.threads-per-warp\" = 32",
                )
        } else {
            text
        };
        let file = folder.path().join("kernel.ttgir");
        fs::write(&file, text).expect("the kernel is written");
        for more in [&[][..], &["--no-optimize"]] {
            write(17);
            let done = run(folder.path(), &file, target, "x.npy,128", more);
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success(), "{target}: {done:?}");
            for i in 0..128 {
                let hexadecimal = format!("value: 0x{i:08x}");
                let count = said
                    .lines()
                    .filter(|line| line.contains(&hexadecimal))
                    .count();
                assert_eq!(count, 1, "{target} {more:?} {hexadecimal}\n{said}");
            }
            let sizes = said.lines().filter(|line| line.ends_with(" 128"));
            assert!(sizes.count() >= 2, "{target} {more:?}\n{said}");
            write(-1);
            let done = run(folder.path(), &file, target, "x.npy,128", more);
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(
                !done.status.success() && said.contains("a negative value"),
                "{done:?}"
            );
        }
    }
}
