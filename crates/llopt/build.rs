//! Makes the version string that changes with the code, for the keys of caches.
//!
//! It hashes the source files of the compiler, names and contents, in the order of their names; the same sources give
//! the same version on every machine.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The inputs that affect the output of a compilation, below the root of the workspace, besides the crates.
const INPUTS: [&str; 2] = ["Cargo.lock", "dialects"];

/// Folders and files of a crate that are not code of the compiler.
const OTHER: [&str; 5] = ["tests", "benches", "examples", "README.md", "target"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut files = Vec::new();
    let mut inputs: Vec<PathBuf> = INPUTS.iter().map(|input| root.join(input)).collect();
    for entry in fs::read_dir(root.join("crates"))? {
        for part in fs::read_dir(entry?.path())? {
            let part = part?.path();
            let name = part.file_name().unwrap_or_default().to_string_lossy();
            if !OTHER.contains(&&*name) {
                inputs.push(part);
            }
        }
    }
    for input in &inputs {
        println!("cargo::rerun-if-changed={}", input.display());
        collect(input, &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::default();
    for file in &files {
        hash.add(file.strip_prefix(&root)?.as_os_str().as_encoded_bytes());
        hash.add(&fs::read(file)?);
    }
    let release = env::var("CARGO_PKG_VERSION")?;
    let llvm = llvm_version()?;
    println!(
        "cargo::rustc-env=LLOPT_VERSION={release}+{:016x}.llvm{llvm}",
        hash.0
    );
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// The version of the linked LLVM, such as `22.1.8`.
fn llvm_version() -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = env::var("MLIR_SYS_220_PREFIX")?;
    let program = Path::new(&prefix).join("bin/llvm-config");
    let output = Command::new(program).arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// FNV-1a on 64 bits (draft-eastlake-fnv, section 2), with the length before each piece.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.len().to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
