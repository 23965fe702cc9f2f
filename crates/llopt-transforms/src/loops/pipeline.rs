//! Overlapping iterations: a body is cut into stages, and the new loop runs one stage each of several iterations.
//!
//! # The objects
//!
//! Each operation of the body has a *stage* `s` below the number of stages `S`, and a place in an order. The
//! pipelined loop runs as often as the old one. In its iteration `i` an operation of stage `s` does what it did in
//! iteration `i + S - 1 - s`: those of the last stage belong to this iteration, those of earlier stages are ahead by
//! their *lead* `S - 1 - s`. Before the loop, round `p` of the prologue runs stage `s` of iteration `p - s`, for all
//! stages up to `p`. Operations with effects that would run beyond the last iteration are *guarded*, by a condition
//! that the caller attaches to them. Operations without effects are executed needlessly there.
//!
//! Where that costs too much, or an operation cannot be guarded, the last iteration is *peeled*: the new loop runs
//! one iteration less, and is followed by the last stage of the last iteration. Then the stage before the last never
//! runs beyond the end, and only earlier ones are guarded. All of this is inside a conditional, unless it is known
//! that there is an iteration.
//!
//! Or the last iterations are *apart*: of `n` iterations the loop runs the first `n - (S - 1)`, from which nothing is
//! ahead of the end, so that it has no guards; and a second loop, which goes on with what the first has carried, runs
//! what the others have in all stages but the first, with guards for those between the first and the last. Where
//! there are fewer iterations than stages, the first loop runs none. So any number of stages costs the code of one
//! more iteration.
//!
//! A loop that is to be unrolled needs a second one anyway, for the iterations that fill no group. Where the first loop runs
//! whole *groups*, as many as are among its `n - (S - 1)`, and the second one runs all others in all stages, with guards, that
//! one also does what a loop of the last iterations would.
//!
//! # The laws
//!
//! Let a value be looked up for an operation with lead `d`.
//!
//! - A result of an operation with lead `e` is that of this iteration if `e = d`, the operation then has to come
//!   before; one of `e - d` iterations ago if `e > d`, and is carried until then; and does not exist yet if `e < d`.
//! - A carried value of the old loop is for `d > 0` what the iteration before yields: the yielded value, looked up with
//!   lead `d - 1`. For `d = 0` it is carried on.
//!
//! So a pipelined loop carries pairs of a value and a lead, called *slots*: the content is the value in the iteration
//! that is so far ahead. The next content of a slot is its value with a lead larger by one. The initial contents of
//! slots are known from the prologue.
//!
//! Whether there is an iteration that is ahead by `d` is decided by `upper - number > d * step`, unsigned. The left
//! side is the distance between numbers of the type, the first below the second, so it does not overflow; and where
//! the right side would, there is no such iteration.

use std::collections::HashMap;
use std::ffi::c_void;

use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::builder::{Arithmetic, yield_values};
use super::clone::Mapping;
use super::induction::{self, Numbers};
use super::peel;
use super::unroll::RARE;
use super::view::{For, If};

/// An operation of the body, and its stage.
#[derive(Clone, Copy)]
pub struct Staged<'c, 'a> {
    /// The operation.
    pub operation: OperationRef<'c, 'a>,
    /// Its stage.
    pub stage: usize,
}

/// The end of a pipelined loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has as many iterations as the old one; operations beyond the last iteration are guarded.
    Guarded,
    /// The last iteration is peeled.
    Peeled,
    /// It guards nothing; a second loop runs the iterations from which something of the first stage would be ahead of the
    /// end, without that.
    Apart,
    /// It guards nothing, and runs whole groups of so many iterations; a second loop runs all others, guarded.
    Groups(u32),
}

/// What a body runs.
#[derive(Clone, Copy)]
enum Part {
    /// All operations; what is ahead by more than `on_time` iterations is guarded.
    All { on_time: usize },
    /// Those that are not of the first stage, guarded if they are ahead.
    Rest,
}

/// The loop behind the one that runs most.
#[derive(Clone, Copy)]
struct Second {
    /// The first loop runs groups of so many iterations.
    group: u32,
    part: Part,
}

/// Why there is no such pipeline: an operation uses a value that does not exist yet.
#[derive(Clone, Copy)]
pub struct Early<'c, 'a> {
    /// The operation.
    pub operation: OperationRef<'c, 'a>,
}

/// The source of a value in the pipelined loop.
#[derive(Clone, Copy, PartialEq)]
enum Source<'c, 'a> {
    /// It is the same everywhere.
    Outside(Value<'c, 'a>),
    /// The induction variable of an iteration ahead.
    Number(usize),
    /// A result that was computed in this iteration of the pipelined loop.
    Current(Value<'c, 'a>),
    /// The content of a slot: the value, and its lead.
    Slot(Value<'c, 'a>, usize),
}

type Key = *const c_void;

fn key(value: Value<'_, '_>) -> Key {
    value.to_raw().ptr
}

/// The old loop.
struct Plan<'p, 'c, 'a> {
    of: For<'c, 'a>,
    order: &'p [Staged<'c, 'a>],
    stages: usize,
    yielded: Vec<Value<'c, 'a>>,
    /// The position in the order of a result's operation.
    places: HashMap<Key, usize>,
}

impl<'c: 'a, 'a> Plan<'_, 'c, 'a> {
    fn lead(&self, place: usize) -> usize {
        self.stages - 1 - self.order[place].stage
    }

    /// The position of a value among the carried values.
    fn carried(&self, value: Value<'c, 'a>) -> Option<usize> {
        let (block, index) = value.argument_of()?;
        (block == self.of.body()).then_some(index)?.checked_sub(1)
    }

    /// The source of a value with a lead; `None` if it does not exist before a position of the order.
    fn source(&self, value: Value<'c, 'a>, lead: usize, before: usize) -> Option<Source<'c, 'a>> {
        if self.of.is_outside(value) {
            return Some(Source::Outside(value));
        }
        if value == self.of.number() {
            return Some(Source::Number(lead));
        }
        if let Some(index) = self.carried(value) {
            return match lead.checked_sub(1) {
                Some(less) => self.source(self.yielded[index], less, before),
                None => Some(Source::Slot(value, 0)),
            };
        }
        let &place = self.places.get(&key(value))?;
        match self.lead(place).cmp(&lead) {
            std::cmp::Ordering::Greater => Some(Source::Slot(value, lead)),
            std::cmp::Ordering::Equal if place < before => Some(Source::Current(value)),
            _ => None,
        }
    }

    /// The operands of an operation and of those nested in it, except values that it defines itself.
    fn operands(operation: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let mut operands = Vec::new();
        operation.for_each_op(Walk::PreOrder, |inner| {
            for value in inner.operand_values() {
                let block = ValueExt::parent_block(value);
                let owner = block.and_then(|block| melior::ir::BlockLike::parent_operation(&block));
                let is_own = owner.is_some_and(|owner| owner.is_within(operation));
                if !is_own && !operands.contains(&value) {
                    operands.push(value);
                }
            }
        });
        operands
    }

    /// All slots: those that operations read, those of results, and those from which these take their content.
    fn slots(&self) -> Result<Vec<(Value<'c, 'a>, usize)>, Early<'c, 'a>> {
        let end = self.order.len();
        let mut slots: Vec<(Value, usize)> = Vec::new();
        let add = |slots: &mut Vec<(Value<'c, 'a>, usize)>, source: Source<'c, 'a>| {
            if let Source::Slot(value, lead) = source
                && !slots.contains(&(value, lead))
            {
                slots.push((value, lead));
            }
        };
        for (argument, result) in self.of.carried().into_iter().zip(self.of.results()) {
            if result.has_uses() {
                add(&mut slots, Source::Slot(argument, 0));
            }
        }
        for (place, staged) in self.order.iter().enumerate() {
            for value in Self::operands(staged.operation) {
                let source = self.source(value, self.lead(place), place);
                let operation = staged.operation;
                add(&mut slots, source.ok_or(Early { operation })?);
            }
        }
        let mut next = 0;
        while let Some(&(value, lead)) = slots.get(next) {
            let operation = value.defining_op().unwrap_or(self.of.terminator());
            let source = self.source(value, lead + 1, end);
            add(&mut slots, source.ok_or(Early { operation })?);
            next += 1;
        }
        Ok(slots)
    }
}

/// Values of single iterations, before the loop.
struct Prologue<'p, 'c, 'a> {
    plan: &'p Plan<'p, 'c, 'a>,
    numbers: Vec<Value<'c, 'a>>,
    results: HashMap<(Key, usize), Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Prologue<'_, 'c, 'a> {
    fn value(&self, value: Value<'c, 'a>, iteration: usize) -> Option<Value<'c, 'a>> {
        let plan = self.plan;
        if plan.of.is_outside(value) {
            return Some(value);
        }
        if value == plan.of.number() {
            return self.numbers.get(iteration).copied();
        }
        match (plan.carried(value), iteration.checked_sub(1)) {
            (Some(index), Some(before)) => self.value(plan.yielded[index], before),
            (Some(index), None) => Some(plan.of.initial()[index]),
            (None, _) => self.results.get(&(key(value), iteration)).copied(),
        }
    }
}

/// Conditions for iterations that are ahead.
struct Ahead<'c, 'a> {
    /// The distance to the iteration so far ahead; `None` if the type cannot represent it.
    distances: Vec<Option<Value<'c, 'a>>>,
    /// The number of iterations, if it is known.
    count: Option<u64>,
}

impl<'c: 'a, 'a> Ahead<'c, 'a> {
    /// Computes distances up to a lead, before the loop.
    fn new(arithmetic: &mut Arithmetic<'_, 'c, 'a>, of: For<'c, 'a>, most: usize) -> Self {
        let (step, r#type) = (of.step(), of.step().r#type());
        let known = induction::constant(step);
        let mut distances = vec![Some(arithmetic.constant(r#type, 0))];
        for lead in 1..=most {
            let distance = match known {
                Some(step) => {
                    let whole = u128::from(step.unsigned_abs()) * lead as u128;
                    let bits = bits(r#type);
                    // As a signed number of the same bits.
                    let unused = 64 - bits;
                    let signed = (whole as i64).wrapping_shl(unused).wrapping_shr(unused);
                    (whole < 1 << bits).then(|| arithmetic.constant(r#type, signed))
                }
                None => {
                    // The largest number stands for all beyond it.
                    let before = distances[lead - 1].expect("each has a value");
                    let sum = arithmetic.add(before, step);
                    let wraps = arithmetic.is_below(sum, before, true);
                    let largest = arithmetic.constant(r#type, -1);
                    Some(arithmetic.select(wraps, largest, sum))
                }
            };
            distances.push(distance);
        }
        let count = Numbers::of(of).map(Numbers::count);
        Self { distances, count }
    }

    /// Whether there is an iteration so far ahead, given the remaining distance.
    fn condition(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        lead: usize,
        left: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        match self.distances[lead] {
            Some(distance) => arithmetic.is_below(distance, left, true),
            None => arithmetic.never(),
        }
    }
}

impl<'c: 'a, 'a> Ahead<'c, 'a> {
    /// The number of the first iteration of a loop from which an operation ahead by `most` is ahead of the end, or the first of
    /// its group of so many; no number where that are all.
    fn cut(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        of: For<'c, 'a>,
        most: usize,
        group: u32,
    ) -> Option<Value<'c, 'a>> {
        let (lower, upper, step) = (of.lower(), of.upper(), of.step());
        let r#type = lower.r#type();
        if let Some(numbers) = Numbers::of(of) {
            let first = numbers.count().checked_sub(most as u64)?;
            let first = first - first % u64::from(group);
            return (first > 0).then(|| arithmetic.constant(r#type, numbers.at(first)));
        }
        let distance = self.distances[most]?;
        let zero = arithmetic.constant(r#type, 0);
        let one = arithmetic.constant(r#type, 1);
        let runs = arithmetic.is_below(lower, upper, of.is_unsigned());
        let all = arithmetic.subtract(upper, lower);
        let left = arithmetic.select(runs, all, zero);
        let is_long = self.condition(arithmetic, most, left);
        // So many numbers, one at least, are as far from the end; of them each `step`-th is an iteration's.
        let numbers = arithmetic.subtract(left, distance);
        let before = arithmetic.subtract(numbers, one);
        let steps = arithmetic.divide(before, step);
        let steps = arithmetic.add(steps, one);
        if group == 1 {
            let distance = arithmetic.multiply(steps, step);
            let first = arithmetic.add(lower, distance);
            return Some(arithmetic.select(is_long, first, lower));
        }
        // The distance is a product with the size of a group, from which it is seen that there are only whole ones.
        let steps = arithmetic.select(is_long, steps, zero);
        let size = arithmetic.constant(r#type, i64::from(group));
        let groups = arithmetic.divide(steps, size);
        let steps = arithmetic.multiply(groups, size);
        let distance = arithmetic.multiply(steps, step);
        Some(arithmetic.add(lower, distance))
    }
}

fn bits(r#type: Type<'_>) -> u32 {
    r#type.bit_width().unwrap_or(64).min(64)
}

/// Pipelines a loop by stages of its operations, given in the order in which they are to run. `guard` attaches a
/// condition to a copy of an operation with effects that may run beyond the last iteration, and returns the operation
/// that replaces it. The rewriter is before the copy during that call.
///
/// Requires: each operation of the body occurs in the order once. An operation with effects that is ahead (by more
/// than one iteration, if the last one is peeled) can be guarded; one without effects may be executed beyond the last
/// iteration.
///
/// # Errors
/// An operation would use a value that does not exist yet; the loop is unchanged.
pub fn pipeline<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    order: &[Staged<'c, 'a>],
    stages: usize,
    end: End,
    guard: impl FnMut(
        &mut Rewriter<'c, 'a>,
        OperationRef<'c, 'a>,
        Value<'c, 'a>,
    ) -> OperationRef<'c, 'a>,
) -> Result<For<'c, 'a>, Early<'c, 'a>> {
    let mut places = HashMap::new();
    for (place, staged) in order.iter().enumerate() {
        for result in staged.operation.result_values() {
            places.insert(key(result), place);
        }
    }
    let plan = Plan {
        of,
        order,
        stages,
        yielded: of.yielded(),
        places,
    };
    let slots = plan.slots()?;
    let location = of.operation().loc();
    let has_effects = order
        .iter()
        .map(|staged| !staged.operation.is_memory_effect_free())
        .collect();
    let is_peeled = end == End::Peeled && Numbers::of(of).is_none_or(|all| all.count() > 0);

    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let last = is_peeled.then(|| peel::last_number(&mut arithmetic, of));
    let apart = match end {
        End::Guarded | End::Peeled => None,
        End::Apart => Some(Second {
            group: 1,
            part: Part::Rest,
        }),
        End::Groups(group) => Some(Second {
            group,
            part: Part::All { on_time: 0 },
        }),
    };
    let mut expansion = Expansion {
        plan,
        slots,
        has_effects,
        guard,
    };
    let used: Vec<Value> = of
        .results()
        .into_iter()
        .filter(|result| result.has_uses())
        .collect();
    let (new, results) = match last {
        Some((last, Some(runs))) => {
            let types: Vec<Type> = used.iter().map(|result| result.r#type()).collect();
            let mut new = None;
            let branch = If::build(
                rewriter,
                location,
                runs,
                &types,
                |rewriter| {
                    let (made, results) = expansion.expand(rewriter, Some(last), None);
                    new = Some(made);
                    results
                },
                |_| {
                    let results = of.results().into_iter().zip(of.initial());
                    let initial = results.filter(|(result, _)| result.has_uses());
                    initial.map(|(_, initial)| initial).collect()
                },
            );
            (new.expect("the branch has a block"), branch.results())
        }
        Some((last, None)) => expansion.expand(rewriter, Some(last), None),
        None => expansion.expand(rewriter, None, apart),
    };
    for (result, value) in used.into_iter().zip(results) {
        result.replace_all_uses(value);
    }
    rewriter.set_after(of.operation());
    of.operation().erase();
    Ok(new)
}

/// A loop during its expansion.
struct Expansion<'p, 'c, 'a, G> {
    plan: Plan<'p, 'c, 'a>,
    /// The values that the new loop carries.
    slots: Vec<(Value<'c, 'a>, usize)>,
    /// Whether each operation of the order has effects.
    has_effects: Vec<bool>,
    guard: G,
}

impl<'c: 'a, 'a, G> Expansion<'_, 'c, 'a, G>
where
    G: FnMut(&mut Rewriter<'c, 'a>, OperationRef<'c, 'a>, Value<'c, 'a>) -> OperationRef<'c, 'a>,
{
    /// Inserts the prologue, the loop, and the last iteration if it is peeled and has this number, or a loop of those that
    /// are apart. Answers the loop that runs most, and the results of the old one that are used.
    fn expand(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        last: Option<Value<'c, 'a>>,
        apart: Option<Second>,
    ) -> (For<'c, 'a>, Vec<Value<'c, 'a>>) {
        let of = self.plan.of;
        let location = of.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let ahead = Ahead::new(&mut arithmetic, of, self.plan.stages - 1);
        let initial = self.prologue(rewriter, &ahead, last.is_some());
        let attributes = of.operation().attrs();
        let most = self.plan.stages - 1;
        let cut = apart.and_then(|second| {
            let mut arithmetic = Arithmetic { rewriter, location };
            let cut = ahead.cut(&mut arithmetic, of, most, second.group)?;
            Some((cut, second.part))
        });
        let upper = cut.map(|(cut, _)| cut).or(last).unwrap_or(of.upper());
        let bounds = [of.lower(), upper, of.step()];
        let new = For::build(rewriter, location, bounds, &initial, &attributes);
        rewriter.set_to_end(new.body());
        let part = Part::All {
            on_time: match cut {
                Some(_) => most,
                None => usize::from(last.is_some()),
            },
        };
        let slots = self.slots.clone();
        self.body(rewriter, &ahead, new, &slots, part);
        rewriter.set_after(new.operation());
        let results = new.results();
        let used = of.carried().into_iter().zip(of.results());
        let used: Vec<Value> = used
            .filter(|(_, result)| result.has_uses())
            .map(|(argument, _)| argument)
            .collect();
        if let Some((cut, part)) = cut {
            let slots = match part {
                Part::All { .. } => slots,
                Part::Rest => self.slots_of_rest(&used),
            };
            let initial: Vec<Value> = slots
                .iter()
                .map(|&(value, lead)| results[self.slot(value, lead)])
                .collect();
            let bounds = [cut, of.upper(), of.step()];
            let rest = For::build(rewriter, location, bounds, &initial, &attributes);
            if matches!(part, Part::All { .. }) {
                // It is the same loop, but for masks, and runs less than a group and what is ahead.
                let operation = rest.operation();
                operation.set_discardable_attr(RARE, attr::unit(operation.ctx()));
            }
            rewriter.set_to_end(rest.body());
            self.body(rewriter, &ahead, rest, &slots, part);
            rewriter.set_after(rest.operation());
            let results = rest.results();
            let result = |argument| {
                let slot = slots.iter().position(|slot| *slot == (argument, 0));
                results[slot.expect("it is carried")]
            };
            return (new, used.into_iter().map(result).collect());
        }
        let Some(last) = last else {
            let slot = |argument| results[self.slot(argument, 0)];
            return (new, used.into_iter().map(slot).collect());
        };
        // What the last iteration has in the last stage; what is ahead of it there is not.
        let mut current: HashMap<Key, Value> = HashMap::new();
        let plan = &self.plan;
        let value_of = |current: &HashMap<Key, Value<'c, 'a>>, source| match source {
            Source::Outside(value) => value,
            Source::Current(value) => current[&key(value)],
            Source::Slot(value, lead) => results[self.slot(value, lead)],
            Source::Number(_) => last,
        };
        for (place, staged) in plan.order.iter().enumerate() {
            if plan.lead(place) > 0 {
                continue;
            }
            let mut mapping = Mapping::new();
            for value in Plan::operands(staged.operation) {
                let source = plan.source(value, 0, place);
                let source = source.expect("slots were found for all");
                mapping.map(value, value_of(&current, source));
            }
            let copy = mapping.copy(rewriter, staged.operation);
            let results = staged.operation.result_values().zip(copy.result_values());
            current.extend(results.map(|(from, to)| (key(from), to)));
        }
        let carried = of.carried();
        let yielded = used.into_iter().map(|argument| {
            let index = carried.iter().position(|own| *own == argument);
            let value = plan.yielded[index.expect("it is carried")];
            let source = plan.source(value, 0, plan.order.len());
            value_of(&current, source.expect("slots were found for all"))
        });
        (new, yielded.collect())
    }

    /// The slots that all stages but the first need in some iterations, one after the other, and those that have these
    /// results at the end.
    fn slots_of_rest(&self, used: &[Value<'c, 'a>]) -> Vec<(Value<'c, 'a>, usize)> {
        let plan = &self.plan;
        let mut slots: Vec<(Value, usize)> = Vec::new();
        let add = |slots: &mut Vec<(Value<'c, 'a>, usize)>, source: Option<Source<'c, 'a>>| {
            if let Some(Source::Slot(value, lead)) = source
                && !slots.contains(&(value, lead))
            {
                slots.push((value, lead));
            }
        };
        for &argument in used {
            add(&mut slots, Some(Source::Slot(argument, 0)));
        }
        for (place, staged) in plan.order.iter().enumerate() {
            let lead = plan.lead(place);
            if lead < plan.stages - 1 {
                for value in Plan::operands(staged.operation) {
                    add(&mut slots, plan.source(value, lead, place));
                }
            }
        }
        let mut next = 0;
        while let Some(&(value, lead)) = slots.get(next) {
            add(&mut slots, plan.source(value, lead + 1, plan.order.len()));
            next += 1;
        }
        slots
    }

    fn slot(&self, value: Value<'c, 'a>, lead: usize) -> usize {
        let slot = self.slots.iter().position(|slot| *slot == (value, lead));
        slot.expect("all slots are known")
    }

    /// Inserts what comes before the loop; returns what its slots have at first.
    fn prologue(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        ahead: &Ahead<'c, 'a>,
        is_peeled: bool,
    ) -> Vec<Value<'c, 'a>> {
        let plan = &self.plan;
        let (of, stages) = (plan.of, plan.stages);
        let location = of.operation().loc();
        let (lower, upper, step) = (of.lower(), of.upper(), of.step());
        let mut arithmetic = Arithmetic { rewriter, location };
        let mut numbers = vec![lower];
        for _ in 1..stages {
            let last = numbers[numbers.len() - 1];
            let next = match (induction::constant(last), induction::constant(step)) {
                (Some(last), Some(step)) => {
                    arithmetic.constant(lower.r#type(), last.wrapping_add(step))
                }
                _ => arithmetic.add(last, step),
            };
            numbers.push(next);
        }
        let mut conditions: Vec<Option<Value>> = Vec::new();
        if ahead.count.is_none() {
            let all = arithmetic.subtract(upper, lower);
            let left = match is_peeled {
                // There is an iteration.
                true => {
                    conditions.push(None);
                    all
                }
                false => {
                    let runs = arithmetic.is_below(lower, upper, of.is_unsigned());
                    let nothing = arithmetic.constant(lower.r#type(), 0);
                    conditions.push(Some(runs));
                    arithmetic.select(runs, all, nothing)
                }
            };
            for lead in 1..stages {
                conditions.push(Some(ahead.condition(&mut arithmetic, lead, left)));
            }
        }
        let mut prologue = Prologue {
            plan,
            numbers,
            results: HashMap::new(),
        };
        for round in 0..stages - 1 {
            for (place, staged) in plan.order.iter().enumerate() {
                let Some(iteration) = round.checked_sub(staged.stage) else {
                    continue;
                };
                let operation = staged.operation;
                let mut mapping = Mapping::new();
                for value in Plan::operands(operation) {
                    // What the loop has, the prologue has, by the laws.
                    let known = prologue.value(value, iteration);
                    mapping.map(value, known.expect("it was computed before"));
                }
                let mut copy = mapping.copy(rewriter, operation);
                if self.has_effects[place] {
                    let condition = match ahead.count {
                        Some(count) if iteration as u64 >= count => {
                            let condition = rewriter.at(|rewriter| {
                                rewriter.set_before(copy);
                                Arithmetic { rewriter, location }.never()
                            });
                            Some(condition)
                        }
                        Some(_) => None,
                        None => conditions[iteration],
                    };
                    if let Some(condition) = condition {
                        copy = guarded(rewriter, &mut self.guard, copy, condition);
                    }
                }
                for (from, to) in operation.result_values().zip(copy.result_values()) {
                    prologue.results.insert((key(from), iteration), to);
                }
            }
        }
        let slots = self.slots.iter();
        slots
            .map(|&(value, lead)| prologue.value(value, lead).expect("it was computed before"))
            .collect()
    }

    /// Fills the body of a loop that carries these slots.
    fn body(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        ahead: &Ahead<'c, 'a>,
        new: For<'c, 'a>,
        slots: &[(Value<'c, 'a>, usize)],
        part: Part,
    ) {
        let plan = &self.plan;
        let of = plan.of;
        let location = of.operation().loc();
        let (lower, upper, step) = (of.lower(), of.upper(), of.step());
        let carried = new.carried();
        let mut current: HashMap<Key, Value> = HashMap::new();
        let mut numbers: HashMap<usize, Value> = HashMap::from([(0, new.number())]);
        let mut conditions: HashMap<usize, Value> = HashMap::new();
        let mut left = None;
        let mut value_of = |rewriter: &mut Rewriter<'c, 'a>,
                            current: &HashMap<Key, Value<'c, 'a>>,
                            source: Source<'c, 'a>| match source {
            Source::Outside(value) => value,
            Source::Current(value) => current[&key(value)],
            Source::Slot(value, lead) => {
                let slot = slots.iter().position(|slot| *slot == (value, lead));
                carried[slot.expect("all slots are known")]
            }
            Source::Number(lead) => *numbers.entry(lead).or_insert_with(|| {
                let mut arithmetic = Arithmetic { rewriter, location };
                let distance = match induction::constant(step) {
                    Some(step) => {
                        let distance = step.wrapping_mul(lead as i64);
                        arithmetic.constant(lower.r#type(), distance)
                    }
                    None => {
                        let count = arithmetic.constant(lower.r#type(), lead as i64);
                        arithmetic.multiply(step, count)
                    }
                };
                arithmetic.add(new.number(), distance)
            }),
        };
        for (place, staged) in plan.order.iter().enumerate() {
            let (operation, lead) = (staged.operation, plan.lead(place));
            let on_time = match part {
                Part::All { on_time } => on_time,
                Part::Rest if lead == plan.stages - 1 => continue,
                Part::Rest => 0,
            };
            let mut mapping = Mapping::new();
            for value in Plan::operands(operation) {
                let source = plan.source(value, lead, place);
                let source = source.expect("slots were found for all");
                let known = value_of(rewriter, &current, source);
                mapping.map(value, known);
            }
            let condition = (self.has_effects[place] && lead > on_time).then(|| {
                *conditions.entry(lead).or_insert_with(|| {
                    let mut arithmetic = Arithmetic { rewriter, location };
                    let left =
                        *left.get_or_insert_with(|| arithmetic.subtract(upper, new.number()));
                    ahead.condition(&mut arithmetic, lead, left)
                })
            });
            let mut copy = mapping.copy(rewriter, operation);
            if let Some(condition) = condition {
                copy = guarded(rewriter, &mut self.guard, copy, condition);
            }
            for (from, to) in operation.result_values().zip(copy.result_values()) {
                current.insert(key(from), to);
            }
        }
        let next: Vec<Value> = slots
            .iter()
            .zip(new.carried())
            .map(|(&(value, lead), own)| {
                let source = plan.source(value, lead + 1, plan.order.len());
                match source.expect("slots were found for all") {
                    // What would be there is of an iteration behind the last: nothing reads it.
                    Source::Current(value) if !current.contains_key(&key(value)) => own,
                    source => value_of(rewriter, &current, source),
                }
            })
            .collect();
        yield_values(rewriter, location, &next);
    }
}

fn guarded<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    guard: &mut impl FnMut(
        &mut Rewriter<'c, 'a>,
        OperationRef<'c, 'a>,
        Value<'c, 'a>,
    ) -> OperationRef<'c, 'a>,
    copy: OperationRef<'c, 'a>,
    condition: Value<'c, 'a>,
) -> OperationRef<'c, 'a> {
    rewriter.set_before(copy);
    let stands = guard(rewriter, copy, condition);
    rewriter.set_after(stands);
    stands
}
