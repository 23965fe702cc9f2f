//! Builds the one function that LLVM's C interface lacks. LLVM itself is linked by `llvm-sys`; cargo places this
//! script's library before it on the link line.

use std::{env, error::Error, path::Path};

const SOURCE: &str = "cpp/code_generator.cpp";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix = env::var("LLVM_SYS_221_PREFIX")
        .map_err(|_| "LLVM_SYS_221_PREFIX does not name the directory of LLVM 22")?;
    let include = Path::new(&prefix).join("include");
    if !include.join("llvm/IR/Module.h").is_file() {
        return Err(format!(
            "{} has no llvm/IR/Module.h: install llvm-22-dev or set LLVM_SYS_221_PREFIX",
            include.display()
        )
        .into());
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .debug(false)
        // LLVM's headers are not part of this project: silence their warnings, keep our own.
        .flag(format!("-isystem{}", include.display()))
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .file(SOURCE)
        .compile("llopt_code_generator");
    Ok(())
}
