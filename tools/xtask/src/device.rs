//! The vendors' programs and libraries that llopt calls but does not contain: NVIDIA's
//! assembler and the two device libraries.
//!
//! Compiling to PTX or AMDGPU assembly needs none of them, unless a kernel calls a function without an instruction.
//! So where they are not available, set-up continues without them: the tests that need them are reported as
//! unsupported, and the demo reports what it could not do.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// The Python package with `ptxas` and libdevice. Its files are NVIDIA's, under NVIDIA's licence. The version is the one that
/// Triton 3.6 contains: which products an assembler serialises differs between versions, and Triton's assembles what the
/// plugin prints.
const NVIDIA_PACKAGE: &str = "nvidia-cuda-nvcc-cu12==12.8.93";
/// The files of that package that are needed, and their places here.
const NVIDIA_FILES: &[(&str, &str)] = &[
    ("nvidia/cuda_nvcc/bin/ptxas", "ptxas"),
    (
        "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
        "libdevice.10.bc",
    ),
];
/// The directory of bitcode in Debian's `rocm-device-libs`.
const DEBIAN_ROCM: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

/// Environment variables that `llopt` reads, each with its value here. A variable that the user has set is left out,
/// as is one whose file does not exist.
pub fn variables() -> Result<Vec<(&'static str, PathBuf)>> {
    let nvidia = nvidia_directory()?;
    Ok([
        ("LLOPT_PTXAS", nvidia.join("ptxas")),
        ("LLOPT_LIBDEVICE", nvidia.join("libdevice.10.bc")),
        ("LLOPT_OCML", DEBIAN_ROCM.into()),
        ("LLOPT_LLD", workspace::llvm_prefix().join("bin/ld.lld")),
    ]
    .into_iter()
    .filter(|(name, path)| env::var_os(name).is_none() && path.exists())
    .collect())
}

/// Fetches NVIDIA's files from the Python package index unless they exist here or the user has specified others.
/// Failure is printed, not returned.
pub fn fetch() -> Result<()> {
    let directory = nvidia_directory()?;
    let named = ["LLOPT_PTXAS", "LLOPT_LIBDEVICE"]
        .iter()
        .all(|name| env::var_os(name).is_some());
    let here = NVIDIA_FILES
        .iter()
        .all(|(_, name)| directory.join(name).is_file());
    if named || here {
        return Ok(());
    }
    if let Err(error) = fetch_nvidia(&directory) {
        println!("note: going on without ptxas and libdevice: {error:#}");
    }
    Ok(())
}

fn fetch_nvidia(directory: &Path) -> Result<()> {
    let scratch = directory.join("download");
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--only-binary=:all:", NVIDIA_PACKAGE, "--dest"])
            .arg(&scratch),
    )?;
    let wheel = fs::read_dir(&scratch)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .context("pip left no wheel behind")?;
    process::run(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(&wheel)
            .arg(&scratch),
    )?;
    for (from, to) in NVIDIA_FILES {
        let to = directory.join(to);
        fs::rename(scratch.join(from), &to)
            .with_context(|| format!("the package has no {from}"))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

fn nvidia_directory() -> Result<PathBuf> {
    Ok(workspace::target_directory()?.join("nvidia"))
}
