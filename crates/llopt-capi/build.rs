//! How the shared library is linked.
//!
//! No option is needed for the exported symbols: for a `cdylib` the compiler gives the linker a version script that
//! lists the `no_mangle` functions and hides all else, LLVM included.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs look for the version of the interface that they were linked with.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libllopt.so.1");
    // LLVM and MLIR register objects for the life of the process, and a compilation on which LLVM gave up leaves a
    // sleeping thread: `dlclose` must not unmap their code.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // An unresolved symbol is an error at link time, not at run time.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
}
