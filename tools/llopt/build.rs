//! Link options of the programs, which keep the number of pages small that are touched before `main`.
//!
//! A small kernel takes about thirty million instructions, five million of them before `main` without these options,
//! and the operating system takes twelve to nineteen million more, most of them for page faults in a file of ninety
//! megabytes; a program that splits in two has them twice. There are two causes.
//!
//! - A position-independent program has a relocation for each entry of each table of functions, 140,000 of them, and
//!   each relocation copies its page. At a fixed address there are no relocations, and the pages remain those of the
//!   file, which are mapped many at a time. The price is that an attacker knows the addresses of the program's own
//!   code and tables; those of the stack, the heap and shared libraries are still random.
//! - The code that creates LLVM's and MLIR's options before `main` is next to the other code of each of their files,
//!   spread over fifty megabytes. The compiler has marked it, and the linker can place it together.
//!
//! The shared libraries of this workspace are loaded by other programs and do not use these options.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // GNU's linker does so without the option.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    }
}
