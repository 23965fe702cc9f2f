//! The representation of source values: elements, registers of a layout, the thread that holds them, packed words.

pub mod element;
pub mod float8;
pub(crate) mod registers;
pub(crate) mod storage;
pub(crate) mod threads;
pub(crate) mod words;
