//! A message that is still incomplete; its arguments arrive one by one.

/// An incomplete message of AMD's printf.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) format: String,
    pub(crate) arguments: Vec<u64>,
}
