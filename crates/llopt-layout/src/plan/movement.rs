//! A plan: how the data moves, with its counts and cost.

use alloc::boxed::Box;

use super::{Counts, Machine, Price, Scope, SharedPlan, ShufflePlan};
use crate::f2::Matrix;

/// How the data moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// Every value is already in its register.
    Nothing,
    /// Every value is in its thread: register `r` of the result is register `sources.apply(r)` of
    /// the operand.
    Registers {
        /// The linear map from register index to register index.
        sources: Matrix,
    },
    /// Through the lanes of each warp.
    Shuffle(Box<ShufflePlan>),
    /// Through shared memory.
    Shared(Box<SharedPlan>),
}

/// A plan of a conversion, with its counts and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The movement.
    pub movement: Movement,
    /// The counts.
    pub counts: Counts,
    /// The price by the machine's [`Costs`](super::Costs).
    pub cost: f32,
}

impl Plan {
    /// Its cost, and the part of it that is waiting.
    pub fn price(&self, machine: &Machine<'_>) -> Price {
        let scope = match &self.movement {
            Movement::Shared(shared) => Some(shared.scope),
            Movement::Nothing | Movement::Registers { .. } | Movement::Shuffle(_) => None,
        };
        Price::of(self.cost, &self.counts, scope, machine)
    }

    /// The name of the kind of movement: `none`, `register`, `shuffle`, `shared`, or `cluster`.
    pub fn kind(&self) -> &'static str {
        match &self.movement {
            Movement::Nothing => "none",
            Movement::Registers { .. } => "register",
            Movement::Shuffle(_) => "shuffle",
            Movement::Shared(shared) if shared.scope == Scope::Cluster => "cluster",
            Movement::Shared(_) => "shared",
        }
    }
}
