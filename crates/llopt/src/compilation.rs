//! The result of a compilation.

use std::path::PathBuf;

use crate::{Artifact, Diagnostic, Metadata, Timings};

/// What a successful compilation yields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compilation {
    /// The artefact that was asked for.
    pub artifact: Artifact,
    /// Those of the forms in [`crate::Options::keep`] that the kernel passed through, in that order.
    pub kept: Vec<Artifact>,
    /// What a launcher must know.
    pub metadata: Metadata,
    /// How long each phase took.
    pub timings: Timings,
    /// Device libraries that were found and linked without being named.
    pub libraries: Vec<PathBuf>,
    /// What LLVM warned of, such as inline assembly that overwrites a reserved register.
    pub warnings: Vec<Diagnostic>,
}
