//! Offsets of buffers in shared memory, given when each is live.
//!
//! # The problem
//!
//! A buffer is a rectangle: a range of program points wide, a number of bytes high. Rectangles may be moved up and
//! down (their offsets are chosen) but not sideways, and must not overlap; the total height is to be small. This is
//! *dynamic storage allocation*; it is NP-complete. The *load*, the largest number of bytes live at one point, is a
//! lower bound; real kernels usually attain it.
//!
//! # The algorithm
//!
//! Given an order of the buffers, each is placed at the lowest aligned offset at which it overlaps none of those
//! before it (*first fit*). The result depends on the order, and no order is always best, so a few natural ones are
//! tried and the lowest result is taken; the search ends as soon as the lower bound is attained. Everything is a
//! function of the input: equal programs get equal offsets.
//!
//! # Sharing memory costs barriers
//!
//! A write to a buffer must wait until all threads have read what was there before. Two reductions in a row, each
//! through 32 bytes, need a barrier between them if they use the same 32 bytes and none if they use different ones.
//! So where memory is plentiful, [`place`] does not let the smallest buffers share memory: as many of them, smallest
//! first, as fit into what is needed anyway or into a given number of bytes, whichever is more.
//!
//! Rejected: graph colouring of fixed-size slots. It wastes memory where sizes differ, as they do: a tile of a matrix
//! product next to the scratch of a reduction.

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

/// Offsets for a list of buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The offset in bytes of each buffer, in the order in which they were given.
    pub offsets: Vec<u64>,
    /// The end of the highest buffer: the memory needed for all.
    pub bytes: u64,
}

/// The largest number of bytes live at one point: no placement needs less.
pub fn load(buffers: &[Buffer]) -> u64 {
    let live = || buffers.iter().filter(|buffer| !buffer.live.is_empty());
    let mut starts: Vec<(usize, u64)> = live().map(|b| (b.live.start, b.bytes)).collect();
    let mut ends: Vec<(usize, u64)> = live().map(|b| (b.live.end, b.bytes)).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let (mut now, mut most) = (0, 0);
    for (point, bytes) in starts {
        while let Some((_, ended)) = ends.next_if(|&(end, _)| end <= point) {
            now -= ended;
        }
        now += bytes;
        most = most.max(now);
    }
    most
}

/// Chooses an offset for each buffer; buffers do not share memory as long as all together take at most `plenty`
/// bytes.
///
/// Ensures: offsets are multiples of the alignments; buffers that are live at a common point do not overlap; no more
/// is needed than without `plenty`, or at most `plenty`; the result is a function of the arguments.
pub fn place(buffers: &[Buffer], plenty: u64) -> Placement {
    let Some(least) = place_in_least(buffers, u64::MAX) else {
        return Placement::default();
    };
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
        place_in_least(&apart, limit)
    };
    // The largest count that fits, found by bisection: more buffers that keep their memory need more of it.
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

/// Chooses offsets that need little memory; `None` if they would need more than the limit.
fn place_in_least(buffers: &[Buffer], limit: u64) -> Option<Placement> {
    let bound = load(buffers);
    if bound > limit {
        return None;
    }
    let length = |buffer: &Buffer| buffer.live.len() as u64;
    // Largest first, longest first, the largest rectangle first; ties, and the last order as a whole, follow
    // the program.
    type Key<'a> = Box<dyn Fn(&Buffer) -> (Reverse<u64>, Reverse<u64>) + 'a>;
    let orders: [Key; 4] = [
        Box::new(|b| (Reverse(b.bytes), Reverse(length(b)))),
        Box::new(|b| (Reverse(length(b)), Reverse(b.bytes))),
        Box::new(|b| (Reverse(b.bytes.saturating_mul(length(b))), Reverse(0))),
        Box::new(|_| (Reverse(0), Reverse(0))),
    ];
    let mut best: Option<Placement> = None;
    for order in orders {
        let mut sequence: Vec<usize> = (0..buffers.len()).collect();
        sequence.sort_by_cached_key(|&index| {
            let buffer = &buffers[index];
            (order(buffer), buffer.live.start, index)
        });
        // An order that needs as much memory as an earlier one is of no use.
        let limit = match &best {
            Some(best) if best.bytes <= bound => break,
            Some(best) => limit.min(best.bytes - 1),
            None => limit,
        };
        best = first_fit(buffers, &sequence, limit).or(best);
    }
    best
}

/// Places each buffer, in the given sequence, at the lowest offset that is free while it is live; `None` as soon as
/// one ends above the limit.
fn first_fit(buffers: &[Buffer], sequence: &[usize], limit: u64) -> Option<Placement> {
    let mut placed = Lives::of(buffers);
    let mut offsets = vec![0; buffers.len()];
    let mut bytes = 0;
    let mut taken: Vec<Range<u64>> = Vec::new();
    for &index in sequence {
        let buffer = &buffers[index];
        taken.clear();
        placed.for_each_meeting(&buffer.live, |other| {
            taken.push(offsets[other]..offsets[other] + buffers[other].bytes);
        });
        taken.sort_unstable_by_key(|range| range.start);
        let mut offset = 0;
        for range in &taken {
            if range.start >= offset + buffer.bytes {
                break;
            }
            offset = offset.max(range.end.next_multiple_of(buffer.alignment.max(1)));
        }
        offsets[index] = offset;
        bytes = bytes.max(offset + buffer.bytes);
        if bytes > limit {
            return None;
        }
        placed.insert(&buffer.live, index);
    }
    Some(Placement { offsets, bytes })
}

/// Live ranges, with a query for those that overlap a given one.
///
/// These are the ranges that contain its first point, and those that begin after it. A tree over the points at which
/// ranges begin stores each range at the few nodes that together cover it; the nodes on the path from a point to the
/// root have the ranges that contain the point.
struct Lives {
    /// The points at which ranges begin, in order.
    points: Vec<usize>,
    /// A complete binary tree: node 1 is the root, node `i` has the children `2 * i` and `2 * i + 1`, and the
    /// leaves are the points.
    around: Vec<Vec<usize>>,
    /// The ranges that begin at each point.
    begin: Vec<Vec<usize>>,
}

impl Lives {
    /// No ranges yet; those of the buffers may be inserted and asked for.
    fn of(buffers: &[Buffer]) -> Self {
        let mut points: Vec<usize> = buffers.iter().map(|buffer| buffer.live.start).collect();
        points.sort_unstable();
        points.dedup();
        Self {
            around: vec![Vec::new(); 2 * points.len().next_power_of_two()],
            begin: vec![Vec::new(); points.len()],
            points,
        }
    }

    /// The positions among the points of those in a range.
    fn positions(&self, live: &Range<usize>) -> Range<usize> {
        let position = |point: usize| self.points.partition_point(|&other| other < point);
        position(live.start)..position(live.end)
    }

    fn leaves(&self) -> usize {
        self.around.len() / 2
    }

    fn insert(&mut self, live: &Range<usize>, index: usize) {
        if live.is_empty() {
            return;
        }
        let positions = self.positions(live);
        self.begin[positions.start].push(index);
        let (mut low, mut high) = (
            positions.start + self.leaves(),
            positions.end + self.leaves(),
        );
        while low < high {
            if low % 2 == 1 {
                self.around[low].push(index);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.around[high].push(index);
            }
            low /= 2;
            high /= 2;
        }
    }

    /// Calls `found` for each range that overlaps this one.
    fn for_each_meeting(&self, live: &Range<usize>, mut found: impl FnMut(usize)) {
        if live.is_empty() {
            return;
        }
        let positions = self.positions(live);
        let mut node = positions.start + self.leaves();
        while node > 0 {
            self.around[node].iter().copied().for_each(&mut found);
            node /= 2;
        }
        for begin in &self.begin[positions.start + 1..positions.end] {
            begin.iter().copied().for_each(&mut found);
        }
    }
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

    fn meet(a: &Buffer, b: &Buffer) -> bool {
        a.live.clone().any(|point| b.live.contains(&point))
    }

    /// The same algorithm, with all buffers compared pairwise.
    fn place_in_the_plainest_way(buffers: &[Buffer]) -> Placement {
        let length = |b: &Buffer| b.live.len() as u64;
        type Order<'o> = &'o dyn Fn(&Buffer) -> [Reverse<u64>; 2];
        let orders: [Order<'_>; 4] = [
            &|b| [Reverse(b.bytes), Reverse(length(b))],
            &|b| [Reverse(length(b)), Reverse(b.bytes)],
            &|b| [Reverse(b.bytes * length(b)), Reverse(0)],
            &|_| [Reverse(0), Reverse(0)],
        ];
        let by_order = orders.map(|order| {
            let mut sequence: Vec<usize> = (0..buffers.len()).collect();
            sequence.sort_by_key(|&i| (order(&buffers[i]), buffers[i].live.start, i));
            let mut offsets = vec![0; buffers.len()];
            for (position, &index) in sequence.iter().enumerate() {
                let buffer = &buffers[index];
                let before = sequence[..position].iter();
                let mut taken: Vec<Range<u64>> = before
                    .filter(|&&other| meet(&buffers[other], buffer))
                    .map(|&other| offsets[other]..offsets[other] + buffers[other].bytes)
                    .collect();
                taken.sort_by_key(|range| range.start);
                for range in taken {
                    if range.start >= offsets[index] + buffer.bytes {
                        break;
                    }
                    let above = range.end.next_multiple_of(buffer.alignment);
                    offsets[index] = offsets[index].max(above);
                }
            }
            let ends = offsets
                .iter()
                .zip(buffers)
                .map(|(offset, b)| offset + b.bytes);
            let bytes = ends.max().unwrap_or(0);
            Placement { offsets, bytes }
        });
        by_order
            .into_iter()
            .min_by_key(|placement| placement.bytes)
            .unwrap_or_default()
    }

    /// What [`place`] promises, with the count of buffers that keep their memory tried one by one.
    fn fits_with_kept(buffers: &[Buffer], limit: u64, count: usize) -> Option<Placement> {
        let mut order: Vec<usize> = (0..buffers.len()).collect();
        order.retain(|&index| !buffers[index].live.is_empty());
        order.sort_by_key(|&index| (buffers[index].bytes, index));
        let end = buffers.iter().map(|b| b.live.end).max()?;
        let mut apart = buffers.to_vec();
        for &index in order.get(..count)? {
            apart[index].live.end = end;
        }
        Some(place_in_the_plainest_way(&apart)).filter(|placement| placement.bytes <= limit)
    }

    proptest! {
        #[test]
        fn buffers_lie_where_the_plainest_way_puts_them(buffers in buffers(), plenty in 0..20_000u64) {
            let least = place_in_the_plainest_way(&buffers);
            prop_assert_eq!(place_in_least(&buffers, u64::MAX), Some(least.clone()));
            prop_assert_eq!(place_in_least(&buffers, least.bytes), Some(least.clone()));
            prop_assert!(least.bytes == 0 || place_in_least(&buffers, least.bytes - 1).is_none());
            let limit = least.bytes.max(plenty);
            let placement = place(&buffers, plenty);
            let possible = (0..=buffers.len()).filter_map(|kept| fits_with_kept(&buffers, limit, kept));
            prop_assert!(buffers.is_empty() || possible.into_iter().any(|other| other == placement));
        }

        #[test]
        fn placements_are_aligned_and_disjoint(buffers in buffers(), plenty in 0..20_000u64) {
            let placement = place(&buffers, plenty);
            prop_assert!(placement.bytes >= load(&buffers));
            prop_assert!(placement.bytes <= place_in_the_plainest_way(&buffers).bytes.max(plenty));
            for (i, a) in buffers.iter().enumerate() {
                prop_assert_eq!(placement.offsets[i] % a.alignment, 0);
                prop_assert!(placement.offsets[i] + a.bytes <= placement.bytes);
                for (j, b) in buffers.iter().enumerate().skip(i + 1) {
                    let apart = placement.offsets[i] + a.bytes <= placement.offsets[j]
                        || placement.offsets[j] + b.bytes <= placement.offsets[i];
                    prop_assert!(apart || !meet(a, b), "{a:?} and {b:?} overlap");
                }
            }
        }
    }
}
