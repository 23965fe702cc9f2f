//! The handle of an outcome, and the functions that read it.

use std::ffi::{CString, c_char, c_void};

use llopt::{Artifact, Error, Source};

use crate::boundary::{c_text, guarded, pointer, text};
use crate::llopt_status_t;

/// The outcome of a compilation, good or bad.
pub struct llopt_compilation_t {
    status: llopt_status_t,
    artifact: Option<Vec<u8>>,
    kept: Vec<Artifact>,
    metadata: Option<CString>,
    timings: Option<CString>,
    error: Option<CString>,
    diagnostics: Vec<Said>,
    op: Option<CString>,
    feature: Option<CString>,
    reproducer: Option<CString>,
}

/// A diagnostic or a note.
struct Said {
    severity: llopt_severity_t,
    /// A note follows its parent and is one deeper.
    depth: u32,
    file: Option<CString>,
    line: usize,
    column: usize,
    message: CString,
}

/// How bad a diagnostic is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum llopt_severity_t {
    /// The input is refused.
    LLOPT_ERROR = 0,
    /// The input is accepted, and probably not what its author meant.
    LLOPT_WARNING = 1,
    /// Information.
    LLOPT_REMARK = 2,
    /// More about the diagnostic before it.
    LLOPT_NOTE = 3,
}

/// One message about one place. The texts belong to the compilation.
#[repr(C)]
pub struct llopt_diagnostic_t {
    /// Bytes of this structure, set by the caller: `sizeof(llopt_diagnostic_t)`. Fields that a later
    /// version adds are written only where there is room for them.
    pub size: usize,
    /// How bad it is.
    pub severity: llopt_severity_t,
    /// 0 for a diagnostic; a note has one more than what it belongs to, the nearest before it with
    /// less.
    pub depth: u32,
    /// The file as `name` or debug locations call it; null if the place is not known.
    pub file: *const c_char,
    /// From one; zero if not known.
    pub line: usize,
    /// From one, in characters; zero if not known.
    pub column: usize,
    /// What is said, in UTF-8.
    pub message: *const c_char,
}

impl llopt_compilation_t {
    fn new(status: llopt_status_t) -> Self {
        Self {
            status,
            artifact: None,
            kept: Vec::new(),
            metadata: None,
            timings: None,
            error: None,
            diagnostics: Vec::new(),
            op: None,
            feature: None,
            reproducer: None,
        }
    }

    pub(crate) fn success(compiled: llopt::Compilation) -> Self {
        let json = |value: Result<String, serde_json::Error>| value.ok().map(c_text);
        let mut outcome = Self::new(llopt_status_t::LLOPT_OK);
        outcome.metadata = json(serde_json::to_string(&compiled.metadata));
        outcome.timings = json(serde_json::to_string(&compiled.timings));
        outcome.add(&compiled.warnings, 0);
        outcome.artifact = Some(compiled.artifact.into_bytes());
        outcome.kept = compiled.kept;
        outcome
    }

    pub(crate) fn failure(error: &Error, source: &Source) -> Self {
        let mut outcome = Self::new(error.class().into());
        outcome.error = Some(c_text(error.with_source(source)));
        outcome.add(&error.diagnostics(), 0);
        outcome.op = error.op().map(c_text);
        outcome.feature = error.feature().map(c_text);
        outcome.reproducer = error
            .reproducer()
            .map(|path| c_text(path.display().to_string()));
        outcome
    }

    /// The outcome of a call that breaks a rule of the interface.
    pub(crate) fn misuse(message: &str) -> Self {
        let mut outcome = Self::new(llopt_status_t::LLOPT_MISUSE);
        outcome.error = Some(c_text(format!("error: {message}")));
        outcome
    }

    pub(crate) fn status(&self) -> llopt_status_t {
        self.status
    }

    fn add(&mut self, diagnostics: &[llopt::Diagnostic], depth: u32) {
        for diagnostic in diagnostics {
            let (line, column) = diagnostic.position().unwrap_or_default();
            self.diagnostics.push(Said {
                severity: match diagnostic.severity {
                    llopt::Severity::Error => llopt_severity_t::LLOPT_ERROR,
                    llopt::Severity::Warning => llopt_severity_t::LLOPT_WARNING,
                    llopt::Severity::Remark => llopt_severity_t::LLOPT_REMARK,
                    llopt::Severity::Note => llopt_severity_t::LLOPT_NOTE,
                },
                depth,
                file: diagnostic.file().map(c_text),
                line,
                column,
                message: c_text(diagnostic.message.as_str()),
            });
            self.add(&diagnostic.notes, depth + 1);
        }
    }
}

/// Reads something from a handle; null and panics give `otherwise`.
///
/// # Safety
/// The handle is null or live.
unsafe fn read<T: Copy>(
    compilation: *const llopt_compilation_t,
    otherwise: T,
    body: impl FnOnce(&llopt_compilation_t) -> T,
) -> T {
    guarded(otherwise, || {
        // SAFETY: by contract.
        unsafe { compilation.as_ref() }.map_or(otherwise, body)
    })
}

/// How the compilation ended; `LLOPT_MISUSE` for null.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_status(compilation: *const llopt_compilation_t) -> llopt_status_t {
    // SAFETY: by contract.
    unsafe {
        read(compilation, llopt_status_t::LLOPT_MISUSE, |outcome| {
            outcome.status
        })
    }
}

/// The artefact, and its length in bytes if `size` is not null; null and zero for a failure. Text
/// is UTF-8 without a zero byte at its end.
///
/// # Safety
/// `compilation` is null or not released; `size` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_artifact(
    compilation: *const llopt_compilation_t,
    size: *mut usize,
) -> *const c_void {
    // SAFETY: by contract.
    unsafe { bytes(compilation, size, |outcome| outcome.artifact.as_deref()) }
}

/// A form that the kernel passed through on its way, such as `ttgir`, and its length in bytes if `size`
/// is not null; null and zero unless the option `keep` asked for it.
///
/// # Safety
/// `compilation` is null or not released; `kind` is null or ends in a zero byte; `size` is null or a
/// place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_kept(
    compilation: *const llopt_compilation_t,
    kind: *const c_char,
    size: *mut usize,
) -> *const c_void {
    // SAFETY: by contract.
    let kind = unsafe { text(kind) };
    // SAFETY: by contract.
    unsafe {
        bytes(compilation, size, |outcome| {
            let mut kept = outcome.kept.iter();
            let found = kept.find(|form| Some(form.kind().name()) == kind);
            found.map(Artifact::bytes)
        })
    }
}

/// Returns bytes; null and zero if there are none.
///
/// # Safety
/// The handle is null or live; `size` is null or a place for a number.
unsafe fn bytes(
    compilation: *const llopt_compilation_t,
    size: *mut usize,
    choose: impl FnOnce(&llopt_compilation_t) -> Option<&[u8]>,
) -> *const c_void {
    let nothing = (std::ptr::null(), 0);
    // SAFETY: by contract.
    let (start, length) = unsafe {
        read(compilation, nothing, |outcome| {
            choose(outcome).map_or(nothing, |bytes| (bytes.as_ptr(), bytes.len()))
        })
    };
    if !size.is_null() {
        // SAFETY: not null, and by contract a place for a number.
        unsafe { size.write(length) };
    }
    start.cast()
}

/// What a launcher must know, as JSON with the keys of Triton's metadata; null for a failure.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_metadata(compilation: *const llopt_compilation_t) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.metadata.as_ref())
        })
    }
}

/// How long each phase took, as a JSON list of `{"phase": …, "milliseconds": …}`; null for a
/// failure.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_timings(compilation: *const llopt_compilation_t) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.timings.as_ref())
        })
    }
}

/// Everything there is to say about a failure, for a person: all diagnostics as
/// `file:line:col: error: message` with the lines of the source that they speak of. Null for a
/// success.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_error(compilation: *const llopt_compilation_t) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.error.as_ref())
        })
    }
}

/// The number of diagnostics, notes included: errors of a failure, warnings of a success.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_diagnostic_count(compilation: *const llopt_compilation_t) -> usize {
    // SAFETY: by contract.
    unsafe { read(compilation, 0, |outcome| outcome.diagnostics.len()) }
}

/// Fills in a diagnostic, whose `size` the caller has set. `LLOPT_MISUSE` for an index past
/// the end, a null pointer, and a size that no version of the structure has.
///
/// # Safety
/// `compilation` is null or not released; `diagnostic` is null or begins with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_diagnostic(
    compilation: *const llopt_compilation_t,
    index: usize,
    diagnostic: *mut llopt_diagnostic_t,
) -> llopt_status_t {
    if diagnostic.is_null() {
        return llopt_status_t::LLOPT_MISUSE;
    }
    // SAFETY: not null, and by contract there is the size.
    let size = unsafe { (&raw const (*diagnostic).size).read() };
    if size < size_of::<llopt_diagnostic_t>() {
        return llopt_status_t::LLOPT_MISUSE;
    }
    // SAFETY: by contract; the place has room for all fields.
    unsafe {
        read(compilation, llopt_status_t::LLOPT_MISUSE, |outcome| {
            let Some(said) = outcome.diagnostics.get(index) else {
                return llopt_status_t::LLOPT_MISUSE;
            };
            diagnostic.write(llopt_diagnostic_t {
                size,
                severity: said.severity,
                depth: said.depth,
                file: pointer(said.file.as_ref()),
                line: said.line,
                column: said.column,
                message: said.message.as_ptr(),
            });
            llopt_status_t::LLOPT_OK
        })
    }
}

/// The op that is not supported, such as `tt.dot`; null unless the status is
/// `LLOPT_UNSUPPORTED`.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_unsupported_op(
    compilation: *const llopt_compilation_t,
) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.op.as_ref())
        })
    }
}

/// What would be needed to support it; null unless the status is `LLOPT_UNSUPPORTED`.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_unsupported_feature(
    compilation: *const llopt_compilation_t,
) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.feature.as_ref())
        })
    }
}

/// The file with the input that shows a bug of llopt; null if there is none.
///
/// # Safety
/// `compilation` is null or not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_reproducer(
    compilation: *const llopt_compilation_t,
) -> *const c_char {
    // SAFETY: by contract.
    unsafe {
        read(compilation, std::ptr::null(), |outcome| {
            pointer(outcome.reproducer.as_ref())
        })
    }
}

/// Frees a compilation and all that was read from it.
///
/// # Safety
/// `compilation` is null or not released, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_release(compilation: *mut llopt_compilation_t) {
    guarded((), || {
        if !compilation.is_null() {
            // SAFETY: it came from `Box::into_raw`, and by contract nobody else has it.
            drop(unsafe { Box::from_raw(compilation) });
        }
    });
}
