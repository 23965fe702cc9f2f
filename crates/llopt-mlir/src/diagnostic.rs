//! Diagnostics as values: errors that callbacks return, and messages captured from MLIR.
//!
//! Inside a hook an error is either a [`Complaint`] (a message that the bridge reports on the
//! operation or location at hand) or [`Reported`], the proof that somebody has reported already.
//! On the outside, [`capture`] collects everything MLIR says while a closure runs.

use crate::ffi;
use melior::{
    diagnostic::DiagnosticSeverity,
    ir::{Location, OperationRef},
};
use std::fmt;

/// Proof that an error diagnostic has been emitted; carries nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Reported(());

impl Reported {
    /// For the bridge: MLIR's own code has reported.
    pub(crate) const fn by_mlir() -> Self {
        Self(())
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an error has been reported")
    }
}

impl std::error::Error for Reported {}

/// What a verifier says is wrong. The bridge adds the operation's name and location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    message: Option<String>,
    notes: Vec<String>,
}

impl Complaint {
    /// A complaint with a message, without a full stop and starting in lower case.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            notes: Vec::new(),
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same complaint with text in front of the message.
    pub(crate) fn prefixed(mut self, prefix: &str) -> Self {
        self.message = self.message.map(|message| format!("{prefix}{message}"));
        self
    }

    /// The message; `None` when it has been reported already.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The notes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reports at a location.
    pub fn report_at(self, location: Location<'_>) -> Reported {
        match self.message {
            None => Reported(()),
            Some(message) => {
                let mut emission = error(location, message);
                for note in self.notes {
                    emission = emission.note(location, note);
                }
                emission.emit()
            }
        }
    }

    /// Reports on an operation, as MLIR's verifiers do: `'tt.load' op message`.
    pub fn report_on(self, operation: OperationRef<'_, '_>) -> Reported {
        if let Some(message) = self.message {
            use melior::ir::operation::OperationLike;
            let location = operation.location();
            let notes: Vec<_> = self
                .notes
                .iter()
                .map(|note| ffi::LloptNote {
                    location: location.to_raw(),
                    message: ffi::string_ref(note),
                })
                .collect();
            // SAFETY: the operation is live, strings and notes outlive the call.
            unsafe {
                ffi::llopt_emit_op_error(
                    operation.to_raw(),
                    ffi::string_ref(&message),
                    notes.as_ptr(),
                    notes.len() as isize,
                );
            }
        }
        Reported(())
    }
}

impl From<Reported> for Complaint {
    fn from(_: Reported) -> Self {
        Self {
            message: None,
            notes: Vec::new(),
        }
    }
}

impl From<String> for Complaint {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Complaint {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// A diagnostic under construction.
#[must_use = "a diagnostic is reported by `emit`"]
pub struct Emission<'c> {
    severity: DiagnosticSeverity,
    location: Location<'c>,
    message: String,
    notes: Vec<(Location<'c>, String)>,
}

/// Begins an error.
pub fn error(location: Location<'_>, message: impl Into<String>) -> Emission<'_> {
    emission(DiagnosticSeverity::Error, location, message)
}

/// Begins a warning.
pub fn warning(location: Location<'_>, message: impl Into<String>) -> Emission<'_> {
    emission(DiagnosticSeverity::Warning, location, message)
}

/// Begins a remark.
pub fn remark(location: Location<'_>, message: impl Into<String>) -> Emission<'_> {
    emission(DiagnosticSeverity::Remark, location, message)
}

fn emission(
    severity: DiagnosticSeverity,
    location: Location<'_>,
    message: impl Into<String>,
) -> Emission<'_> {
    Emission {
        severity,
        location,
        message: message.into(),
        notes: Vec::new(),
    }
}

impl<'c> Emission<'c> {
    /// Adds a note.
    pub fn note(mut self, location: Location<'c>, message: impl Into<String>) -> Self {
        self.notes.push((location, message.into()));
        self
    }

    /// Hands the diagnostic to the handlers of the context.
    pub fn emit(self) -> Reported {
        let notes: Vec<_> = self
            .notes
            .iter()
            .map(|(location, message)| ffi::LloptNote {
                location: location.to_raw(),
                message: ffi::string_ref(message),
            })
            .collect();
        let severity = match self.severity {
            DiagnosticSeverity::Error => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError,
            DiagnosticSeverity::Warning => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning,
            DiagnosticSeverity::Note => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticNote,
            DiagnosticSeverity::Remark => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticRemark,
        };
        // SAFETY: locations are live, strings and notes outlive the call.
        unsafe {
            ffi::llopt_emit(
                severity as i32,
                self.location.to_raw(),
                ffi::string_ref(&self.message),
                notes.as_ptr(),
                notes.len() as isize,
            );
        }
        Reported(())
    }
}
