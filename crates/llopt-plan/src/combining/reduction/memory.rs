//! The last step of a reduction: partial results of different warps, and of different blocks of a cluster, are
//! combined through shared memory.
//!
//! Write `2^p` for the partial results of each element of the result, `2^r` for the elements that a block holds, and
//! let the partial results lie at `rest * 2^p + q`. A block writes its own to the memory of every block that needs
//! them ([`super`] says which), so that from then on each block reads its own memory only. Then there are two plans.
//!
//! * *Everyone*: each thread reads the `2^p` partial results of each element that it needs, which are neighbours, and
//!   combines them itself. One trip through memory; as many combinations as the thread has elements, times `2^p - 1`.
//! * *Spread*: thread `t` reads the partial results `t`, `t + threads`, …, so that those of one element lie in `2^p`
//!   neighbouring lanes, which combine them by `p` shuffles. Each lane writes the result back where it has read, and
//!   after a second barrier the threads read the elements they need. Threads without a partial result are idle, so
//!   this plan needs at least a warp's number of partial results.
//!
//! A thread needs few elements of most reductions, and then *everyone* is cheaper. Where it needs many, or the
//! combination divides, *spread* is worth the second trip. The prices are those of conversions
//! ([`llopt_layout::plan::Costs`]).

use llopt_target::Target;

/// What the choice between the two plans depends on.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// log2 of the partial results of each element.
    pub partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    pub rest_bits: u32,
    /// log2 of the threads of the block.
    pub thread_bits: u32,
    /// log2 of the threads of a warp.
    pub lane_bits: u32,
    /// Elements of the result that each thread needs.
    pub needed: u32,
    /// 32-bit registers of one partial result, all operands together.
    pub words: u32,
    /// Instructions of one combination.
    pub combination: f32,
}

impl Work {
    /// Partial results that each thread has, where they are spread.
    #[must_use]
    pub fn rounds(self) -> u32 {
        1 << (self.partial_bits + self.rest_bits).saturating_sub(self.thread_bits)
    }

    /// Whether to spread the partial results over the lanes.
    #[must_use]
    pub fn is_better_spread(self, target: Target) -> bool {
        let costs = target.movement_costs();
        let all_bits = self.partial_bits + self.rest_bits;
        if self.partial_bits == 0 || self.partial_bits > self.lane_bits || all_bits < self.lane_bits
        {
            return false;
        }
        let instruction = costs.select;
        let (words, needed) = (self.words as f32, self.needed as f32);
        let partials = (1u32 << self.partial_bits) as f32;
        // Four words at a time.
        let reads = (words * partials / 4.0).ceil();
        let everyone = needed
            * (reads * (costs.issue + 4.0 * costs.wavefront)
                + (partials - 1.0) * self.combination * instruction);

        let own = self.rounds() as f32;
        let steps = self.partial_bits as f32;
        let access = words * (costs.issue + costs.wavefront);
        let spread = own
            * (2.0 * access + steps * (words * costs.shuffle + self.combination * instruction))
            + costs.block_barrier
            + needed * access;
        spread < everyone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rest_bits: u32, needed: u32, combination: f32) -> Work {
        Work {
            partial_bits: 2,
            rest_bits,
            thread_bits: 8,
            lane_bits: 6,
            needed,
            words: 1,
            combination,
        }
    }

    #[test]
    fn partial_results_are_spread_where_many_are_needed_or_combining_is_dear() {
        let target = Target::parse("hip:gfx942").unwrap();
        let is_spread = |work: Work| work.is_better_spread(target);
        assert!(!is_spread(work(4, 1, 1.0)), "one sum");
        assert!(is_spread(work(4, 16, 1.0)), "sixteen sums");
        assert!(is_spread(work(4, 4, 30.0)), "four of Welford's");
        assert!(!is_spread(work(3, 16, 30.0)), "less than a warp of them");
    }
}
