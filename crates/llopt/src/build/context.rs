//! The context that owns the types, attributes and operations of kernels under construction.

use crate::{Error, session};

/// MLIR set up for building kernels. Any number of kernels may be built in one context, one after the other or at
/// once, in one thread; other threads need their own contexts. Making a context takes about a millisecond.
pub struct Context {
    mlir: melior::Context,
}

impl Context {
    /// A context with all dialects.
    ///
    /// # Errors
    /// A bug in llopt.
    pub fn new() -> Result<Self, Error> {
        let mlir = session::context()?;
        for dialect in ["tt", "ttg", "arith", "math", "scf"] {
            mlir.get_or_load_dialect(dialect);
        }
        Ok(Self { mlir })
    }

    /// MLIR's own context, for the generated builders.
    pub fn mlir(&self) -> &melior::Context {
        &self.mlir
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Context")
    }
}
