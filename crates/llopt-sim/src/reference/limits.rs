//! Limits on the cost of one program in the interpreter.

/// Limits on the cost of one program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of computed elements, plus a fixed number for each operation, after which a program is considered
    /// to hang.
    pub work: u64,
    /// Bytes of all values and arrays.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            work: 500_000_000,
            memory: 1 << 30,
        }
    }
}

/// The cost of any operation, in elements.
pub(super) const OPERATION: u64 = 128;

/// The deepest nesting of calls: the interpreter is recursive.
pub(super) const DEEPEST: u32 = 1000;
