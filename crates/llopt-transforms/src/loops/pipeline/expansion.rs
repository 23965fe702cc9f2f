//! The code of a pipelined loop: prologue, body, and what follows it.
//!
//! Each copy of an operation finds its operands by the [laws](super): in the prologue by the number of the iteration, in a body
//! by what was computed before in the same iteration or by a slot, behind the loop by the contents that it leaves in the slots.

use std::collections::HashMap;

use llopt_mlir::ir::{OperationExt, ValueExt, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::super::builder::{Arithmetic, yield_values};
use super::super::clone::Mapping;
use super::super::induction;
use super::super::unroll::RARE;
use super::super::view::{For, If};
use super::ahead::Ahead;
use super::plan::{Key, Part, Plan, Second, Source, key};

impl<'c: 'a, 'a> Plan<'_, 'c, 'a> {
    /// The numbers of the iterations that the prologue begins, and of the first one of the loop.
    fn first_numbers(&self, arithmetic: &mut Arithmetic<'_, 'c, 'a>) -> Vec<Value<'c, 'a>> {
        let (lower, step) = (self.of.lower(), self.of.step());
        let mut numbers = vec![lower];
        for _ in 1..self.stages {
            let last = numbers[numbers.len() - 1];
            let next = match (induction::constant(last), induction::constant(step)) {
                (Some(last), Some(step)) => {
                    arithmetic.constant(lower.r#type(), last.wrapping_add(step))
                }
                _ => arithmetic.add(last, step),
            };
            numbers.push(next);
        }
        numbers
    }

    /// Whether there are these iterations; `None` if there is one in any case.
    fn first_conditions(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        ahead: &Ahead<'c, 'a>,
        is_peeled: bool,
    ) -> Vec<Option<Value<'c, 'a>>> {
        let (lower, upper) = (self.of.lower(), self.of.upper());
        let all = arithmetic.subtract(upper, lower);
        let (first, left) = match is_peeled {
            // There is an iteration.
            true => (None, all),
            false => {
                let runs = arithmetic.is_below(lower, upper, self.of.is_unsigned());
                let nothing = arithmetic.constant(lower.r#type(), 0);
                (Some(runs), arithmetic.select(runs, all, nothing))
            }
        };
        let others = (1..self.stages).map(|lead| ahead.condition(arithmetic, lead, left));
        std::iter::once(first).chain(others.map(Some)).collect()
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

/// A loop during its expansion.
pub(super) struct Expansion<'p, 'c, 'a, G> {
    pub(super) plan: Plan<'p, 'c, 'a>,
    /// The values that the new loop carries.
    pub(super) slots: Vec<(Value<'c, 'a>, usize)>,
    /// Whether each operation of the order has effects.
    pub(super) has_effects: Vec<bool>,
    pub(super) guard: G,
}

impl<'c: 'a, 'a, G> Expansion<'_, 'c, 'a, G>
where
    G: FnMut(&mut Rewriter<'c, 'a>, OperationRef<'c, 'a>, Value<'c, 'a>) -> OperationRef<'c, 'a>,
{
    /// The same as [`Expansion::expand`] where the loop runs at all, with its last iteration peeled.
    pub(super) fn expand_if(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        runs: Value<'c, 'a>,
        last: Value<'c, 'a>,
    ) -> (For<'c, 'a>, Vec<Value<'c, 'a>>) {
        let of = self.plan.of;
        let results = of.results().into_iter().zip(of.initial());
        let (used, initial): (Vec<Value>, Vec<Value>) =
            results.filter(|(result, _)| result.has_uses()).unzip();
        let types: Vec<Type> = used.iter().map(|result| result.r#type()).collect();
        let mut new = None;
        let branch = If::build(
            rewriter,
            of.operation().loc(),
            runs,
            &types,
            |rewriter| {
                let (made, results) = self.expand(rewriter, Some(last), None);
                new = Some(made);
                results
            },
            |_| initial,
        );
        (new.expect("the branch has a block"), branch.results())
    }

    /// Inserts the prologue, the loop, and the last iteration if it is peeled and has this number, or a loop of those that
    /// are apart. Answers the loop that runs most, and the results of the old one that are used.
    pub(super) fn expand(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        last: Option<Value<'c, 'a>>,
        apart: Option<Second>,
    ) -> (For<'c, 'a>, Vec<Value<'c, 'a>>) {
        let of = self.plan.of;
        let location = of.operation().loc();
        let most = self.plan.stages - 1;
        let mut arithmetic = Arithmetic { rewriter, location };
        let ahead = Ahead::new(&mut arithmetic, of, most);
        let initial = self.prologue(rewriter, &ahead, last.is_some());
        let cut = apart.and_then(|second| {
            let mut arithmetic = Arithmetic { rewriter, location };
            let cut = ahead.cut(&mut arithmetic, of, most, second.group)?;
            Some((cut, second.part))
        });
        let upper = cut.map(|(cut, _)| cut).or(last).unwrap_or(of.upper());
        let bounds = [of.lower(), upper, of.step()];
        let attributes = of.operation().attrs();
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
        let used = of.carried().into_iter().zip(of.results());
        let used: Vec<Value> = used
            .filter(|(_, result)| result.has_uses())
            .map(|(argument, _)| argument)
            .collect();
        let contents = new.results();
        let results = match (cut, last) {
            (Some(cut), _) => self.second_loop(rewriter, &ahead, cut, &contents, &used),
            (None, Some(last)) => self.last_iteration(rewriter, last, &contents, &used),
            (None, None) => used
                .into_iter()
                .map(|argument| contents[self.slot(argument, 0)])
                .collect(),
        };
        (new, results)
    }

    /// Inserts the loop that goes on at the iteration with the number `cut`, given the contents that the first one leaves in
    /// the slots; returns its results for these carried values.
    fn second_loop(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        ahead: &Ahead<'c, 'a>,
        (cut, part): (Value<'c, 'a>, Part),
        contents: &[Value<'c, 'a>],
        used: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let of = self.plan.of;
        let slots = match part {
            Part::All { .. } => self.slots.clone(),
            Part::Rest => self.slots_of_rest(used),
        };
        let initial: Vec<Value> = slots
            .iter()
            .map(|&(value, lead)| contents[self.slot(value, lead)])
            .collect();
        let bounds = [cut, of.upper(), of.step()];
        let attributes = of.operation().attrs();
        let rest = For::build(
            rewriter,
            of.operation().loc(),
            bounds,
            &initial,
            &attributes,
        );
        if matches!(part, Part::All { .. }) {
            // It is the same loop, but for masks, and runs less than a group and what is ahead.
            let operation = rest.operation();
            operation.set_discardable_attr(RARE, attr::unit(operation.ctx()));
        }
        rewriter.set_to_end(rest.body());
        self.body(rewriter, ahead, rest, &slots, part);
        rewriter.set_after(rest.operation());
        let results = rest.results();
        let result = |argument: &Value<'c, 'a>| {
            let slot = slots.iter().position(|slot| *slot == (*argument, 0));
            results[slot.expect("it is carried")]
        };
        used.iter().map(result).collect()
    }

    /// Inserts what the last iteration, of this number, has in the last stage; what is ahead of it there is not. Given the
    /// contents that the loop leaves in the slots; returns the last values of these carried values.
    fn last_iteration(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        last: Value<'c, 'a>,
        contents: &[Value<'c, 'a>],
        used: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let plan = &self.plan;
        let mut current: HashMap<Key, Value> = HashMap::new();
        let value_of = |current: &HashMap<Key, Value<'c, 'a>>, source| match source {
            Source::Outside(value) => value,
            Source::Current(value) => current[&key(value)],
            Source::Slot(value, lead) => contents[self.slot(value, lead)],
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
        let carried = plan.of.carried();
        let yielded = used.iter().map(|argument| {
            let index = carried.iter().position(|own| own == argument);
            let value = plan.yielded[index.expect("it is carried")];
            let source = plan.source(value, 0, plan.order.len());
            value_of(&current, source.expect("slots were found for all"))
        });
        yielded.collect()
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
        let location = plan.of.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let numbers = plan.first_numbers(&mut arithmetic);
        let conditions = match ahead.count {
            Some(_) => Vec::new(),
            None => plan.first_conditions(&mut arithmetic, ahead, is_peeled),
        };
        let mut prologue = Prologue {
            plan,
            numbers,
            results: HashMap::new(),
        };
        for round in 0..plan.stages - 1 {
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
                let condition = match ahead.count {
                    _ if !self.has_effects[place] => None,
                    Some(count) if iteration as u64 >= count => Some(rewriter.at(|rewriter| {
                        rewriter.set_before(copy);
                        Arithmetic { rewriter, location }.never()
                    })),
                    Some(_) => None,
                    None => conditions[iteration],
                };
                if let Some(condition) = condition {
                    copy = guarded(rewriter, &mut self.guard, copy, condition);
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
        let [lower, upper, step] = of.bounds();
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
