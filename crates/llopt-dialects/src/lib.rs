//! The dialects tt, ttg, ttng, amdg and gluon, textually compatible with Triton 3.6.
//!
//! `dialects/*.td` is the only definition of the operations, attributes and types. The build script turns it into
//! static tables ([`tables::definition`]), typed wrappers (one module per dialect, e.g. [`tt::LoadOp`]) and parsed
//! assembly formats; the modules here interpret them: [`mod@text::format`] reads and writes operations,
//! [`text::kind`] attributes and types, [`check::verify`] checks the rules of the tables. Hand-written code per
//! operation (`tt::verify`, `tt::fold`, …) contains only what a table cannot express.
//!
//! ```no_run
//! let registry = melior::dialect::DialectRegistry::new();
//! llopt_dialects::register(&registry)?;
//! # Ok::<(), llopt_mlir::dialect::RegisterError>(())
//! ```

pub mod amdg;
pub mod check;
mod generated;
pub mod gluon;
pub mod layout;
pub mod meaning;
pub mod tables;
pub mod text;
pub mod tt;
pub mod ttg;
pub mod ttng;
mod upstream;

pub use upstream::{Op, arith, builtin, cf, gpu, llvm, math, rocdl, scf, ub};

use llopt_mlir::dialect::RegisterError;
use melior::dialect::DialectRegistry;
use tables::definition::DialectDefinition;

/// Every dialect of this crate, dependencies first.
pub fn dialects() -> [&'static DialectDefinition; 5] {
    [
        &tt::DEFINITION,
        &ttg::DEFINITION,
        &ttng::DEFINITION,
        &amdg::DEFINITION,
        &gluon::DEFINITION,
    ]
}

/// Adds the dialects of this crate and the upstream dialects that they build on to a registry.
///
/// # Errors
/// A mistake in the generated tables.
pub fn register(registry: &DialectRegistry) -> Result<(), RegisterError> {
    llopt_mlir::register_upstream_dialects(registry);
    tt::DIALECT.register(registry)?;
    ttg::DIALECT.register(registry)?;
    ttng::DIALECT.register(registry)?;
    amdg::DIALECT.register(registry)?;
    gluon::DIALECT.register(registry)
}
