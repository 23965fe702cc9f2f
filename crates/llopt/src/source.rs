//! The input of a compilation.

use crate::Diagnostic;

/// Brackets that may be open at once. MLIR's parser and everything after it recurse on nested
/// regions, types and attributes; real kernels stay below a hundred.
const DEEPEST: usize = 10_000;

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

    /// What makes this source unfit for any parser, if anything does: text that is not UTF-8, or
    /// brackets nested too deep.
    pub(crate) fn defect(&self) -> Option<Diagnostic> {
        if self.is_bytecode() {
            return None;
        }
        let at = |position: usize, message: String| {
            let (line, column) = place(&self.contents, position);
            Diagnostic::error(format!("{}:{line}:{column}", self.name), message)
        };
        if let Err(error) = std::str::from_utf8(&self.contents) {
            return Some(at(error.valid_up_to(), "the text is not UTF-8".into()));
        }
        let position = too_deep(&self.contents)?;
        Some(at(position, format!("more than {DEEPEST} nested brackets")))
    }
}

/// Line and column, from one, of a byte.
fn place(text: &[u8], position: usize) -> (usize, usize) {
    let before = &text[..position];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n');
    (line, position - start.map_or(0, |newline| newline + 1) + 1)
}

/// The position of the first bracket that is one too many. Strings and comments are left out.
fn too_deep(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut position = 0;
    while let Some(&byte) = text.get(position) {
        match byte {
            b'"' => {
                position += 1;
                while let Some(&inside) = text.get(position) {
                    match inside {
                        b'"' | b'\n' => break,
                        b'\\' => position += 2,
                        _ => position += 1,
                    }
                }
            }
            b'/' if text.get(position + 1) == Some(&b'/') => {
                let rest = text[position..].iter().position(|&byte| byte == b'\n');
                position += rest.unwrap_or(text.len() - position);
            }
            b'(' | b'[' | b'{' | b'<' => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(position);
                }
            }
            b'>' if position > 0 && text[position - 1] == b'-' => {}
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        position += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_strings_and_comments() {
        let deep = |open: &str, close: &str| {
            Source::new(
                "k",
                format!("{}{}", open.repeat(20_000), close.repeat(20_000)),
            )
            .defect()
        };
        assert!(deep("f(", ") -> (").is_some());
        assert!(deep("f() -> <>", "").is_none());
        assert!(deep("\"((\\\"(\"", "").is_none());
        assert!(deep("// ((\n", "").is_none());
        assert!(deep("\"", "").is_none());
        let diagnostic = Source::new("k.mlir", format!("\n  {}", "[".repeat(10_001))).defect();
        assert_eq!(
            diagnostic.unwrap().to_string(),
            "k.mlir:2:10003: error: more than 10000 nested brackets"
        );
    }

    #[test]
    fn text_must_be_utf8() {
        let source = Source::new("k.mlir", b"tt.func\n  \xff".to_vec());
        let expected = "k.mlir:2:3: error: the text is not UTF-8";
        assert_eq!(source.defect().unwrap().to_string(), expected);
    }
}
