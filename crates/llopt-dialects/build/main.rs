//! Generates the operation tables and wrappers from `dialects/*.td`.
//!
//! One file per dialect goes to `OUT_DIR`; `src/tt.rs` and its neighbours include them. Two more have the enumeration
//! of encodings and the enumerations of ops by what they compute, and one has the ops that tile IR uses from MLIR's
//! own dialects, which `src/upstream.rs` includes. All mistakes of the `.td` files are collected and printed
//! together, each with its record.

mod constraint;
mod emit;
mod encodings;
mod facts;
mod format;
mod lower;
mod meanings;
mod model;
mod read;
#[path = "../src/tables/type_set.rs"]
#[allow(
    dead_code,
    reason = "the crate uses more of this file than the build script does"
)]
mod type_set;
mod upstream;
mod wrapper;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tblgen::TableGenParser;

/// The dialects to generate, dependencies first.
const DIALECTS: &[&str] = &["tt", "ttg", "ttng", "amdg", "gluon"];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let sources = manifest.join("../../dialects");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let prefix = variable("TABLEGEN_220_PREFIX")?;
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=TABLEGEN_220_PREFIX");

    let keeper = TableGenParser::new()
        .add_include_directory(&format!("{prefix}/include"))
        .add_include_directory(&path_text(&sources)?)
        .add_source_file(&path_text(&sources.join("all.td"))?)
        .parse()
        .map_err(|error| format!("dialects/all.td: {error}"))?;
    let model = read::read(&keeper, DIALECTS)?;
    let mut mistakes = Vec::new();
    for dialect in &model.dialects {
        let code = emit::dialect(&model, dialect, &mut mistakes);
        let file = out.join(format!("{}.rs", dialect.name));
        fs::write(&file, code).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    for (name, code) in [
        ("encodings.rs", encodings::encodings(&model)),
        ("meanings.rs", meanings::meanings(&model)),
    ] {
        let file = out.join(name);
        fs::write(&file, code).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let keeper = TableGenParser::new()
        .add_include_directory(&format!("{prefix}/include"))
        .add_include_directory(&path_text(&sources)?)
        .add_source_file(&path_text(&sources.join("upstream.td"))?)
        .parse()
        .map_err(|error| format!("dialects/upstream.td: {error}"))?;
    let code =
        upstream::upstream(&keeper).map_err(|error| format!("dialects/upstream.td: {error}"))?;
    let file = out.join("upstream.rs");
    fs::write(&file, code).map_err(|error| format!("{}: {error}", file.display()))?;
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(mistakes.join("\n"))
    }
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
}

fn path_text(path: &Path) -> Result<String, String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
