//! Why a compilation failed, classified by whose fault it is.

use std::fmt;
use std::path::{Path, PathBuf};

use llopt_codegen::error::CodegenError;

use crate::{Diagnostic, Severity, Source};

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The input breaks a rule; located diagnostics say which.
    InvalidInput,
    /// The input is well formed, and the target or this release cannot do what it asks.
    Unsupported,
    /// Something outside the compiler is missing or failed: a file, a device library, an assembler.
    Environment,
    /// A mistake in llopt.
    Bug,
}

/// A failed compilation.
///
/// [`fmt::Display`] prints all of it, one line for each diagnostic.
pub struct Error {
    kind: Box<Kind>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Invalid {
        diagnostics: Vec<Diagnostic>,
    },
    Unsupported {
        location: String,
        op: String,
        feature: String,
    },
    Environment {
        message: String,
    },
    /// An assembler rejected emitted assembly; see [`Error::blame_assembly`].
    RefusedAssembly {
        message: String,
    },
    Bug {
        message: String,
        reproducer: Option<PathBuf>,
    },
}

impl Error {
    pub(crate) fn invalid(diagnostics: Vec<Diagnostic>) -> Self {
        Kind::Invalid { diagnostics }.into()
    }

    /// `op` at `location` needs `feature` (what is missing, in words that complete "`op` is not supported: …").
    pub(crate) fn unsupported(
        location: impl Into<String>,
        op: impl Into<String>,
        feature: impl Into<String>,
    ) -> Self {
        Kind::Unsupported {
            location: location.into(),
            op: op.into(),
            feature: feature.into(),
        }
        .into()
    }

    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Kind::Environment {
            message: message.into(),
        }
        .into()
    }

    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Kind::Bug {
            message: message.into(),
            reproducer: None,
        }
        .into()
    }

    /// An error that LLVM reports: about inline assembly, or about other code. Assembly is the kernel's or llopt's
    /// own; [`Error::blame_assembly`] determines which.
    pub(crate) fn from_llvm(message: &str) -> Self {
        let about_assembly = [
            "asm",
            "assembly",
            "constraint",
            "Copy one register into another",
            // A value that differs between lanes does not fit in a register that all lanes share.
            "illegal VGPR to SGPR copy",
        ];
        if about_assembly.iter().any(|word| message.contains(word)) {
            return Self::refused_assembly(message);
        }
        Self::bug(format!("LLVM: {message}"))
    }

    /// An assembler rejects a text.
    pub(crate) fn refused_assembly(message: &str) -> Self {
        Kind::RefusedAssembly {
            message: message.to_owned(),
        }
        .into()
    }

    /// Assigns the blame for rejected assembly: to the kernel, at these locations, or to llopt if there are none.
    pub(crate) fn blame_assembly(self, places: &[String]) -> Self {
        let Kind::RefusedAssembly { message } = &*self.kind else {
            return self;
        };
        let Some((first, others)) = places.split_first() else {
            return Self::bug(format!("its own assembly is refused: {message}"));
        };
        let message = format!("the kernel's inline assembly is refused: {message}");
        let mut diagnostic = Diagnostic::error(first.as_str(), message);
        diagnostic
            .notes
            .extend(others.iter().map(|place| Diagnostic {
                severity: Severity::Note,
                location: place.clone(),
                message: "or the assembly here".to_owned(),
                notes: Vec::new(),
            }));
        Self::invalid(vec![diagnostic])
    }

    /// Adds the file to which the input that shows the bug was written; errors of other classes are not changed.
    pub(crate) fn with_reproducer(mut self, path: PathBuf) -> Self {
        if let Kind::Bug { reproducer, .. } = &mut *self.kind {
            *reproducer = Some(path);
        }
        self
    }

    /// Whose fault it is.
    pub fn class(&self) -> ErrorClass {
        match *self.kind {
            Kind::Invalid { .. } => ErrorClass::InvalidInput,
            Kind::Unsupported { .. } => ErrorClass::Unsupported,
            Kind::Environment { .. } => ErrorClass::Environment,
            Kind::Bug { .. } | Kind::RefusedAssembly { .. } => ErrorClass::Bug,
        }
    }

    /// The diagnostics about the input: all located diagnostics of an invalid input, the one of an unsupported op,
    /// none for the other classes.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match &*self.kind {
            Kind::Invalid { diagnostics } => diagnostics.clone(),
            Kind::Unsupported {
                location,
                op,
                feature,
            } => vec![Diagnostic::error(
                location.clone(),
                format!("'{op}' is not supported: {feature}"),
            )],
            Kind::Environment { .. } | Kind::RefusedAssembly { .. } | Kind::Bug { .. } => {
                Vec::new()
            }
        }
    }

    /// The op that is not supported.
    pub fn op(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Unsupported { op, .. } => Some(op),
            _ => None,
        }
    }

    /// What would be needed to support it.
    pub fn feature(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Unsupported { feature, .. } => Some(feature),
            _ => None,
        }
    }

    /// The file with the input that shows a bug of llopt, if one could be written.
    pub fn reproducer(&self) -> Option<&Path> {
        match &*self.kind {
            Kind::Bug { reproducer, .. } => reproducer.as_deref(),
            _ => None,
        }
    }

    /// The text of this error with the lines of `source` at its diagnostics' locations.
    pub fn with_source(&self, source: &Source) -> String {
        match self.class() {
            ErrorClass::InvalidInput | ErrorClass::Unsupported => {
                let diagnostics = self.diagnostics();
                let lines: Vec<String> = diagnostics
                    .iter()
                    .map(|diagnostic| diagnostic.with_source(source).to_string())
                    .collect();
                lines.join("\n")
            }
            ErrorClass::Environment | ErrorClass::Bug => self.to_string(),
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self {
            kind: Box::new(kind),
        }
    }
}

/// Unknown names: of a target, an artefact, an option.
macro_rules! invalid_names {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::invalid(vec![Diagnostic::error("", error.to_string())])
            }
        })*
    };
}
invalid_names!(
    llopt_target::ParseTargetError,
    crate::UnknownKind,
    crate::SettingError
);

impl From<CodegenError> for Error {
    fn from(error: CodegenError) -> Self {
        let text = error.to_string();
        match error {
            CodegenError::UnsupportedOp {
                location,
                op,
                target,
                reason,
            } => Self::unsupported(
                location,
                op,
                match reason {
                    Some(reason) => format!("on {target}, {reason}"),
                    None => format!("there is no code for it on {target}"),
                },
            ),
            CodegenError::MissingFeature {
                location,
                op,
                feature,
                target,
            } => Self::unsupported(
                location,
                op,
                format!("it needs {feature}, which {target} does not have"),
            ),
            CodegenError::Invalid { location, message } => {
                Self::invalid(vec![Diagnostic::error(location, message)])
            }
            CodegenError::MissingLibrary { .. }
            | CodegenError::Library { .. }
            | CodegenError::UndefinedFunction { .. }
            | CodegenError::Linker { .. } => Self::environment(text),
            CodegenError::Bug { stage, message } => Self::bug(format!("{stage}: {message}")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Invalid { .. } | Kind::Unsupported { .. } => {
                for (index, diagnostic) in self.diagnostics().iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{diagnostic}")?;
                }
                Ok(())
            }
            Kind::Environment { message } => write!(f, "error: {message}"),
            Kind::RefusedAssembly { message } => {
                write!(
                    f,
                    "error: bug in llopt: inline assembly is refused: {message}"
                )
            }
            Kind::Bug {
                message,
                reproducer,
            } => {
                write!(
                    f,
                    "error: bug in llopt: {message}\nnote: please report this with the input"
                )?;
                match reproducer {
                    Some(path) => write!(f, "; it was written to {}", path.display()),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_assembly_is_the_kernels_or_ours() {
        let refused = || Error::from_llvm("couldn't allocate output register for constraint 'x'");
        let ours = refused().blame_assembly(&[]);
        assert_eq!(ours.class(), ErrorClass::Bug);
        let theirs =
            refused().blame_assembly(&["k.ttgir:3:4".to_owned(), "k.ttgir:5:6".to_owned()]);
        assert_eq!(theirs.class(), ErrorClass::InvalidInput);
        assert_eq!(
            theirs.to_string(),
            "k.ttgir:3:4: error: the kernel's inline assembly is refused: couldn't allocate output register for \
             constraint 'x'\nk.ttgir:5:6: note: or the assembly here"
        );
        let other = Error::bug("x").blame_assembly(&["k.ttgir:3:4".to_owned()]);
        assert_eq!(other.class(), ErrorClass::Bug);
    }

    #[test]
    fn each_class_says_whose_fault_it_is() {
        let invalid = Error::invalid(vec![Diagnostic::error("k.ttgir:1:2", "expected ':'")]);
        assert_eq!(invalid.class(), ErrorClass::InvalidInput);
        assert_eq!(invalid.to_string(), "k.ttgir:1:2: error: expected ':'");

        let unsupported = Error::unsupported("k.ttgir:3:4", "tt.dot", "no matrix unit");
        assert_eq!(unsupported.class(), ErrorClass::Unsupported);
        assert_eq!(
            (unsupported.op(), unsupported.feature()),
            (Some("tt.dot"), Some("no matrix unit"))
        );
        assert_eq!(
            unsupported.with_source(&Source::new("k.ttgir", "\n\n   tt.dot\n")),
            "k.ttgir:3:4: error: 'tt.dot' is not supported: no matrix unit\n   tt.dot\n   ^"
        );

        let bug = Error::bug("emitted an invalid module").with_reproducer("/tmp/r.mlir".into());
        assert_eq!(bug.class(), ErrorClass::Bug);
        assert_eq!(
            bug.to_string(),
            "error: bug in llopt: emitted an invalid module\n\
             note: please report this with the input; it was written to /tmp/r.mlir"
        );
    }
}
