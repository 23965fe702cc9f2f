//! Whether the halves of a block take turns in loops of products, where the target has priorities of waves.

use std::fmt;
use std::str::FromStr;

use llopt_transforms::pipelining::{TurnRequest, Turns};
use serde::{Deserialize, Serialize};

/// Whether the halves of a block take turns, of which one multiplies while the other accesses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PingPong {
    /// They never do.
    Off,
    /// They do where the model predicts a gain.
    #[default]
    Auto,
    /// They do wherever it is possible.
    On,
}

impl PingPong {
    /// The texts that [`FromStr`] accepts, for a message.
    pub const EXPECTED: &'static str = "off, auto or on";

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::On => "on",
        }
    }

    /// What the pass is asked for.
    pub(crate) fn request(self) -> Option<TurnRequest> {
        match self {
            Self::Off => None,
            Self::Auto => Some(TurnRequest::WhereFaster),
            Self::On => Some(TurnRequest::Everywhere),
        }
    }
}

impl fmt::Display for PingPong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no [`PingPong`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block_pingpong is {}", PingPong::EXPECTED)]
pub struct NoSuchPingPong;

impl FromStr for PingPong {
    type Err = NoSuchPingPong;

    fn from_str(text: &str) -> Result<Self, NoSuchPingPong> {
        let mut all = [Self::Off, Self::Auto, Self::On].into_iter();
        all.find(|one| one.name() == text).ok_or(NoSuchPingPong)
    }
}

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
