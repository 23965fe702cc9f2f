//! How the shared library is linked.
//!
//! Which symbols it exports needs no word: the compiler gives the linker of a `cdylib` a version
//! script that lists the `no_mangle` functions and hides all else, LLVM included.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs look for the version of the interface that they were linked with.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libllopt.so.1");
    // LLVM and MLIR register things for the life of the process, and a compilation that LLVM gave
    // up on leaves a sleeping thread: `dlclose` must not take their code away.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Whatever is not resolved is a mistake here, not at run time.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
}
