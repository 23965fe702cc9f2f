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
//! # The order
//!
//! - The programs in the middle of rows of an odd number are distributed in turns.
//! - So are the pairs, as long as there are as many as for two turns; a block computes the longer program first. All blocks
//!   take the same time for this.
//! - The pairs that remain, at least one for each block and fewer than two, cannot be distributed evenly. Their programs
//!   are distributed one by one, from the longest to the shortest (Graham's *longest processing time first*), every
//!   second turn in the opposite order of blocks. The last, incomplete turn has the shortest programs.
//!
//! These numbers take several divisions. They are computed behind the loop of products of the program before, so that they
//! overlap with the work on its result.
//!
//! Blocks that run at a time are in few rows: what all programs of a row read, as keys and values, stays in the cache.
//!
//! For 64 rows of 32 programs on 132 blocks, which take 1 to 32 iterations and one more, the last block ends after 1.01 of
//! the mean time. If the hardware starts a block for each program, with the longest first in each row, it is 1.07; in the
//! order of the grid 1.12, since a block meets only every fourth number along the axis.
//!
//! # Alternatives rejected
//!
//! - Pairs only: 1.03, since the last turn is incomplete.
//! - All programs sorted by length: 1.002, but all rows are then read at the same time, and they do not fit in the cache.
//! - A counter in global memory, from which blocks take their next program: it must be zero before each launch.

use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, OperationRef, Value, ValueLike};

use super::launched::Launched;
use crate::loops::builder::Arithmetic;
use crate::loops::view::For;

/// The programs of a block.
pub(super) struct Folded<'c, 'a> {
    location: Location<'c>,
    /// The axis, the programs along it, and half as many: the pairs of a row.
    axis: usize,
    extent: Value<'c, 'a>,
    half: Value<'c, 'a>,
    /// Half as many, but not zero.
    pairs_of_row: Value<'c, 'a>,
    /// The programs of the block: those in the middle of rows, those of pairs, and all together.
    middle: Value<'c, 'a>,
    paired: Value<'c, 'a>,
    all: Value<'c, 'a>,
    rest: Rest<'c, 'a>,
}

/// The pairs whose programs are distributed one by one, in the order of their place in the row: they begin in a row, at
/// a place in it, and end with the last of `rows` further ones.
struct Rest<'c, 'a> {
    pairs: Value<'c, 'a>,
    row: Value<'c, 'a>,
    place: Value<'c, 'a>,
    rows: Value<'c, 'a>,
    /// The pairs at smaller places, which only the further rows have.
    before: Value<'c, 'a>,
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
        let mut of = Arithmetic { rewriter, location };
        let [zero, one, two] = [0, 1, 2].map(|number| of.constant(extent.r#type(), number));
        let (block, blocks) = (launched.block, launched.blocks);
        let rows = of.divide(launched.programs, extent);
        let half = of.divide(extent, two);
        let has_none = of.is_equal(half, zero);
        let pairs_of_row = of.select(has_none, one, half);
        let others = of.subtract(blocks, one);
        let opposite = of.subtract(others, block);
        // In turns, the block has every one of `blocks`.
        let odd = of.remainder(extent, two);
        let middle = of.multiply(rows, odd);
        let middle = of.add(middle, opposite);
        let middle = of.divide(middle, blocks);
        let pairs = of.multiply(rows, half);
        let turns = of.divide(pairs, blocks);
        let is_any = of.is_below(zero, turns, true);
        let fewer = of.subtract(turns, one);
        let turns = of.select(is_any, fewer, zero);
        let paired = of.multiply(turns, two);
        let first = of.multiply(turns, blocks);
        let rest = of.subtract(pairs, first);
        let row = of.divide(first, pairs_of_row);
        let place = of.remainder(first, pairs_of_row);
        let further = of.subtract(rows, one);
        let further = of.subtract(further, row);
        let before = of.multiply(place, further);
        let programs = of.multiply(rest, two);
        let turns = of.divide(programs, blocks);
        let incomplete = of.remainder(programs, blocks);
        let is_opposite = of.remainder(turns, two);
        let is_opposite = of.is_equal(is_opposite, one);
        let own = of.select(is_opposite, opposite, block);
        let has_last = of.is_below(own, incomplete, true);
        let more = of.add(turns, one);
        let turns = of.select(has_last, more, turns);
        let all = of.add(middle, paired);
        let all = of.add(all, turns);
        let rest = Rest {
            pairs: rest,
            row,
            place,
            rows: further,
            before,
        };
        Self {
            location,
            axis,
            extent,
            half,
            pairs_of_row,
            middle,
            paired,
            all,
            rest,
        }
    }

    /// Inserts a loop over the programs of the block without a body, and continues in it. It carries the numbers of the
    /// program.
    pub(super) fn begin(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
    ) -> For<'c, 'a> {
        let location = self.location;
        let mut of = Arithmetic { rewriter, location };
        let first = of.constant(self.extent.r#type(), 0);
        let step = of.constant(self.extent.r#type(), 1);
        let initial = self.program(rewriter, launched, first);
        let of = For::build(rewriter, location, [first, self.all, step], &initial, &[]);
        rewriter.set_to_end(of.body());
        of
    }

    /// Lets the programs in the loop have the numbers that they have in the author's grid. Those of the next program are
    /// computed behind an operation of the body, beside what follows there.
    pub(super) fn number_programs(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        of: For<'c, 'a>,
        behind: OperationRef<'c, 'a>,
    ) {
        let location = self.location;
        rewriter.set_after(behind);
        let mut arithmetic = Arithmetic { rewriter, location };
        let one = arithmetic.constant(self.extent.r#type(), 1);
        let next = arithmetic.add(of.number(), one);
        for (index, value) in self
            .program(rewriter, launched, next)
            .into_iter()
            .enumerate()
        {
            of.terminator().insert_operand(index, value);
        }
        rewriter.set_to_start(of.body());
        let carried = of.carried();
        let (along, row) = (carried[0], carried[1]);
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

    /// The number along the axis, and the row, of one of the programs of the block; any numbers if there is no such
    /// program.
    fn program(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        number: Value<'c, 'a>,
    ) -> [Value<'c, 'a>; 2] {
        let location = self.location;
        let (block, blocks) = (launched.block, launched.blocks);
        let mut of = Arithmetic { rewriter, location };
        let [one, two] = [1, 2].map(|value| of.constant(number.r#type(), value));
        // In the middle of a row.
        let is_middle = of.is_below(number, self.middle, true);
        let row_of_middle = of.multiply(number, blocks);
        let row_of_middle = of.add(row_of_middle, block);
        // In a pair.
        let later = of.subtract(number, self.middle);
        let is_paired = of.is_below(later, self.paired, true);
        let turn = of.divide(later, two);
        let pair = of.multiply(turn, blocks);
        let pair = of.add(pair, block);
        let place = of.remainder(pair, self.pairs_of_row);
        let row = of.divide(pair, self.pairs_of_row);
        // One by one: from the longer programs at the first places to those at the last, and back by the shorter ones.
        let rest = &self.rest;
        let turn = of.subtract(later, self.paired);
        let last = of.subtract(blocks, one);
        let opposite = of.subtract(last, block);
        let is_opposite = of.remainder(turn, two);
        let is_opposite = of.is_equal(is_opposite, one);
        let own = of.select(is_opposite, opposite, block);
        let at = of.multiply(turn, blocks);
        let at = of.add(at, own);
        let is_longer = of.is_below(at, rest.pairs, true);
        let end = of.multiply(rest.pairs, two);
        let end = of.subtract(end, one);
        let back = of.subtract(end, at);
        let at = of.select(is_longer, at, back);
        let is_before = of.is_below(at, rest.before, true);
        let behind = of.subtract(at, rest.before);
        let at = of.select(is_before, at, behind);
        let all_rows = of.add(rest.rows, one);
        let rows = of.select(is_before, rest.rows, all_rows);
        let down = of.divide(at, rows);
        let below = of.add(down, rest.place);
        let place_of_rest = of.select(is_before, down, below);
        let across = of.remainder(at, rows);
        let row_of_rest = of.add(rest.row, across);
        let next = of.add(row_of_rest, one);
        let row_of_rest = of.select(is_before, next, row_of_rest);

        let first_of_pair = of.remainder(later, two);
        let is_second = of.is_equal(first_of_pair, one);
        let place = of.select(is_paired, place, place_of_rest);
        let row = of.select(is_paired, row, row_of_rest);
        let end = of.subtract(self.extent, one);
        let longer = of.subtract(end, place);
        let of_pair = of.select(is_second, place, longer);
        let of_rest = of.select(is_longer, longer, place);
        let along = of.select(is_paired, of_pair, of_rest);
        [
            of.select(is_middle, self.half, along),
            of.select(is_middle, row_of_middle, row),
        ]
    }
}
