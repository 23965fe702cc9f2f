//! A bound of what a conversion costs, without a search for its plan.
//!
//! A search for layouts asks for the prices of thousands of conversions and takes few of them. Most of a price follows
//! from the two ends alone: how many instructions store the registers of the one and load those of the other at least, and
//! which threads the elements cross, which is a question about subspaces. So what a layout is to every conversion from or
//! to it is found once, its [`Outline`], and a bound for a pair of them takes a few reductions of vectors:
//!
//! | elements stay in | bound |
//! |---|---|
//! | their threads | zero |
//! | their warps | a shuffle for half of the words, or a trip through memory, whichever is less |
//! | neither | a barrier of the block and a trip through memory |
//!
//! Half of the words: the places whose element their own thread held before are a subspace, so if it is not all of
//! them it is half of them at most, and an instruction brings one word to each lane.

use alloc::vec::Vec;

use super::endpoint::{Endpoint, Vectors};
use super::{Machine, shared};
use crate::banks::Access;
use crate::f2::Subspace;
use crate::{Dim, LinearLayout};

/// Prices are sums of floats, in another order here.
const BELOW: f32 = 1.0 - 1e-5;

/// A layout as an end of conversions of which only a bound is asked for.
#[derive(Clone, Debug)]
pub struct Outline {
    /// What one thread holds, apart from what lane, warp and block add.
    thread: Subspace,
    /// What one warp holds.
    warp: Subspace,
    registers: Vectors,
    lanes: Vectors,
    /// The vectors of warps and blocks.
    beyond: [Vectors; 2],
    /// The words that a thread holds.
    words: u32,
    /// What all stores of the registers cost at least, and all loads.
    store: f32,
    load: f32,
}

impl Outline {
    /// The outline of a layout for elements of this width; `None` where a conversion is not defined.
    pub fn new(layout: &LinearLayout, element_bits: u32, machine: &Machine<'_>) -> Option<Outline> {
        if !element_bits.is_power_of_two() || !(8..=128).contains(&element_bits) {
            return None;
        }
        // The order of outputs is not part of what a conversion has to do.
        let mut order: Vec<Dim> = layout.out_dims().to_vec();
        order.sort_unstable();
        let ordered = layout.transpose_outs(&order).ok()?;
        let end = Endpoint::new(&ordered, &ordered);
        if end.lanes.len() as u32 > machine.lanes_log2 {
            return None;
        }
        let thread = Subspace::span(&end.registers);
        let bits = u64::from(element_bits) << end.registers.len();
        let words = u32::try_from(bits.div_ceil(32)).ok()?;
        Some(Outline {
            thread,
            warp: thread.sum(&Subspace::span(&end.lanes)),
            words,
            store: shared::least_of_side(&end, Access::Store, element_bits, machine),
            load: shared::least_of_side(&end, Access::Load, element_bits, machine),
            registers: end.registers,
            lanes: end.lanes,
            beyond: [end.warps, end.blocks],
        })
    }

    /// A price below that of all stores of the registers to a buffer, whatever its layout is.
    ///
    /// Ensures: not more than the cost of a [`SharedAccess`](super::SharedAccess) of the layout, for the same machine.
    pub fn least_store(&self) -> f32 {
        self.store * BELOW
    }

    /// The same for all loads of the registers from a buffer.
    pub fn least_load(&self) -> f32 {
        self.load * BELOW
    }

    /// A price below that of every plan from this layout to another one of the same tensor, or below what is left of it
    /// if others work while this block waits.
    ///
    /// Requires: both outlines are for the same width of elements and the same machine.
    /// Ensures: not more than [`cheapest_price`](super::cheapest_price) for whatever request; zero only where that may be
    /// zero.
    pub fn least(&self, to: &Outline, machine: &Machine<'_>, hides_waits: bool) -> f32 {
        let costs = &machine.costs;
        let differences = |space: &Subspace, own: &Vectors, other: &Vectors| {
            let mut pairs = own.iter().zip(other);
            pairs.all(|(a, b)| space.contains(a ^ b))
        };
        let stays_beyond = |space: &Subspace| {
            let mut all = self.beyond.iter().zip(&to.beyond);
            all.all(|(own, other)| differences(space, own, other))
        };
        let holds =
            |space: &Subspace, vectors: &Vectors| vectors.iter().all(|&v| space.contains(v));
        let in_warp = holds(&self.warp, &to.registers)
            && holds(&self.warp, &to.lanes)
            && stays_beyond(&self.warp);
        let trip = self.store + to.load;
        let hidden = if hides_waits { costs.barrier_wait } else { 0.0 };
        let of_block = (costs.block_barrier - hidden).max(0.0);
        let least = if !in_warp {
            of_block.min(costs.cluster_barrier) + trip
        } else if holds(&self.thread, &to.registers)
            && differences(&self.thread, &self.lanes, &to.lanes)
            && stays_beyond(&self.thread)
        {
            0.0
        } else {
            let moved = to.words.div_ceil(2) as f32 * costs.shuffle.min(costs.busy_select);
            moved.min(costs.warp_barrier.min(of_block) + trip)
        };
        least * BELOW
    }
}
