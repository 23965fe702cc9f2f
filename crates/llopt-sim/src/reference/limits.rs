//! What one program may cost in the interpreter.

/// What one program may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elements that are computed, and as many for each operation as it takes to look it up, after which a program counts
    /// as hung.
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

/// An operation takes as long as that many elements, whatever it does.
pub(super) const OPERATION: u64 = 128;

/// How deep calls may nest: the interpreter calls itself.
pub(super) const DEEPEST: u32 = 1000;
