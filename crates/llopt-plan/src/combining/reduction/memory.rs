//! The last step of a reduction: partial results of different warps, and of different blocks of a cluster, are
//! combined through shared memory.
//!
//! Write `2^p` for the partial results of each element of the result, `2^r` for the elements that a block holds, and
//! let the partial results lie at `rest * 2^p + q`. A block writes its own to the memory of every block that needs
//! them ([`super`] says which), so that from then on each block reads its own memory only. Then there are two plans.
//!
//! * *In each warp*: each warp gets the results that its threads need by itself. `2^s` lanes that need the same elements
//!   divide the `2^p` partial results of an element among them: each reads `2^(p - s)`, which are neighbours, combines
//!   them, and then the lanes combine what they have, like those of a tensor ([`super::warp`]). With `s = 0` each
//!   thread reads everything, and no shuffle waits for another one: the best for a sum of few warps. Each further bit
//!   halves the combinations and adds a step of shuffles, which pays where a combination takes many instructions, as
//!   those of means and variances do, which divide. One trip through memory.
//! * *Spread*: thread `t` reads the partial results `t`, `t + threads`, …, so that those of one element lie in `2^p`
//!   neighbouring lanes, which combine them by `p` shuffles. Each lane writes the result back where it has read, and
//!   after a second barrier the threads read the elements they need. Threads without a partial result are idle, so
//!   this plan needs at least a warp's number of partial results.
//!
//! A thread needs few elements of most reductions, and then the former is cheaper. Where it needs many, *spread* is worth
//! the second trip. The prices are those of conversions ([`llopt_layout::plan::Costs`]).

use llopt_target::Target;

use super::combination::Combination;
use super::warp::{LaneStep, Lanes, Repeats, WarpReduction};
use crate::element::Element;

/// What the choice between the plans depends on.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// log2 of the partial results of each element.
    pub partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    pub rest_bits: u32,
    /// log2 of the threads of the block.
    pub thread_bits: u32,
    /// log2 of the threads of a warp.
    pub lane_bits: u32,
    /// The bits of a lane's number that do not change which elements it needs.
    pub alike: u32,
    /// Elements of the result that each thread needs, as keys that form a space.
    pub needed: &'a [u32],
    /// The elements of the operands.
    pub elements: &'a [Element],
    /// What combines them.
    pub combination: &'a Combination,
}

/// How partial results become results.
#[derive(Clone, Debug, PartialEq)]
pub enum Combining {
    /// In each warp.
    Warps(InWarps),
    /// By all threads, with a second trip through memory.
    Spread,
}

/// A plan by which each warp combines the partial results that its threads need.
#[derive(Clone, Debug, PartialEq)]
pub struct InWarps {
    /// The distances of the lanes that divide the partial results of an element.
    pub lanes: Vec<u32>,
    /// log2 of the neighbouring partial results that each of them reads.
    pub own_bits: u32,
    /// The keys whose values they combine together.
    pub keys: Vec<u32>,
    /// What they do with so many values.
    pub steps: WarpReduction,
}

impl InWarps {
    /// What each lane's number adds to the position of the first partial result that it reads.
    #[must_use]
    pub fn lane_places(&self, lane_bits: u32) -> Vec<u32> {
        let place = |bit: u32| {
            let found = self.lanes.iter().position(|lane| *lane == 1 << bit);
            found.map_or(0, |i| 1 << (self.own_bits + i as u32))
        };
        (0..lane_bits).map(place).collect()
    }
}

impl Work<'_> {
    /// Partial results that each thread has, where they are spread.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        1 << (self.partial_bits + self.rest_bits).saturating_sub(self.thread_bits)
    }

    /// 32-bit registers of one partial result, all operands together.
    #[must_use]
    pub fn words(&self) -> u32 {
        let words = self
            .elements
            .iter()
            .map(|one| one.memory_bits().div_ceil(32));
        words.sum()
    }

    /// The cheapest plan.
    #[must_use]
    pub fn cheapest(&self, target: Target) -> Combining {
        let (price, in_warps) = self.cheapest_in_warps(target);
        match self.spread(target) {
            Some(spread) if spread < price => Combining::Spread,
            _ => Combining::Warps(in_warps),
        }
    }

    /// The cheapest plan by which each warp works for itself, and its price; of equal ones that with the fewest steps.
    fn cheapest_in_warps(&self, target: Target) -> (f32, InWarps) {
        let alike: Vec<u32> = (0..self.lane_bits)
            .map(|bit| 1 << bit)
            .filter(|lane| self.alike & lane != 0)
            .collect();
        let first = self.in_warps(&[], target);
        let most = alike.len().min(self.partial_bits as usize);
        let others = (1..=most).map(|count| self.in_warps(&alike[..count], target));
        others.fold(first, |best, other| match other.0 < best.0 {
            true => other,
            false => best,
        })
    }

    /// The plan by which these lanes divide the partial results of an element, and its price.
    fn in_warps(&self, lanes: &[u32], target: Target) -> (f32, InWarps) {
        let costs = target.movement_costs();
        let steps: Vec<LaneStep> = lanes
            .iter()
            .map(|lanes| LaneStep {
                lanes: *lanes,
                rest: 0,
            })
            .collect();
        // No other lane of theirs has what these have, and warps do the same, lane by lane. But another warp may know
        // an element by another key, so lanes share keys only where the order of arguments makes no difference.
        let repeats = Repeats::default();
        let (keys, agreement) = match self.combination.is_commutative {
            true => (self.needed, None),
            false => (&[0][..], Some(&repeats)),
        };
        let together = Lanes {
            keys: keys.to_vec(),
            steps: &steps,
            agreement,
            may_divide: false,
        };
        let steps = WarpReduction::new(
            &together,
            self.elements,
            self.combination,
            self.lane_bits,
            target,
        );
        let own_bits = self.partial_bits - lanes.len() as u32;
        let own = (1u32 << own_bits) as f32;
        // Four words at a time.
        let reads = (self.words() as f32 * own / 4.0).ceil();
        let words = (self.words() as f32).min(4.0);
        let each = reads * (costs.issue + words * costs.wavefront)
            + (own - 1.0) * self.combination.instructions * costs.select;
        let needed = self.needed.len();
        let rounds = (needed / keys.len()) as f32;
        let plan = InWarps {
            lanes: lanes.to_vec(),
            own_bits,
            keys: keys.to_vec(),
            steps,
        };
        (needed as f32 * each + rounds * plan.steps.cost, plan)
    }

    /// The price where all threads combine, if they can.
    fn spread(&self, target: Target) -> Option<f32> {
        let all_bits = self.partial_bits + self.rest_bits;
        if self.partial_bits == 0 || self.partial_bits > self.lane_bits || all_bits < self.lane_bits
        {
            return None;
        }
        let costs = target.movement_costs();
        let (words, needed) = (self.words() as f32, self.needed.len() as f32);
        let own = self.rounds() as f32;
        let steps = self.partial_bits as f32;
        let access = words * (costs.issue + costs.wavefront);
        let combination = self.combination.instructions * costs.select;
        let step = words * costs.shuffle + combination;
        Some(own * (2.0 * access + steps * step) + costs.block_barrier + needed * access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan for `2^partial_bits` partial results of each of `needed` elements of a thread.
    fn plan(partial_bits: u32, rest_bits: u32, needed: u32, combination: Combination) -> Combining {
        let target = Target::parse("hip:gfx942").unwrap();
        let needed: Vec<u32> = (0..needed).collect();
        let work = Work {
            partial_bits,
            rest_bits,
            thread_bits: 8,
            lane_bits: 6,
            alike: 0,
            needed: &needed,
            elements: &[Element::F32],
            combination: &combination,
        };
        work.cheapest(target)
    }

    fn of(instructions: f32) -> Combination {
        Combination {
            instructions,
            in_hardware: None,
            is_commutative: true,
        }
    }

    #[test]
    fn partial_results_are_spread_where_many_are_needed_or_combining_is_dear() {
        let is_spread = |rest, needed, cost| plan(2, rest, needed, of(cost)) == Combining::Spread;
        assert!(!is_spread(4, 1, 1.0), "one sum");
        assert!(is_spread(4, 16, 1.0), "sixteen sums");
        assert!(is_spread(4, 4, 30.0), "four of Welford's");
        assert!(!is_spread(3, 16, 30.0), "less than a warp of them");
    }

    #[test]
    fn lanes_divide_partial_results_where_combining_is_dear() {
        let lanes = |target: &str, partial_bits, instructions| {
            let combination = of(instructions);
            let work = Work {
                partial_bits,
                rest_bits: 0,
                thread_bits: 9,
                lane_bits: 5,
                alike: 31,
                needed: &[0],
                elements: &[Element::F32; 3],
                combination: &combination,
            };
            match work.cheapest(Target::parse(target).unwrap()) {
                Combining::Warps(plan) => plan.lanes,
                Combining::Spread => panic!("a warp's number of partial results is needed"),
            }
        };
        for target in ["cuda:90", "hip:gfx1100"] {
            assert_eq!(lanes(target, 1, 1.0), [], "three sums of two warps");
            let welford = lanes(target, 4, 30.0);
            assert!(welford.starts_with(&[1, 2, 4]), "Welford's of 16 warps");
        }
    }
}
