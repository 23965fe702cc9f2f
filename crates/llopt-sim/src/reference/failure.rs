//! Why interpretation stopped.

/// Why interpretation stopped.
#[derive(Debug)]
pub(super) enum Failure {
    /// An unknown meaning.
    Unknown(String),
    /// An error of the program.
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
