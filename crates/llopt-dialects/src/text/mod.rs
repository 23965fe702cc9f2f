//! The textual form: assembly formats, attributes and types, spellings of later versions.

pub(crate) mod compatibility;
pub mod format;
pub mod kind;
pub(crate) mod names;
pub(crate) mod syntax;
