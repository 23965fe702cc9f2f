//! The differences between vendors: the questions and instructions of neutral code, and each vendor's answers in
//! files of the same names.

pub mod amdgpu;
pub(crate) mod back_end;
pub mod hooks;
pub mod nvptx;
mod pairs;
