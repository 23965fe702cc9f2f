//! From layout-carrying IR straight to LLVM IR, and on to PTX, AMDGCN assembly and code objects.
//!
//! A tensor value becomes one LLVM value per register of its layout; a block argument becomes one phi per
//! register. There is no intermediate LLVM dialect and no type conversion framework: one walk over a
//! function emits it, in files by family of ops. Files at the top level know no vendor; where the vendors'
//! instructions differ they call a [`hooks::Hooks`], which [`nvptx`] and [`amdgpu`] implement in files of
//! the same names.
//!
//! This crate never runs an analysis of its own over the source IR: what it wants to know about a value
//! (how contiguous addresses are, say) it asks through [`access::AccessFacts`], which its user implements. What
//! it has emitted it may ask itself: how many instructions of copies follow others, for one.
//!
//! The stages, in order: [`lower::lower`], [`device_library::link`], [`optimize::optimize`], then
//! [`emit::assembly`] or [`emit::object`] and [`emit::link_code_object`].

pub mod access;
pub mod amdgpu;
mod arithmetic;
mod assembly_constraints;
mod atomic;
mod bulk_copy;
mod casts;
mod cluster;
mod constants;
mod control_flow;
mod conversion;
mod copy_count;
mod copy_to_shared;
mod copy_wait;
mod debug;
pub mod decision;
pub mod device_library;
pub mod diagnostics;
mod dispatch;
pub mod element;
mod elementwise;
pub mod emit;
pub mod emitter;
pub mod error;
pub mod float8;
mod fp4;
mod function;
mod gather;
mod gather_plan;
mod global_memory;
mod histogram;
pub mod hooks;
mod lane_order;
pub mod legality;
mod llvm_c;
mod local_memory;
mod location;
pub mod lower;
pub mod machine;
pub mod nvptx;
pub mod optimize;
pub mod options;
mod partial_results;
mod reduction;
mod regroup;
pub mod request;
mod scan;
pub mod scratch;
mod shape;
mod shared_memory;
pub mod tensor;
mod threads;
mod transaction_barrier;
mod types;
mod warp_reduction;
mod words;

// Links LLVM: inkwell is built to use the copy that mlir-sys brings.
use mlir_sys as _;
