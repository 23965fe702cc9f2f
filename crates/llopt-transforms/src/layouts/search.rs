//! The search for the labelling of least cost, and what no labelling costs less than.
//!
//! Every node could have every layout that any op proposes, but hardly any labelling of small cost brings a layout far from
//! where it was proposed. So the search looks at the layouts that are nearest to each node. Mostly these are all; in kernels with
//! products, each with dozens of choices, others are left out.
//!
//! The account ([`super::account`]) says how good the labelling is among *all* labels. What it costs is a limit: labels are
//! dropped that no cheaper labelling has, by what labellings with them cost at least ([`super::labelling`]), and what is left
//! is searched. Mostly nothing is, which proves that no other label helps. There is a number of labels and of pairs beyond which
//! labels are left out even then, so that no program takes too long or too much memory; the account says so where they were.
//!
//! # Alternative rejected
//!
//! *All labels for the choice as well*, after the nearest ones have given a limit. In three of four kernels with products this
//! finds nothing, in the others labellings that cost up to 1.7 % less by these prices, most of them with factors that have scales,
//! where it takes seventeen times as long to find layouts.
//!
//! *Labels that others dominate*, dropped before pairs have prices. The exact test of each node leaves three quarters of all
//! labels and takes longer than the search, since labels lose together with a region of nodes, not node by node; and prices of
//! conversions do not obey the triangle inequality that a faster test would rest on (`docs/performance/layouts.md`).

use super::candidates::{Candidates, MOST_OF_NODE, MOST_PAIRS};
use super::catalog::LayoutId;
use super::engine::Engine;
use super::labelling::{Cost, MOST_ENTRIES, Problem};

/// What no labelling costs less than.
pub(super) struct Bound {
    pub(super) cost: Cost,
    /// Whether that was shown for all labels.
    pub(super) is_complete: bool,
    /// The limits at which searches ended.
    pub(super) limits: Vec<String>,
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The layout of each node.
    pub(super) fn choose(&self) -> Vec<LayoutId> {
        let candidates = self.candidates().labels;
        let mut problem = self.problem(&candidates, self.may_compute);
        let mut solution = problem.solve();
        if self.may_compute && !solution.is_optimal {
            // A search that finds no optimum is led astray by prices that hold for one copy of a value.
            problem = self.problem(&candidates, false);
            solution = problem.solve();
        }
        let solution = self.within_registers(&problem, &candidates, solution);
        let labels = self.fewest_accesses(&problem, &candidates, solution);
        let chosen = candidates.iter().zip(labels);
        let chosen = chosen.map(|(labels, label)| labels.get(label).copied());
        self.with_followers(chosen.collect())
    }

    /// What no labelling costs less than, given the problem with near labels and what one labelling costs.
    pub(super) fn bound(&self, near: &Candidates, problem: &Problem<'_>, cost: Cost) -> Bound {
        let mut known = problem.solve();
        let mut limits = Vec::new();
        let mut dense = |among: &str, is_optimal: bool| {
            if !is_optimal {
                limits.push(format!(
                    "tables of {MOST_ENTRIES} entries, for {among} of each op"
                ));
            }
        };
        dense("the nearest layouts", known.is_optimal);
        let Some(all) = self.all_candidates(near) else {
            return Bound {
                cost: known.bound,
                is_complete: true,
                limits,
            };
        };
        known.cost = known.cost.min(cost);
        let found = self.problem(&all.labels, false).solve_below(&known);
        dense("all layouts", found.is_optimal);
        if all.is_cut {
            limits.push(format!("{MOST_OF_NODE} layouts of an op"));
        }
        if let Some(most) = all.most_for_pairs {
            limits.push(format!(
                "{MOST_PAIRS} pairs of layouts, which leaves {most} for an op"
            ));
        }
        Bound {
            cost: found.bound,
            is_complete: !all.is_cut && all.most_for_pairs.is_none(),
            limits,
        }
    }
}

/// The position of a label among others, which it joins if it is not there.
pub(super) fn position(labels: &mut Vec<LayoutId>, label: LayoutId) -> usize {
    let known = labels.iter().position(|known| *known == label);
    known.unwrap_or_else(|| {
        labels.push(label);
        labels.len() - 1
    })
}
