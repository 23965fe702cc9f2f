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

/// A loop of a kernel that is changed in one respect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// Warps of a block.
    pub num_warps: u32,
    /// Requested stages.
    pub wanted: u32,
    /// Stages; `None` if the loop is not pipelined then.
    pub stages: Option<u32>,
    /// Cycles per iteration of the schedule.
    pub interval: Option<u32>,
    /// Bytes of all buffers.
    pub bytes: Option<u64>,
    /// Bytes of shared memory of the whole kernel.
    pub shared_bytes: u32,
    /// Resident blocks, by the registers that are live.
    pub blocks: Option<u32>,
    /// Predicted cycles of an iteration, as the share of one of so many blocks.
    pub cycles: Option<u32>,
    /// The reason if the loop is not pipelined.
    pub reason: Option<String>,
}
