//! The gluon dialect: layouts that are still to be chosen.

pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

crate::generated::dialect!("/gluon.rs");

/// What the dialect answers beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec::new("gluon")
}

/// Whether an encoding stands for a layout that is yet to be chosen.
pub fn is_open(encoding: melior::ir::Attribute<'_>) -> bool {
    attribute::AUTO_ENCODING.is(encoding) || attribute::COALESCED_ENCODING.is(encoding)
}
