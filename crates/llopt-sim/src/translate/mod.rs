//! From LLVM IR, intrinsics and inline assembly to bytecode.

pub(crate) mod assembly;
pub(crate) mod decode;
pub(crate) mod dominance;
pub(crate) mod emit;
pub(crate) mod intrinsics;
pub(crate) mod ir;
pub(crate) mod join;
