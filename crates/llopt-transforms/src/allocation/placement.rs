//! Where buffers lie in shared memory, given when each is live.
//!
//! # The problem
//!
//! A buffer is a rectangle: a range of program points wide, a number of bytes high. Rectangles may
//! be moved up and down (their offsets are chosen) but not sideways, and must not overlap; the
//! height of the whole is to be small. This is *dynamic storage allocation*; it is NP-complete,
//! though not far from easy. The *load*, the largest number of bytes live at one point, is a lower
//! bound; on the kernels that people write it is usually attained.
//!
//! # The algorithm
//!
//! Given an order of the buffers, each is put at the lowest aligned offset at which it overlaps
//! none of those before it (*first fit*). What is found depends on the order, and no order is best
//! always, so a handful of natural ones is tried and the lowest result taken; the search ends at
//! once if the lower bound is attained. Everything is a function of the input: equal programs get
//! equal offsets.
//!
//! # Memory that is shared costs barriers
//!
//! Whoever writes a buffer must wait until all have read what lay there before. Two reductions in a row,
//! each through 32 bytes, need a barrier between them if these are the same 32 bytes and none if they are
//! others. So where memory is plenty, [`place`] leaves the smallest buffers their memory to the end of the
//! program: as many, smallest first, as fit into what is needed anyway or into a given number of bytes,
//! whichever is more.
//!
//! Graph colouring of fixed-size slots, the road not taken, wastes memory where sizes differ, and
//! they do: a tile of a matrix product beside the scratch of a reduction.

use std::cmp::Reverse;
use std::ops::Range;

/// A buffer to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The program points at which the buffer is live. Buffers whose ranges are disjoint may share
    /// memory; an empty range is live nowhere.
    pub live: Range<usize>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its offset must be a multiple of this number of bytes (at least one).
    pub alignment: u64,
}

impl Buffer {
    fn meets(&self, other: &Self) -> bool {
        self.live.start < other.live.end && other.live.start < self.live.end
    }
}

/// Offsets for a list of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offset in bytes of each buffer, in the order in which they were given.
    pub offsets: Vec<u64>,
    /// The end of the highest buffer: the memory needed for all.
    pub bytes: u64,
}

/// The largest number of bytes live at one point: no placement needs less.
pub fn load(buffers: &[Buffer]) -> u64 {
    let at = |point: usize| -> u64 {
        buffers
            .iter()
            .filter(|buffer| buffer.live.contains(&point))
            .map(|buffer| buffer.bytes)
            .sum()
    };
    // The load grows only where a buffer becomes live.
    buffers
        .iter()
        .map(|buffer| at(buffer.live.start))
        .max()
        .unwrap_or(0)
}

/// Chooses an offset for each buffer; buffers need not share memory as long as all take at most `plenty` bytes.
///
/// Ensures: offsets are multiples of the alignments; buffers that are live at a common point do not
/// overlap; no more is needed than without `plenty`, or at most `plenty`; the result depends on nothing but
/// the arguments.
pub fn place(buffers: &[Buffer], plenty: u64) -> Placement {
    let least = place_in_least(buffers);
    let limit = least.bytes.max(plenty);
    let mut smallest_first: Vec<usize> = (0..buffers.len())
        .filter(|&index| !buffers[index].live.is_empty())
        .collect();
    smallest_first.sort_by_key(|&index| (buffers[index].bytes, index));
    let points = buffers.iter().map(|buffer| buffer.live.end).max();
    let with_kept = |count: usize| {
        let mut apart = buffers.to_vec();
        for &index in &smallest_first[..count] {
            apart[index].live.end = points.unwrap_or(0);
        }
        Some(place_in_least(&apart)).filter(|placement| placement.bytes <= limit)
    };
    // The largest count that fits, found by halving: more buffers that keep their memory need more.
    let (mut fits, mut too_many) = (0, smallest_first.len() + 1);
    let mut best = least;
    while too_many - fits > 1 {
        let count = fits.midpoint(too_many);
        match with_kept(count) {
            Some(placement) => (fits, best) = (count, placement),
            None => too_many = count,
        }
    }
    best
}

/// Chooses offsets such that little memory is needed.
fn place_in_least(buffers: &[Buffer]) -> Placement {
    let bound = load(buffers);
    let length = |buffer: &Buffer| buffer.live.len();
    let size = |buffer: &Buffer| buffer.bytes;
    // Ties, and the last order as a whole, follow the program.
    type Key<'a> = Box<dyn Fn(&Buffer) -> (Reverse<u64>, Reverse<u64>) + 'a>;
    let orders: [Key; 4] = [
        Box::new(move |b| (Reverse(size(b)), Reverse(length(b) as u64))),
        Box::new(move |b| (Reverse(length(b) as u64), Reverse(size(b)))),
        Box::new(move |b| {
            (
                Reverse(size(b).saturating_mul(length(b) as u64)),
                Reverse(0),
            )
        }),
        Box::new(|_| (Reverse(0), Reverse(0))),
    ];
    let mut best: Option<Placement> = None;
    for order in orders {
        let mut sequence: Vec<usize> = (0..buffers.len()).collect();
        sequence.sort_by_key(|&index| (order(&buffers[index]), buffers[index].live.start, index));
        let placement = first_fit(buffers, &sequence);
        if best
            .as_ref()
            .is_none_or(|best| placement.bytes < best.bytes)
        {
            best = Some(placement);
        }
        if best.as_ref().is_some_and(|best| best.bytes <= bound) {
            break;
        }
    }
    best.unwrap_or(Placement {
        offsets: Vec::new(),
        bytes: 0,
    })
}

/// Puts each buffer, in the given sequence, at the lowest offset that is free while it is live.
fn first_fit(buffers: &[Buffer], sequence: &[usize]) -> Placement {
    let mut offsets = vec![0; buffers.len()];
    let mut bytes = 0;
    for (position, &index) in sequence.iter().enumerate() {
        let buffer = &buffers[index];
        let mut taken: Vec<Range<u64>> = sequence[..position]
            .iter()
            .filter(|&&other| buffers[other].meets(buffer))
            .map(|&other| offsets[other]..offsets[other] + buffers[other].bytes)
            .collect();
        taken.sort_by_key(|range| range.start);
        let mut offset = 0;
        for range in taken {
            if range.start >= offset + buffer.bytes {
                break;
            }
            offset = offset.max(range.end.next_multiple_of(buffer.alignment.max(1)));
        }
        offsets[index] = offset;
        bytes = bytes.max(offset + buffer.bytes);
    }
    Placement { offsets, bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn buffer(live: Range<usize>, bytes: u64) -> Buffer {
        Buffer {
            live,
            bytes,
            alignment: 16,
        }
    }

    #[test]
    fn buffers_that_are_never_live_together_share_memory() {
        let buffers = [buffer(0..2, 512), buffer(2..4, 256), buffer(4..5, 512)];
        let expected = Placement {
            offsets: vec![0, 0, 0],
            bytes: 512,
        };
        assert_eq!(place(&buffers, 0), expected);
    }

    #[test]
    fn small_buffers_lie_apart_where_memory_is_plenty() {
        let reductions = [buffer(0..1, 32), buffer(1..2, 32), buffer(2..3, 32)];
        assert_eq!(place(&reductions, 95).bytes, 64);
        assert_eq!(place(&reductions, 96).offsets, [0, 32, 64]);
        // A tile before and after makes room for them.
        let tiles = [buffer(0..1, 512), buffer(1..2, 32), buffer(2..3, 32)];
        let placement = place(&tiles, 0);
        assert_eq!(placement.bytes, 512);
        assert_ne!(placement.offsets[1], placement.offsets[2]);
    }

    #[test]
    fn a_scratch_buffer_lies_beside_what_is_live_around_it() {
        // A tile that lives through a reduction, and a second one that follows the reduction.
        let buffers = [buffer(0..9, 4096), buffer(3..4, 128), buffer(5..9, 1024)];
        let placement = place(&buffers, 0);
        assert_eq!(placement.bytes, load(&buffers));
        assert_eq!(placement.offsets, [0, 4096, 4096]);
    }

    #[test]
    fn the_order_that_needs_least_is_found() {
        // Largest first puts the third buffer above the second and needs 40; in program order the
        // gap below it is used.
        let buffers = [
            buffer(0..4, 16),
            buffer(2..8, 16),
            buffer(6..10, 32),
            buffer(0..1, 16),
        ];
        assert_eq!(place(&buffers, 0).bytes, load(&buffers));
    }

    #[test]
    fn nothing_needs_nothing() {
        assert_eq!(place(&[], 0).bytes, 0);
        assert_eq!(place(&[buffer(3..3, 64)], 0).offsets, [0]);
    }

    fn buffers() -> impl Strategy<Value = Vec<Buffer>> {
        let one = (0..40usize, 0..12usize, 1..2000u64, 0..8u32).prop_map(
            |(start, length, bytes, alignment)| Buffer {
                live: start..start + length,
                bytes,
                alignment: 1 << alignment,
            },
        );
        prop::collection::vec(one, 0..24)
    }

    proptest! {
        #[test]
        fn placements_are_aligned_and_disjoint(buffers in buffers(), plenty in 0..20_000u64) {
            let placement = place(&buffers, plenty);
            prop_assert!(placement.bytes >= load(&buffers));
            prop_assert!(placement.bytes <= place_in_least(&buffers).bytes.max(plenty));
            for (i, a) in buffers.iter().enumerate() {
                prop_assert_eq!(placement.offsets[i] % a.alignment, 0);
                prop_assert!(placement.offsets[i] + a.bytes <= placement.bytes);
                for (j, b) in buffers.iter().enumerate().skip(i + 1) {
                    let apart = placement.offsets[i] + a.bytes <= placement.offsets[j]
                        || placement.offsets[j] + b.bytes <= placement.offsets[i];
                    prop_assert!(apart || !a.meets(b), "{a:?} and {b:?} overlap");
                }
            }
        }
    }
}
