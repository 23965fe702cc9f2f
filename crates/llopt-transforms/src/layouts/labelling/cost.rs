//! Costs of labels and of pairs of labels.

/// A cost; addition saturates, and [`IMPOSSIBLE`] stays impossible.
pub type Cost = u64;

/// What is known of a cost before anybody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// All.
    Exactly(Cost),
    /// That it is not below this, and hardly ever above it.
    Likely(Cost),
    /// That it is not below this.
    AtLeast(Cost),
}

/// How well a cost is known, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// It is what is known.
    Exact,
    /// It most likely is what is known, and not less.
    Likely,
    /// It is not less.
    Open,
}

impl Known {
    /// What it is known not to be below.
    #[must_use]
    pub fn least(self) -> Cost {
        match self {
            Self::Exactly(cost) | Self::Likely(cost) | Self::AtLeast(cost) => cost,
        }
    }

    /// How well it is known.
    #[must_use]
    pub fn certainty(self) -> Certainty {
        match self {
            Self::Exactly(_) => Certainty::Exact,
            Self::Likely(_) => Certainty::Likely,
            Self::AtLeast(_) => Certainty::Open,
        }
    }

    /// A cost that is not below this, and known so well.
    #[must_use]
    pub fn of(least: Cost, certainty: Certainty) -> Self {
        match certainty {
            Certainty::Exact => Self::Exactly(least),
            Certainty::Likely => Self::Likely(least),
            Certainty::Open => Self::AtLeast(least),
        }
    }

    /// The order in which choices are taken: what costs less before what costs more, and of equal ones what is known best.
    #[must_use]
    pub fn rank(self) -> (Cost, Certainty) {
        (self.least(), self.certainty())
    }

    /// What is known of the sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let least = self.least().saturating_add(other.least());
        Self::of(least, self.certainty().max(other.certainty()))
    }

    /// The smaller one of two costs, this and one that is known.
    #[must_use]
    pub fn min(self, other: Cost) -> Self {
        match self {
            Self::Exactly(cost) => Self::Exactly(cost.min(other)),
            // Below what the other one costs, it may be anything.
            Self::Likely(least) | Self::AtLeast(least) if least < other => self,
            Self::Likely(_) | Self::AtLeast(_) => Self::Exactly(other),
        }
    }
}

/// The cost of a choice that must not be made.
pub const IMPOSSIBLE: Cost = u64::MAX;
