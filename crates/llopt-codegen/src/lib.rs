//! From layout-carrying IR straight to LLVM IR, and on to PTX, AMDGCN assembly and code objects.
//!
//! A tensor value becomes one LLVM value per register of its layout; a block argument becomes one phi per
//! register. There is no intermediate LLVM dialect and no type conversion framework: one walk over a
//! function emits it.
//!
//! The rooms, in the order in which a value passes through them: `llopt-plan` decides what the code of an op will
//! do; [`walk`] goes over functions, blocks and operations; `ops` has the code of each family of ops;
//! [`values`] says what a source value is made of; [`targets`] has the questions that neutral code asks
//! ([`targets::hooks`]) and the vendors' answers; [`llvm`] builds, optimises and emits. Only [`targets`] knows a
//! vendor.
//!
//! How an op's elements move, combine and meet memory is decided before, by `llopt-plan`; what is known of a value
//! (how contiguous addresses are, say) comes as the result of an analysis, [`llopt_plan::facts::ValueFacts`]. What
//! this crate has emitted it may ask itself: how many instructions of copies follow others, for one.
//!
//! The stages, in order: [`walk::lower::lower`], [`llvm::device_library::link`], [`llvm::optimize::optimize`], then
//! [`llvm::emit::assembly`] or [`llvm::emit::object`] and [`llvm::emit::link_code_object`].

pub mod error;
pub mod llvm;
mod ops;
pub mod options;
pub mod targets;
pub mod values;
pub mod walk;

// Links LLVM: inkwell is built to use the copy that mlir-sys brings.
use mlir_sys as _;
