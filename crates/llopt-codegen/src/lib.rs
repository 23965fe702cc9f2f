//! From layout-carrying IR straight to LLVM IR, and on to PTX, AMDGCN assembly and code objects.
//!
//! A tensor value becomes one LLVM value per register of its layout; a block argument becomes one phi per
//! register. There is no intermediate LLVM dialect and no type conversion framework: one walk over a
//! function emits it.
//!
//! The modules, in the order in which a value passes through them: `llopt-plan` decides what the code of an op will
//! do; [`walk`] visits functions, blocks and operations; `ops` has the code of each family of ops; [`values`] defines
//! the representation of source values; [`targets`] has the questions that neutral code asks ([`targets::hooks`]) and
//! the vendors' answers; [`llvm`] builds, optimises and emits. Only [`targets`] knows a vendor.
//!
//! How an op moves, combines and accesses its elements is decided earlier, by `llopt-plan`; facts about values (such
//! as the contiguity of addresses) are the result of an analysis, [`llopt_plan::facts::ValueFacts`]. This crate may
//! also inspect the code that it has emitted: for example to count the instructions of copies that follow others.
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
