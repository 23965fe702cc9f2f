//! The input of a compilation.

/// A module as text or bytecode, and its name in diagnostics.
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

    /// Its contents.
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

    /// Whether this is bytecode.
    pub(crate) fn is_bytecode(&self) -> bool {
        self.contents.starts_with(b"ML\xefR")
    }
}
