//! `cargo xtask library`: the C interface as a shared and as a static library, with header and a file
//! for pkg-config, installed below a prefix.
//!
//! A program that links with them needs neither LLVM nor C++: they contain everything except libc, libm and libgcc,
//! and only the functions of the header are visible.
//!
//! The shared library is rustc's output. The static one is not: an archive of all of LLVM's objects is larger than a
//! gigabyte, has many symbols that conflict with those of another LLVM, and needs further libraries on the linker's
//! command line. So the linker combines the sections that are used (`--gc-sections`) into a single object (`ld -r`),
//! with duplicate sections of C++ already merged (`--force-group-allocation`), and `llvm-objcopy` makes all but the
//! interface's symbols local (GNU's takes minutes for so many).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{dist, process, setup, workspace};

/// The destination and the profile.
#[derive(clap::Args)]
pub struct Options {
    /// Where `include` and `lib` go
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,

    /// Build without optimisation: quicker, for trying out the installation
    #[arg(long)]
    debug: bool,
}

/// Builds, installs, and tests both libraries with the example in C.
pub fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    let target = workspace::target_directory()?;
    let profile = if options.debug { "debug" } else { "release" };
    let built = target.join(profile);
    let archives = dist::archives(&target.join("static-libraries"))?;
    let library = |kind: &str| {
        let mut command = workspace::cargo();
        command.args(["rustc", "--locked", "--package=llopt-capi", "--lib"]);
        if !options.debug {
            command.arg("--release");
        }
        command.arg(format!("--crate-type={kind}"));
        command
    };
    let include = options.prefix.join("include");
    let lib = options.prefix.join("lib");
    fs::create_dir_all(&include)?;
    fs::create_dir_all(lib.join("pkgconfig"))?;

    process::run(
        library("cdylib")
            .arg("--")
            .arg("-L")
            .arg(format!("native={}", archives.display())),
    )?;
    install_shared(&built.join("libllopt_capi.so"), &lib)?;
    process::run(&mut library("staticlib"))?;
    install_static(&built.join("libllopt_capi.a"), &archives, &lib)?;

    let header = workspace::root().join("crates/llopt-capi/include/llopt.h");
    fs::copy(header, include.join("llopt.h"))?;
    fs::write(
        lib.join("pkgconfig/llopt.pc"),
        description(&options.prefix)?,
    )?;
    for linked in ["shared", "static"] {
        try_example(&options.prefix, &target.join("library-example"), linked)?;
    }
    Ok(())
}

/// The shared library under its name, and the symbolic links for the linker and the loader.
fn install_shared(built: &Path, lib: &Path) -> Result<()> {
    let versioned = lib.join("libllopt.so.1");
    let stripped = lib.join("libllopt.so.1.new");
    process::run(
        Command::new("strip")
            .arg("--strip-unneeded")
            .arg("-o")
            .arg(&stripped)
            .arg(built),
    )?;
    // A program that has loaded the old one keeps it.
    fs::rename(&stripped, &versioned)?;
    let link = lib.join("libllopt.so");
    if fs::symlink_metadata(&link).is_ok() {
        fs::remove_file(&link)?;
    }
    std::os::unix::fs::symlink("libllopt.so.1", &link)?;
    Ok(())
}

/// The static library: one object that contains everything and exports only the interface.
fn install_static(built: &Path, archives: &Path, lib: &Path) -> Result<()> {
    let functions = functions_of(&lib.join("libllopt.so.1"))?;
    ensure!(!functions.is_empty(), "the library exports nothing");
    let prefix = workspace::llvm_prefix();
    let listed = process::read(Command::new(prefix.join("bin/llvm-config")).args([
        "--link-static",
        "--ignore-libllvm",
        "--libfiles",
    ]))?;
    let work = built.with_extension("parts");
    fs::create_dir_all(&work)?;
    let (all, shown) = (work.join("all.o"), work.join("llopt.o"));
    process::run(
        Command::new("ld")
            .args(["--relocatable", "--gc-sections"])
            .args(["--force-group-allocation", "--strip-debug"])
            .args(functions.iter().map(|name| format!("--undefined={name}")))
            .arg("-o")
            .arg(&all)
            .arg("--start-group")
            .arg(built)
            .args(listed.split_whitespace())
            .args(
                ["libstdc++.a", "libffi.a", "libz.a", "libzstd.a"].map(|name| archives.join(name)),
            )
            .arg("--end-group"),
    )?;
    let names = work.join("functions");
    fs::write(&names, functions.join("\n"))?;
    process::run(
        Command::new(prefix.join("bin/llvm-objcopy"))
            .arg("--strip-unneeded")
            .arg(format!("--keep-global-symbols={}", names.display()))
            .args([&all, &shown]),
    )?;
    let archive = lib.join("libllopt.a");
    if archive.exists() {
        fs::remove_file(&archive)?;
    }
    // GNU's passes each object to the installed plugins, and those of other LLVMs fail.
    process::run(
        Command::new(prefix.join("bin/llvm-ar"))
            .arg("rcs")
            .args([&archive, &shown]),
    )?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

/// The functions that a shared library exports.
fn functions_of(library: &Path) -> Result<Vec<String>> {
    let names = process::read(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=just-symbols"])
            .arg(library),
    )?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// The description for pkg-config.
fn description(prefix: &Path) -> Result<String> {
    let prefix = std::path::absolute(prefix)?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "prefix={}\nName: llopt\nDescription: A compiler of tile kernels for GPUs\n\
         Version: {version}\nCflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -lllopt\nLibs.private: -lm -lpthread -ldl\n",
        prefix.display()
    ))
}

/// Compiles the example in C with the installed library, and a kernel with the example.
fn try_example(prefix: &Path, folder: &Path, linked: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    let prefix = std::path::absolute(prefix)?;
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    let program = folder.join(linked);
    let root = workspace::root();
    let mut compile = Command::new("cc");
    compile
        .arg(root.join("crates/llopt-capi/examples/compile.c"))
        .arg("-I")
        .arg(&include)
        .arg("-o")
        .arg(&program);
    if linked == "static" {
        compile.arg(lib.join("libllopt.a")).arg("-lm");
    } else {
        compile.arg("-L").arg(&lib).arg("-lllopt");
        compile.arg(format!("-Wl,-rpath,{}", lib.display()));
    }
    process::run(&mut compile)?;
    for target in ["cuda:90", "hip:gfx942"] {
        let assembly = process::read(
            Command::new(&program)
                .arg(root.join("lit-tests/embedding/Inputs/scale.mlir"))
                .arg(target),
        )?;
        ensure!(
            assembly.contains("scale"),
            "{linked}: no kernel for {target}"
        );
    }
    let size = |path: &Path| fs::metadata(path).map(|data| data.len() as f64 / 1e6);
    let file = if linked == "static" {
        "libllopt.a"
    } else {
        "libllopt.so.1"
    };
    let installed = lib.join(file);
    let size = size(&installed).context("the library was installed")?;
    println!("{size:.1} MB  {}", installed.display());
    Ok(())
}
