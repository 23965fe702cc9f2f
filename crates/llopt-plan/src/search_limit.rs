//! Searches that ended at a limit before they had looked at everything.
//!
//! Every search of the compiler has a limit, so that no program takes too long or too much memory. Mostly it ends by
//! itself. Where it does not, its result is right but may not be the best, and who reads an explanation should know: which
//! limit, where, and how far the result is from what no search can go below, if that is known. The pass that searches makes
//! such a record, and the explanation of a kernel lists them all.

use std::fmt;

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// The layouts of a function.
    Layouts,
    /// The schedule of a loop.
    Schedule,
    /// The number of stages of a loop.
    Stages,
    /// A second version of some code.
    Versions,
    /// The order of the instructions of a block.
    Order,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Layouts => "layouts",
            Self::Schedule => "schedule",
            Self::Stages => "stages",
            Self::Versions => "versions",
            Self::Order => "order",
        })
    }
}

/// A search that ended at a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchLimit {
    /// What was searched for.
    pub search: Search,
    /// `file:line:col` of the function, the loop or the operation.
    pub location: String,
    /// The limit, with its number.
    pub limit: String,
    /// How good the result is, if that is known.
    pub gap: Option<Gap>,
}

/// What was found beside what no result goes beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// What was found.
    pub found: f64,
    /// What no result is better than.
    pub bound: f64,
    /// What both are counted in.
    pub unit: &'static str,
}
