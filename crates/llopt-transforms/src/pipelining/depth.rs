//! How many iterations ahead the copies of a loop are issued, and at which point of the loop.
//!
//! # The position of copies
//!
//! In a ring with as many buffers as iterations are ahead, copies write the buffer that the products of the same
//! iteration have just read. They come last, after a barrier of their own. With one more buffer they write the one
//! that the iteration *before* has read, and the barrier after the wait for this iteration's copies orders that as
//! well:
//!
//! ```text
//! stages - 1 buffers                      as many buffers as stages
//!   wait for the copies of i                wait for the copies of i
//!   barrier                                 barrier
//!   products of i                           reads of i
//!   barrier                                 copies of i + stages - 1
//!   copies of i + stages - 1                products of i
//! ```
//!
//! Then the copies of one more iteration are outstanding while the products run: with two stages that is the
//! difference between some and none. And they are issued while the products wait for reads of shared memory.
//!
//! # Loads through registers
//!
//! Registers can be stored when the load has arrived, so where they are stored in the iteration that has issued the
//! load, an iteration takes as long as memory, however many stages there are. If one iteration does not hide the latency, they
//! are stored in the next one, after the loads of that one were issued: two iterations' loads are outstanding.
//!
//! ```text
//! stored in the same iteration            stored in the next one
//!   load i + stages - 1                     load i + stages - 1 to one half of the registers
//!   products of i                           products of i
//!   store i + stages - 1                    store i + stages - 2 from the other half
//! ```
//!
//! The halves change places from iteration to iteration, so two iterations are unrolled to one; otherwise the loaded
//! registers would have to be copied, which waits for them. It takes the registers twice, and a buffer less in shared
//! memory, or a stage more than the program asks for with as many buffers.
//!
//! # How far ahead
//!
//! Memory bandwidth is used fully if the bytes outstanding on each multiprocessor equal the bytes that arrive there
//! during the latency of memory (Little's law). The schedule gives the number of stages that a single block needs for
//! that. Several blocks have more bytes outstanding together, but their number is not known here: a product with few
//! rows has hardly one block per multiprocessor. So a program gets more stages than it asks for
//!
//! - if as many blocks are resident as with the stages that it asks for,
//! - or if the resident blocks together have enough bytes outstanding, and are enough to compute: two in a loop in
//!   which no other pipe is busy for more than a third of the time that memory is, of which one computes while the
//!   other waits; in any other loop so many that their warps hide the latencies of one another's instructions. Where threads
//!   wait in each iteration for what they load themselves, an iteration must not take longer with fewer blocks.
//!
//! Of these numbers of stages it is the largest one where products only add up: with one block on a multiprocessor, products of
//! 256x4096x4096 in tiles of 64x64 by 64 take 0.78 of the time in four stages instead of three. Otherwise threads compute with what
//! products give, as in attention, and others have to wait for that. Only blocks hide it, so of the numbers of stages with which enough
//! bytes are outstanding it is the largest one with the most blocks. Where a launch has one block more than fit at one time, it takes
//! twice as long, too. Times on an H100 (2026-11-28), as a share of those with the most stages, and so fewer blocks:
//!
//! | kernel | time |
//! |---|---|
//! | gradients of sparse attention, two warps | 0.70, 0.79 |
//! | attention to pages, in splits; with many queries; with few | 0.73; 0.91, 0.94; 0.95 |
//! | attention to sequences of different lengths | 0.79 |
//! | gradients of keys and values; maxima of similarities | 0.90; 0.95 |
//! | seven others | 0.97 to 1.00 |
//!
//! A loop that is known to have few iterations gets no more stages than that. Then the loads of all iterations but the last
//! are issued before it and those of the last in the first iteration. One more stage would only issue them somewhat earlier,
//! and leave a buffer and its barrier that nothing uses. Loads through registers that stay outstanding have no such buffer.
//!
//! Threads that hold more values than they have registers get no more stages than the program asks for. Local memory,
//! to which the rest is spilled in each iteration, is as fast as the L1 cache, and shared memory reduces the size of
//! that cache.
//!
//! # Queues
//!
//! While all multiprocessors load as fast as the path to them allows, requests wait in queues, and the latency is
//! several times that of a single one (`loaded_latency`). A loop that memory limits then needs more stages:
//! with seven instead of four, products of 128 and of 256 rows by 8192² in tiles of 128 x 128 are 1.13 to 1.17 times as
//! fast on an H100. But the copies of all of these stages are issued before the first product, which waits longer for its
//! own. Where blocks follow one another on a multiprocessor, each begins so: 4096³ in eight waves of blocks takes 1.07 to
//! 1.10 times as long. So the program gets these stages where a ring is filled once: by a producer in a loop over tiles, or
//! if a launch starts no more programs than there are multiprocessors, because others take a kernel with such a loop
//! ([`crate::persistent`]), or because the launcher says so. In the last case no block is resident beside another one, so
//! rings may take all of the shared memory.

use super::exposed_latency;

/// The largest number of stages that are not requested: the first ones are code before the loop.
pub(super) const MOST: u32 = 8;
/// Blocks of which one computes while another waits.
const ALTERNATING: u32 = 2;
/// Warps that hide the latencies of one another's instructions: three for each part that issues.
const WARPS: u32 = 12;

/// What is known of the blocks on a multiprocessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Residence {
    /// No block starts after another one.
    pub(super) is_filled_once: bool,
    /// No block is resident beside another one.
    pub(super) is_alone: bool,
}

/// The inputs to the decision about rings.
pub(super) struct Rings {
    /// The stages that the program asks for.
    pub(super) asked: u32,
    /// The most iterations of the loop, where that is known.
    pub(super) iterations: Option<u64>,
    /// The stages with which one block hides the latency of its loads.
    pub(super) needed: u32,
    /// The same while all multiprocessors load, where the ring is filled once; not fewer.
    pub(super) loaded: u32,
    /// Buffers of each ring that fit into shared memory.
    pub(super) fit: u64,
    /// Whether products run on into the next iteration, so that rings have one buffer more.
    pub(super) runs_on: bool,
    /// Whether there are asynchronous copies.
    pub(super) copies: bool,
    /// Registers of a thread for which loads are outstanding, where all loads go through registers and products take
    /// what is stored.
    pub(super) through_registers: Option<Loaded>,
    /// Whether no other pipe is busy for more than a third of the time that memory is.
    pub(super) by_memory: bool,
    /// Warps of a block.
    pub(super) warps: u32,
    /// Whether threads hold more values than they have registers.
    pub(super) spills: bool,
    /// Whether products only add up.
    pub(super) only_sums: bool,
    /// An iteration, if threads wait in it for what they load themselves.
    pub(super) waiting: Option<exposed_latency::Iteration>,
}

/// Registers of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    /// For what the loads of an iteration bring, and their addresses.
    pub(super) each: u32,
    /// For all else.
    pub(super) others: u32,
    /// There are so many.
    pub(super) limit: u32,
}

/// How far copies are ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    /// Stages, of which the first has the loads and the last the products.
    pub(super) stages: u32,
    /// Whether copies come before the products of an iteration.
    pub(super) early: bool,
    /// Whether loaded registers are stored in the next iteration.
    pub(super) outstanding: bool,
}

impl Rings {
    fn slots(&self, depth: Depth) -> u64 {
        u64::from(depth.stages) - 1 + u64::from(self.runs_on || depth.early)
            - u64::from(depth.outstanding)
    }

    /// Whether loads stay outstanding for an iteration more: that one does not hide their latency, and there are registers
    /// for both.
    fn stay_outstanding(&self) -> bool {
        const STORED_AT_ONCE: u32 = 2;
        self.needed > STORED_AT_ONCE
            && self
                .through_registers
                .is_some_and(|loaded| loaded.others + 2 * loaded.each <= loaded.limit)
    }

    /// The most stages of which each loads something; at least two.
    fn useful_stages(&self) -> u32 {
        let iterations = self
            .iterations
            .filter(|_| self.copies)
            .map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        iterations.unwrap_or(u32::MAX).max(2)
    }

    /// How far ahead copies are issued, given the number of resident blocks by the number of buffers; `None` if no
    /// ring fits.
    pub(super) fn depth(&self, resident: impl Fn(u64) -> u32) -> Option<Depth> {
        let useful = self.useful_stages();
        let asked = self.asked.min(useful);
        let least = u32::try_from(self.fit + 1 - u64::from(self.runs_on).min(self.fit + 1));
        let least = Depth {
            stages: least.map_or(asked, |least| least.min(asked)),
            early: false,
            outstanding: false,
        };
        if least.stages < 2 {
            return None;
        }
        if self.stay_outstanding() {
            return Some(Depth {
                stages: least.stages.max(3),
                outstanding: true,
                ..least
            });
        }
        if !self.copies || self.spills || least.stages < asked {
            return Some(least);
        }
        let is_enough = |depth: &Depth| {
            let blocks = resident(self.slots(*depth));
            blocks * (depth.stages - 1) >= self.needed.saturating_sub(1)
        };
        let is_free = |depth: &Depth| {
            let blocks = resident(self.slots(*depth));
            let compute = match self.by_memory {
                true => blocks >= ALTERNATING,
                false => blocks * self.warps >= WARPS,
            };
            let as_many = blocks >= resident(self.slots(least));
            let slower = self
                .waiting
                .is_some_and(|of| of.time(blocks) > of.time(resident(self.slots(least))));
            let together =
                depth.stages <= self.needed.max(asked) && is_enough(depth) && compute && !slower;
            self.slots(*depth) <= self.fit && (as_many || together)
        };
        let most = self
            .loaded
            .max(self.needed)
            .min(MOST)
            .max(asked)
            .min(useful);
        let early = !self.runs_on;
        let depths = (asked..=most).map(|stages| Depth {
            stages,
            early,
            outstanding: false,
        });
        let free = depths.filter(is_free);
        let best = match self.only_sums {
            true => free.last(),
            false => free.max_by_key(|depth| {
                let blocks = resident(self.slots(*depth));
                (is_enough(depth), blocks, depth.stages)
            }),
        };
        Some(best.unwrap_or(least))
    }
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;

    use super::*;

    /// The choice on an H100 for blocks of 128 threads with so many registers and kilobytes for each buffer.
    fn chosen(
        asked: u32,
        needed: u32,
        kilobytes: u64,
        registers: u32,
        by_memory: bool,
    ) -> (u32, bool) {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let rings = Rings {
            asked,
            iterations: None,
            needed,
            loaded: needed,
            fit: (227 << 10) / (kilobytes << 10),
            runs_on: false,
            copies: true,
            through_registers: None,
            by_memory,
            warps: 4,
            spills: false,
            only_sums: true,
            waiting: None,
        };
        let resident = |slots| target.resident_blocks(128, registers, (kilobytes << 10) * slots);
        let depth = rings.depth(resident).expect("it fits");
        (depth.stages, depth.early)
    }

    #[test]
    fn few_rows_get_the_stages_that_hide_latencies() {
        // 16 x 64 by 64 halves: three blocks of six stages have enough outstanding.
        assert_eq!(chosen(3, 6, 10, 80, true), (6, true));
        // Two blocks are resident whatever the rings are.
        assert_eq!(chosen(3, 6, 10, 255, false), (6, true));
        // If threads are busier than memory, three blocks are still enough to compute, and two are not.
        assert_eq!(chosen(3, 6, 10, 80, false), (6, true));
        assert_eq!(chosen(3, 6, 14, 80, false), (5, true));
    }

    #[test]
    fn queues_ask_for_more_stages_where_they_cost_nothing() {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let chosen = |kilobytes: u64, registers| {
            let rings = Rings {
                asked: 4,
                iterations: None,
                needed: 4,
                loaded: 7,
                fit: (227 << 10) / (kilobytes << 10),
                runs_on: true,
                copies: true,
                through_registers: None,
                by_memory: true,
                warps: 4,
                spills: false,
                only_sums: true,
                waiting: None,
            };
            let resident =
                |slots| target.resident_blocks(128, registers, (kilobytes << 10) * slots);
            rings.depth(resident).map(|depth| depth.stages)
        };
        // 128 x 128 by 64 halves: one block with four buffers or with seven.
        assert_eq!(chosen(32, 192), Some(7));
        // 64 x 128 by 64: two blocks with four buffers, one with five.
        assert_eq!(chosen(24, 128), Some(4));
    }

    #[test]
    fn more_blocks_hide_what_is_behind_products() {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let stages = |only_sums| {
            let rings = Rings {
                asked: 3,
                iterations: None,
                needed: 13,
                loaded: 13,
                fit: 28,
                runs_on: false,
                copies: true,
                through_registers: None,
                by_memory: false,
                warps: 4,
                spills: false,
                only_sums,
                waiting: None,
            };
            let resident = |slots| target.resident_blocks(128, 96, (8 << 10) * slots);
            rings.depth(resident).map(|depth| depth.stages)
        };
        // Eight buffers of 8 KiB leave three blocks, five leave five.
        assert_eq!(stages(true), Some(8));
        assert_eq!(stages(false), Some(5));
    }

    #[test]
    fn no_stage_is_without_loads() {
        let stages = |iterations| {
            let rings = Rings {
                asked: 3,
                iterations,
                needed: 6,
                loaded: 6,
                fit: 8,
                runs_on: true,
                copies: true,
                through_registers: None,
                by_memory: false,
                warps: 4,
                spills: false,
                only_sums: true,
                waiting: None,
            };
            rings.depth(|_| 1).map(|depth| depth.stages)
        };
        assert_eq!(stages(None), Some(6));
        assert_eq!(stages(Some(4)), Some(4));
        assert_eq!(stages(Some(2)), Some(2));
        assert_eq!(stages(Some(1)), Some(2));
    }

    #[test]
    fn what_spills_keeps_its_cache() {
        let rings = |spills| Rings {
            asked: 3,
            iterations: None,
            needed: 4,
            loaded: 4,
            fit: 4,
            runs_on: false,
            copies: true,
            through_registers: None,
            by_memory: false,
            warps: 8,
            spills,
            only_sums: true,
            waiting: None,
        };
        let stages = |spills| {
            let depth = rings(spills).depth(|_| 1).expect("it fits");
            (depth.stages, depth.early)
        };
        assert_eq!([true, false].map(stages), [(3, false), (4, true)]);
    }

    #[test]
    fn large_tiles_keep_their_blocks() {
        // 128 x 128 by 64 halves: two blocks with two buffers each.
        assert_eq!(chosen(3, 3, 32, 192, false), (3, true));
        assert_eq!(chosen(3, 3, 48, 192, false), (3, false));
    }

    #[test]
    fn loads_through_registers_stay_outstanding_where_an_iteration_hides_no_latency() {
        let depth = |asked, needed, each| {
            let rings = Rings {
                asked,
                iterations: None,
                needed,
                loaded: needed,
                fit: 4,
                runs_on: false,
                copies: false,
                through_registers: Some(Loaded {
                    each,
                    others: 80,
                    limit: 128,
                }),
                by_memory: false,
                warps: 4,
                spills: false,
                only_sums: true,
                waiting: None,
            };
            let depth = rings.depth(|_| 1).expect("it fits");
            (depth.stages, rings.slots(depth), depth.outstanding)
        };
        // The program asks for two stages, and one buffer is enough for three.
        assert_eq!(depth(2, 8, 12), (3, 1, true));
        assert_eq!(depth(3, 8, 12), (3, 1, true));
        // One iteration hides the latency, or the registers do not fit twice.
        assert_eq!(depth(3, 2, 12), (3, 2, false));
        assert_eq!(depth(2, 8, 25), (2, 1, false));
    }

    #[test]
    fn what_does_not_fit_is_not_asked_for() {
        let rings = |fit, runs_on| Rings {
            asked: 4,
            iterations: None,
            needed: 4,
            loaded: 4,
            fit,
            runs_on,
            copies: true,
            through_registers: None,
            by_memory: true,
            warps: 4,
            spills: false,
            only_sums: true,
            waiting: None,
        };
        let stages = |fit, runs_on| rings(fit, runs_on).depth(|_| 1).map(|depth| depth.stages);
        assert_eq!(
            [0, 1, 2, 9].map(|fit| stages(fit, false)),
            [None, Some(2), Some(3), Some(4)]
        );
        assert_eq!(
            [0, 1, 2, 9].map(|fit| stages(fit, true)),
            [None, None, Some(2), Some(4)]
        );
    }
}
