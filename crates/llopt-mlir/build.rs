//! Builds the C++ bridge and derives its Rust declarations from the one shared header.
//!
//! The header `cpp/bridge.h` is the only definition of the ABI: the C++ files implement it and `bindgen` turns it
//! into `bindings.rs`, so the two sides cannot differ. The LLVM and MLIR libraries themselves are linked by
//! `mlir-sys`; this script adds nothing but the bridge, which cargo places before them on the link line.

use bindgen::callbacks::{DeriveTrait, ImplementsTrait, ParseCallbacks};
use std::{env, error::Error, path::Path, path::PathBuf};

/// The C++ files of the bridge, one per subject.
const SOURCES: [&str; 10] = [
    "dialect.cpp",
    "operation.cpp",
    "interfaces.cpp",
    "kinds.cpp",
    "parser.cpp",
    "printer.cpp",
    "ir.cpp",
    "rewrite.cpp",
    "source.cpp",
    "tool.cpp",
];

/// The headers of the bridge; a change in one rebuilds every file.
const HEADERS: [&str; 3] = ["bridge.h", "model.h", "source.h"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let include = include_directory()?;

    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .debug(false)
        .include("cpp")
        // LLVM's headers are not part of this project: silence their warnings, keep those of the bridge.
        .flag(format!("-isystem{}", include.display()))
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-Wno-unused-parameter");
    for source in SOURCES {
        let path = Path::new("cpp").join(source);
        println!("cargo:rerun-if-changed={}", path.display());
        build.file(path);
    }
    for header in HEADERS {
        println!("cargo:rerun-if-changed=cpp/{header}");
    }
    build.compile("llopt_mlir_bridge");

    bindgen::builder()
        .header("cpp/bridge.h")
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_item("(llopt|Llopt|LLOPT).*")
        // Types of the MLIR C API come from mlir-sys, so that both sides agree on them.
        .blocklist_type("Mlir.*")
        .raw_line("use mlir_sys::*;")
        .parse_callbacks(Box::new(ForeignTypes))
        .prepend_enum_name(false)
        .layout_tests(true)
        .generate()?
        .write_to_file(PathBuf::from(env::var("OUT_DIR")?).join("bindings.rs"))?;
    Ok(())
}

/// Tells bindgen that the types of the MLIR C API, which it does not see, are plain handles.
#[derive(Debug)]
struct ForeignTypes;

impl ParseCallbacks for ForeignTypes {
    fn blocklisted_type_implements_trait(
        &self,
        _name: &str,
        r#trait: DeriveTrait,
    ) -> Option<ImplementsTrait> {
        matches!(r#trait, DeriveTrait::Copy | DeriveTrait::Debug).then_some(ImplementsTrait::Yes)
    }
}

/// The directory that holds `mlir/IR/Operation.h`.
fn include_directory() -> Result<PathBuf, Box<dyn Error>> {
    let prefix = env::var("MLIR_SYS_220_PREFIX")
        .map_err(|_| "MLIR_SYS_220_PREFIX does not name the directory of LLVM 22")?;
    let include = Path::new(&prefix).join("include");
    if !include.join("mlir/IR/Operation.h").is_file() {
        return Err(format!(
            "{} has no mlir/IR/Operation.h: install libmlir-22-dev or set MLIR_SYS_220_PREFIX",
            include.display()
        )
        .into());
    }
    Ok(include)
}
