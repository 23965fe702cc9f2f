//! The tt dialect: tile programs as a frontend emits them.

pub mod canonicalize;
pub mod effects;
pub mod fold;
pub mod func;
pub mod infer;
pub mod speculation;
pub mod type_syntax;

pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

crate::generated::dialect!("/tt.rs");

/// The dialect's hooks beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec {
        inliner: Some(&func::INLINER),
        canonicalization: canonicalize::LOOPS,
        ..DialectSpec::new("tt")
    }
}
