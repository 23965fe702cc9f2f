//! The ttg dialect: layouts, shared memory and the warps of a program.

pub mod attribute_syntax;
pub mod canonicalize;
pub mod control_flow;
pub mod effects;
pub mod fold;
pub mod infer;
pub mod type_syntax;
pub mod warp_specialize;

pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

crate::generated::dialect!("/ttg.rs");

/// The dialect's hooks beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec {
        canonicalization: canonicalize::OF_CONVERT,
        ..DialectSpec::new("ttg")
    }
}
