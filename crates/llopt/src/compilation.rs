//! The result of a compilation.

use std::path::PathBuf;

use crate::{Artifact, Diagnostic, Metadata, Timings};

/// The result of a successful compilation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compilation {
    /// The requested artefact.
    pub artifact: Artifact,
    /// The forms in [`crate::Options::keep`] that the kernel passed through, in that order.
    pub kept: Vec<Artifact>,
    /// The information that a launcher needs.
    pub metadata: Metadata,
    /// The time of each phase.
    pub timings: Timings,
    /// Device libraries that were found and linked without being specified.
    pub libraries: Vec<PathBuf>,
    /// LLVM's warnings, such as inline assembly that overwrites a reserved register.
    pub warnings: Vec<Diagnostic>,
}
