//! How the programs are linked: so that little of them is touched before `main`.
//!
//! A small kernel takes some thirty million instructions, of which five million went by before `main`, and the system
//! twelve to nineteen million more, most of them for page faults in a file of ninety megabytes, which a program that splits
//! in two meets twice. There were two causes.
//!
//! - A program that may lie anywhere has an address to mend in each entry of each table of functions, 140,000 of them, and
//!   the system copies every page that one lies in. At a fixed address there is nothing to mend, and the pages stay those
//!   of the file, which are mapped by the dozen. The price is that the place of the program's own code and tables is known
//!   to whoever attacks it; stack, heap and shared libraries still lie where nobody knows.
//! - The code that makes LLVM's and MLIR's options before `main` lies beside that of each of their files, all over fifty
//!   megabytes. Their compiler has marked it, and the linker can put it in one place.
//!
//! The shared libraries of this workspace are loaded by others and stay as they are.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // Where the linker is GNU's, it does so anyway.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    }
}
