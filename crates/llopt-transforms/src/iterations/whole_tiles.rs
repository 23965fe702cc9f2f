//! `--whole-tiles`: tiles that are whole are computed without masks, and the last one apart.
//!
//! # The rewritten programs
//!
//! An extent is seldom a multiple of its tile, so a kernel masks each tile, though all but the last are whole. A mask of
//! which nothing is known but where it ends costs more than its computation: as each of a thread's elements may have
//! another value of it, each is loaded by itself. A loop is split where the last whole tile ends:
//!
//! ```text
//! for i = 0 to n step 64                 for i = 0 to end of whole tiles step 64
//!   x = load p + i + [0, 64),      =>      x = load p + i + [0, 64)
//!       where i + [0, 64) < n              …
//!   …                                    for i = end of whole tiles to n step 64
//!                                          x = load p + i + [0, 64), where i + [0, 64) < n
//!                                          …
//! ```
//!
//! (The sets of indices for which conditions hold are split, see U. Banerjee, *Loop Transformations for Restructuring
//! Compilers*, 1993.) What a program computes once, at a place that its number determines, is there in two versions, and
//! whether its tile is whole decides which one runs.
//!
//! Masks may have other conditions as well, which stay.
//!
//! # When it is correct
//!
//! A mask `start + offset < bound` with offsets from 0 to `m` is true throughout if `start < bound - m` (`bounded.rs`). The
//! numbers of a loop grow, so what holds for one number holds for all before it. With the step at most `m + 1`, the first
//! number behind the whole tiles is at most the bound. The second loop is the old one, so it does not matter how often it
//! runs.
//!
//! # When it pays
//!
//! It takes the code a second time. So it is done where both the price of an iteration, or of the program, and its
//! instructions fall by a twentieth (`saving.rs`): a long computation between accesses is not worth being compiled twice.
//! Programs whose tile is whole are assumed to be as many of all as iterations whose tile is; but not where the start does
//! not depend on the program's number: there each program has the same tile, which is whole or is not.
//!
//! # What stays as it is
//!
//! Loops with products: their masks are those of copies to shared memory, which the pipeline issues iterations ahead and
//! recognises by their form. Loops around others, of which the inner ones are looked at. Programs with loops are not there
//! in two versions.
//!
//! # Alternative rejected
//!
//! *A condition in each iteration*, with both versions of the body in the loop: no load can be issued an iteration ahead of
//! its use then.

mod bounded;
mod saving;

use std::collections::HashSet;

use llopt_dialects::arith::{AndIOp, SelectOp};
use llopt_dialects::meaning::facts::{Control, Integers, OpFacts};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, Walk, attr, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::search_limit::{Search, SearchLimit};
use llopt_target::Target;
use melior::dialect::arith as build;
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

use crate::axis::AxisAnalysis;
use crate::loops::builder::{Arithmetic, yield_values};
use crate::loops::clone::Mapping;
use crate::loops::induction::{self, Numbers};
use crate::loops::unroll::{RARE, STAGES};
use crate::loops::view::{For, If, is_loop};
use crate::pass_options::{NUM_WARPS, TARGET, target};
use crate::pipelining::place;
use crate::products::is_product;
use bounded::{Bound, Bounded};
use saving::{Prices, Saving, Widths};

/// The part of its cost and of its instructions that code must save without masks to be worth being there a second time.
const SHARE: f32 = 0.05;
/// The most ops that are copied.
const MOST: usize = 256;
/// The most ops that are looked at for whether a number depends on that of the program.
const LONGEST_WAY: usize = 32;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    options: &[TARGET, NUM_WARPS],
    ..PassSpec::new(
        "whole-tiles",
        "compute tiles that are whole without masks, and the last one apart",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    let warps = u64::try_from(run.integer("num-warps")).unwrap_or(1).max(1);
    rewrite(module, warps * u64::from(target.warp_size()), target);
    Ok(())
}

/// Splits the loops and the programs of a module for blocks of so many threads, where that pays.
pub fn rewrite(module: OperationRef<'_, '_>, threads: u64, target: Target) {
    split_where_it_pays(module, threads, target, false);
}

/// The same, and where it would pay but for the size of the code.
pub fn rewrite_with_limits(
    module: OperationRef<'_, '_>,
    threads: u64,
    target: Target,
) -> Vec<SearchLimit> {
    split_where_it_pays(module, threads, target, true)
}

fn split_where_it_pays(
    module: OperationRef<'_, '_>,
    threads: u64,
    target: Target,
    judges_large: bool,
) -> Vec<SearchLimit> {
    let mut parts = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        let part = Part::of(operation);
        parts.extend(part.filter(|part| judges_large || part.size() <= MOST));
    });
    if parts.is_empty() {
        return Vec::new();
    }
    let facts = AxisAnalysis::of(module);
    let prices = Prices {
        target,
        threads,
        facts: &facts,
    };
    // All are judged before any is changed, as facts are those of the module as it was.
    parts.retain(|part| part.pays(&prices));
    let (parts, large): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(|part| part.size() <= MOST);
    let limits = large.iter().map(|part| part.limit(&prices)).collect();
    let mut rewriter = Rewriter::new(module.ctx());
    for part in parts {
        match part.place {
            Place::Loop(of) => split(&mut rewriter, of, &part, &facts),
            Place::Program(first) => version(&mut rewriter, first, &part, &facts),
        }
    }
    limits
}

/// Where there are masks.
#[derive(Clone, Copy)]
enum Place<'c, 'a> {
    /// In the body of a loop, whose number is the start of the tile.
    Loop(For<'c, 'a>),
    /// In a function, from an op on: behind all that the starts and bounds need.
    Program(OperationRef<'c, 'a>),
}

/// What is to be there with masks and without.
struct Part<'c, 'a> {
    place: Place<'c, 'a>,
    operations: Vec<OperationRef<'c, 'a>>,
    /// The masks that are true throughout a whole tile.
    masks: Vec<Bounded<'c, 'a>>,
}

impl<'c: 'a, 'a> Part<'c, 'a> {
    /// A loop or a function as such a part, if there are masks in it.
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let part = match For::of(operation) {
            Some(of) => Self::of_loop(of),
            None => Self::of_function(operation),
        }?;
        (!part.masks.is_empty()).then_some(part)
    }

    /// The number of operations that would be there a second time.
    fn size(&self) -> usize {
        let mut count = 0;
        for operation in &self.operations {
            operation.for_each_op(Walk::PreOrder, |_| count += 1);
        }
        count
    }

    /// The record that it is too large to be there a second time.
    fn limit(&self, prices: &Prices<'_>) -> SearchLimit {
        let first = match self.place {
            Place::Loop(of) => of.operation(),
            Place::Program(first) => first,
        };
        let size = self.size();
        SearchLimit {
            search: Search::Versions,
            location: place(first),
            limit: format!("{MOST} operations in a version without masks, which would have {size}"),
            gap: Some(self.saving(prices).gap()),
        }
    }

    fn of_loop(of: For<'c, 'a>) -> Option<Self> {
        let operations = of.operations();
        let step = induction::constant(of.step()).filter(|step| *step > 0)?;
        if of.is_unsigned() || !of.step().r#type().is_integer() || has(&operations, is_left) {
            return None;
        }
        let mut masks: Vec<Bounded> = operations.iter().copied().filter_map(Bounded::of).collect();
        masks.retain(|mask| {
            let is_outside = match mask.bound {
                Bound::Constant(_) => true,
                Bound::Scalar(bound) => of.is_outside(bound),
            };
            // Where the first tile is known to be beyond the bound, none is whole.
            let first = match mask.bound {
                Bound::Constant(bound) => induction::constant(of.lower())
                    .is_none_or(|first| first < bound.saturating_sub(mask.farthest)),
                Bound::Scalar(_) => true,
            };
            is_outside
                && first
                && mask.start == [of.number()]
                && step <= mask.farthest.saturating_add(1)
        });
        Some(Self {
            place: Place::Loop(of),
            operations,
            masks,
        })
    }

    fn of_function(function: OperationRef<'c, 'a>) -> Option<Self> {
        if Control::of(function) != Control::Function {
            return None;
        }
        let block = function.region_ref(0)?.single_block()?;
        let mut operations: Vec<OperationRef> = block.operations().collect();
        let end = operations.pop()?;
        if end.operand_values().len() != 0 || has(&operations, is_left) {
            return None;
        }
        let mut masks: Vec<Bounded> = operations.iter().copied().filter_map(Bounded::of).collect();
        masks.retain(|mask| mask.start.iter().any(|start| depends_on_program(*start)));
        // What is behind the last scalar is there twice.
        let scalars = masks.iter().flat_map(Bounded::scalars);
        let made: Vec<OperationRef> = scalars.filter_map(|scalar| scalar.defining_op()).collect();
        let behind = operations.iter().rposition(|own| made.contains(own));
        let operations = operations.split_off(behind.map_or(0, |last| last + 1));
        // A mask in front of that may already be used there.
        masks.retain(|mask| {
            let made = mask.mask.defining_op();
            made.is_some_and(|made| operations.contains(&made))
        });
        Some(Self {
            place: Place::Program(*operations.first()?),
            operations,
            masks,
        })
    }

    /// The masks of which none is true throughout just where another one is.
    fn distinct(&self) -> Vec<&Bounded<'c, 'a>> {
        let mut distinct: Vec<&Bounded> = Vec::new();
        for mask in &self.masks {
            if !distinct.iter().any(|own| own.is_like(mask)) {
                distinct.push(mask);
            }
        }
        distinct
    }

    /// Whether it is worth being there a second time.
    fn pays(&self, prices: &Prices<'_>) -> bool {
        self.saving(prices).is_above(SHARE)
    }

    /// What it saves where it has no masks.
    fn saving(&self, prices: &Prices<'_>) -> Saving {
        let masks = self.masks.iter().map(|mask| key(mask.mask));
        let widths = Widths::of(&self.operations, masks, prices.facts);
        prices.of(&self.operations, &widths)
    }
}

/// Whether there is such an op among these or in their regions.
fn has(
    operations: &[OperationRef<'_, '_>],
    is_such: impl Fn(OperationRef<'_, '_>) -> bool,
) -> bool {
    let mut found = false;
    for operation in operations {
        operation.for_each_op(Walk::PreOrder, |inner| found |= is_such(inner));
    }
    found
}

/// Whether code with this op in it stays as it is.
fn is_left(operation: OperationRef<'_, '_>) -> bool {
    is_loop(operation)
        || is_product(operation)
        || OpFacts::of(operation).asynchronous.is_some()
        || operation.successor_refs().len() > 0
}

/// Whether a scalar is computed from the number of the program.
pub(crate) fn depends_on_program(scalar: Value<'_, '_>) -> bool {
    let (mut seen, mut left) = (HashSet::new(), vec![scalar]);
    while let Some(value) = left.pop() {
        let Some(operation) = value.defining_op() else {
            continue;
        };
        if OpFacts::of(operation).integers == Integers::Program {
            return true;
        }
        if seen.len() < LONGEST_WAY && seen.insert(key(value)) {
            left.extend(operation.operand_values());
        }
    }
    false
}

/// The number below which the start of a tile must be for this mask to be true throughout.
fn limit<'c: 'a, 'a>(
    arithmetic: &mut Arithmetic<'_, 'c, 'a>,
    mask: &Bounded<'c, 'a>,
    like: Value<'c, 'a>,
    facts: &AxisAnalysis,
) -> Value<'c, 'a> {
    let r#type = like.r#type();
    let unused = 64 - r#type.bit_width().unwrap_or(64).min(64);
    let least = i64::MIN.wrapping_shr(unused);
    match mask.bound {
        Bound::Constant(bound) => {
            let limit = bound.saturating_sub(mask.farthest).max(least);
            arithmetic.constant(r#type, limit)
        }
        Bound::Scalar(bound) => {
            let farthest = arithmetic.constant(r#type, mask.farthest);
            let mut bound = bound;
            if !facts.facts(bound).non_negative {
                let lowest = arithmetic.constant(r#type, least.saturating_add(mask.farthest));
                let wraps = arithmetic.is_below(bound, lowest, false);
                bound = arithmetic.select(wraps, lowest, bound);
            }
            arithmetic.subtract(bound, farthest)
        }
    }
}

/// Splits a loop where the last whole tile ends.
fn split<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    part: &Part<'c, 'a>,
    facts: &AxisAnalysis,
) {
    let (location, lower, step) = (of.operation().loc(), of.lower(), of.step());
    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let mut end: Option<Value> = None;
    for mask in part.distinct() {
        let limit = limit(&mut arithmetic, mask, lower, facts);
        end = Some(match end {
            None => limit,
            Some(end) => arithmetic.lesser(limit, end),
        });
    }
    let Some(mut end) = end else {
        return;
    };
    // The tile may end before the loop does.
    let bounds_all = part.masks.iter().any(|mask| match mask.bound {
        Bound::Constant(bound) => induction::constant(of.upper()) == Some(bound),
        Bound::Scalar(bound) => bound == of.upper(),
    });
    if !bounds_all {
        end = arithmetic.lesser(of.upper(), end);
    }
    let middle = behind(&mut arithmetic, of, end);
    let attributes = of.operation().attrs();
    let main = For::build(
        rewriter,
        location,
        [lower, middle, step],
        &of.initial(),
        &attributes,
    );
    rewriter.set_to_end(main.body());
    let mapping = Mapping::iteration(of, main.number(), &main.carried());
    let mut copies = Unmasked::new(part, mapping);
    copies.copy(rewriter, &part.operations);
    let yielded: Vec<Value> = of
        .yielded()
        .into_iter()
        .map(|value| copies.get(rewriter, value))
        .collect();
    yield_values(rewriter, location, &yielded);
    copies.erase_dead(rewriter);
    let (rest, context) = (of.operation(), rewriter.context());
    of.set_bound(0, middle);
    if Numbers::of(of).is_some_and(|left| left.count() == 0) {
        let results = main.results();
        rewriter.replace(rest, &results);
        return;
    }
    of.set_initial(&main.results());
    rest.set_discardable_attr(RARE, attr::unit(context));
    // A single iteration is not worth a pipeline.
    rest.set_discardable_attr(STAGES, attr::i32(context, 1));
}

/// The first number of a loop that is not below `end`, or the lower bound if no number is.
fn behind<'c: 'a, 'a>(
    arithmetic: &mut Arithmetic<'_, 'c, 'a>,
    of: For<'c, 'a>,
    end: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let (lower, step, r#type) = (of.lower(), of.step(), of.lower().r#type());
    let known = [lower, end, step].map(induction::constant);
    if let [Some(lower), Some(upper), Some(step)] = known {
        let numbers = Numbers { lower, upper, step };
        return arithmetic.constant(r#type, numbers.at(numbers.count()));
    }
    let runs = arithmetic.is_below(lower, end, false);
    let steps = arithmetic.steps_to_last([lower, end, step]);
    let one = arithmetic.constant(r#type, 1);
    let steps = arithmetic.add(steps, one);
    let distance = arithmetic.multiply(steps, step);
    let number = arithmetic.add(lower, distance);
    arithmetic.select(runs, number, lower)
}

/// Computes the rest of a program, from an op on, without masks if its tile is whole, and with them if it is not.
fn version<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    first: OperationRef<'c, 'a>,
    part: &Part<'c, 'a>,
    facts: &AxisAnalysis,
) {
    let location = first.loc();
    rewriter.set_before(first);
    let mut arithmetic = Arithmetic { rewriter, location };
    let mut all: Option<Value> = None;
    for mask in part.distinct() {
        let [start, others @ ..] = &mask.start[..] else {
            continue;
        };
        let start = others
            .iter()
            .fold(*start, |sum, next| arithmetic.add(sum, *next));
        let limit = limit(&mut arithmetic, mask, start, facts);
        let is_whole = arithmetic.is_below(start, limit, false);
        all = Some(match all {
            None => is_whole,
            Some(all) => arithmetic.both(all, is_whole),
        });
    }
    let Some(is_whole) = all else {
        return;
    };
    let branch = If::between(
        rewriter,
        location,
        is_whole,
        |rewriter| {
            let mut copies = Unmasked::new(part, Mapping::new());
            copies.copy(rewriter, &part.operations);
            copies.erase_dead(rewriter);
        },
        |rewriter| {
            let mut mapping = Mapping::new();
            for operation in &part.operations {
                mapping.copy(rewriter, *operation);
            }
        },
    );
    let context = rewriter.context();
    let branch = branch.operation();
    branch.set_discardable_attr(RARE, attr::unit(context));
    for operation in part.operations.iter().rev() {
        rewriter.erase(*operation);
    }
}

/// Copies of ops in which some masks are true throughout.
struct Unmasked<'c, 'a> {
    mapping: Mapping<'c, 'a>,
    /// The masks that are true throughout, by the values of the originals.
    whole: HashSet<usize>,
    copies: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Unmasked<'c, 'a> {
    fn new(part: &Part<'c, 'a>, mapping: Mapping<'c, 'a>) -> Self {
        Self {
            mapping,
            whole: part.masks.iter().map(|mask| key(mask.mask)).collect(),
            copies: Vec::new(),
        }
    }

    fn is_whole(&self, mask: Value<'c, 'a>) -> bool {
        self.whole.contains(&key(mask))
    }

    /// The copy of a value. Accesses with a constant mask lose it when the code is simplified.
    fn get(&mut self, rewriter: &mut Rewriter<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let is_missing = self.is_whole(value) && self.mapping.get(value) == value;
        if let Some(mask) = is_missing.then(|| truth(rewriter, value)).flatten() {
            self.mapping.map(value, mask);
        }
        self.mapping.get(value)
    }

    /// Copies ops in their order.
    fn copy(&mut self, rewriter: &mut Rewriter<'c, 'a>, operations: &[OperationRef<'c, 'a>]) {
        for operation in operations {
            if self.follows(*operation) {
                continue;
            }
            let mut taken = Vec::new();
            operation.for_each_op(Walk::PreOrder, |inner| taken.extend(inner.operand_values()));
            for value in taken {
                self.get(rewriter, value);
            }
            self.copies.push(self.mapping.copy(rewriter, *operation));
        }
    }

    /// Whether what an op computes follows without code.
    fn follows(&mut self, operation: OperationRef<'c, 'a>) -> bool {
        let Some(result) = operation.result_value(0) else {
            return false;
        };
        if self.is_whole(result) {
            return true;
        }
        let operands: Vec<Value> = operation.operand_values().collect();
        if AndIOp::of(operation).is_some() {
            let left: Vec<Value> = operands
                .iter()
                .copied()
                .filter(|mask| !self.is_whole(*mask))
                .collect();
            match left[..] {
                [] => _ = self.whole.insert(key(result)),
                [mask] => self.mapping.map(result, self.mapping.get(mask)),
                _ => return false,
            }
            return true;
        }
        let Some(first) = operands.first().filter(|first| self.is_whole(**first)) else {
            return false;
        };
        if SelectOp::of(operation).is_some() {
            // A mask that is chosen may be true throughout itself.
            match self.is_whole(operands[1]) {
                true => _ = self.whole.insert(key(result)),
                false => self.mapping.map(result, self.mapping.get(operands[1])),
            }
            return true;
        }
        let is_repeated = matches!(
            OpFacts::of(operation).integers,
            Integers::ExpandDims | Integers::Broadcast
        );
        is_repeated && self.is_whole(*first) && self.whole.insert(key(result))
    }

    /// Erases what only masks needed.
    fn erase_dead(&mut self, rewriter: &mut Rewriter<'c, 'a>) {
        while let Some(copy) = self.copies.pop() {
            if copy.is_trivially_dead() {
                rewriter.erase(copy);
            }
        }
    }
}

/// A mask like another one that is true throughout.
fn truth<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    like: Value<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let (location, truth) = (like.defining_op()?.loc(), attr::splat(like.r#type(), 1)?);
    let constant = build::constant(rewriter.context(), truth, location);
    rewriter.insert(constant).result_value(0)
}
