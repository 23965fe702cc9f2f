//! What is predicted of a loop: the time of an iteration ([`super::predicted`] computes it).

use serde::{Deserialize, Serialize};

/// The predicted time of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// Cycles of an iteration of a block, as its share of a multiprocessor.
    pub cycles: u32,
    /// Resident blocks, by the registers that are live.
    pub blocks: u32,
    /// What the time consists of for so many blocks: a name, and cycles.
    pub terms: Vec<(String, u32)>,
    /// The exponent of the norm of work and memory that is the time; `None` if the larger one is.
    pub exponent: Option<u32>,
    /// For each number of resident blocks from one, cycles of work and of memory.
    pub shares: Vec<[u32; 2]>,
}
