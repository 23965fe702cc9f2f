//! What is to be proven about an op, and whether it is.

use std::fmt;

use serde::Serialize;

/// The outcome for one op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// It is correct for all data.
    Proven {
        /// The number of runs of the machine, or of executions of the skeleton.
        runs: usize,
    },
    /// It is wrong.
    Wrong {
        /// The machine's message, or the accesses and what is missing between them.
        message: String,
    },
    /// The target does not support it, or no proof is known.
    Unsupported {
        /// The reason.
        reason: String,
    },
}

/// What is to be proven about an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// That every element arrives where it belongs.
    Movement,
    /// That it is ordered with everything that shares memory or registers with it.
    Order,
}

/// An op that moves data, shares a buffer, or synchronises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obligation {
    /// What is to be proven.
    pub subject: Subject,
    /// `file:line:col`.
    pub location: String,
    /// The op's name.
    pub op: String,
    /// Types of operands and results.
    pub types: String,
    /// The outcome.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven { runs: 1 } => write!(f, "proven by 1 run"),
            Self::Proven { runs } => write!(f, "proven by {runs} runs"),
            Self::Wrong { .. } => write!(f, "wrong"),
            Self::Unsupported { .. } => write!(f, "no proof"),
        }
    }
}
