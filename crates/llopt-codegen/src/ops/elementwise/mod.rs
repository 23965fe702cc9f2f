//! Elementwise operations: arithmetic, casts, constants, inline assembly, prints and assertions.

pub(crate) mod arithmetic;
pub(crate) mod assembly_constraints;
pub(crate) mod assembly_text;
pub(crate) mod brief_floats;
pub(crate) mod casts;
pub(crate) mod constants;
pub(crate) mod debug;
pub(crate) mod fp4;
pub(crate) mod in_words;
pub(crate) mod microscale;
pub(crate) mod partwise;
pub(crate) mod tile;
