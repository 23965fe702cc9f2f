//! Loops of products in which the halves of a block take turns.

use std::fmt;

use llopt_transforms::pipelining::Turns;
use serde::{Deserialize, Serialize};

/// A loop whose halves take turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTurns {
    /// The parts of the products, and the pairs of clusters of an iteration.
    pub parts: u32,
    /// Cycles of an iteration by the model.
    pub interval: u32,
    /// Those of an iteration whose warps are all in step.
    pub in_step: u32,
}

impl From<Turns> for TakenTurns {
    fn from(turns: Turns) -> Self {
        Self {
            parts: turns.parts,
            interval: turns.interval,
            in_step: turns.in_step,
        }
    }
}

impl fmt::Display for TakenTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parts,
            interval,
            in_step,
        } = self;
        let change = 100.0 * (f64::from(*interval) / f64::from((*in_step).max(1)) - 1.0);
        writeln!(
            f,
            "  turns      one half of the warps multiplies while the other accesses memory, in {parts} parts: about \
             {interval} cycles for {in_step} in step ({change:+.0} %)"
        )
    }
}
