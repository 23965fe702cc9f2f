//! `cargo xtask dist`: the command and the Python wheel for machines without LLVM.
//!
//! LLVM and MLIR are linked statically anyway. The libraries that a build usually links as Debian's shared libraries
//! (libstdc++, libffi, zlib, zstd) are static here: the linker gets a folder with only those, before all others. The
//! remaining ones are libc, libm and libgcc_s, so the products run on any Linux whose glibc is no older than the one
//! they were built with. Each of these claims is checked on the products.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::python::Packages;
use crate::{process, setup, workspace};

/// The products to make.
#[derive(clap::Args)]
pub struct Options {
    /// Folder for the products [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

/// Libraries that are linked from their archives.
const ARCHIVES: &[&str] = &["libstdc++.a", "libffi.a", "libz.a", "libzstd.a"];
/// Shared libraries that every Linux with glibc has.
const EVERYWHERE: &[&str] = &[
    "linux-vdso.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
];
/// Largest size of a product as it is downloaded, in bytes.
const SIZE_LIMIT: u64 = 30_000_000;
/// The newest glibc whose functions a product may need, as the second number of its version: Debian 12's.
const NEWEST_GLIBC: u32 = 36;
/// The wheel's platform tag, with the same version.
const PLATFORM: &str = "manylinux_2_36";

/// Builds both products and checks them.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let target = workspace::target_directory()?;
    let out = options.out_dir.clone().unwrap_or(target.join("dist"));
    fs::create_dir_all(&out)?;
    let search = format!(
        "native={}",
        archives(&target.join("static-libraries"))?.display()
    );

    process::run(
        workspace::cargo()
            .args(["rustc", "--locked", "--release", "--package=llopt-cli"])
            .args(["--bin=llopt", "--", "-L", &search]),
    )?;
    let binary = target.join("release/llopt");
    needs_only_what_is_everywhere(&binary)?;
    asks_for_no_newer_glibc(&binary)?;
    runs_in_an_empty_system(&binary)?;
    let archive = out.join("llopt-x86_64-linux.tar.xz");
    process::run(
        Command::new("tar")
            .args(["--create", "--use-compress-program=xz -9"])
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(target.join("release"))
            .arg("llopt"),
    )?;

    let packages = Packages::named("maturin")?;
    packages.ensure("maturin", &["maturin>=1.9,<2"])?;
    process::run(
        packages
            .program("maturin")
            .args(["build", "--release", "--locked", "--strip"])
            .args(["--manifest-path", "tools/triton-llopt/Cargo.toml"])
            .args(["--compression-level", "9"])
            .args(["--compatibility", PLATFORM, "--out"])
            .arg(&out)
            .args(["--", "-L", &search]),
    )?;
    let extension = target.join("release/lib_llopt.so");
    needs_only_what_is_everywhere(&extension)?;
    asks_for_no_newer_glibc(&extension)?;

    let wheel = fs::read_dir(&out)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains(PLATFORM))
        .context("maturin left no wheel behind")?;
    for product in [archive, wheel] {
        let size = fs::metadata(&product)?.len();
        println!("{:.1} MB  {}", size as f64 / 1e6, product.display());
        ensure!(
            size < SIZE_LIMIT,
            "larger than {} MB",
            SIZE_LIMIT / 1_000_000
        );
    }
    Ok(())
}

/// A folder with links to only the archives.
pub fn archives(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    for name in ARCHIVES {
        let path = process::read(Command::new("g++").arg(format!("-print-file-name={name}")))?;
        let path = Path::new(path.trim());
        ensure!(path.is_absolute(), "no {name}: install its package");
        let link = folder.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        std::os::unix::fs::symlink(path, &link)?;
    }
    Ok(folder.to_owned())
}

/// The shared libraries that a product is loaded with: name and file.
fn libraries(product: &Path) -> Result<Vec<(String, Option<PathBuf>)>> {
    let text = process::read(Command::new("ldd").arg(product))?;
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    Ok(text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let first = words.first()?;
            let file = words.iter().find(|word| word.starts_with('/'));
            Some((name(first), file.map(PathBuf::from)))
        })
        .collect())
}

fn needs_only_what_is_everywhere(product: &Path) -> Result<()> {
    for (name, _) in libraries(product)? {
        if !EVERYWHERE.contains(&name.as_str()) {
            bail!("{} needs {name}", product.display());
        }
    }
    Ok(())
}

/// Prints the glibc that a product needs, and fails if the oldest supported system does not have it.
fn asks_for_no_newer_glibc(product: &Path) -> Result<()> {
    let symbols = process::read(
        Command::new("nm")
            .args(["--dynamic", "--undefined-only", "--with-symbol-versions"])
            .arg(product),
    )?;
    let newest = symbols
        .split_whitespace()
        .filter_map(|symbol| {
            symbol
                .split_once("@GLIBC_2.")?
                .1
                .split('.')
                .next()?
                .parse()
                .ok()
        })
        .max()
        .unwrap_or(0);
    println!("glibc 2.{newest}  {}", product.display());
    ensure!(newest <= NEWEST_GLIBC, "newer than 2.{NEWEST_GLIBC}");
    Ok(())
}

/// Runs the command in a file system with only the command and its libraries. Only root can do that; for others the
/// check is skipped with a message.
fn runs_in_an_empty_system(binary: &Path) -> Result<()> {
    if process::read(Command::new("id").arg("-u"))?.trim() != "0" {
        println!("note: not tried in an empty file system, which only root may do");
        return Ok(());
    }
    let system = workspace::target_directory()?.join("empty-system");
    if system.exists() {
        fs::remove_dir_all(&system)?;
    }
    for (_, file) in libraries(binary)? {
        let Some(file) = file else { continue };
        let there = system.join(file.strip_prefix("/")?);
        fs::create_dir_all(there.parent().context("a library lies in a folder")?)?;
        fs::copy(&file, there)?;
    }
    fs::copy(binary, system.join("llopt"))?;
    let example = "examples/cuda-90/dropout.ttgir";
    fs::copy(workspace::root().join(example), system.join("kernel.ttgir"))?;
    process::run(
        Command::new("chroot")
            .arg(&system)
            .args(["/llopt", "compile", "/kernel.ttgir"])
            .args(["--target", "cuda:90", "-o", "/kernel.ptx"]),
    )
}
