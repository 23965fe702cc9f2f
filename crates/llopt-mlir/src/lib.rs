//! What melior lacks: MLIR dialects, operations, types, attributes, interfaces, folders, rewrite
//! patterns and passes defined from Rust, through one thin C++ bridge without domain content.

pub mod asm;
pub mod diagnostic;
pub mod dialect;
mod ffi;
pub mod ir;
pub mod pass;
pub mod rewrite;
mod tool;

pub use tool::{lsp_main, opt_main, parse_module, register_upstream_dialects};
