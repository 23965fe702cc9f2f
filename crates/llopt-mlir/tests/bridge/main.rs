//! The bridge, tested on a small dialect that uses every part of it.
//!
//! One binary for all tests: linking MLIR is what takes time.

mod diagnostics;
mod dialect;
mod ir;
mod passes;
mod robustness;
mod tool;
mod toy;
