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
//! long as both are results of the same operation with the same attributes and types. All products and loads have to be paired in this way: where
//! each loop has its own, one loop would gain nothing. What is left over has no effects, and is executed in a conditional
//! (numbers are computed in any case, and one of them selected, so that addresses stay free of conditionals).
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
//! - Both bodies, and a select for each element where they differ: 849.
//! - Two loops again after the pipeline is built, cut where the condition changes (index-set splitting: Griebl, Feautrier,
//!   Lengauer, 2000): 516. The slots of rings go from one loop to the next, and NVIDIA's assembler then no longer knows
//!   that they are the same in all lanes: each descriptor is moved to a uniform register. And there is twice the code.
//! - A conditional only around what differs, in which multiplications are not fused with additions: 559. One with the
//!   rounding in it: 515, among them 32 that copy registers.

use std::collections::{HashMap, HashSet};

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockLike, BlockRef, Location, OperationRef, Type, Value, ValueLike};

use super::builder::{Arithmetic, yield_values};
use super::clone::Mapping;
use super::induction::constant;
use super::view::{For, If};
use crate::products::is_product;

/// One of the two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Second,
}

/// A carried value of the new loop, by its positions in the two.
#[derive(Clone, Copy)]
enum Carried {
    /// The second loop goes on with the result of the first.
    Passed(usize, usize),
    /// The second loop begins with a number of its own, and the result of the first is not used.
    Replaced(usize, usize),
    /// Only the first loop has it, and its result is not used.
    OfFirst(usize),
    /// Only the second loop has it.
    OfSecond(usize),
}

/// What the body of the new loop does next.
enum Step<'c, 'a> {
    /// An operation that both have.
    Both(OperationRef<'c, 'a>, OperationRef<'c, 'a>),
    /// An operation of one of them that computes numbers.
    Number(Side, OperationRef<'c, 'a>),
    /// What one of them does, or the other: and the pairs of values of which one is used after that.
    Either {
        first: Vec<OperationRef<'c, 'a>>,
        second: Vec<OperationRef<'c, 'a>>,
        values: Vec<(Value<'c, 'a>, Value<'c, 'a>)>,
    },
}

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
        let counts =
            [first, second].map(|of| iterations(&mut Arithmetic { rewriter, location }, of));
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
    if [second.lower(), second.upper(), second.step()]
        .iter()
        .any(|bound| from(bound).is_some())
    {
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

fn op_key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The operations that two bodies have in common.
struct Alignment<'c, 'a> {
    loops: [For<'c, 'a>; 2],
    /// The operation of the second body for one of the first, and the other way round.
    partners: HashMap<usize, OperationRef<'c, 'a>>,
    /// The argument of the first body that is one of the second, too.
    passed: HashMap<usize, Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Alignment<'c, 'a> {
    fn of(first: For<'c, 'a>, second: For<'c, 'a>, carried: &[Carried]) -> Result<Self, String> {
        let mut alignment = Self {
            loops: [first, second],
            partners: HashMap::new(),
            passed: HashMap::new(),
        };
        let arguments = [first.carried(), second.carried()];
        let yielded = [first.yielded(), second.yielded()];
        let mut open = Vec::new();
        for carried in carried {
            if let Carried::Passed(one, other) = *carried {
                let argument = arguments[1][other];
                alignment.passed.insert(key(argument), arguments[0][one]);
            }
            if let Carried::Passed(one, other) | Carried::Replaced(one, other) = *carried {
                open.push((yielded[0][one], yielded[1][other]));
            }
        }
        let [of_first, of_second] = alignment.loops.map(|of| {
            let operations = of.operations().into_iter();
            operations.filter(|operation| is_product(*operation))
        });
        for (x, y) in of_first.zip(of_second) {
            open.extend(x.result_values().zip(y.result_values()));
        }
        while let Some((one, other)) = open.pop() {
            let Some((x, y)) = alignment.makers(one, other) else {
                continue;
            };
            let is_new = !alignment.partners.contains_key(&op_key(x))
                && !alignment.partners.contains_key(&op_key(y));
            if is_new && is_alike(x, y) {
                alignment.partners.insert(op_key(x), y);
                alignment.partners.insert(op_key(y), x);
                open.extend(x.operand_values().zip(y.operand_values()));
            }
        }
        alignment.part();
        for operation in first.operations().into_iter().chain(second.operations()) {
            let is_paired = alignment.partners.contains_key(&op_key(operation));
            let is_load = is_load(operation);
            let has_products = operation.region_refs().len() > 0 && contains_products(operation);
            if has_products || !(operation.is_memory_effect_free() || is_load) {
                return Err(format!("{} is in one of the loops", operation.name_str()));
            }
            if !is_paired && (is_product(operation) || is_load) {
                return Err(format!(
                    "only one of the loops has the {}",
                    operation.name_str()
                ));
            }
        }
        Ok(alignment)
    }

    fn partner(&self, operation: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
        self.partners.get(&op_key(operation)).copied()
    }

    /// Whether a value of the first body is one of the second, too.
    fn is_same(&self, one: Value<'c, 'a>, other: Value<'c, 'a>) -> bool {
        let is_outside = one == other && self.loops.iter().all(|of| of.is_outside(one));
        let are_made = || {
            let (x, y) = self.makers(one, other)?;
            Some(self.partner(x) == Some(y))
        };
        is_outside || self.passed.get(&key(other)) == Some(&one) || are_made() == Some(true)
    }

    /// Leaves to each body what follows from a difference, as far as tensors do not grow.
    fn part(&mut self) {
        let bytes =
            |value: Value<'c, 'a>| RankedTensor::of(value.r#type()).map(RankedTensor::bytes);
        loop {
            // Values of the first body that follow from a difference, and operations that are executed apart from now on.
            let mut following = HashSet::new();
            let mut apart = Vec::new();
            for one in self.loops[0].operations() {
                let Some(other) = self
                    .partner(one)
                    .filter(|_| !(is_product(one) || is_load(one)))
                else {
                    continue;
                };
                let pairs = one.operand_values().zip(other.operand_values());
                let differs = pairs.filter(|(x, y)| !self.is_same(*x, *y));
                let largest = differs.filter_map(|(x, _)| bytes(x)).max();
                if largest.is_some()
                    || one
                        .operand_values()
                        .any(|value| following.contains(&key(value)))
                {
                    following.extend(one.result_values().map(key));
                }
                let grows = one.result_values().map(bytes).max() > Some(largest);
                let users = one.result_values().flat_map(ValueExt::users);
                let mut others = users.filter(|user| !is_product(*user));
                if largest.is_some() && !grows && others.next().is_some() {
                    apart.push(one);
                }
            }
            for side in self.loops {
                for operation in side.operations() {
                    if self.partner(operation).is_some() {
                        continue;
                    }
                    // What it needs of that cannot come from behind the conditional.
                    operation.for_each_op(Walk::PreOrder, |inner| {
                        for maker in inner.operand_values().filter_map(ValueExt::defining_op) {
                            let one = match maker.parent_block() == Some(self.loops[0].body()) {
                                true => Some(maker),
                                false => self.partner(maker),
                            };
                            let follows = |one: &OperationRef<'c, 'a>| {
                                one.result_values()
                                    .any(|value| following.contains(&key(value)))
                            };
                            apart.extend(
                                one.filter(|_| self.partner(maker).is_some())
                                    .filter(follows),
                            );
                        }
                    });
                }
            }
            if apart.is_empty() {
                return;
            }
            for one in apart {
                if let Some(other) = self.partners.remove(&op_key(one)) {
                    self.partners.remove(&op_key(other));
                }
            }
        }
    }

    /// The operations of both bodies that make a pair of values.
    fn makers(
        &self,
        one: Value<'c, 'a>,
        other: Value<'c, 'a>,
    ) -> Option<(OperationRef<'c, 'a>, OperationRef<'c, 'a>)> {
        let (x, y) = (one.defining_op()?, other.defining_op()?);
        let in_bodies = x.parent_block() == Some(self.loops[0].body())
            && y.parent_block() == Some(self.loops[1].body());
        (in_bodies && one.result_index() == other.result_index()).then_some((x, y))
    }

    fn side(&self, side: Side) -> For<'c, 'a> {
        match side {
            Side::First => self.loops[0],
            Side::Second => self.loops[1],
        }
    }

    /// The order of the new body.
    ///
    /// # Errors
    /// What the loops have in common cannot be computed in one order, or depends in turns on what they have not.
    fn steps(
        &self,
        yielded: &[(Value<'c, 'a>, Value<'c, 'a>)],
    ) -> Result<Vec<Step<'c, 'a>>, String> {
        let mut order = Order {
            alignment: self,
            known: HashSet::new(),
            steps: Vec::new(),
        };
        let mut left: Vec<(Side, OperationRef<'c, 'a>)> = Vec::new();
        for side in [Side::First, Side::Second] {
            let operations = self.side(side).operations().into_iter();
            left.extend(operations.map(|operation| (side, operation)));
        }
        while !left.is_empty() {
            let before = left.len();
            left.retain(|&(side, operation)| !order.take(side, operation));
            if left.len() < before {
                continue;
            }
            order.branch(&mut left, yielded)?;
            if left.len() == before {
                return Err("the loops have the same operations in different orders".to_owned());
            }
        }
        Ok(order.steps)
    }

    /// The pairs of values that the bodies yield.
    fn yielded(&self, carried: &[Carried]) -> Vec<(Value<'c, 'a>, Value<'c, 'a>)> {
        let [first, second] = self.loops.map(For::yielded);
        let [of_first, of_second] = self.loops.map(For::carried);
        let pairs = carried.iter().map(|carried| match *carried {
            Carried::Passed(one, other) | Carried::Replaced(one, other) => {
                (first[one], second[other])
            }
            Carried::OfFirst(one) => (first[one], of_first[one]),
            Carried::OfSecond(other) => (of_second[other], second[other]),
        });
        pairs.collect()
    }
}

/// The order of the new body, as far as it is known.
struct Order<'r, 'c, 'a> {
    alignment: &'r Alignment<'c, 'a>,
    known: HashSet<usize>,
    steps: Vec<Step<'c, 'a>>,
}

impl<'c: 'a, 'a> Order<'_, 'c, 'a> {
    fn is_known(&self, value: Value<'c, 'a>) -> bool {
        let [first, second] = self.alignment.loops;
        let is_argument = value
            .argument_of()
            .is_some_and(|(block, _)| block == first.body() || block == second.body());
        is_argument
            || self.known.contains(&key(value))
            || (first.is_outside(value) && second.is_outside(value))
    }

    /// Whether all that an operation needs is known, or made by one of some operations.
    fn is_ready(&self, operation: OperationRef<'c, 'a>, made: &HashSet<usize>) -> bool {
        let mut ready = true;
        operation.for_each_op(Walk::PreOrder, |inner| {
            ready &= inner.operand_values().all(|value| {
                let owner =
                    ValueExt::parent_block(value).and_then(|block| block.parent_operation());
                self.is_known(value)
                    || made.contains(&key(value))
                    || owner.is_some_and(|owner| owner.is_within(operation))
            });
        });
        ready
    }

    /// Appends an operation that can be executed in any iteration; answers whether it is one, or was one already.
    fn take(&mut self, side: Side, operation: OperationRef<'c, 'a>) -> bool {
        let nothing = HashSet::new();
        let step = match self.alignment.partners.get(&op_key(operation)) {
            Some(_) if side == Side::Second => {
                // It comes with its partner.
                return operation
                    .result_values()
                    .all(|result| self.known.contains(&key(result)));
            }
            Some(&other)
                if self.is_ready(operation, &nothing) && self.is_ready(other, &nothing) =>
            {
                self.known.extend(other.result_values().map(key));
                Step::Both(operation, other)
            }
            None if is_of_numbers(operation) && self.is_ready(operation, &nothing) => {
                Step::Number(side, operation)
            }
            _ => return false,
        };
        self.known.extend(operation.result_values().map(key));
        self.steps.push(step);
        true
    }

    /// Appends a conditional with all that is ready in one of the bodies only.
    fn branch(
        &mut self,
        left: &mut Vec<(Side, OperationRef<'c, 'a>)>,
        yielded: &[(Value<'c, 'a>, Value<'c, 'a>)],
    ) -> Result<(), String> {
        let mut made = HashSet::new();
        let mut own: [Vec<OperationRef<'c, 'a>>; 2] = Default::default();
        let mut others = Vec::new();
        for &(side, operation) in left.iter() {
            let is_paired = self.alignment.partners.contains_key(&op_key(operation));
            if is_paired || !self.is_ready(operation, &made) {
                others.push((side, operation));
                continue;
            }
            made.extend(operation.result_values().map(key));
            own[side as usize].push(operation);
        }
        let of_pairs = others.iter().filter(|(side, _)| *side == Side::First);
        let of_pairs = of_pairs.filter_map(|(_, operation)| {
            let other = self.alignment.partners.get(&op_key(*operation))?;
            Some(operation.operand_values().zip(other.operand_values()))
        });
        let mut values = Vec::new();
        let mut taken = HashSet::new();
        // Whoever needs one of these values is in the conditional, or gets it from there.
        let mut is_left_out = false;
        for (x, y) in of_pairs.flatten().chain(yielded.iter().copied()) {
            if made.contains(&key(x)) || made.contains(&key(y)) {
                let has = |value| self.is_known(value) || made.contains(&key(value));
                is_left_out |= !(has(x) && has(y));
                if taken.insert((key(x), key(y))) {
                    values.push((x, y));
                }
            }
        }
        for (_, operation) in &others {
            let is_paired = self.alignment.partners.contains_key(&op_key(*operation));
            operation.for_each_op(Walk::PreOrder, |inner| {
                let mut operands = inner.operand_values();
                is_left_out |= !is_paired && operands.any(|value| made.contains(&key(value)));
            });
        }
        if is_left_out {
            return Err("what the loops do differently is in several places".to_owned());
        }
        let [first, second] = own;
        self.known.extend(made);
        self.steps.push(Step::Either {
            first,
            second,
            values,
        });
        *left = others;
        Ok(())
    }
}

/// Whether an operation computes numbers from numbers, without effects and for any operands.
fn is_of_numbers(operation: OperationRef<'_, '_>) -> bool {
    let is_number = |r#type: Type<'_>| RankedTensor::of(r#type).is_none();
    operation.is_memory_effect_free()
        && operation.is_speculatable()
        && operation.region_refs().len() == 0
        && operation
            .operand_types()
            .chain(operation.result_types())
            .all(is_number)
}

/// Whether an operation only loads from global memory.
fn is_load(operation: OperationRef<'_, '_>) -> bool {
    tt::DescriptorLoadOp::of(operation).is_some()
        || tt::LoadOp::of(operation).is_some_and(|load| !load.is_volatile())
}

fn contains_products(operation: OperationRef<'_, '_>) -> bool {
    let mut found = false;
    operation.for_each_op(Walk::PreOrder, |inner| found |= is_product(inner));
    found
}

/// Whether two operations are the same apart from their operands, on which they do not depend inside.
fn is_alike(one: OperationRef<'_, '_>, other: OperationRef<'_, '_>) -> bool {
    let mut arguments = HashMap::new();
    is_alike_within(one, other, &mut arguments)
}

fn is_alike_within(
    one: OperationRef<'_, '_>,
    other: OperationRef<'_, '_>,
    inner: &mut HashMap<usize, usize>,
) -> bool {
    let is_same = one.name_str() == other.name_str()
        && one.attrs() == other.attrs()
        && one.operand_types().eq(other.operand_types())
        && one.result_types().eq(other.result_types())
        && one.region_refs().len() == other.region_refs().len();
    is_same
        && one.region_refs().zip(other.region_refs()).all(|(x, y)| {
            match (x.single_block(), y.single_block()) {
                (Some(x), Some(y)) => are_alike(x, y, inner),
                _ => false,
            }
        })
}

/// Whether two blocks compute the same from their own arguments.
fn are_alike(
    one: BlockRef<'_, '_>,
    other: BlockRef<'_, '_>,
    inner: &mut HashMap<usize, usize>,
) -> bool {
    let types = one.argument_values().map(|value| value.r#type());
    if !types.eq(other.argument_values().map(|value| value.r#type())) {
        return false;
    }
    inner.extend(
        one.argument_values()
            .map(key)
            .zip(other.argument_values().map(key)),
    );
    let operations: [Vec<OperationRef>; 2] =
        [one.operations().collect(), other.operations().collect()];
    operations[0].len() == operations[1].len()
        && operations[0].iter().zip(&operations[1]).all(|(x, y)| {
            let same = x
                .operand_values()
                .zip(y.operand_values())
                .all(|(x, y)| inner.get(&key(x)) == Some(&key(y)));
            let alike = same && is_alike_within(*x, *y, inner);
            inner.extend(x.result_values().map(key).zip(y.result_values().map(key)));
            alike
        })
}

/// The iterations of a loop.
fn iterations<'c: 'a, 'a>(
    arithmetic: &mut Arithmetic<'_, 'c, 'a>,
    of: For<'c, 'a>,
) -> Value<'c, 'a> {
    let r#type = of.lower().r#type();
    let any = arithmetic.is_below(of.lower(), of.upper(), of.is_unsigned());
    let one = arithmetic.constant(r#type, 1);
    let none = arithmetic.constant(r#type, 0);
    // The distance of numbers never overflows without a sign.
    let distance = arithmetic.subtract(of.upper(), of.lower());
    let distance = arithmetic.subtract(distance, one);
    let steps = arithmetic.divide(distance, of.step());
    let count = arithmetic.add(steps, one);
    arithmetic.select(any, count, none)
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
