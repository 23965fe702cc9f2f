//! Costs of labels and of pairs of labels.

/// A cost; addition saturates, and [`IMPOSSIBLE`] stays impossible.
pub type Cost = u64;

/// What is known of a cost before anybody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// All.
    Exactly(Cost),
    /// That it is not below this.
    AtLeast(Cost),
}

impl Known {
    /// What it is known not to be below.
    #[must_use]
    pub fn least(self) -> Cost {
        match self {
            Self::Exactly(cost) | Self::AtLeast(cost) => cost,
        }
    }

    /// The smaller one of two costs, this and one that is known.
    #[must_use]
    pub fn min(self, other: Cost) -> Self {
        match self {
            Self::Exactly(cost) => Self::Exactly(cost.min(other)),
            // Below what the other one costs, it may be anything.
            Self::AtLeast(least) if least < other => self,
            Self::AtLeast(_) => Self::Exactly(other),
        }
    }
}

/// The cost of a choice that must not be made.
pub const IMPOSSIBLE: Cost = u64::MAX;
