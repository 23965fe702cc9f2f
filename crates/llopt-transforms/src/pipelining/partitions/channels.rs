//! What producer and consumers of a division share: rings of buffers, and the barriers of their slots.
//!
//! A slot has a pair of barriers for each group of copies that is read first at the same place. `full` completes by
//! the bytes of the copies, `empty` by one arrival of each warp of the consumers, so that these need no barrier of
//! the block. Both sides count slots alike: the number of the next one, and the *phase* of its barriers, which
//! changes each time the number comes around. The first phase of `empty` counts as complete before any warp has arrived:
//! a newly initialised barrier is in the phase after it.

use llopt_dialects::tables::types::MemDescParts;
use llopt_dialects::ttg::{LocalAllocOp, LocalDeallocOp, MemDescIndexOp};
use llopt_dialects::ttng::{InitBarrierOp, InvalBarrierOp};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, Value, ValueLike};

use super::super::rewrite::{each, view_of};
use super::super::ring;
use super::rings::Rings;
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;

/// What both sides share: a ring for each load, and barriers for each group.
#[derive(Clone, Default)]
pub(super) struct Channels<'c, 'a> {
    pub(super) rings: Vec<Value<'c, 'a>>,
    pub(super) full: Vec<Value<'c, 'a>>,
    pub(super) empty: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Channels<'c, 'a> {
    /// Allocates rings for consumers of so many warps, and initialises their barriers.
    pub(super) fn build(
        rewriter: &mut Rewriter<'c, 'a>,
        rings: &Rings<'c, 'a>,
        warps: u32,
        location: Location<'c>,
    ) -> Option<Self> {
        let ring_of = |rewriter: &mut Rewriter<'c, 'a>, of: &MemDescParts<'c>, at: Location<'c>| {
            let ring = LocalAllocOp::build(at, ring::of_slots(of, rings.slots), None, None);
            rewriter.insert(ring).result_value(0)
        };
        let mut channels = Channels::default();
        for load in &rings.loads {
            let ring = ring_of(rewriter, &load.slot, load.operation().loc())?;
            channels.rings.push(ring);
        }
        for group in &rings.groups {
            for (barriers, arrivals) in [(&mut channels.full, 1), (&mut channels.empty, warps)] {
                let ring = ring_of(rewriter, &group.barrier, location)?;
                barriers.push(ring);
                for barrier in each(rewriter, location, &group.barrier, rings.slots, ring) {
                    rewriter.insert(InitBarrierOp::build(location, barrier, i64::from(arrivals)));
                }
            }
        }
        Some(channels)
    }

    /// Invalidates the barriers, and releases all memory.
    pub(super) fn give_back(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        rings: &Rings<'c, 'a>,
        location: Location<'c>,
    ) {
        for (group, of) in rings.groups.iter().enumerate() {
            for ring in [self.empty[group], self.full[group]] {
                for barrier in each(rewriter, location, &of.barrier, rings.slots, ring) {
                    rewriter.insert(InvalBarrierOp::build(location, barrier));
                }
                rewriter.insert(LocalDeallocOp::build(location, ring));
            }
        }
        for &ring in &self.rings {
            rewriter.insert(LocalDeallocOp::build(location, ring));
        }
    }

    /// All of them, as a partition captures them.
    pub(super) fn all(&self) -> Vec<Value<'c, 'a>> {
        [&self.rings[..], &self.full, &self.empty].concat()
    }

    /// The same, by the names in a partition.
    pub(super) fn renamed(&self, mapping: &Mapping<'c, 'a>) -> Self {
        let renamed = |values: &[Value<'c, 'a>]| values.iter().map(|v| mapping.get(*v)).collect();
        Self {
            rings: renamed(&self.rings),
            full: renamed(&self.full),
            empty: renamed(&self.empty),
        }
    }
}

/// One of the slots of a ring.
pub(super) fn slot<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    of: &MemDescParts<'c>,
    ring: Value<'c, 'a>,
    index: Value<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let view = MemDescIndexOp::build(location, view_of(of, true), ring, index);
    rewriter.insert(view).result_value(0)
}

/// The slot and the phase after these.
pub(super) fn next<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    state: [Value<'c, 'a>; 2],
    slots: usize,
) -> [Value<'c, 'a>; 2] {
    let number = state[0].r#type();
    let mut arithmetic = Arithmetic { rewriter, location };
    let one = arithmetic.constant(number, 1);
    let count = arithmetic.constant(number, slots as i64);
    let first = arithmetic.constant(number, 0);
    let sum = arithmetic.add(state[0], one);
    let is_inside = arithmetic.is_below(sum, count, false);
    let other = arithmetic.subtract(one, state[1]);
    [
        arithmetic.select(is_inside, sum, first),
        arithmetic.select(is_inside, state[1], other),
    ]
}
