//! A message that is being put together, one argument after the other.

/// A message of AMD's printf that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) format: String,
    pub(crate) arguments: Vec<u64>,
}
