//! Diagnostics as values: messages with locations in the source.

use std::fmt;

use crate::Source;

/// The longest line of source, in bytes, that is shown; longer ones are usually generated.
const LONGEST_LINE: usize = 1000;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The input is rejected.
    Error,
    /// The input is accepted, and probably not what its author meant.
    Warning,
    /// Information.
    Remark,
    /// More about the diagnostic that it is attached to.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Remark => "remark",
            Self::Note => "note",
        })
    }
}

/// A message with a location.
///
/// It prints as MLIR's tools print it, `file:line:col: error: message`, with its notes on the lines
/// that follow; [`Diagnostic::with_source`] adds the line of source and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The place, as `file:line:col`; empty if unknown.
    pub location: String,
    /// The message.
    pub message: String,
    /// Further locations and messages about them.
    pub notes: Vec<Diagnostic>,
}

impl Diagnostic {
    /// An error without notes.
    pub fn error(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            location: location.into(),
            message: message.into(),
            notes: Vec::new(),
        }
    }

    /// A diagnostic from MLIR. Call sites around the location become notes.
    pub(crate) fn from_mlir(reported: &llopt_mlir::diagnostic::Diagnostic) -> Self {
        use llopt_mlir::diagnostic::Severity as Mlir;
        let severity = match reported.severity {
            Mlir::Error => Severity::Error,
            Mlir::Warning => Severity::Warning,
            Mlir::Remark => Severity::Remark,
            Mlir::Note => Severity::Note,
        };
        let mut positions = reported.positions.iter().map(ToString::to_string);
        let location = positions.next().unwrap_or_default();
        let callers = positions.map(|location| Self {
            severity: Severity::Note,
            location,
            message: "called from".into(),
            notes: Vec::new(),
        });
        Self {
            severity,
            location,
            message: reported.message.clone(),
            notes: callers
                .chain(reported.notes.iter().map(Self::from_mlir))
                .collect(),
        }
    }

    /// A diagnostic from LLVM: a text that may begin with a location.
    pub(crate) fn from_llvm(severity: Severity, text: &str) -> Self {
        let (location, message) = match text.split_once(": ") {
            Some((place, message)) if place.matches(':').count() >= 2 => (place, message),
            _ => ("", text),
        };
        let mut diagnostic = Self {
            severity,
            location: location.to_owned(),
            message: message.to_owned(),
            notes: Vec::new(),
        };
        if !location.is_empty() && diagnostic.position().is_none() {
            diagnostic.location.clear();
            diagnostic.message = text.to_owned();
        }
        diagnostic
    }

    /// The reason why a source cannot be parsed at all, if there is one: text that is not UTF-8.
    pub(crate) fn of_source(source: &Source) -> Option<Self> {
        if source.is_bytecode() {
            return None;
        }
        let position = std::str::from_utf8(source.contents()).err()?.valid_up_to();
        let (line, column) = place(source.contents(), position);
        let location = format!("{}:{line}:{column}", source.name());
        Some(Self::error(location, "the text is not UTF-8"))
    }

    /// The line and the column, counted from one, if the location is known.
    pub fn position(&self) -> Option<(usize, usize)> {
        let mut parts = self.location.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        parts.next().map(|_| (line, column))
    }

    /// The file, without line and column, if the location is known.
    pub fn file(&self) -> Option<&str> {
        self.position()?;
        self.location.rsplitn(3, ':').nth(2)
    }

    /// The text of this diagnostic with the line of `source` at its location, and a caret below the column.
    /// Diagnostics and notes about other files are printed without it.
    pub fn with_source<'a>(&'a self, source: &'a Source) -> impl fmt::Display + 'a {
        WithSource {
            diagnostic: self,
            source: Some(source),
        }
    }
}

/// Line and column, from one, of a byte.
fn place(text: &[u8], position: usize) -> (usize, usize) {
    let before = &text[..position];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n');
    (line, position - start.map_or(0, |newline| newline + 1) + 1)
}

struct WithSource<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<&'a Source>,
}

impl fmt::Display for WithSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic {
            severity,
            location,
            message,
            notes,
        } = self.diagnostic;
        if !location.is_empty() {
            write!(f, "{location}: ")?;
        }
        write!(f, "{severity}: {message}")?;
        let place = self.diagnostic.position().zip(self.source);
        if let Some(((line, column), source)) = place
            && self.diagnostic.file() == Some(source.name())
            && let Some(text) = source.text()
            && let Some(text) = text.lines().nth(line.saturating_sub(1))
            && text.len() <= LONGEST_LINE
        {
            // Tabs before the caret are kept, so that it is below the column in any terminal.
            let before: String = text
                .chars()
                .take(column.saturating_sub(1))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n{text}\n{before}^")?;
        }
        for note in notes {
            let source = self.source;
            write!(
                f,
                "\n{}",
                WithSource {
                    diagnostic: note,
                    source
                }
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WithSource {
            diagnostic: self,
            source: None,
        }
        .fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_must_be_utf8() {
        let source = Source::new("k.mlir", b"tt.func\n  \xff".to_vec());
        let expected = "k.mlir:2:3: error: the text is not UTF-8";
        assert_eq!(
            Diagnostic::of_source(&source).unwrap().to_string(),
            expected
        );
    }

    #[test]
    fn whole_rendered_error() {
        let mut diagnostic = Diagnostic::error("k.ttgir:2:5", "expected a type");
        diagnostic.notes.push(Diagnostic {
            severity: Severity::Note,
            location: "k.ttgir:1:1".into(),
            message: "inside this function".into(),
            notes: Vec::new(),
        });
        let source = |name| Source::new(name, "tt.func\n\t  %0 = 1\n");
        let elsewhere = diagnostic.with_source(&source("other.py")).to_string();
        assert_eq!(elsewhere, diagnostic.to_string());
        assert_eq!(
            diagnostic.with_source(&source("k.ttgir")).to_string(),
            "k.ttgir:2:5: error: expected a type\n\
             \t  %0 = 1\n\
             \t   ^\n\
             k.ttgir:1:1: note: inside this function\n\
             tt.func\n\
             ^"
        );
        assert_eq!(
            diagnostic.to_string(),
            "k.ttgir:2:5: error: expected a type\nk.ttgir:1:1: note: inside this function"
        );
    }
}
