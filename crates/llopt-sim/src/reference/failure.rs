//! Why interpretation stops.

/// Why interpretation stopped.
#[derive(Debug)]
pub(super) enum Failure {
    /// The meaning of something is not known.
    Unknown(String),
    /// The program did what it must not do.
    Wrong(String),
}

/// Result of interpreting something.
pub(super) type Interpreted<T> = Result<T, Failure>;

pub(super) fn unknown<T>(what: impl Into<String>) -> Interpreted<T> {
    Err(Failure::Unknown(what.into()))
}

pub(super) fn wrong<T>(what: impl Into<String>) -> Interpreted<T> {
    Err(Failure::Wrong(what.into()))
}
