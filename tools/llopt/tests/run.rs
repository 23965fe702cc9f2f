//! `llopt run`: the same kernel on the machine, optimised and not, and on the reference interpreter.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// A `.npy` file of singles.
fn npy(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy_of("<f4", values.len(), &bytes)
}

/// A `.npy` file of any type.
fn npy_of(descr: &str, count: usize, bytes: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(bytes);
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
    let more = [&["--grid", "1"], more].concat();
    run_on(folder, file, target, arguments, &more)
}

/// As [`run`], with the grid in the options.
fn run_on(folder: &Path, file: &Path, target: &str, arguments: &str, more: &[&str]) -> Output {
    Command::new(LLOPT)
        .current_dir(folder)
        .arg("run")
        .arg(file)
        .args(["--target", target, "--out-dir", "out", "--args", arguments])
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
        ("1,2", "the kernel takes 4 arguments, 2 given"),
        (
            "x.npy,double.npy,x.npy,4",
            "argument 1 is 'double.npy' with elements of type '<f8', the kernel expects !tt.ptr<f32>",
        ),
        (
            "x.npy,x.npy,word.npy,4",
            "argument 2 is 'word.npy' with elements of type '<i4', the kernel expects !tt.ptr<f32>",
        ),
        (
            "big.npy,x.npy,x.npy,4",
            "argument 0 is 'big.npy' with elements of type '>f4', the kernel expects !tt.ptr<f32>",
        ),
        (
            "x.npy,x.npy,4,4",
            "argument 2 is an integer, the kernel expects",
        ),
    ] {
        for (name, descr, size) in [
            ("x", "<f4", 4),
            ("double", "<f8", 8),
            ("word", "<i4", 4),
            ("big", ">f4", 4),
        ] {
            let file = npy_of(descr, 4, &vec![0; 4 * size]);
            fs::write(folder.path().join(format!("{name}.npy")), file)
                .expect("the input is written");
        }
        for more in [&[][..], &["--reference"]] {
            let done = run(folder.path(), &file, "cuda:90", arguments, more);
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success() && said.contains(message), "{said}");
        }
    }
    let ir =
        "define ptx_kernel void @k(i32 %n, ptr addrspace(1) %s, ptr addrspace(1) %t) { ret void }";
    fs::write(folder.path().join("k.ll"), ir).expect("the kernel is written");
    let more = ["--num-warps", "1"];
    let done = run(folder.path(), Path::new("k.ll"), "cuda:90", "1", &more);
    assert!(done.status.success(), "{done:?}");
    let done = run(folder.path(), Path::new("k.ll"), "cuda:90", "1,2", &more);
    let said = String::from_utf8_lossy(&done.stderr);
    let message = "the kernel takes 3 arguments, of which the last two may be left out";
    assert!(!done.status.success() && said.contains(message), "{said}");
}

/// Results, counters and findings do not depend on the number of threads that run the blocks.
#[test]
fn jobs_change_nothing() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let x: Vec<f32> = (0..20_000).map(|i| (i as f32).sin()).collect();
    fs::write(folder.path().join("x.npy"), npy(&x)).expect("the input is written");
    // The last blocks reach beyond the buffer, which is reported in the first of them.
    fs::write(folder.path().join("short.npy"), npy(&x[..17_000])).expect("the input is written");
    let file = examples.join("cuda-90/vecadd_fp32.ttgir");
    for (arguments, succeeds) in [
        ("x.npy,x.npy,x.npy,20000", true),
        ("x.npy,short.npy,x.npy,20000", false),
    ] {
        let results = ["1", "2", "7"].map(|jobs| {
            let more = ["--grid", "20", "--jobs", jobs, "--report", "report.json"];
            let done = run_on(folder.path(), &file, "cuda:90", arguments, &more);
            assert_eq!(done.status.success(), succeeds, "{done:?}");
            let read = |name| fs::read(folder.path().join(name)).expect("the output is there");
            (read("out/x.npy"), read("report.json"), done.stderr)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
        // No bar is drawn without a terminal.
        assert_eq!(results[0].2.is_empty(), succeeds);
    }
}

/// The user sees what both vendors' kernels print, with and without optimisation; a failed assertion is named.
#[test]
fn kernels_print_and_assert() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |changed: i32| {
        let bytes: Vec<u8> = (0..128)
            .flat_map(|i| (if i == 17 { changed } else { i }).to_le_bytes())
            .collect();
        fs::write(folder.path().join("x.npy"), npy_of("<i4", 128, &bytes))
            .expect("the input is written");
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
