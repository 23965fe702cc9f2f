//! Where a rewrite is asked for that may be possible without being faster.

/// Where it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Where the model predicts a gain.
    WhereFaster,
    /// Wherever it is possible.
    Everywhere,
}
