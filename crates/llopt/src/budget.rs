//! What one compilation may cost.
//!
//! Values and code are checked before the work is done ([`check`]), time is watched while the compilation runs
//! ([`contain`](crate::contain)), memory from outside of the process ([`isolation`](crate::isolation)). All four
//! excesses are errors that say which number was exceeded and how to raise it, at the op that exceeds it, or at the
//! kernel.

pub(crate) mod check;

use std::time::Duration;

/// Upper bounds on what one compilation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Values that one op may give to a thread.
    pub values: u64,
    /// Values that all ops together may give to a thread, calls unfolded.
    pub code: u64,
    /// MiB of memory, where somebody watches from outside of the process ([`isolation`](crate::isolation)).
    pub memory: u64,
    /// Milliseconds of processor time.
    pub time: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            values: 4096,
            code: 1 << 18,
            // With the pages of the program itself, which do not count, it is below 1 GiB.
            memory: 896,
            // An excess is answered within ten seconds, the start of the process and the report included.
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
