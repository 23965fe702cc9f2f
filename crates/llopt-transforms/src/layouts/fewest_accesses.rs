//! Of labellings whose costs cannot be told apart by time, one with few accesses to global memory.
//!
//! Prices order the times of whole kernels only where costs differ enough. Of the pairs of assignments of layouts to 55 kernels
//! whose times on an H100 differ by more than 1 %, 2,044 with data from memory and 1,790 with data from the second-level cache,
//! the one that costs less is the faster one in
//!
//! | difference of costs | below 3 % | 3 to 5 % | 5 to 10 % | 10 to 30 % | more |
//! |---|---:|---:|---:|---:|---:|
//! | data from memory | 0.54 | 0.61 | 0.84 | 0.89 | 0.98 |
//! | data from the second-level cache | 0.59 | 0.77 | 0.82 | 0.93 | 1.00 |
//!
//! (`docs/performance/layouts.md`, "Costs beside times"). So a difference of less than [`TOLD_APART`] decides nothing.
//! Among such labellings one with fewer instructions that access global memory is taken, as far as they touch no more sectors
//! and no conversion takes their place: it is what authors of kernels expect, and what other compilers choose.
//!
//! These instructions and the conversions are counted, each as often as it runs, and get a price with which all of them
//! together cost as much as that difference. So a labelling with half as many may cost half of the difference more, and none
//! may cost more than all of it.

use super::access::Access;
use super::catalog::LayoutId;
use super::engine::Engine;
use super::graph::Use;
use super::labelling::{Cost, IMPOSSIBLE, Labelling, Problem};

/// The largest relative difference of costs that says nothing about times.
const TOLD_APART: f64 = 0.03;

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The instructions of a warp, and its share of the sectors, of an access in a layout.
    pub(super) fn access_size(&self, access: &Access, label: LayoutId) -> Option<(u32, f32)> {
        let layout = self.catalog.linear(self.catalog.map(label)?);
        let price = access.size(&layout, self.costs)?;
        Some((price.instructions, price.sectors))
    }

    /// The labels of a solution, or of a labelling with fewer accesses that times cannot tell from it.
    pub(super) fn fewest_accesses(
        &self,
        problem: &Problem<'_>,
        candidates: &[Vec<LayoutId>],
        solution: Labelling,
    ) -> Vec<usize> {
        // How far prices can be trusted has been measured for kernels whose blocks hide waits.
        if !self.costs.hides_waits() || solution.cost == IMPOSSIBLE {
            return solution.labels;
        }
        let chosen = &solution.labels;
        // By node, the instructions of all runs in each layout.
        let mut accesses: Vec<(usize, Vec<f64>)> = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if candidates[index].len() < 2 {
                continue;
            }
            let access = node
                .operation()
                .and_then(|operation| self.access(operation));
            let Some(access) = access else {
                continue;
            };
            let sizes = candidates[index].iter();
            let sizes: Vec<_> = sizes
                .map(|label| self.access_size(&access, *label))
                .collect();
            let Some((instructions, sectors)) = sizes[chosen[index]] else {
                continue;
            };
            let runs = sizes.into_iter().map(|size| {
                let fewer = size.filter(|(_, others)| *others <= sectors);
                let count = fewer.map_or(instructions, |(fewer, _)| fewer);
                node.frequency * f64::from(count)
            });
            accesses.push((index, runs.collect()));
        }
        let could_be_fewer = accesses
            .iter()
            .any(|(index, runs)| runs.iter().any(|count| *count < runs[chosen[*index]]));
        if !could_be_fewer {
            return solution.labels;
        }
        let converts = |used: &Use<'c, 'a>, producer: usize, consumer: usize| {
            let from = candidates[used.producer][producer];
            let to = candidates[used.consumer][consumer];
            let ends = self.ends(used, from, to);
            ends.is_some_and(|(given, wanted)| !self.catalog.are_equal(given, wanted))
        };
        let uses = self.graph.uses.iter();
        let uses: Vec<_> = uses
            .filter(|used| self.followed(used.producer).is_none())
            .collect();
        let count = |labels: &[usize]| -> f64 {
            let instructions = accesses.iter().map(|(index, runs)| runs[labels[*index]]);
            let uses = uses.iter();
            let converting =
                uses.filter(|used| converts(used, labels[used.producer], labels[used.consumer]));
            instructions.sum::<f64>() + converting.map(|used| used.frequency).sum::<f64>()
        };
        let all = count(chosen);
        let tolerated = TOLD_APART * solution.cost as f64;
        let price = move |runs: f64| (tolerated * runs / all) as Cost;
        let mut priced = problem.clone();
        for (index, runs) in &accesses {
            priced.add_edge(*index, *index, |label, _| price(runs[label]));
        }
        for &used in &uses {
            let of_one = price(used.frequency);
            priced.add_edge(
                used.producer,
                used.consumer,
                move |producer, consumer| match converts(used, producer, consumer) {
                    true => of_one,
                    false => 0,
                },
            );
        }
        let other = priced.solve().labels;
        let is_close = problem.cost(&other) <= solution.cost + tolerated as Cost;
        match is_close && count(&other) < all {
            true => other,
            false => solution.labels,
        }
    }
}
