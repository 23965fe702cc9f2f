//! One kernel with every engine: the reference interpreter, and the machine with its sanitizer, before and after
//! optimisation.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The command.
pub const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// A `.npy` file of elements of two or four bytes with arbitrary small values.
pub fn npy(descr: &str, shape: &[usize], fill: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(|extent| format!("{extent},")).collect();
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        extents.join(" ")
    );
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    let count: usize = shape.iter().product();
    file.extend((0..count).flat_map(fill));
    file
}

/// Runs a kernel with every engine on the same inputs; all results must be the same.
pub fn agree(kernel: &Path, target: &str, grid: &str, arguments: &str, files: &[(&str, Vec<u8>)]) {
    agree_in_clusters(kernel, target, grid, arguments, files, None);
}

/// As [`agree`], with this number of blocks for each program if the kernel does not specify it.
pub fn agree_in_clusters(
    kernel: &Path,
    target: &str,
    grid: &str,
    arguments: &str,
    files: &[(&str, Vec<u8>)],
    blocks: Option<u32>,
) {
    let blocks = blocks.map(|blocks| format!("--num-ctas={blocks}"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, contents) in files {
        fs::write(folder.path().join(name), contents).expect("the input is written");
    }
    let mut results: Vec<Vec<Vec<u8>>> = Vec::new();
    for more in [&["--reference"][..], &[], &["--no-optimize"]] {
        let done = Command::new(LLOPT)
            .current_dir(folder.path())
            .arg("run")
            .arg(kernel)
            .args(["--target", target, "--grid", grid, "--args", arguments])
            .args(["--out-dir", "out"])
            .args(more)
            .args(blocks.iter().filter(|_| *more != ["--reference"]))
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&done.stderr);
        let name = kernel.display();
        assert!(done.status.success(), "{name} {target} {more:?}: {said}");
        let read = |name: &str| fs::read(folder.path().join("out").join(name));
        let results_of = files.iter().map(|(name, _)| read(name).expect("a result"));
        results.push(results_of.collect());
    }
    assert_ne!(
        results[0],
        files.iter().map(|(_, c)| c.clone()).collect::<Vec<_>>(),
        "{} does something",
        kernel.display()
    );
    for other in &results[1..] {
        assert!(results[0] == *other, "{} on {target}", kernel.display());
    }
}
