//! The compiler as a library: options, pipelines, one call from a module to an artefact.
//!
//! ```no_run
//! use llopt::{ArtifactKind, Compiler, Options, Source, Target};
//!
//! let options = Options::new(Target::parse("cuda:90")?);
//! let source = Source::new("kernel.ttgir", std::fs::read("kernel.ttgir")?);
//! let compilation = Compiler::new(options).compile(&source, ArtifactKind::Ptx)?;
//! println!("{}", compilation.artifact.text().unwrap_or_default());
//! println!("{} bytes of shared memory", compilation.metadata.shared);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A failure has a class that says whose fault it is ([`Error::class`]) and, for an error of the input, located
//! diagnostics ([`Error::diagnostics`]). No input makes the process panic or abort; a compilation that runs into a
//! bug of llopt fails like any other and leaves a reproducer.
//!
//! Any number of threads may compile at once. Each compilation has its own MLIR and LLVM contexts.
//!
//! # The modules
//!
//! `compiler` has the phases in their order, and [`pipeline`] the passes in theirs. The others, by subject:
//!
//! - what goes in: `source`, `input`, [`mod@build`] (kernels made by Rust code), `options`, `setting` (options by name), `budget`;
//! - what comes out: `compilation`, `artifact`, `metadata`, `parameter`, `diagnostic`, `error`, `timing`;
//! - objects of NVIDIA and AMD: [`toolchain`], `cubin`, `code_object`, [`residency`] (a second assembly);
//! - what is said about a kernel: `accounts` (what passes report), [`mod@explain`], `prove`;
//! - decisions of a launch: `product_tile`, `split_proposal`, `rewriting` (whether a rewrite applies where it is not faster);
//! - kernels without a GPU: `execution`, `reference`;
//! - the process: `session`, `own_thread`, [`isolation`].

mod accounts;
mod artifact;
mod budget;
pub mod build;
mod code_object;
mod compilation;
mod compiler;
mod cubin;
mod diagnostic;
mod error;
mod execution;
pub mod explain;
mod input;
pub mod isolation;
mod metadata;
mod module;
mod options;
mod own_thread;
mod parameter;
pub mod pipeline;
mod product_tile;
mod prove;
mod reference;
pub mod residency;
mod rewriting;
mod session;
mod setting;
mod source;
mod split_proposal;
mod timing;
pub mod toolchain;

pub use accounts::persistent_program::{NoSuchPersistence, Persistent, PersistentProgram};
pub use accounts::ping_pong::TakenTurns;
pub use accounts::search_limits::SearchLimit;
pub use accounts::tensor_copies::{CopiedLoop, NoSuchCopies, TensorCopies};
pub use accounts::wide_loops::WideLoop;
pub use artifact::{Artifact, ArtifactKind, UnknownKind};
pub use budget::Budget;
pub use compilation::Compilation;
pub use compiler::Compiler;
pub use diagnostic::{Diagnostic, Severity};
pub use error::{Error, ErrorClass};
pub use execution::{Engines, Outcome, Outcomes, run_everywhere};
pub use explain::{Explanation, explain, explain_with_alternatives};
pub use llopt_dialects as dialects;
/// The dialects: an accessor and a builder for every operation, generated from their definitions.
pub use llopt_plan::request::{ConversionRequest, GatherRequest};
pub use llopt_sim as sim;
pub use llopt_target::{ParseTargetError, Target};
pub use metadata::{ArgumentDescriptor, Metadata, Resources, TargetMetadata, TensorDescriptor};
pub use options::Options;
pub use own_thread::is_overrunning;
pub use parameter::{Format, Parameter, Pointee, parameters};
pub use product_tile::{Memory, ProductTile};
pub use prove::{
    Obligation, OrderRemoval, Proof, Subject, Verdict, prove, prove_order, prove_removals,
};
pub use reference::{ReferenceError, run_reference};
pub use rewriting::{NoSuchRewriting, Rewriting};
pub use session::{language_server_main, optimizer_main, with_context};
pub use setting::{SETTINGS, Setting, SettingError};
pub use source::Source;
pub use split_proposal::{LaunchForm, SplitProposal, propose_split};
pub use timing::Timings;

/// The examples of the guide compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
mod embedding_guide {}

/// The version of this compiler, such as `0.1.0+c0ffee0123456789.llvm22.1.8`: the release, a hash of the sources, the
/// LLVM that is linked. It changes whenever the output of a compilation may, and must be part of the key of every
/// cache.
pub const VERSION: &str = env!("LLOPT_VERSION");
