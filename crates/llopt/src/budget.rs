//! Limits on the cost of a compilation.
//!
//! Values and code are checked before the work is done ([`check`]), time is watched while the compilation runs
//! ([`own_thread`](crate::own_thread)), memory from outside of the process ([`isolation`](crate::isolation)). All four
//! excesses are errors that say which number was exceeded and how to raise it, at the op that exceeds it, or at the
//! kernel.

pub(crate) mod check;

use std::time::Duration;

/// Limits on the cost of one compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Values per thread of one op.
    pub values: u64,
    /// Values per thread of all ops together, with calls expanded.
    pub code: u64,
    /// MiB of memory, where a parent process watches ([`isolation`](crate::isolation)).
    pub memory: u64,
    /// Milliseconds of processor time.
    pub time: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            values: 4096,
            code: 1 << 18,
            // Together with the pages of the program itself, which are not counted, it is below 1 GiB.
            memory: 896,
            // An excess is reported within ten seconds, including the start of the process and the report.
            time: 9_000,
        }
    }
}

impl Budget {
    /// The processor time.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_millis(self.time)
    }
}
