//! `cargo xtask setup`: installs what the build and the tests need from Debian's packages.
//!
//! Each command is printed before it runs. With everything in place it runs nothing and
//! returns at once, so every other command that needs LLVM calls it first.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{device, process, workspace};

/// Debian packages, each with its purpose.
const PACKAGES: &[(&str, &str)] = &[
    (
        "g++",
        "compiles the C++ bridge to MLIR and LLVM's C wrappers",
    ),
    (
        "llvm-22-dev",
        "LLVM itself: headers, static libraries, llvm-config",
    ),
    ("libmlir-22-dev", "MLIR: headers and static libraries"),
    (
        "mlir-22-tools",
        "mlir-tblgen and mlir-opt; the MLIR CMake files name them",
    ),
    (
        "libclang-22-dev",
        "bindgen reads the C headers of LLVM and MLIR with it",
    ),
    (
        "libpolly-22-dev",
        "llvm-config lists it among the static libraries",
    ),
    ("libzstd-dev", "compression, linked statically"),
    ("zlib1g-dev", "compression, linked statically"),
    ("llvm-22", "llvm-mca counts the cycles of loops for AMD"),
    (
        "llvm-22-tools",
        "lit, FileCheck, not and split-file for the lit tests",
    ),
    (
        "python3-numpy",
        "says what the example kernels must compute",
    ),
    (
        "python3-pip",
        "fetches NVIDIA's assembler and device library",
    ),
    (
        "rocm-device-libs",
        "AMD's device library, for functions without an instruction",
    ),
    ("lld-22", "links AMDGPU code objects (hsaco)"),
];

/// The packages to install.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Only say what is missing; fail if anything is
    #[arg(long)]
    check: bool,

    /// Install nothing; print the environment that tells `llopt` where the vendors' tools are,
    /// for `eval "$(cargo xtask setup --environment)"`
    #[arg(long, conflicts_with = "check")]
    environment: bool,
}

/// Installs whatever is missing, as root or through sudo.
pub fn run(options: &Options) -> Result<()> {
    if options.environment {
        for (name, path) in device::variables()? {
            println!("export {name}={}", path.display());
        }
        return Ok(());
    }
    if is_debian() {
        install(options)?;
    } else {
        elsewhere()?;
    }
    if !options.check {
        device::fetch()?;
    }
    Ok(())
}

fn install(options: &Options) -> Result<()> {
    let missing = missing_packages()?;
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing packages:");
    for (name, reason) in PACKAGES {
        if missing.contains(name) {
            println!("  {name:<18} {reason}");
        }
    }
    if options.check {
        bail!(
            "{} packages are missing; `cargo xtask setup` installs them",
            missing.len()
        );
    }
    process::run(apt_get()?.arg("update"))?;
    process::run(
        apt_get()?
            .args(["install", "--yes", "--no-install-recommends"])
            .args(&missing),
    )
    .context(
        "Debian's packages of LLVM 22 come from the suites bookworm and bookworm-security; \
         check that both are in the APT sources",
    )
}

/// Set-up as the first step of another command.
pub fn ensure() -> Result<()> {
    run(&Options::default())
}

fn is_debian() -> bool {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .any(|(_, value)| value.trim_matches('"').split(' ').any(|id| id == "debian"))
}

/// On a system without Debian's packages: continues if LLVM 22 is where the build searches for it, otherwise reports
/// what is needed.
fn elsewhere() -> Result<()> {
    let config = workspace::llvm_prefix().join("bin/llvm-config");
    let version = Command::new(&config)
        .arg("--version")
        .stderr(Stdio::null())
        .output();
    let found = version.is_ok_and(|output| output.stdout.starts_with(b"22."));
    if found {
        return Ok(());
    }
    println!("This is not Debian, so nothing is installed for you. Needed, with Debian's names:");
    for (name, reason) in PACKAGES {
        println!("  {name:<18} {reason}");
    }
    bail!(
        "no LLVM 22 at `{}`: install the above, then set MLIR_SYS_220_PREFIX, \
         LLVM_SYS_221_PREFIX and TABLEGEN_220_PREFIX to its directory",
        workspace::llvm_prefix().display()
    )
}

fn missing_packages() -> Result<Vec<&'static str>> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\n"])
        .args(PACKAGES.iter().map(|(name, _)| name))
        // It complains about unknown names, which are exactly the missing packages.
        .stderr(Stdio::null())
        .output()
        .context("cannot start `dpkg-query`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let installed = |name: &str| {
        text.lines()
            .any(|line| line.split_once(' ') == Some((name, "installed")))
    };
    Ok(PACKAGES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !installed(name))
        .collect())
}

/// `apt-get` without prompts, through sudo for users other than root.
fn apt_get() -> Result<Command> {
    let user = process::read(Command::new("id").arg("-u"))?;
    let mut command = if user.trim() == "0" {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    Ok(command)
}
