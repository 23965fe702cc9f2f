//! Diagnostics as values: errors that callbacks return, and messages captured from MLIR.
//!
//! Inside a hook an error is either a [`Complaint`] (a message that the bridge reports on the operation or location
//! at hand) or [`Reported`], the proof that an error has been reported already. Outside of hooks, [`capture`]
//! collects all diagnostics of MLIR while a closure runs.

use crate::ffi;
use crate::ir::{LocationExt, LocationKind};
use melior::{
    Context,
    diagnostic::DiagnosticSeverity,
    ir::{Location, OperationRef},
};
use mlir_sys::{MlirDiagnostic, MlirLogicalResult, MlirStringRef};
use std::{
    ffi::c_void,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
};

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

/// An error found by a verifier. The bridge adds the operation's name and location.
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

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => formatter.write_str(message)?,
            None => Reported(()).fmt(formatter)?,
        }
        self.notes
            .iter()
            .try_for_each(|note| write!(formatter, "; {note}"))
    }
}

impl std::error::Error for Complaint {}

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

    /// Passes the diagnostic to the handlers of the context.
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

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An explanation attached to another diagnostic.
    Note,
    /// Information.
    Remark,
    /// A possible problem.
    Warning,
    /// A definite problem.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Note => "note",
            Self::Remark => "remark",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A place in a file; lines and columns start at 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The file, as it was named to the parser or by the frontend.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A diagnostic as a value, independent of any context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The text.
    pub message: String,
    /// The positions, innermost first: the position itself, then the call sites around it. Empty when the location is
    /// unknown.
    pub positions: Vec<Position>,
    /// Notes.
    pub notes: Vec<Diagnostic>,
}

impl Diagnostic {
    /// # Safety
    /// The diagnostic is live.
    unsafe fn from_raw(raw: MlirDiagnostic) -> Self {
        unsafe extern "C" fn append(text: MlirStringRef, bytes: *mut c_void) {
            // SAFETY: MLIR passes the vector below back.
            unsafe { (*bytes.cast::<Vec<u8>>()).extend_from_slice(ffi::bytes(text)) }
        }
        let mut message: Vec<u8> = Vec::new();
        // SAFETY: the diagnostic is live; the vector outlives the call.
        let (severity, location, note_count) = unsafe {
            mlir_sys::mlirDiagnosticPrint(raw, Some(append), (&raw mut message).cast());
            (
                mlir_sys::mlirDiagnosticGetSeverity(raw),
                Location::from_raw(mlir_sys::mlirDiagnosticGetLocation(raw)),
                mlir_sys::mlirDiagnosticGetNumNotes(raw),
            )
        };
        let mut positions = Vec::new();
        collect_positions(location, &mut positions);
        Self {
            severity: match severity {
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning => Severity::Warning,
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticNote => Severity::Note,
                mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticRemark => Severity::Remark,
                _ => Severity::Error,
            },
            message: String::from_utf8_lossy(&message).into_owned(),
            positions,
            notes: (0..note_count)
                // SAFETY: the note belongs to the live diagnostic.
                .map(|index| unsafe { Self::from_raw(mlir_sys::mlirDiagnosticGetNote(raw, index)) })
                .collect(),
        }
    }

    /// The innermost position.
    pub fn position(&self) -> Option<&Position> {
        self.positions.first()
    }
}

/// The positions of a location, innermost first.
fn collect_positions(location: Location<'_>, positions: &mut Vec<Position>) {
    match location.kind() {
        LocationKind::File {
            file, line, column, ..
        } => positions.push(Position {
            file: file.to_owned(),
            line,
            column,
        }),
        LocationKind::Name { child, .. } => collect_positions(child, positions),
        LocationKind::CallSite { callee, caller } => {
            collect_positions(callee, positions);
            collect_positions(caller, positions);
        }
        // The parts of a fused location are alternatives, not a chain: the first represents all.
        LocationKind::Fused { locations } => {
            if let Some(first) = locations.first() {
                collect_positions(*first, positions);
            }
        }
        LocationKind::Unknown | LocationKind::Other => {}
    }
}

/// `file:line:col: error: message`, a `called from` line for each call site, then the notes.
impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position() {
            Some(position) => write!(formatter, "{position}: ")?,
            None => formatter.write_str("<unknown>:0: ")?,
        }
        write!(formatter, "{}: {}", self.severity, self.message)?;
        for caller in self.positions.iter().skip(1) {
            write!(formatter, "\n{caller}: note: called from here")?;
        }
        for note in &self.notes {
            write!(formatter, "\n{note}")?;
        }
        Ok(())
    }
}

/// Diagnostics one per line, as MLIR's tools write them.
pub fn render(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&diagnostic.to_string());
        text.push('\n');
    }
    text
}

/// Whether errors on operations carry a note `see current operation: …` that prints the whole operation, as they do
/// by default. This is useful only for IR without source text.
pub fn print_operations(context: &Context, print: bool) {
    // SAFETY: the context is live.
    unsafe { ffi::llopt_context_print_operations(context.to_raw(), print) }
}

/// Runs a closure and collects the diagnostics that the context emits meanwhile, also from
/// MLIR's own threads. They reach no other handler.
pub fn capture<T>(context: &Context, run: impl FnOnce() -> T) -> (T, Vec<Diagnostic>) {
    unsafe extern "C" fn handle(raw: MlirDiagnostic, user: *mut c_void) -> MlirLogicalResult {
        // SAFETY: MLIR passes back the mutex below, and a live diagnostic.
        let _ = catch_unwind(AssertUnwindSafe(|| unsafe {
            let diagnostic = Diagnostic::from_raw(raw);
            if let Ok(mut list) = (*user.cast::<Mutex<Vec<Diagnostic>>>()).lock() {
                list.push(diagnostic);
            }
        }));
        MlirLogicalResult { value: 1 }
    }
    /// Detaches even when the closure panics.
    struct Handler<'a>(&'a Context, mlir_sys::MlirDiagnosticHandlerID);
    impl Drop for Handler<'_> {
        fn drop(&mut self) {
            // SAFETY: the handler was attached to this context.
            unsafe { mlir_sys::mlirContextDetachDiagnosticHandler(self.0.to_raw(), self.1) }
        }
    }
    let list: Mutex<Vec<Diagnostic>> = Mutex::new(Vec::new());
    // SAFETY: the list outlives the handler, which is detached below.
    let handler = Handler(context, unsafe {
        mlir_sys::mlirContextAttachDiagnosticHandler(
            context.to_raw(),
            Some(handle),
            (&raw const list).cast_mut().cast(),
            None,
        )
    });
    let result = run();
    drop(handler);
    (
        result,
        list.into_inner().unwrap_or_else(|error| error.into_inner()),
    )
}
