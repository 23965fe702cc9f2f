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
    /// The same for each GPU of the architecture; the figures above are those of the first one.
    pub machines: Vec<OnMachine>,
}

/// The predicted time on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnMachine {
    /// Bits of its memory's bus.
    pub bus_bits: u32,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Megahertz of these, for which the figures are. What memory takes is longer at a higher clock, in cycles.
    pub megahertz: u32,
    /// For each number of resident blocks from one.
    pub shares: Vec<Share>,
}

/// Cycles of an iteration of one of several resident blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What matrix units and threads take.
    pub work: u32,
    /// What the multiprocessor takes for lines of memory beside its work, by its own clock.
    pub port: u32,
    /// What memory takes while blocks request the same lines at the same time.
    pub memory: u32,
    /// What memory takes otherwise.
    pub apart: u32,
    /// What the shared cache needs if each request of each block is answered by itself. Blocks stay in step where its part
    /// for requests that differ, of blocks that are near to one another, is not above `work`.
    pub cache: u32,
    /// Whether blocks stay in step if those near to one another are a square of tiles.
    pub is_in_step: bool,
    /// The exponent of the norm of work and memory that is the time; `None` if the larger one is.
    pub exponent: Option<u32>,
}

impl Share {
    /// The time.
    pub fn cycles(&self) -> u32 {
        let memory = if self.is_in_step {
            self.memory
        } else {
            self.apart
        };
        let memory = memory.max(self.port);
        match self.exponent {
            Some(exponent) => whole(norm([self.work, memory].map(f64::from), exponent)),
            None => self.work.max(memory),
        }
    }
}

/// What takes as long as the larger of two, and longer if they are about equal.
pub(super) fn norm(cycles: [f64; 2], exponent: u32) -> f64 {
    let exponent = f64::from(exponent);
    let sum: f64 = cycles.iter().map(|cycles| cycles.powf(exponent)).sum();
    sum.powf(exponent.recip())
}

pub(super) fn whole(cycles: f64) -> u32 {
    cycles.round() as u32
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
