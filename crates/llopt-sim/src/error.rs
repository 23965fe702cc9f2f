//! Errors before and during a run, by whose fault they are.

/// Why a module could not be prepared, or a run could not be completed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// LLVM does not accept the text or bitcode.
    #[error("invalid LLVM IR: {0}")]
    InvalidModule(String),
    /// The module has no kernel of that name, or not exactly one when none was named.
    #[error("no kernel {}; the module defines: {}", wanted.as_deref().map_or_else(|| "could be chosen".to_owned(), |w| format!("'{w}'")), if available.is_empty() { "none".to_owned() } else { available.join(", ") })]
    NoKernel {
        /// The requested name.
        wanted: Option<String>,
        /// Kernels that exist.
        available: Vec<String>,
    },
    /// The module contains something whose meaning the machine does not know.
    #[error("the simulator does not know {what} (in @{function}: {instruction})")]
    Unsupported {
        /// What is unknown: an instruction, an intrinsic, an assembly mnemonic.
        what: String,
        /// Function in which it appears.
        function: String,
        /// The instruction as LLVM prints it.
        instruction: String,
    },
    /// Grid, block or arguments do not fit the kernel.
    #[error("invalid launch")]
    Launch(#[from] LaunchError),
    /// A kernel did something after which execution cannot continue.
    #[error("block ({}, {}, {}) stopped: {message}", block[0], block[1], block[2])]
    Stopped {
        /// Block in which it happened.
        block: [u32; 3],
        /// What happened, with its place.
        message: String,
        /// Counters and findings up to that point.
        report: Box<crate::machine::report::Report>,
    },
    /// A block executed more instructions than the limit allows.
    #[error(
        "block ({}, {}, {}) did not finish within {limit} warp instructions; raise the limit if it is no endless loop",
        block[0], block[1], block[2]
    )]
    Watchdog {
        /// Block that ran too long.
        block: [u32; 3],
        /// The limit.
        limit: u64,
    },
}

/// What is wrong with a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The number of arguments is wrong.
    #[error("the kernel takes {expected} arguments, {given} given")]
    ArgumentCount {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments of the launch.
        given: usize,
    },
    /// The kind of an argument is wrong.
    #[error("argument {index} is {given}, the kernel expects {expected}")]
    ArgumentKind {
        /// Position, from 0.
        index: usize,
        /// The kind of the parameter.
        expected: String,
        /// The kind of the argument.
        given: &'static str,
    },
    /// A block has too many or no threads, or a grid no blocks.
    #[error("{0}")]
    Shape(String),
    /// Memory that cannot be mapped at its address.
    #[error("{0}")]
    Mapping(String),
}

/// A construct whose meaning the machine does not know; the decoder adds its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown(pub(crate) String);

impl Unknown {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// Result of translating one construct.
pub(crate) type Decoded<T> = Result<T, Unknown>;
