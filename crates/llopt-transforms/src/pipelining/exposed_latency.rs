//! What an iteration takes in which threads wait for memory.
//!
//! Let `P` be the time that a block takes for the products of an iteration and for the work of one of its warps, `L` the
//! latency of memory, `C` the time for which an iteration of one block keeps the busiest unit busy, and `B` the number of
//! resident blocks, of which others compute while one waits.
//!
//! | loads | time of an iteration |
//! |---|---|
//! | in their iteration | `max(C, (L + P) / B)` |
//! | in their iteration, beside products that take `M` | `max(C, (max(L - M, 0) + P) / B)` |
//! | an iteration ahead | `max(C, max(L, P) / B)` |
//!
//! Loads that are ahead take registers, or buffers, so that fewer blocks may be resident.

use llopt_target::Target;

use super::graph::{ISSUERS, Scheduled};

/// An iteration of a loop with products.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Iteration {
    /// Cycles for which an iteration of a block keeps the busiest unit busy.
    busy: u32,
    /// Cycles that a block takes for its products and for the work of one of its warps.
    own: u32,
    /// Cycles that it waits for loads in their iteration.
    wait: u32,
    /// The latency of memory.
    latency: u32,
}

impl Iteration {
    /// Of a scheduled loop with so many warps, which wait for all of the latency of memory.
    pub(super) fn of(scheduled: &Scheduled, warps: u32, target: Target) -> Self {
        let busy = scheduled.busy.iter().map(|(_, cycles)| *cycles).max();
        let latency = target.global_costs().latency;
        Self {
            busy: busy
                .unwrap_or(0)
                .max(scheduled.matrix)
                .max(scheduled.threads),
            own: scheduled.matrix + scheduled.threads * ISSUERS / warps.max(1),
            wait: latency,
            latency,
        }
    }

    /// The same with loads that wait while products run for so many cycles.
    pub(super) fn beside(self, products: u32) -> Self {
        Self {
            wait: self.wait.saturating_sub(products),
            ..self
        }
    }

    /// The time with loads in their iteration and so many resident blocks.
    pub(super) fn time(&self, blocks: u32) -> u32 {
        ((self.wait + self.own) / blocks.max(1)).max(self.busy)
    }

    /// The time with loads an iteration ahead.
    pub(super) fn time_ahead(&self, blocks: u32) -> u32 {
        (self.latency.max(self.own) / blocks.max(1)).max(self.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_ahead_pay_where_few_blocks_hide_latencies() {
        let iteration = Iteration {
            busy: 50,
            own: 60,
            wait: 570,
            latency: 570,
        };
        assert!(iteration.time_ahead(1) < iteration.time(1));
        // With one block less they do not.
        assert!(iteration.time_ahead(4) > iteration.time(5));
        // Products of 512 cycles hide most of it.
        assert_eq!(iteration.beside(512).time(1), 118);
        // Many blocks keep the units busy anyway.
        assert_eq!(iteration.time(16), 50);
    }
}
