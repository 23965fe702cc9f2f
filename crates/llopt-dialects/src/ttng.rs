//! The ttng dialect: matrix units, barriers, bulk copies and tensor memory of NVIDIA GPUs.

mod canonicalize;
pub mod effects;
pub mod infer;
mod messages;
pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

crate::generated::dialect!("/ttng.rs");

/// The dialect's hooks beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec {
        canonicalization: canonicalize::OF_CONVERT,
        ..DialectSpec::new("ttng")
    }
}
