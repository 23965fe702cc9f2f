//! Reductions in loops whose partial results may stay in their threads until the loop ends: those that a loop accumulates
//! ([`super::locality`]), and maxima that are subtracted ([`super::shifted_sums`]).

use llopt_layout::LinearLayout;
use llopt_target::Target;
use melior::ir::OperationRef;

use super::combining::Combining;
use super::cost::Costs;
use super::frequency::Frequencies;
use super::labelling::Cost;
use super::locality::Local;
use super::shifted_sums::Shifted;

/// A reduction in a loop.
pub(super) enum InThreads<'c, 'a> {
    /// The loop combines its results.
    Accumulated(Local<'c, 'a>),
    /// Its results are subtracted from what the loop sums.
    Subtracted(Shifted<'c, 'a>),
}

impl<'c: 'a, 'a> InThreads<'c, 'a> {
    /// The reduction with its loop, if it is of one of these forms and may be written so, for so many threads of a block.
    pub(super) fn of(reduce: OperationRef<'c, 'a>, threads: u32, target: Target) -> Option<Self> {
        let accumulated = Local::of(reduce)
            .filter(|local| local.stays_beside_products(threads, target))
            .map(Self::Accumulated);
        accumulated.or_else(|| Shifted::of(reduce).map(Self::Subtracted))
    }

    /// The cost with partial results in threads, times its frequency.
    pub(super) fn cost(
        &self,
        combining: &Combining,
        layout: &LinearLayout,
        costs: &Costs,
        frequencies: &Frequencies,
    ) -> Cost {
        match self {
            Self::Accumulated(local) => local.cost(combining, layout, costs, frequencies),
            Self::Subtracted(shifted) => shifted.cost(combining, layout, costs, frequencies),
        }
    }

    /// Rewrites the loop for this layout of the reduction's operand.
    pub(super) fn write(&self, layout: &LinearLayout) -> Option<()> {
        match self {
            Self::Accumulated(local) => local.write(layout),
            Self::Subtracted(shifted) => shifted.write(),
        }
    }
}
