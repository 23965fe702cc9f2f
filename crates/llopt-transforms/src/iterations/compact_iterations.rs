//! `--compact-iterations`: loops of products that skip iterations run over the others only.
//!
//! # The rewritten loop
//!
//! In a product with a block-sparse matrix, each iteration loads whether there is a block, and skips the rest if there is
//! none. Loads that run ahead are then ahead by iterations, of which most may do nothing; and each of these has its place in
//! the ring of buffers, its wait and its barrier. So the loop is made one over the *kept* iterations, in which nothing is
//! conditional:
//!
//! ```text
//! for i = 0 to n                     count = kept iterations of all n
//!   if keep[i]                       first = -32; word = 0
//!     a = load A[i]; b = load B[i]   for j = 0 to count
//!     sum = dot a, b, sum              while word = 0: first += 32; word = keep[first], …, keep[first + 31]
//!                                      i = first + position of the lowest one in word; clear it
//!                                      a = load A[i]; b = load B[i]
//!                                      sum = dot a, b, sum
//! ```
//!
//! This is the compaction of a stream (Billeter, Olsson, Assarsson, *Efficient stream compaction on wide SIMD many-core
//! architectures*, 2009), of which no list is stored: the conditions of 32 iterations are computed at a time, one by each lane
//! of a warp, and their bits are a word in a register. The next kept iteration is the position of the lowest bit. All that
//! follows knows nothing of conditions: loads run so many *kept* iterations ahead, and products run on from one to the next.
//!
//! The search finds something, since it only runs if there is another kept iteration. That is known from a loop over all
//! conditions before, which takes a fraction of the time of one that waits for each.
//!
//! # When it is correct
//!
//! An iteration whose condition does not hold must do nothing that another one or what follows sees. So
//!
//! - the only conditional of the body contains the products in one of its blocks, and there is nothing in the other;
//! - what else is in the body does nothing but read memory;
//! - a carried value is the same in all iterations, is one of the conditional that skipped iterations leave as it was, or
//!   moves by equal steps, so that its value in a kept iteration is known;
//! - what the condition depends on can be computed for many iterations at a time and before any of them: it is arithmetic on
//!   the number of the iteration, and loads from memory that the loop does not write.
//!
//! Kept iterations run in the order of the program. Lanes beyond the last iteration compute the condition of the first one of
//! their word, so that nothing is computed or loaded that the program does not.
//!
//! # Alternatives rejected
//!
//! *Loads under the condition* ([`crate::pipelining`], which has them where iterations cannot be compacted): with a quarter of
//! the blocks of a 4096³ product, loops took 1.13 to 1.30 of the time that they take without loads ahead. *A list of kept iterations in shared
//! memory* takes room, a barrier, and another loop around this one if there can be any number of iterations.

use llopt_dialects::arith;
use llopt_dialects::tt::{AddPtrOp, LoadOp};
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, ValueExt, Walk, attr};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockRef, OperationRef, Type, Value, ValueLike};

use crate::longest_first::may_wait;
use crate::loops::builder::{Arithmetic, yield_values};
use crate::loops::clone::Mapping;
use crate::loops::induction::constant;
use crate::loops::vectorize::{Vectorized, is_vectorizable};
use crate::loops::view::{For, If, While};
use crate::pipelining::stores::{may_meet, parameter, stored_to};
use crate::products::is_product;
use crate::split_k::{Step, does_more_than_read, steps};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "math", "scf", "tt"],
    ..PassSpec::new(
        "compact-iterations",
        "run loops of products over the iterations that do not skip them",
        |module, _run| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Conditions whose bits are one word.
const BITS: i64 = 32;
/// Conditions that are counted at a time: four for each lane, so that an access of 32 bits is as wide as one can be.
const COUNTED: i64 = 128;
/// Bits of the numbers of a loop, at least: [`COUNTED`] is such a number.
const NARROWEST: u32 = 8;
/// The attribute of loops whose numbers are compared as unsigned.
const UNSIGNED: &str = "unsignedCmp";
/// What loops ask for that are to become one with those in them.
const FLATTEN: &str = "tt.flatten";

/// Compacts the iterations of the loops of a module, where that is possible.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation))
    });
    for of in loops {
        if let Ok(skipping) = Skipping::of(of) {
            skipping.compact(&mut Rewriter::new(module.ctx()));
        }
    }
}

/// How a loop carries a value.
enum Carried<'c, 'a> {
    /// It is the same in all iterations.
    Same,
    /// It moves by equal steps, in all iterations.
    Moves(Vec<Step<'c, 'a>>),
    /// Only kept iterations change it.
    Kept,
}

/// A loop that skips iterations.
struct Skipping<'c, 'a> {
    of: For<'c, 'a>,
    branch: If<'c, 'a>,
    /// The block of the conditional that kept iterations run, and whether it is the first.
    kept: (BlockRef<'c, 'a>, bool),
    carried: Vec<Carried<'c, 'a>>,
    /// The operations of the body that compute the condition, in their order.
    condition: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Skipping<'c, 'a> {
    /// A loop as one that skips iterations.
    ///
    /// # Errors
    /// Why its iterations cannot be compacted.
    fn of(of: For<'c, 'a>) -> Result<Self, String> {
        let number = of.number().r#type();
        let is_asked = |attribute: &str| {
            let mut around = Some(of.operation());
            std::iter::from_fn(|| {
                let own = around?;
                around = own.parent_op();
                Some(own)
            })
            .any(|own| own.discardable_attr(attribute).is_some())
        };
        if number.integer().is_none_or(|(width, _)| width < NARROWEST) {
            return Err("its numbers are too narrow".to_owned());
        }
        if of.has_loops() || is_asked(FLATTEN) {
            return Err("it is not the innermost loop".to_owned());
        }
        let mut branches = of.operations().into_iter().filter_map(If::of);
        let branch = branches.next().ok_or("it has no conditional")?;
        let others = of.operations().into_iter();
        for other in others.filter(|own| *own != branch.operation()) {
            let is_volatile = LoadOp::of(other).is_some_and(LoadOp::is_volatile);
            if is_volatile || other.region_refs().len() > 0 || does_more_than_read(other) {
                let name = other.name_str();
                return Err(format!("{name} is executed in each iteration"));
            }
        }
        let kept = kept_block(branch)?;
        let mut skipping = Self {
            of,
            branch,
            kept,
            carried: Vec::new(),
            condition: Vec::new(),
        };
        for index in 0..of.carried().len() {
            let carried = skipping.carried(index);
            let carried = carried.ok_or_else(|| format!("each iteration changes value {index}"))?;
            skipping.carried.push(carried);
        }
        skipping.condition = skipping.slice()?;
        Ok(skipping)
    }

    fn carried(&self, index: usize) -> Option<Carried<'c, 'a>> {
        let of = self.of;
        let (argument, next) = (of.carried()[index], of.yielded()[index]);
        if next == argument {
            return Some(Carried::Same);
        }
        let result = self.branch.results().into_iter();
        if let Some(position) = result.into_iter().position(|result| result == next) {
            let [first, second] = self.branch.blocks();
            let other = if self.kept.1 { second } else { first };
            let left = other?.operations().last()?.operand_value(position)?;
            return (left == argument).then_some(Carried::Kept);
        }
        let steps = steps(of, argument, next)?;
        let is_used_behind = of.results()[index].has_uses();
        (!is_used_behind).then_some(Carried::Moves(steps))
    }

    /// The condition of an iteration.
    fn decides(&self) -> Value<'c, 'a> {
        let operation = self.branch.operation();
        operation
            .operand_value(0)
            .expect("a conditional has a condition")
    }

    /// The operations that compute the condition.
    fn slice(&self) -> Result<Vec<OperationRef<'c, 'a>>, String> {
        let of = self.of;
        if of.is_outside(self.decides()) {
            return Err("all iterations have one condition".to_owned());
        }
        let stored = stored_to(of.operation());
        let mut waits = false;
        of.operation().for_each_op(Walk::PreOrder, |operation| {
            waits |= operation != of.operation() && may_wait(operation);
        });
        let mut needed: Vec<OperationRef> = Vec::new();
        let mut queue = vec![self.decides()];
        while let Some(value) = queue.pop() {
            if of.is_outside(value) || value == of.number() {
                continue;
            }
            if let Some(index) = of.carried().iter().position(|argument| *argument == value) {
                if let Carried::Kept = self.carried[index] {
                    return Err("its condition depends on what kept iterations do".to_owned());
                }
                if value.r#type().is_tensor() {
                    return Err("its condition depends on a tensor".to_owned());
                }
                continue;
            }
            let operation = value
                .defining_op()
                .filter(|operation| operation.parent_op() == Some(of.operation()))
                .ok_or("its condition is not known before it")?;
            if needed.contains(&operation) {
                continue;
            }
            let is_scalar = |value: Value<'c, 'a>| !value.r#type().is_tensor();
            let mut values = operation.operand_values().chain(operation.result_values());
            if !is_vectorizable(operation) || !values.all(is_scalar) {
                let name = operation.name_str();
                return Err(format!("{name} decides whether an iteration is skipped"));
            }
            if let Some(load) = LoadOp::of(operation) {
                let stored = stored.as_ref().map_err(Clone::clone)?;
                if waits || may_meet(parameter(load.ptr()), stored) {
                    return Err("the loop may change its conditions".to_owned());
                }
            }
            needed.push(operation);
            queue.extend(operation.operand_values());
        }
        let all = of.operations().into_iter();
        Ok(all.filter(|own| needed.contains(own)).collect())
    }

    /// Replaces the loop.
    fn compact(self, rewriter: &mut Rewriter<'c, 'a>) {
        let (of, location) = (self.of, self.of.operation().loc());
        let number = of.number().r#type();
        rewriter.set_before(of.operation());
        let mut arithmetic = Arithmetic { rewriter, location };
        let all = arithmetic.iterations(of.bounds(), of.is_unsigned());
        let [zero, one] = [0, 1].map(|value| arithmetic.constant(number, value));
        let count = self.count(rewriter, all);

        // The loop carries what kept iterations change, and what the search has of the current word.
        let word = IntegerType::new(rewriter.context(), BITS as u32).into();
        let mut arithmetic = Arithmetic { rewriter, location };
        let before_first = arithmetic.constant(number, -BITS);
        let none = arithmetic.constant(word, 0);
        let kept: Vec<usize> = (0..self.carried.len())
            .filter(|&index| matches!(self.carried[index], Carried::Kept))
            .collect();
        let mut initial: Vec<Value> = kept.iter().map(|&index| of.initial()[index]).collect();
        initial.extend([before_first, none]);
        let mut attributes = of.operation().attrs();
        attributes.retain(|(name, _)| *name != UNSIGNED);
        attributes.extend(self.compared());
        let bounds = [zero, count, one];
        let new = For::build(rewriter, location, bounds, &initial, &attributes);
        rewriter.set_to_end(new.body());
        let arguments = new.carried();
        let (values, of_search) = arguments.split_at(kept.len());
        let searched = self.search(rewriter, all, [of_search[0], of_search[1]]);
        let mapping = self.iterate(rewriter, searched.iteration, values);
        let mut yielded: Vec<Value> = kept
            .iter()
            .map(|&index| mapping.get(of.yielded()[index]))
            .collect();
        yielded.extend([searched.first, searched.rest]);
        yield_values(rewriter, location, &yielded);
        for operation in new.operations().into_iter().rev() {
            if operation.is_trivially_dead() {
                operation.erase();
            }
        }

        for (position, &index) in kept.iter().enumerate() {
            of.results()[index].replace_all_uses(new.results()[position]);
        }
        for (index, result) in of.results().into_iter().enumerate() {
            result.replace_all_uses(of.initial()[index]);
        }
        of.operation().erase();
    }

    /// A kept iteration, with these values of what kept iterations change: the body with the block of its conditional in place
    /// of it.
    fn iterate(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        iteration: Value<'c, 'a>,
        kept: &[Value<'c, 'a>],
    ) -> Mapping<'c, 'a> {
        let (of, location) = (self.of, self.of.operation().loc());
        let mut mapping = Mapping::new();
        mapping.map(of.number(), self.number(rewriter, iteration));
        let mut kept = kept.iter();
        let arguments = of.carried().into_iter().zip(of.initial());
        for ((argument, first), carried) in arguments.zip(&self.carried) {
            let own = match carried {
                Carried::Same => first,
                Carried::Kept => *kept.next().expect("it is carried"),
                Carried::Moves(steps) => steps.iter().fold(first, |value, step| {
                    step.times(rewriter, location, value, iteration)
                }),
            };
            mapping.map(argument, own);
        }
        for operation in of.operations() {
            if operation != self.branch.operation() {
                mapping.copy(rewriter, operation);
                continue;
            }
            let inside: Vec<OperationRef> = self.kept.0.operations().collect();
            let (end, inside) = inside.split_last().expect("it has a terminator");
            for &operation in inside {
                mapping.copy(rewriter, operation);
            }
            for (result, value) in self.branch.results().into_iter().zip(end.operand_values()) {
                let value = mapping.get(value);
                mapping.map(result, value);
            }
        }
        mapping
    }

    /// How the number of iterations is compared: where the numbers of a loop are not negative, there are not more of them
    /// than a signed number can be.
    fn compared(&self) -> Option<(&'static str, melior::ir::Attribute<'c>)> {
        let of = self.of;
        let is_small = !of.is_unsigned() && constant(of.lower()).is_some_and(|lower| lower >= 0);
        (!is_small).then(|| (UNSIGNED, attr::unit(of.operation().ctx())))
    }

    /// The number that a loop has in an iteration.
    fn number(&self, rewriter: &mut Rewriter<'c, 'a>, iteration: Value<'c, 'a>) -> Value<'c, 'a> {
        let location = self.of.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let distance = arithmetic.multiply(iteration, self.of.step());
        arithmetic.add(self.of.lower(), distance)
    }

    /// The number of kept iterations among all.
    fn count(&self, rewriter: &mut Rewriter<'c, 'a>, all: Value<'c, 'a>) -> Value<'c, 'a> {
        let location = self.of.operation().loc();
        let number = all.r#type();
        let many = Vectorized::new(COUNTED, location);
        let mut arithmetic = Arithmetic { rewriter, location };
        let [zero, one, extent] = [0, 1, COUNTED].map(|n| arithmetic.constant(number, n));
        let whole = arithmetic.divide(all, extent);
        let rest = arithmetic.remainder(all, extent);
        let is_rest = arithmetic.compare(arith::CmpIPredicate::Ne, rest, zero);
        let is_rest = arithmetic.as_type(is_rest, number);
        let rounds = arithmetic.add(whole, is_rest);
        let none = many.spread(rewriter, zero);
        let compared: Vec<_> = self.compared().into_iter().collect();
        let of = For::build(rewriter, location, [zero, rounds, one], &[none], &compared);
        rewriter.set_to_end(of.body());
        let mut arithmetic = Arithmetic { rewriter, location };
        let first = arithmetic.multiply(of.number(), extent);
        let kept = self.conditions(rewriter, COUNTED, first, all);
        let mut arithmetic = Arithmetic { rewriter, location };
        let kept = arithmetic.as_type(kept, none.r#type());
        let sum = arithmetic.add(of.carried()[0], kept);
        yield_values(rewriter, location, &[sum]);
        rewriter.set_after(of.operation());
        many.reduce(rewriter, of.results()[0], |arithmetic, x, y| {
            arithmetic.add(x, y)
        })
    }

    /// Whether iterations are kept, so many from one on. Those beyond the last are not.
    fn conditions(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        extent: i64,
        first: Value<'c, 'a>,
        all: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let (of, location) = (self.of, self.of.operation().loc());
        let mut many = Vectorized::new(extent, location);
        let lanes = many.range(rewriter);
        let mut arithmetic = Arithmetic { rewriter, location };
        let lanes = arithmetic.as_type(lanes, many.of_type(all.r#type()));
        let left = arithmetic.subtract(all, first);
        let zero = arithmetic.constant(all.r#type(), 0);
        let [left, zero, begin] = [left, zero, first].map(|value| many.spread(rewriter, value));
        let mut arithmetic = Arithmetic { rewriter, location };
        let is_there = arithmetic.is_below(lanes, left, true);
        let lanes = arithmetic.select(is_there, lanes, zero);
        let iterations = arithmetic.add(begin, lanes);
        let [lower, step] = [of.lower(), of.step()].map(|value| many.spread(rewriter, value));
        let mut arithmetic = Arithmetic { rewriter, location };
        let distances = arithmetic.multiply(iterations, step);
        let numbers = arithmetic.add(lower, distances);
        many.put(of.number(), numbers);
        for (index, carried) in self.carried.iter().enumerate() {
            let (argument, first) = (of.carried()[index], of.initial()[index]);
            if first.r#type().is_tensor() {
                continue;
            }
            match carried {
                Carried::Same => many.put_scalar(argument, first),
                Carried::Moves(steps) => {
                    let first = many.spread(rewriter, first);
                    let moved = steps.iter().fold(first, |value, step| {
                        let distance = distances_of(rewriter, &many, step, iterations);
                        let operands = step.operands(value, distance);
                        let name = step.operation().name_str();
                        let types = [value.r#type()];
                        let made = rewriter.create(name, location, &operands, Some(&types), &[]);
                        let made = made.expect("it is an operation on scalars as well");
                        made.result_value(0).expect("it has one result")
                    });
                    many.put(argument, moved);
                }
                Carried::Kept => {}
            }
        }
        for &operation in &self.condition {
            many.copy(rewriter, operation);
        }
        let mut holds = many.get(rewriter, self.decides());
        let mut arithmetic = Arithmetic { rewriter, location };
        if !self.kept.1 {
            let truth = arithmetic.always();
            let truth = many.spread(rewriter, truth);
            holds = Arithmetic { rewriter, location }.differs(holds, truth);
        }
        Arithmetic { rewriter, location }.both(holds, is_there)
    }

    /// Finds the next kept iteration, given the first iteration of a word and its bits.
    fn search(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        all: Value<'c, 'a>,
        begin: [Value<'c, 'a>; 2],
    ) -> Searched<'c, 'a> {
        let location = self.of.operation().loc();
        let many = Vectorized::new(BITS, location);
        let of = While::build(
            rewriter,
            location,
            &begin,
            |rewriter, values| {
                let mut arithmetic = Arithmetic { rewriter, location };
                let none = arithmetic.constant(values[1].r#type(), 0);
                arithmetic.is_equal(values[1], none)
            },
            |rewriter, values| {
                let mut arithmetic = Arithmetic { rewriter, location };
                let bits = arithmetic.constant(values[0].r#type(), BITS);
                let first = arithmetic.add(values[0], bits);
                let kept = self.conditions(rewriter, BITS, first, all);
                let lanes = many.range(rewriter);
                let mut arithmetic = Arithmetic { rewriter, location };
                let [zero, one] = [0, 1].map(|n| arithmetic.constant(values[1].r#type(), n));
                let [zero, one] = [zero, one].map(|value| many.spread(rewriter, value));
                let mut arithmetic = Arithmetic { rewriter, location };
                let own = arithmetic.shift_left(one, lanes);
                let own = arithmetic.select(kept, own, zero);
                let word = many.reduce(rewriter, own, |arithmetic, x, y| arithmetic.either(x, y));
                vec![first, word]
            },
        );
        let found: Vec<Value> = of.result_values().collect();
        let (first, word) = (found[0], found[1]);
        let mut arithmetic = Arithmetic { rewriter, location };
        let [one, ones] = [1, -1].map(|n| arithmetic.constant(word.r#type(), n));
        // The bits below the lowest one.
        let less = arithmetic.subtract(word, one);
        let not = arithmetic.differs(word, ones);
        let below = arithmetic.both(less, not);
        let position = arithmetic.count_ones(below);
        let rest = arithmetic.both(word, less);
        let position = arithmetic.as_type(position, first.r#type());
        let iteration = arithmetic.add(first, position);
        Searched {
            iteration,
            first,
            rest,
        }
    }
}

/// What a search found.
struct Searched<'c, 'a> {
    /// A kept iteration.
    iteration: Value<'c, 'a>,
    /// The first iteration of its word.
    first: Value<'c, 'a>,
    /// The bits of those after it.
    rest: Value<'c, 'a>,
}

/// The block of a conditional that contains its products, and whether it is the first. There is nothing in the other.
fn kept_block<'c: 'a, 'a>(branch: If<'c, 'a>) -> Result<(BlockRef<'c, 'a>, bool), String> {
    let [first, second] = branch.blocks();
    let is_empty =
        |block: Option<BlockRef<'c, 'a>>| block.is_none_or(|block| block.operations().count() == 1);
    let (block, is_first, other) = match is_empty(first) {
        true => (second, false, first),
        false => (first, true, second),
    };
    let block = block.filter(|_| is_empty(other));
    let block = block.ok_or("both blocks of its conditional do something")?;
    let multiplies = block.operations().any(is_product);
    let kept = multiplies.then_some((block, is_first));
    kept.ok_or_else(|| "there is no product in its conditional".to_owned())
}

/// How far a step moves a value in so many iterations each; offsets of pointers have 64 bits.
fn distances_of<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    many: &Vectorized<'c, 'a>,
    step: &Step<'c, 'a>,
    iterations: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let location = step.operation().loc();
    let wide: Type<'c> = IntegerType::new(rewriter.context(), 64).into();
    let mut by = step.by();
    if AddPtrOp::of(step.operation()).is_some() {
        by = Arithmetic { rewriter, location }.signed_as_type(by, wide);
    }
    let by = many.spread(rewriter, by);
    let mut arithmetic = Arithmetic { rewriter, location };
    let iterations = arithmetic.as_type(iterations, by.r#type());
    arithmetic.multiply(iterations, by)
}
