//! Programs in pairs of a long and a short one, for kernels in which programs take longer along one axis of the grid.
//!
//! Blocks get their programs before they start, so no block can take one from another that is late. If the length of a
//! program is a linear function of its number along the axis, as in the causal form of attention, the first and the last,
//! the second and the last but one, and so on, together take the same time:
//!
//! ```text
//! row of programs   0 1 2 3 4 5        pairs of the row   (5 0) (4 1) (3 2)
//! ```
//!
//! Blocks get the pairs of the rows in turn, the longer program first; where a row has an odd number of programs, those in
//! the middle come after all pairs. So the times of two blocks differ by at most one pair, and the blocks that run at a
//! time are in few rows: the keys and values of a row stay in the cache.
//!
//! For 64 rows of 32 programs on 132 blocks, which take 1 to 32 iterations and one more, the last block ends after 1.03 of
//! the mean time. In the order of the grid it would be 1.12, since a block would meet only every fourth number along the
//! axis, and if the hardware starts a block for each program, with the longest first in each row, 1.07.
//!
//! Alternative rejected: all programs sorted by length, with every second round of blocks reversed. The last block would
//! end after 1.002 of the mean time, but all rows are then read at the same time, and they do not fit in the cache.

use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, Value, ValueLike};

use super::launched::Launched;
use crate::loops::builder::Arithmetic;
use crate::loops::view::For;

/// The pairs of a block.
pub(super) struct Folded<'c, 'a> {
    location: Location<'c>,
    /// The axis, the programs along it, and half as many.
    axis: usize,
    extent: Value<'c, 'a>,
    half: Value<'c, 'a>,
    /// All pairs, and those of the block.
    pairs: Value<'c, 'a>,
    own_pairs: Value<'c, 'a>,
    /// The programs of the block.
    programs: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Folded<'c, 'a> {
    /// Counts them at the place of the rewriter.
    pub(super) fn new(
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        axis: usize,
    ) -> Self {
        let location = launched.location;
        let extent = launched.extents[axis];
        let mut arithmetic = Arithmetic { rewriter, location };
        let two = arithmetic.constant(extent.r#type(), 2);
        let one = arithmetic.constant(extent.r#type(), 1);
        let rows = arithmetic.divide(launched.programs, extent);
        let half = arithmetic.divide(extent, two);
        let pairs = arithmetic.multiply(rows, half);
        let middle = arithmetic.remainder(extent, two);
        let middle = arithmetic.multiply(rows, middle);
        let all = arithmetic.add(pairs, middle);
        let others = arithmetic.subtract(launched.blocks, one);
        let others = arithmetic.subtract(others, launched.block);
        let mut own = |all| {
            let above = arithmetic.add(all, others);
            arithmetic.divide(above, launched.blocks)
        };
        let (own_pairs, own_all) = (own(pairs), own(all));
        Self {
            location,
            axis,
            extent,
            half,
            pairs,
            own_pairs,
            programs: arithmetic.add(own_pairs, own_all),
        }
    }

    /// Inserts a loop over the programs of the block without a body, and continues in it.
    pub(super) fn begin(&self, rewriter: &mut Rewriter<'c, 'a>) -> For<'c, 'a> {
        let location = self.location;
        let mut arithmetic = Arithmetic { rewriter, location };
        let first = arithmetic.constant(self.extent.r#type(), 0);
        let step = arithmetic.constant(self.extent.r#type(), 1);
        let of = For::build(rewriter, location, [first, self.programs, step], &[], &[]);
        rewriter.set_to_end(of.body());
        of
    }

    /// Lets the programs in the loop have the numbers that they have in the author's grid.
    pub(super) fn number_programs(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        of: For<'c, 'a>,
    ) {
        rewriter.set_to_start(of.body());
        let (location, number) = (self.location, of.number());
        let mut arithmetic = Arithmetic { rewriter, location };
        let two = arithmetic.constant(number.r#type(), 2);
        let one = arithmetic.constant(number.r#type(), 1);
        let zero = arithmetic.constant(number.r#type(), 0);
        let of_pairs = arithmetic.multiply(self.own_pairs, two);
        let is_pair = arithmetic.is_below(number, of_pairs, true);
        let pair = arithmetic.divide(number, two);
        let single = arithmetic.subtract(number, self.own_pairs);
        let turn = arithmetic.select(is_pair, pair, single);
        let at = arithmetic.multiply(turn, launched.blocks);
        let at = arithmetic.add(at, launched.block);
        // Without pairs nothing is divided by their number.
        let is_empty = arithmetic.is_equal(self.half, zero);
        let half = arithmetic.select(is_empty, one, self.half);
        let place = arithmetic.remainder(at, half);
        let last = arithmetic.subtract(self.extent, one);
        let longer = arithmetic.subtract(last, place);
        let which = arithmetic.remainder(number, two);
        let is_longer = arithmetic.is_equal(which, zero);
        let along = arithmetic.select(is_longer, longer, place);
        let along = arithmetic.select(is_pair, along, self.half);
        let row = arithmetic.divide(at, half);
        let row_of_single = arithmetic.subtract(at, self.pairs);
        let row = arithmetic.select(is_pair, row, row_of_single);
        launched.replace_numbers(of, |axis| {
            let own = axis as usize;
            if own == self.axis {
                return along;
            }
            let others = (0..launched.extents.len()).filter(|other| *other != self.axis);
            let others: Vec<usize> = others.collect();
            let mut number = row;
            for &lower in others.iter().take_while(|other| **other < own) {
                number = Arithmetic { rewriter, location }.divide(number, launched.extents[lower]);
            }
            match others.last() == Some(&own) {
                true => number,
                false => {
                    let extent = launched.extents[own];
                    Arithmetic { rewriter, location }.remainder(number, extent)
                }
            }
        });
    }
}
