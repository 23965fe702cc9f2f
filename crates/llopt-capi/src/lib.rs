//! The C interface: a shared or static library with a plain C header, `include/llopt.h`.
//!
//! # Shape
//!
//! Two opaque handles: a *compiler*, which is a set of options, and a *compilation*, which is the outcome of one
//! call, good or bad, with all that is known about it. What a function returns belongs to the handle that it came
//! from and lives as long; only handles have to be freed.
//!
//! # Rules
//!
//! - Every function takes null for any pointer; it then does nothing and returns [`LLOPT_MISUSE`](llopt_status_t),
//!   null or zero. Texts that are not UTF-8 are misuse too. A handle that was closed, and a pointer to something
//!   else, cannot be detected.
//! - No panic crosses the boundary: it becomes [`LLOPT_BUG`](llopt_status_t). A fatal error of LLVM does not end
//!   the process either.
//! - **Threads.** A compiler may be used by any number of threads at once as long as none of them
//!   is in [`llopt_set`] or [`llopt_close`]. A compilation may be read by any number of threads at
//!   once as long as none of them is in [`llopt_release`]. There is no last error of a thread and
//!   no other state outside of handles.
//! - **Versions.** [`LLOPT_ABI_VERSION`] grows when a caller would have to be compiled again, and [`llopt_open`]
//!   rejects a caller that was compiled for another one. Structures that callers allocate begin with their size, so
//!   that they may grow. New options, new artefacts and new functions do not change the version.
//! - **Symbols.** The shared library exports `llopt_…` and nothing else. It contains its own LLVM and coexists with
//!   another one in the same process. It is never unloaded: LLVM registers objects for the life of the process.
//!
//! # Alternative rejected
//!
//! A structure of options would be quicker to fill in than texts, and would change the interface
//! with every option. A compilation takes milliseconds; parsing a number does not.

#![allow(
    non_camel_case_types,
    reason = "one name in C, in Rust and in the documentation"
)]

mod boundary;
mod compilation;
mod compiler;
mod status;

pub use compilation::{
    llopt_artifact, llopt_compilation_t, llopt_diagnostic, llopt_diagnostic_count,
    llopt_diagnostic_t, llopt_error, llopt_kept, llopt_metadata, llopt_release, llopt_reproducer,
    llopt_severity_t, llopt_status, llopt_timings, llopt_unsupported_feature, llopt_unsupported_op,
};
pub use compiler::{
    llopt_cache_key, llopt_close, llopt_compile, llopt_compiler_t, llopt_message, llopt_open,
    llopt_option_count, llopt_option_help, llopt_option_name, llopt_set, llopt_version,
};
pub use status::{LLOPT_ABI_VERSION, llopt_status_t};
