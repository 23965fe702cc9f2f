//! `cargo xtask demo`: from a bare machine to compiled kernels for both vendors.
//!
//! Set-up, a release build, then the `llopt` command compiles every file of `examples/` as a user would: to assembly,
//! and to an object where the vendor's assembler is available. Last, the simulated machine executes the kernels and
//! the results are compared with NumPy's, which shows that a kernel computes correctly without a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{device, process, setup, simulate, workspace};

/// The examples to compile.
#[derive(clap::Args)]
pub struct Options {
    /// Only the examples whose name contains this
    #[arg(value_name = "TEXT", default_value = "")]
    only: String,
}

/// One vendor's part: a folder of `examples/`, and the kinds of its artefacts.
struct Part {
    folder: &'static str,
    target: &'static str,
    assembly: &'static str,
    object: &'static str,
    /// The variable with the path of the program that makes the object.
    assembler: &'static str,
}

const PARTS: &[Part] = &[
    Part {
        folder: "cuda-90",
        target: "cuda:90",
        assembly: "ptx",
        object: "cubin",
        assembler: "LLOPT_PTXAS",
    },
    Part {
        folder: "hip-gfx942",
        target: "hip:gfx942",
        assembly: "amdgcn",
        object: "hsaco",
        assembler: "LLOPT_LLD",
    },
];

/// One line of the table.
struct Made {
    path: PathBuf,
    bytes: u64,
    registers: Option<u64>,
    scalar_registers: Option<u64>,
    scratch: Option<u64>,
    shared: Option<u64>,
}

/// Builds, compiles and prints the results; fails if any example did not compile.
pub fn run(options: &Options) -> Result<()> {
    process::phase("set-up", setup::ensure)?;
    process::phase("release build", || {
        process::run(workspace::cargo().args([
            "build",
            "--locked",
            "--release",
            "--package=llopt-cli",
        ]))
    })?;
    let target = workspace::target_directory()?;
    let llopt = target.join("release/llopt");
    let mut made = Vec::new();
    let mut failures = 0;
    process::phase("compile the examples", || {
        for part in PARTS {
            let output = target.join("demo").join(part.folder);
            fs::create_dir_all(&output)?;
            let with_object = has_assembler(part)?;
            if !with_object {
                println!("{}: no assembler here, so no {}", part.target, part.object);
            }
            for source in examples(part, &options.only)? {
                let mut kinds = vec![part.assembly];
                kinds.extend(with_object.then_some(part.object));
                for kind in kinds {
                    match compile(&llopt, part, &source, kind, &output)? {
                        Some(line) => made.push(line),
                        None => failures += 1,
                    }
                }
            }
        }
        Ok(())
    })?;
    print_table(&made);
    if failures > 0 {
        bail!(
            "{failures} of {} compilations failed",
            failures + made.len()
        );
    }
    if made.is_empty() {
        bail!("no example is called `{}`", options.only);
    }
    let tally = process::phase("run the examples on the simulated machine", || {
        simulate::run(&simulate::Cases {
            llopt: &llopt,
            targets: &PARTS.iter().map(|part| part.target).collect::<Vec<_>>(),
            only: &options.only,
        })
    })?;
    if tally.failed > 0 {
        bail!(
            "{} of the simulated kernels differ from NumPy",
            tally.failed
        );
    }
    Ok(())
}

fn examples(part: &Part, only: &str) -> Result<Vec<PathBuf>> {
    let folder = Path::new("examples").join(part.folder);
    let mut files: Vec<PathBuf> = fs::read_dir(workspace::root().join(&folder))
        .with_context(|| format!("cannot list `{}`", folder.display()))?
        .filter_map(|entry| Some(folder.join(entry.ok()?.file_name())))
        .filter(|path| path.extension().is_some_and(|e| e == "ttgir"))
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().contains(only))
        })
        .collect();
    files.sort();
    Ok(files)
}

fn has_assembler(part: &Part) -> Result<bool> {
    let named = std::env::var_os(part.assembler).is_some();
    Ok(named
        || device::variables()?
            .iter()
            .any(|(name, _)| *name == part.assembler))
}

/// Compiles one file to one kind; `None` if llopt rejected it and has reported the reason.
fn compile(
    llopt: &Path,
    part: &Part,
    source: &Path,
    kind: &str,
    output: &Path,
) -> Result<Option<Made>> {
    let name = source.file_stem().context("an example has a name")?;
    let path = output.join(name).with_extension(kind);
    let metadata = output.join(name).with_extension("json");
    let mut command = Command::new(llopt);
    command
        .current_dir(workspace::root())
        .envs(device::variables()?)
        .arg("compile")
        .arg(source)
        .args(["--target", part.target, "--emit", kind, "-o"])
        .arg(&path)
        .arg("--metadata")
        .arg(&metadata);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", process::shown(&command)))?;
    if !status.success() {
        println!("failed: {}", process::shown(&command));
        return Ok(None);
    }
    let facts: Value = serde_json::from_str(&fs::read_to_string(&metadata)?)
        .with_context(|| format!("`{}` is not JSON", metadata.display()))?;
    Ok(Some(Made {
        bytes: fs::metadata(&path)?.len(),
        path,
        registers: facts["resources"]["registers"].as_u64(),
        scalar_registers: facts["resources"]["scalar_registers"].as_u64(),
        scratch: facts["resources"]["scratch"].as_u64(),
        shared: facts["shared"].as_u64(),
    }))
}

fn print_table(made: &[Made]) {
    let root = workspace::root();
    let shown = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let name = |line: &Made| {
        let path = line.path.strip_prefix(&root).unwrap_or(&line.path);
        path.display().to_string()
    };
    let width = made.iter().map(|line| name(line).len()).max().unwrap_or(0);
    println!(
        "{:<width$} {:>9} {:>9} {:>9} {:>12} {:>13}",
        "file", "bytes", "registers", "scalar", "shared bytes", "scratch bytes"
    );
    for line in made {
        println!(
            "{:<width$} {:>9} {:>9} {:>9} {:>12} {:>13}",
            name(line),
            line.bytes,
            shown(line.registers),
            shown(line.scalar_registers),
            shown(line.shared),
            shown(line.scratch)
        );
    }
}
