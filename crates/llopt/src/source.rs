//! The input of a compilation.

use crate::Diagnostic;

/// A module as text or bytecode, and the name under which diagnostics speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    contents: Vec<u8>,
}

impl Source {
    /// A source called `name`, usually a file's path.
    pub fn new(name: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            contents: contents.into(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Its text; `None` for bytecode and for anything else that is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        if self.is_bytecode() {
            None
        } else {
            std::str::from_utf8(&self.contents).ok()
        }
    }

    fn is_bytecode(&self) -> bool {
        self.contents.starts_with(b"ML\xefR")
    }

    /// What makes this source unfit for any parser, if anything does: text that is not UTF-8.
    pub(crate) fn defect(&self) -> Option<Diagnostic> {
        if self.is_bytecode() {
            return None;
        }
        let position = std::str::from_utf8(&self.contents).err()?.valid_up_to();
        let (line, column) = place(&self.contents, position);
        let location = format!("{}:{line}:{column}", self.name);
        Some(Diagnostic::error(location, "the text is not UTF-8"))
    }
}

/// Line and column, from one, of a byte.
fn place(text: &[u8], position: usize) -> (usize, usize) {
    let before = &text[..position];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n');
    (line, position - start.map_or(0, |newline| newline + 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_must_be_utf8() {
        let source = Source::new("k.mlir", b"tt.func\n  \xff".to_vec());
        let expected = "k.mlir:2:3: error: the text is not UTF-8";
        assert_eq!(source.defect().unwrap().to_string(), expected);
    }
}
