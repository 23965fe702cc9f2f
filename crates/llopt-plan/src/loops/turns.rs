//! Two halves of a block that take turns: while the warps of one multiply, those of the other access memory
//! (*ping-pong*).
//!
//! # The problem
//!
//! A part of a multiprocessor issues instructions of several warps and has one matrix unit. If all warps of a block
//! execute the same part of an iteration, they multiply at the same time and read their factors at the same time, and the
//! matrix unit waits meanwhile. Another block would multiply then, but large tiles leave no room for one.
//!
//! # The schedule
//!
//! The iteration is cut into *clusters*, with barriers between them: in clusters of memory a warp loads from global
//! memory, and reads and writes shared memory; in clusters of products it multiplies. The products are divided along k
//! into as many *parts*, and one cluster of each kind belongs to each part. One half of the warps, those of each part of
//! the multiprocessor, begins a cluster later than the other: an additional barrier makes it wait before the loop, and
//! one after the loop the other half. So the halves are always in clusters of different kinds:
//!
//! ```text
//!   first half    memory 0   products 0   memory 1   products 1   memory 0 …
//!   second half              memory 0     products 0   memory 1   products 1 …
//! ```
//!
//! # Which order barriers give
//!
//! Cluster `s` of the first half and cluster `s - 1` of the second run at the same time. So what the first half does in
//! cluster `s` comes before what the second does in cluster `t` if `s <= t`, but the other way round only if there are
//! two barriers between them, `t + 2 <= s`. Whatever must be ordered between halves therefore needs two barriers, and
//! that is the reason for the places of accesses: stores to buffers for later iterations are in the last cluster of
//! memory, alone, so that there is a cluster of products between them and the reads before, and between them and those of
//! the next iteration. The factors of the last two parts are read together. It does not matter then which of several
//! buffers a store and a read mean.
//!
//! # The model
//!
//! All times are cycles of the multiprocessor for the whole block. *In step*, an iteration takes
//!
//! ```text
//!   reads of the first product's factors, or issue of loads + products + stores + two barriers
//! ```
//!
//! since later reads overlap with products; it takes no less than shared memory does. *In turns* each cluster takes as
//! long as the longer one of what the halves do at the same time, and a barrier follows. Loads are in the first cluster, and
//! the stores wait for what they bring. Where the next iteration stores it instead, loads are issued behind the stores,
//! into the same registers, and have a whole iteration.

/// What an iteration of a block does, in cycles of the multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// The products.
    pub products: f32,
    /// Parts of k that one matrix instruction takes: so many parts at most.
    pub steps: u32,
    /// The reads of factors from shared memory.
    pub reads: f32,
    /// The stores to shared memory.
    pub stores: f32,
    /// The issue of loads from global memory.
    pub issue: f32,
    /// From the issue of the loads until what they bring has arrived.
    pub arrival: f32,
    /// Whether the next iteration stores it.
    pub stored_later: bool,
    /// A barrier, with the waits around it.
    pub barrier: f32,
}

/// The number of halves of a block, each of which reads and multiplies once for each part.
const HALVES: f32 = 2.0;

impl Iteration {
    /// The cycles of an iteration whose warps are all in the same cluster.
    #[must_use]
    pub fn in_step(&self) -> f32 {
        let first = self.reads / self.steps.max(1) as f32;
        let before_stores = first.max(self.issue) + self.products;
        let arrival = if self.stored_later { 0.0 } else { self.arrival };
        let serial = before_stores.max(arrival) + self.stores + 2.0 * self.barrier;
        serial.max(self.reads + self.stores)
    }

    /// The cycles of an iteration in turns whose products are in so many parts, two at least.
    #[must_use]
    pub fn in_turns(&self, parts: u32) -> f32 {
        let of_half = |cycles: f32| cycles / HALVES;
        let count = parts.max(2) as f32;
        let products = of_half(self.products) / count;
        let reads = of_half(self.reads) / count;
        let mut memory: Vec<f32> = (0..parts.max(2)).map(|_| reads).collect();
        let last = memory.len() - 1;
        memory[last - 1] += reads;
        memory[last] = of_half(self.stores);
        if self.stored_later {
            memory[last] += of_half(self.issue);
            return self.of_clusters(&memory, products).max(self.arrival);
        }
        memory[0] += of_half(self.issue);
        // Between the first cluster and the last one of memory.
        let elapsed: f32 = memory[1..last]
            .iter()
            .map(|memory| memory.max(products) + products)
            .sum::<f32>()
            + products.max(memory[0]);
        memory[last] += (self.arrival - elapsed).max(0.0);
        self.of_clusters(&memory, products)
    }

    /// The cycles of both halves for clusters of memory, each beside a cluster of products.
    fn of_clusters(&self, memory: &[f32], products: f32) -> f32 {
        let clusters = memory.iter().map(|memory| memory.max(products));
        HALVES * clusters.map(|cycles| cycles + self.barrier).sum::<f32>()
    }

    /// The numbers of parts that are possible.
    pub fn divisions(&self) -> impl Iterator<Item = u32> {
        let steps = self.steps;
        (1..u32::BITS)
            .map(|bit| 1 << bit)
            .take_while(move |parts| *parts <= steps)
            .filter(move |parts| steps.is_multiple_of(*parts))
    }
}

/// The part of the factors of an iteration that a thread holds in registers at a time: those of two parts.
#[must_use]
pub fn held(words: u32, parts: u32) -> u32 {
    (2 * words).div_ceil(parts.max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of 256 x 256 by 64 halves on CDNA 3.
    const LARGE: Iteration = Iteration {
        products: 4096.0,
        steps: 4,
        reads: 1536.0,
        stores: 512.0,
        issue: 64.0,
        arrival: 900.0,
        stored_later: false,
        barrier: 20.0,
    };

    #[test]
    fn the_other_half_reads_and_stores_behind_products() {
        // 384 + 4096 + 512 + 40.
        assert_eq!(LARGE.in_step(), 5032.0);
        // Each cluster of memory is shorter than one of products: 1024 and four barriers, or 512 and eight.
        assert_eq!(LARGE.in_turns(2), 4096.0 + 80.0);
        assert_eq!(LARGE.in_turns(4), 4096.0 + 160.0);
        assert_eq!(LARGE.divisions().collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn reads_that_take_longer_than_products_bind() {
        let narrow = Iteration {
            products: 1024.0,
            ..LARGE
        };
        // The reads take 800, and the stores wait for the loads: 256 + 900 - 800.
        assert_eq!(narrow.in_turns(2), 2.0 * (800.0 + 356.0 + 40.0));
        assert!(narrow.in_turns(2) > narrow.in_step());
    }

    #[test]
    fn what_arrives_in_time_is_not_waited_for() {
        let late = |arrival| Iteration { arrival, ..LARGE }.in_turns(2);
        assert_eq!(late(0.0), late(1024.0));
        assert!(late(4000.0) > late(0.0));
    }

    #[test]
    fn what_the_next_iteration_stores_has_an_iteration_to_arrive() {
        let later = |arrival| Iteration {
            arrival,
            stored_later: true,
            ..LARGE
        };
        assert_eq!(later(4000.0).in_turns(2), LARGE.in_turns(2));
        assert_eq!(later(5000.0).in_turns(2), 5000.0);
        assert_eq!(later(5000.0).in_step(), LARGE.in_step());
    }

    #[test]
    fn the_factors_of_two_parts_are_in_registers() {
        assert_eq!([2, 4, 8].map(|parts| held(96, parts)), [96, 48, 24]);
    }
}
