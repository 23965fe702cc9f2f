//! Paths: the workspace root, the target directory, the LLVM prefix, the packages.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The path of LLVM on Debian that the workspace's `.cargo/config.toml` expects.
pub const DEBIAN_LLVM_PREFIX: &str = "/usr/lib/llvm-22";

/// The root of the workspace that this xtask runs in.
///
/// Cargo tells a program that it runs where its package is. That is not always where the program was built: clones
/// may share a target directory.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(&manifest)
        .to_path_buf()
}

/// A `cargo` command that runs in the workspace root.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    command
}

/// The directory with LLVM's `bin` and `lib`, from the same variable as in the build.
pub fn llvm_prefix() -> PathBuf {
    env::var_os("LLVM_SYS_221_PREFIX").map_or_else(|| DEBIAN_LLVM_PREFIX.into(), PathBuf::from)
}

/// Builds the command `llopt` of the objects that tests consist of, so that neither is compiled twice: Cargo gives packages the
/// features that everything asks for that is built with them, and those of tests only where one of the targets is a test
/// or an example.
pub fn build_llopt() -> Result<PathBuf> {
    process::run(cargo().args([
        "build",
        "--quiet",
        "--locked",
        "--workspace",
        "--bin=llopt",
        "--example=softmax",
    ]))?;
    Ok(target_directory()?.join("debug/llopt"))
}

/// The workspace's own packages in the output of `cargo metadata`.
pub fn metadata() -> Result<Value> {
    let text =
        process::read(cargo().args(["metadata", "--no-deps", "--format-version=1", "--locked"]))?;
    serde_json::from_str(&text).context("`cargo metadata` printed something other than JSON")
}

/// The directory of build products, as configured by the user.
pub fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let directory = metadata["target_directory"]
        .as_str()
        .context("`cargo metadata` names no target directory")?;
    Ok(directory.into())
}
