//! The bridge, tried on a small dialect that exercises every part of it.
//!
//! One binary for all subjects: linking MLIR is what takes time.

mod diagnostics;
mod dialect;
mod ir;
mod passes;
mod robustness;
mod tool;
mod toy;
