//! The gluon dialect: layouts that have not been chosen yet.

pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

crate::generated::dialect!("/gluon.rs");

/// The dialect's hooks beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec::new("gluon")
}

/// Whether an encoding stands for a layout that has not been chosen yet.
pub fn is_open(encoding: melior::ir::Attribute<'_>) -> bool {
    attribute::AUTO_ENCODING.is(encoding) || attribute::COALESCED_ENCODING.is(encoding)
}
