//! The grid that is launched, and that of the author.

use llopt_dialects::tt::{GetNumProgramsOp, GetProgramIdOp, ProgramDim};
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, OperationRef, Value};

use crate::choice::{Choice, Programs};
use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::view::For;

/// Both grids.
pub(super) struct Launched<'c, 'a> {
    pub(super) location: Location<'c>,
    /// The extents of the author's grid.
    pub(super) extents: [Value<'c, 'a>; 3],
    /// The number of programs.
    pub(super) programs: Value<'c, 'a>,
    /// The number of the block, and how many there are.
    pub(super) block: Value<'c, 'a>,
    pub(super) blocks: Value<'c, 'a>,
}

/// Replaces the extents of the grid in a function by those of the author's grid.
pub(super) fn count_programs<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    extents: [Value<'c, 'a>; 3],
) {
    let mut counts = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        counts.extend(GetNumProgramsOp::of(operation));
    });
    for count in counts {
        count
            .result()
            .replace_all_uses(extents[count.axis() as usize]);
        count.operation().erase();
    }
}

impl<'c: 'a, 'a> Launched<'c, 'a> {
    /// Reads them at the place of the rewriter.
    pub(super) fn new(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        extents: [Value<'c, 'a>; 3],
    ) -> Self {
        let number = rewriter.insert(GetProgramIdOp::build(location, ProgramDim::X));
        let count = rewriter.insert(GetNumProgramsOp::build(location, ProgramDim::X));
        let [block, blocks] = [number, count].map(|made| made.result_value(0).expect(IN_CONTEXT));
        let mut arithmetic = Arithmetic { rewriter, location };
        let plane = arithmetic.multiply(extents[0], extents[1]);
        let programs = arithmetic.multiply(plane, extents[2]);
        Self {
            location,
            extents,
            programs,
            block,
            blocks,
        }
    }

    /// Inserts a loop over the programs of the block without a body, and continues in it.
    pub(super) fn begin_always(&self, rewriter: &mut Rewriter<'c, 'a>) -> For<'c, 'a> {
        self.begin_below(rewriter, self.programs)
    }

    /// The same, but there are no programs in it unless the condition is as wanted.
    pub(super) fn begin(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        condition: Value<'c, 'a>,
        wanted: bool,
    ) -> For<'c, 'a> {
        let location = self.location;
        let [then, otherwise] = match wanted {
            true => [self.programs, self.block],
            false => [self.block, self.programs],
        };
        let upper = Arithmetic { rewriter, location }.select(condition, then, otherwise);
        self.begin_below(rewriter, upper)
    }

    fn begin_below(&self, rewriter: &mut Rewriter<'c, 'a>, upper: Value<'c, 'a>) -> For<'c, 'a> {
        let bounds = [self.block, upper, self.blocks];
        let of = For::build(rewriter, self.location, bounds, &[], &[]);
        rewriter.set_to_end(of.body());
        of
    }

    /// Whether the condition of a choice, which `slice` computes, holds for all programs of the block.
    pub(super) fn always_holds(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        choice: &Choice<'c, 'a>,
        slice: &[OperationRef<'c, 'a>],
    ) -> Value<'c, 'a> {
        let programs = Programs {
            first: self.block,
            end: self.programs,
            step: self.blocks,
        };
        choice.of_all_programs(
            rewriter,
            self.location,
            programs,
            slice,
            |rewriter, many, programs| {
                let numbers = slice.iter().copied().filter_map(GetProgramIdOp::of);
                for number in numbers {
                    let spread =
                        |rewriter: &mut Rewriter<'c, 'a>, extent| many.spread(rewriter, extent);
                    let along = self.number(rewriter, programs, number.axis(), spread);
                    many.put(number.result(), along);
                }
            },
        )
    }

    /// Lets the programs in a loop have the numbers that they have in the author's grid.
    pub(super) fn number_programs(&self, rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
        rewriter.set_to_start(of.body());
        self.replace_numbers(of, |axis| {
            self.number(rewriter, of.number(), axis, |_, value| value)
        });
    }

    /// Replaces the numbers of programs in a loop along each axis.
    pub(super) fn replace_numbers(
        &self,
        of: For<'c, 'a>,
        mut along: impl FnMut(ProgramDim) -> Value<'c, 'a>,
    ) {
        let mut numbers = Vec::new();
        of.operation().for_each_op(Walk::PreOrder, |operation| {
            numbers.extend(GetProgramIdOp::of(operation));
        });
        for number in numbers {
            number.result().replace_all_uses(along(number.axis()));
            number.operation().erase();
        }
    }

    /// The number along one axis of programs that are numbered one after another; `spread` makes an extent as many
    /// numbers as there are programs.
    pub(super) fn number(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        all: Value<'c, 'a>,
        axis: ProgramDim,
        spread: impl Fn(&mut Rewriter<'c, 'a>, Value<'c, 'a>) -> Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let location = self.location;
        let (mut number, axis) = (all, axis as usize);
        for &extent in &self.extents[..axis] {
            let extent = spread(rewriter, extent);
            number = Arithmetic { rewriter, location }.divide(number, extent);
        }
        if axis + 1 == self.extents.len() {
            return number;
        }
        let extent = spread(rewriter, self.extents[axis]);
        Arithmetic { rewriter, location }.remainder(number, extent)
    }
}
