//! Errors of code generation, in classes that say whose fault they are.

use std::path::PathBuf;

use llopt_target::{Feature, Target};

/// An error of this crate. The three classes of the project are kept apart by [`CodegenError::class`].
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// An operation for which the target has no emission (yet).
    #[error("{location}: error: '{op}' is not supported on {target}{}", because(.reason))]
    UnsupportedOp {
        /// Where the operation is, as `file:line:col`.
        location: String,
        /// The operation's full name, such as `tt.dot_scaled`.
        op: String,
        /// The requested target.
        target: Target,
        /// The part of the operation that is not supported, if it is not the whole operation.
        reason: Option<String>,
    },
    /// An operation needs a capability that the target lacks.
    #[error("{location}: error: '{op}' needs {feature}, which {target} does not have")]
    MissingFeature {
        /// Where the operation is, as `file:line:col`.
        location: String,
        /// The operation's full name.
        op: String,
        /// The capability.
        feature: Feature,
        /// The requested target.
        target: Target,
    },
    /// The module breaks a rule that its verifiers do not check.
    #[error("{location}: error: {message}")]
    Invalid {
        /// Where, as `file:line:col`.
        location: String,
        /// What is wrong.
        message: String,
    },
    /// The kernel calls device functions, and no library that defines them was given.
    #[error(
        "the kernel calls '{function}', which the device library {library} defines: name its bitcode file with {option} or the environment variable {variable}; it is not in any of {places}"
    )]
    MissingLibrary {
        /// A function that is called and not defined.
        function: String,
        /// The library that has it: `libdevice` or `ocml`.
        library: &'static str,
        /// The command-line option that names the file.
        option: &'static str,
        /// The environment variable that names the file.
        variable: &'static str,
        /// The places that were searched.
        places: String,
    },
    /// A device library could not be read or linked.
    #[error("device library {}: {message}", .path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// LLVM's message.
        message: String,
    },
    /// A device library lacks a function that the kernel calls.
    #[error("device library {}: it does not define '{function}', which the kernel calls", .path.display())]
    UndefinedFunction {
        /// The file.
        path: PathBuf,
        /// The name of the function.
        function: String,
    },
    /// The linker that makes a code object is missing or failed.
    #[error("cannot link the code object: {message}")]
    Linker {
        /// Which program, and what it said.
        message: String,
    },
    /// LLVM rejected IR that this crate emitted: a bug in llopt.
    #[error("bug in llopt: {stage}: {message}")]
    Bug {
        /// The stage that reported it.
        stage: &'static str,
        /// LLVM's message, or ours.
        message: String,
    },
}

/// The classes of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The input breaks a rule.
    Invalid,
    /// The input is valid, but the target (or this release) does not support it.
    Unsupported,
    /// Something outside the program is missing: a library file, a linker.
    Environment,
    /// A mistake in llopt.
    Bug,
}

impl CodegenError {
    /// The class this error belongs to.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::UnsupportedOp { .. } | Self::MissingFeature { .. } => ErrorClass::Unsupported,
            Self::Invalid { .. } => ErrorClass::Invalid,
            Self::MissingLibrary { .. }
            | Self::Library { .. }
            | Self::UndefinedFunction { .. }
            | Self::Linker { .. } => ErrorClass::Environment,
            Self::Bug { .. } => ErrorClass::Bug,
        }
    }
}

fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map_or_else(String::new, |text| format!(": {text}"))
}
