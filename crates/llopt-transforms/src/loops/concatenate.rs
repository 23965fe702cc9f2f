//! Two loops, one after the other, as one loop.
//!
//! ```text
//! for i = a to b step s, x = x0:            n = iterations of the first, m = of the second
//!   k = load K[i]                           for t = 0 to n + m, x = x0:
//!   x = f(k · q, x)                           k = load K[t < n ? a + t * s : c + (t - n) * r]
//! for j = c to d step r, x:                   y = k · q
//!   k = load K[j]                             z = t < n ? f'(y) : g'(y, j)
//!   x = g(k · q, x)                           x = h(z, x)
//! ```
//!
//! A pipeline is filled before a loop and drained after it. Two loops have that twice; one loop, whose iterations are
//! those of both in the same order, has it once, and what runs ahead in it also runs ahead from the last iteration of the
//! first to the first one of the second. In the causal form of attention the second loop, with the mask of the diagonal,
//! has one iteration or two.
//!
//! # Alignment
//!
//! Operations of both bodies that compute the same, from operands that may differ, become one. The values that the bodies
//! yield are paired first, and their products in order, then the operands of the operations that make them, and so on as
//! long as both are results of the same operation with the same attributes and types. All products and loads have to be
//! paired in this way: where each loop has its own, one loop would gain nothing. What is left over has no effects, and is
//! executed in a conditional (numbers are computed in any case, and one of them selected, so that addresses stay free of
//! conditionals).
//!
//! What both have in common after a difference goes into the conditional, too, as long as tensors do not grow: a
//! conditional ends the overlap of the instructions before it with those in it and behind it, and a multiplication in it
//! cannot be fused with an addition behind it. Only the factor of a product itself is made behind the conditional, since the
//! product of the iteration before may read its registers until then. In attention all between the products but the
//! rounding of weights is in the conditional, and an iteration of the first loop (128 rows by 128 keys, 128 wide, eight
//! warps) takes 488 instructions of a warp instead of 485.
//!
//! # When it is possible
//!
//! No result of the first loop is used but as an initial value of the second one, no operation between the loops has
//! effects or needs the first one, and neither loop stores. Values that only the second loop carries are numbers.
//!
//! # Alternatives rejected
//!
//! With the instructions of the same iteration:
//!
//! - Both bodies, and a select for each element where they differ: 849.
//! - Two loops again after the pipeline is built, cut where the condition changes (index-set splitting: Griebl, Feautrier,
//!   Lengauer, 2000): 516. The slots of rings go from one loop to the next, and NVIDIA's assembler then no longer knows
//!   that they are the same in all lanes: each descriptor is moved to a uniform register. And there is twice the code.
//! - A conditional only around what differs, in which multiplications are not fused with additions: 559. One with the
//!   rounding in it: 515, among them 32 that copy registers.

mod alignment;

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt, attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};

use super::builder::{Arithmetic, yield_values};
use super::clone::Mapping;
use super::induction::constant;
use super::view::{For, If};
use alignment::{Alignment, Carried, Step};

/// Two loops that can become one.
pub struct Concatenation<'c, 'a> {
    first: For<'c, 'a>,
    second: For<'c, 'a>,
    /// The operations between them, which come before both.
    between: Vec<OperationRef<'c, 'a>>,
    carried: Vec<Carried>,
    steps: Vec<Step<'c, 'a>>,
    /// The values that both yield for each carried one.
    yielded: Vec<(Value<'c, 'a>, Value<'c, 'a>)>,
}

impl<'c: 'a, 'a> Concatenation<'c, 'a> {
    /// Two loops of a block, of which the first comes before the second.
    ///
    /// # Errors
    /// Why they cannot become one.
    pub fn of(first: For<'c, 'a>, second: For<'c, 'a>) -> Result<Self, String> {
        if first.operation().parent_block() != second.operation().parent_block() {
            return Err("the loops are not in one block".to_owned());
        }
        let r#type = first.lower().r#type();
        if r#type != second.lower().r#type() {
            return Err("the loops count with numbers of different types".to_owned());
        }
        if attributes(first) != attributes(second) {
            return Err("the loops have different attributes".to_owned());
        }
        if !(is_counted_by_half(first) && is_counted_by_half(second)) {
            return Err(
                "the iterations of the loops may be more than a number can count".to_owned(),
            );
        }
        let between = between(first, second)?;
        let carried = carried(first, second)?;
        let alignment = Alignment::of(first, second, &carried)?;
        let yielded = alignment.yielded(&carried);
        let steps = alignment.steps(&yielded)?;
        Ok(Self {
            yielded,
            first,
            second,
            between,
            carried,
            steps,
        })
    }

    /// Replaces them by one loop.
    pub fn apply(self, rewriter: &mut Rewriter<'c, 'a>) -> For<'c, 'a> {
        let (first, second) = (self.first, self.second);
        for operation in &self.between {
            rewriter.move_before(*operation, first.operation());
        }
        let location = first.operation().loc();
        let context = rewriter.context();
        rewriter.set_before(first.operation());
        let counts = [first, second]
            .map(|of| Arithmetic { rewriter, location }.iterations(of.bounds(), of.is_unsigned()));
        let mut arithmetic = Arithmetic { rewriter, location };
        let zero = arithmetic.constant(first.lower().r#type(), 0);
        let one = arithmetic.constant(first.lower().r#type(), 1);
        let all = arithmetic.add(counts[0], counts[1]);
        let (initial, begins) = (first.initial(), second.initial());
        let initial: Vec<Value> = self
            .carried
            .iter()
            .map(|carried| match *carried {
                Carried::Passed(index, _)
                | Carried::Replaced(index, _)
                | Carried::OfFirst(index) => initial[index],
                Carried::OfSecond(index) => begins[index],
            })
            .collect();
        let mut attributes = attributes(first);
        attributes.push((UNSIGNED, attr::unit(context)));
        let new = For::build(rewriter, location, [zero, all, one], &initial, &attributes);
        rewriter.set_to_end(new.body());
        let mut body = Body::of(rewriter, &self, new, counts[0]);
        for step in &self.steps {
            body.execute(step);
        }
        let next = body.next(&self.yielded);
        yield_values(rewriter, location, &next);
        rewriter.set_after(new.operation());
        let results = second.results();
        for (carried, to) in self.carried.iter().zip(new.results()) {
            match *carried {
                Carried::Passed(_, index) | Carried::OfSecond(index) => {
                    results[index].replace_all_uses(to);
                }
                Carried::Replaced(_, index) if results[index].has_uses() => {
                    // Without an iteration the second loop leaves the number with which it begins.
                    let mut arithmetic = Arithmetic { rewriter, location };
                    let is_empty = arithmetic.is_equal(counts[1], zero);
                    let to = arithmetic.select(is_empty, begins[index], to);
                    results[index].replace_all_uses(to);
                }
                Carried::Replaced(..) | Carried::OfFirst(_) => {}
            }
        }
        second.operation().erase();
        first.operation().erase();
        new
    }
}

/// The attribute of loops that compare numbers as unsigned.
const UNSIGNED: &str = "unsignedCmp";

/// The attributes of a loop apart from that.
fn attributes<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<(&'c str, melior::ir::Attribute<'c>)> {
    let mut attributes = of.operation().attrs();
    attributes.retain(|(name, _)| *name != UNSIGNED);
    attributes
}

/// Whether twice the iterations of a loop can be counted without wrapping around: it takes at most every second number,
/// or those of one sign only.
fn is_counted_by_half(of: For<'_, '_>) -> bool {
    let takes_half = constant(of.step()).is_some_and(|step| step > 1);
    let has_one_sign = !of.is_unsigned() && constant(of.lower()).is_some_and(|lower| lower >= 0);
    takes_half || has_one_sign
}

/// The operations between two loops, which can be executed before them.
fn between<'c: 'a, 'a>(
    first: For<'c, 'a>,
    second: For<'c, 'a>,
) -> Result<Vec<OperationRef<'c, 'a>>, String> {
    let mut between = Vec::new();
    let mut next = first.operation().next_op();
    while let Some(operation) = next.filter(|operation| *operation != second.operation()) {
        between.push(operation);
        next = operation.next_op();
    }
    if next.is_none() {
        return Err("the first loop does not come first".to_owned());
    }
    if let Some(other) = between
        .iter()
        .find(|operation| !operation.is_memory_effect_free())
    {
        return Err(format!("there is {} between the loops", other.name_str()));
    }
    for user in first.results().into_iter().flat_map(ValueExt::users) {
        if user != second.operation() {
            return Err(format!(
                "{} needs the result of the first loop",
                user.name_str()
            ));
        }
    }
    Ok(between)
}

/// The carried values of both loops.
fn carried<'c: 'a, 'a>(first: For<'c, 'a>, second: For<'c, 'a>) -> Result<Vec<Carried>, String> {
    let results = first.results();
    let from = |value: &Value<'c, 'a>| results.iter().position(|result| result == value);
    if second.bounds().iter().any(|bound| from(bound).is_some()) {
        return Err("the iterations of the second loop depend on the first".to_owned());
    }
    let mut carried = Vec::new();
    let mut open: Vec<usize> = (0..results.len()).collect();
    let mut begins = Vec::new();
    for (index, value) in second.initial().iter().enumerate() {
        match from(value) {
            None => begins.push((index, value.r#type())),
            Some(result) if open.contains(&result) => {
                open.retain(|own| *own != result);
                carried.push(Carried::Passed(result, index));
            }
            Some(_) => return Err("the second loop begins with one value twice".to_owned()),
        }
    }
    for (index, r#type) in begins {
        if RankedTensor::of(r#type).is_some() {
            return Err("the second loop does not go on with what the first computes".to_owned());
        }
        let same = open
            .iter()
            .position(|result| results[*result].r#type() == r#type);
        carried.push(match same {
            Some(at) => Carried::Replaced(open.remove(at), index),
            None => Carried::OfSecond(index),
        });
    }
    carried.extend(open.into_iter().map(Carried::OfFirst));
    Ok(carried)
}

/// The new body while it is built.
struct Body<'r, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    /// The values of the new body for those of both loops.
    values: [Mapping<'c, 'a>; 2],
    /// What a pair of values became.
    joined: HashMap<(usize, usize), Value<'c, 'a>>,
    /// Whether this iteration is one of the first loop.
    is_first: Value<'c, 'a>,
    location: Location<'c>,
}

impl<'r, 'c: 'a, 'a> Body<'r, 'c, 'a> {
    /// The numbers and the carried values of an iteration; the first loop has `count` of them.
    fn of(
        rewriter: &'r mut Rewriter<'c, 'a>,
        of: &Concatenation<'c, 'a>,
        new: For<'c, 'a>,
        count: Value<'c, 'a>,
    ) -> Self {
        let (first, second) = (of.first, of.second);
        let location = new.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let is_first = arithmetic.is_below(new.number(), count, true);
        let turns = arithmetic.is_equal(new.number(), count);
        let distance = arithmetic.multiply(new.number(), first.step());
        let number = arithmetic.add(first.lower(), distance);
        let distance = arithmetic.subtract(new.number(), count);
        let distance = arithmetic.multiply(distance, second.step());
        let other = arithmetic.add(second.lower(), distance);
        let mut values = [Mapping::new(), Mapping::new()];
        values[0].map(first.number(), number);
        values[1].map(second.number(), other);
        let (of_first, of_second, begins) = (first.carried(), second.carried(), second.initial());
        for (carried, argument) in of.carried.iter().zip(new.carried()) {
            match *carried {
                Carried::Passed(one, other) => {
                    values[0].map(of_first[one], argument);
                    values[1].map(of_second[other], argument);
                }
                Carried::Replaced(one, other) => {
                    values[0].map(of_first[one], argument);
                    let begins = arithmetic.select(turns, begins[other], argument);
                    values[1].map(of_second[other], begins);
                }
                // The other loop leaves it as it is.
                Carried::OfFirst(one) => {
                    values
                        .iter_mut()
                        .for_each(|of| of.map(of_first[one], argument));
                }
                Carried::OfSecond(other) => {
                    values
                        .iter_mut()
                        .for_each(|of| of.map(of_second[other], argument));
                }
            }
        }
        Self {
            rewriter,
            values,
            joined: HashMap::new(),
            is_first,
            location,
        }
    }

    fn execute(&mut self, step: &Step<'c, 'a>) {
        match step {
            Step::Both(one, other) => {
                let pairs: Vec<_> = one.operand_values().zip(other.operand_values()).collect();
                let operands: Vec<_> = pairs.into_iter().map(|(x, y)| self.join(x, y)).collect();
                let copy = self.rewriter.clone_op(*one);
                for (index, operand) in operands.into_iter().enumerate() {
                    copy.set_operand_value(index, operand);
                }
                let results = one.result_values().zip(other.result_values());
                for ((x, y), new) in results.zip(copy.result_values()) {
                    self.values[0].map(x, new);
                    self.values[1].map(y, new);
                }
            }
            Step::Number(side, operation) => {
                self.values[*side as usize].copy(self.rewriter, *operation);
            }
            Step::Either {
                first,
                second,
                values,
            } => self.branch(first, second, values),
        }
    }

    /// A conditional with operations of the first loop, or the second, and values that it yields.
    fn branch(
        &mut self,
        first: &[OperationRef<'c, 'a>],
        second: &[OperationRef<'c, 'a>],
        values: &[(Value<'c, 'a>, Value<'c, 'a>)],
    ) {
        let maker = values.first().and_then(|(one, _)| one.defining_op());
        let location = maker.map_or(self.location, OperationExt::loc);
        let types: Vec<Type> = values.iter().map(|(value, _)| value.r#type()).collect();
        let [of_first, of_second] = &mut self.values;
        let copied = |rewriter: &mut Rewriter<'c, 'a>,
                      mapping: &mut Mapping<'c, 'a>,
                      all: &[OperationRef<'c, 'a>]| {
            for operation in all {
                mapping.copy(rewriter, *operation);
            }
        };
        let made = If::build(
            self.rewriter,
            location,
            self.is_first,
            &types,
            |rewriter| {
                copied(rewriter, of_first, first);
                values
                    .iter()
                    .map(|(value, _)| of_first.get(*value))
                    .collect()
            },
            |rewriter| {
                copied(rewriter, of_second, second);
                values
                    .iter()
                    .map(|(_, value)| of_second.get(*value))
                    .collect()
            },
        );
        for ((x, y), result) in values.iter().zip(made.results()) {
            self.joined.insert((key(*x), key(*y)), result);
        }
    }

    /// A value of the first loop in its iterations, and one of the second in the others.
    fn join(&mut self, one: Value<'c, 'a>, other: Value<'c, 'a>) -> Value<'c, 'a> {
        if let Some(&value) = self.joined.get(&(key(one), key(other))) {
            return value;
        }
        let (x, y) = (self.values[0].get(one), self.values[1].get(other));
        if x == y {
            return x;
        }
        if RankedTensor::of(x.r#type()).is_some() {
            self.branch(&[], &[], &[(one, other)]);
            return self.joined[&(key(one), key(other))];
        }
        let (location, rewriter) = (self.location, &mut *self.rewriter);
        let value = Arithmetic { rewriter, location }.select(self.is_first, x, y);
        self.joined.insert((key(one), key(other)), value);
        value
    }

    /// The carried values of the next iteration.
    fn next(&mut self, yielded: &[(Value<'c, 'a>, Value<'c, 'a>)]) -> Vec<Value<'c, 'a>> {
        yielded
            .iter()
            .map(|&(one, other)| self.join(one, other))
            .collect()
    }
}
