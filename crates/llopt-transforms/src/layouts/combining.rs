//! What reductions and scans cost in a layout.
//!
//! Both combine in the thread first, then between the lanes of a warp, then between warps through
//! shared memory, each stage as far as the layout spreads the axis over it.
//!
//! # In the warp
//!
//! With `n` keys and `s` steps, `d` halvings of a reduction take `2 (n - n / 2^d) + (s - d) n / 2^d`
//! shuffles; code generation takes the cheapest `d`, and so does the price. A scan has no halving: each
//! of its steps moves the total of each run.
//!
//! # Between warps
//!
//! One lane of those that hold a partial result writes it, all threads meet, and each reads the partial
//! results of what it needs. A scan reads those of all warps before its own.

use llopt_layout::plan::Costs;
use llopt_layout::{Dim, LinearLayout};

use super::cost::registers;

/// What an op combines: its layout, axis, and operands.
pub(super) struct Combining<'l> {
    /// The layout of the operands.
    pub(super) layout: &'l LinearLayout,
    /// The axis along which elements are combined.
    pub(super) axis: usize,
    /// 32-bit registers of one element of all operands together.
    pub(super) words: u32,
    /// Instructions of one combination.
    pub(super) combination: u32,
}

impl Combining<'_> {
    /// log2 of the pieces that the bits of a place divide the axis into.
    fn along(&self, place: Dim) -> u32 {
        let dim = Dim::tensor(self.axis);
        (0..self.layout.in_dim_size_log2(place))
            .filter(|&bit| self.layout.basis_entry(place, bit, dim) != 0)
            .count() as u32
    }

    /// Elements that a thread holds for each place outside of the axis, as log2, and such places.
    fn keys(&self) -> (u32, f32) {
        let own = registers(self.layout);
        let along = self.along(Dim::REGISTER).min(own.ilog2());
        (along, (own >> along) as f32)
    }

    /// What a reduction costs a warp.
    pub(super) fn reduction(&self, costs: &Costs) -> f32 {
        let (in_thread, keys) = self.keys();
        let (lanes, warps) = (self.along(Dim::LANE), self.along(Dim::WARP));
        let (words, combine) = (self.words as f32, self.combination as f32 * costs.issue);
        let elements = keys * (1u32 << in_thread) as f32;
        let mut cost = (elements - keys) * combine;
        if lanes > 0 {
            cost += self.in_warp(costs, keys, lanes, combine);
        }
        if warps + self.along(Dim::BLOCK) > 0 {
            let partials = (1u32 << warps) as f32;
            let write = words * keys * (costs.issue + costs.store + costs.wavefront);
            // Four words at a time.
            let reads = (words * partials / 4.0).ceil();
            let read = keys
                * (reads * (costs.issue + costs.load + costs.wavefront)
                    + (partials - 1.0) * combine);
            cost += write + read + 2.0 * costs.block_barrier;
        }
        if self.along(Dim::BLOCK) > 0 {
            cost += costs.cluster_barrier;
        }
        cost
    }

    fn in_warp(&self, costs: &Costs, keys: f32, steps: u32, combine: f32) -> f32 {
        let words = self.words as f32;
        let most = steps.min((keys as u32).max(1).ilog2());
        let ways = (0..=most).map(|halvings| {
            let left = keys / (1u32 << halvings) as f32;
            let given = keys - left;
            let plain = (steps - halvings) as f32 * left;
            let moved = words * (2.0 * given + plain);
            let chosen = words * 4.0 * given;
            let stages = (steps + halvings) as f32;
            moved * costs.shuffle
                + chosen * costs.select
                + (given + plain) * combine
                + stages * costs.exchange
        });
        ways.fold(f32::INFINITY, f32::min)
    }

    /// What a scan costs a warp.
    pub(super) fn scan(&self, costs: &Costs) -> f32 {
        let (in_thread, lines) = self.keys();
        let (lanes, warps) = (self.along(Dim::LANE), self.along(Dim::WARP));
        let (words, combine) = (self.words as f32, self.combination as f32 * costs.issue);
        // Runs of consecutive elements; what lies above lanes and warps repeats all stages.
        let run = self.lowest_run();
        let runs = lines * (1u32 << (in_thread - run.min(in_thread))) as f32;
        let elements = lines * (1u32 << in_thread) as f32;
        let mut cost = 2.0 * elements * combine;
        let step = words * (costs.shuffle + costs.select) + combine;
        cost += lanes as f32 * (runs * step + costs.exchange);
        if lanes > 0 {
            cost += runs * words * costs.shuffle;
        }
        if warps > 0 {
            let partials = (1u32 << warps) as f32;
            let access = words * (costs.issue + costs.load + costs.wavefront);
            let write = words * (costs.issue + costs.store + costs.wavefront);
            cost += runs * (write + partials * (access + combine)) + 2.0 * costs.block_barrier;
        }
        cost
    }

    /// log2 of the consecutive elements along the axis that begin at the first register.
    fn lowest_run(&self) -> u32 {
        let dim = Dim::tensor(self.axis);
        let mut run = 0;
        while (0..self.layout.in_dim_size_log2(Dim::REGISTER))
            .any(|bit| self.layout.basis_entry(Dim::REGISTER, bit, dim) == 1 << run)
        {
            run += 1;
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `registers`, `lanes` and `warps` as log2 of what each takes of a 2-D tile, columns first.
    fn layout(registers: [u32; 2], lanes: [u32; 2], warps: [u32; 2]) -> LinearLayout {
        let mut reached = [0u32; 2];
        let mut take = |bits: [u32; 2]| {
            let mut bases = Vec::new();
            for dim in [1, 0] {
                for _ in 0..bits[dim] {
                    let mut basis = vec![0, 0];
                    basis[dim] = 1 << reached[dim];
                    reached[dim] += 1;
                    bases.push(basis);
                }
            }
            bases
        };
        let (registers, lanes, warps) = (take(registers), take(lanes), take(warps));
        let bases = [
            (Dim::REGISTER, &registers[..]),
            (Dim::LANE, &lanes[..]),
            (Dim::WARP, &warps[..]),
        ];
        let outs = [
            (Dim::tensor(0), 1 << reached[0]),
            (Dim::tensor(1), 1 << reached[1]),
        ];
        LinearLayout::from_bases(&bases, &outs).unwrap()
    }

    fn combining(layout: &LinearLayout) -> Combining<'_> {
        Combining {
            layout,
            axis: 1,
            words: 1,
            combination: 1,
        }
    }

    #[test]
    fn the_nearer_the_elements_of_the_axis_the_cheaper() {
        let costs = Costs::default();
        let in_thread = layout([0, 5], [5, 0], [2, 0]);
        let in_warp = layout([5, 0], [0, 5], [2, 0]);
        let across = layout([5, 0], [2, 3], [0, 2]);
        let price = |layout: &LinearLayout| {
            let combining = combining(layout);
            (combining.reduction(&costs), combining.scan(&costs))
        };
        let (a, b, c) = (price(&in_thread), price(&in_warp), price(&across));
        assert!(a.0 < b.0 && b.0 < c.0);
        assert!(a.1 < b.1 && b.1 < c.1);
    }

    #[test]
    fn lanes_share_the_keys_of_a_reduction() {
        let costs = Costs {
            select: 0.0,
            exchange: 0.0,
            issue: 0.0,
            shuffle: 1.0,
            ..Costs::default()
        };
        // 32 keys in 5 steps.
        let layout = layout([5, 0], [0, 5], [0, 0]);
        assert_eq!(combining(&layout).reduction(&costs), 62.0);
    }
}
