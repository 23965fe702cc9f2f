//! `--unswitch-versions`: a loop over programs chooses once between two versions of the loop of products in it.
//!
//! A loop of products whose tiles are copies has another version beside it, for programs for which the copies do not read
//! what the loads read ([`crate::tensor_copies`]), and so has one of few rows ([`crate::tile_parts`]). Where the author has
//! written a loop over programs around it, each program chooses:
//!
//! ```text
//! for p …                                   holds = all p: condition of p
//!   …                                       for p … (all if holds)
//!   if condition of p                         the first version
//!     sum = the first version               for p … (none if holds)
//!   else                                      the second version
//!     sum = the second version
//! ```
//!
//! A producer of copies can be ahead of the consumers by programs only if the loops are directly in one another
//! ([`crate::pipelining`]), and conditions of all programs are computed at a time (`crate::choice`), so the choice is made
//! before. Loops that the compiler puts around a program ([`crate::persistent`]) are made so from the beginning.
//!
//! # When it is correct
//!
//! The second version is right for all programs. Both loops over programs are executed one after the other, and one of
//! them has no iteration, so what they carry is handed on from the first to the second. The one that is there for few sizes
//! comes last: before the other, what it needs in registers was spilled for both.
//!
//! # When it is done
//!
//! Wherever the condition follows from the number of the program and from values that all of them have. Descriptors that the
//! kernel itself makes are then made once, before the loop.

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, OperationRef, ValueLike};

use crate::choice::{Choice, Programs};
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;
use crate::loops::motion::hoist_invariants;
use crate::loops::unroll::RARE;
use crate::loops::view::{For, If, is_loop};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith", "scf"],
    ..PassSpec::new(
        "unswitch-versions",
        "choose between versions of a loop of products once for all programs of a loop around it",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut nests = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        nests.extend(For::of(operation).and_then(Nest::of));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for nest in nests {
        nest.unswitch(&mut rewriter);
    }
    Ok(())
}

/// A loop over programs with a choice in it.
struct Nest<'c, 'a> {
    outer: For<'c, 'a>,
    choice: Choice<'c, 'a>,
    /// The operations that compute the condition.
    slice: Vec<OperationRef<'c, 'a>>,
    /// Whether the second version hardly ever runs.
    is_rare: bool,
}

impl<'c: 'a, 'a> Nest<'c, 'a> {
    /// In a loop with a choice between versions, of which the first one contains a loop.
    fn of(outer: For<'c, 'a>) -> Option<Self> {
        let has_loop = |block: Option<BlockRef<'c, 'a>>| {
            block.is_some_and(|block| block.operations().any(is_loop))
        };
        let branches = outer.operations().into_iter().filter_map(If::of);
        let (branch, choice) = branches
            .filter(|branch| has_loop(branch.blocks()[0]))
            .find_map(|branch| Some((branch, Choice::of(branch.operation(), outer.body())?)))?;
        let number = outer.number().r#type().integer();
        let is_counted = number.is_some_and(|(bits, _)| bits == 32) && !outer.is_unsigned();
        let slice = choice.slice(&outer.operations()).ok()?;
        let carried = outer.carried();
        let is_of_number = slice
            .iter()
            .flat_map(|operation| operation.operand_values())
            .all(|operand| !carried.contains(&operand));
        let second = branch.blocks()[1].into_iter();
        let mut second = second.flat_map(BlockExt::operations);
        (is_counted && is_of_number).then(|| Self {
            outer,
            choice,
            slice,
            is_rare: second.any(|of| of.discardable_attr(RARE).is_some()),
        })
    }

    fn unswitch(self, rewriter: &mut Rewriter<'c, 'a>) {
        let outer = self.outer;
        let location = outer.operation().loc();
        let (lower, upper) = (outer.lower(), outer.upper());
        rewriter.set_before(outer.operation());
        let programs = Programs {
            first: lower,
            end: upper,
            step: outer.step(),
        };
        let holds = self.choice.of_all_programs(
            rewriter,
            location,
            programs,
            &self.slice,
            |_, many, programs| many.put(outer.number(), programs),
        );
        let mut arithmetic = Arithmetic { rewriter, location };
        let without = arithmetic.select(holds, lower, upper);
        let with = arithmetic.select(holds, upper, lower);
        rewriter.set_after(outer.operation());
        let copy = Mapping::new().copy(rewriter, outer.operation());
        let Some(others) = For::of(copy) else {
            return;
        };
        others.set_bound(1, without);
        if self.is_rare {
            copy.set_discardable_attr(RARE, attr::unit(copy.ctx()));
        }
        outer.set_bound(1, with);
        for (from, to) in outer.results().into_iter().zip(others.results()) {
            from.replace_all_uses(to);
        }
        others.set_initial(&outer.results());
        let chosen: Vec<_> = self.choice.operations().collect();
        for (of, copy) in outer.operations().into_iter().zip(others.operations()) {
            if chosen.contains(&of)
                && let (Some(first), Some(second)) = (If::of(of), If::of(copy))
            {
                first.keep(rewriter, 0);
                second.keep(rewriter, 1);
            }
        }
        hoist_invariants(outer);
    }
}
