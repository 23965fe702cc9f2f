//! What the bodies of two loops have in common, and the order in which one body computes that and the rest.

use std::collections::{HashMap, HashSet};

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, key};
use melior::ir::{BlockLike, BlockRef, OperationRef, Type, Value, ValueLike};

use crate::loops::view::For;
use crate::products::{is_product, multiplies};

/// One of the two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

/// A carried value of the new loop, by its positions in the two.
#[derive(Clone, Copy)]
pub(super) enum Carried {
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
pub(super) enum Step<'c, 'a> {
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

fn op_key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The operations that two bodies have in common.
pub(super) struct Alignment<'c, 'a> {
    loops: [For<'c, 'a>; 2],
    /// The operation of the second body for one of the first, and the other way round.
    partners: HashMap<usize, OperationRef<'c, 'a>>,
    /// The argument of the first body that is one of the second, too.
    passed: HashMap<usize, Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Alignment<'c, 'a> {
    pub(super) fn of(
        first: For<'c, 'a>,
        second: For<'c, 'a>,
        carried: &[Carried],
    ) -> Result<Self, String> {
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
            let has_products = operation.region_refs().len() > 0 && multiplies(operation);
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
        loop {
            let (following, is_changed) = self.part_behind_differences();
            if !self.part_what_needs(&following) && !is_changed {
                return;
            }
        }
    }

    /// Leaves to each body the operations of which an operand differs. Answers the values of the first body that follow
    /// from a difference, and whether there were such operations.
    fn part_behind_differences(&mut self) -> (HashSet<usize>, bool) {
        let bytes =
            |value: Value<'c, 'a>| RankedTensor::of(value.r#type()).map(RankedTensor::bytes);
        let mut following = HashSet::new();
        let mut is_changed = false;
        for one in self.loops[0].operations() {
            let is_shared = is_product(one) || is_load(one);
            let Some(other) = self.partner(one).filter(|_| !is_shared) else {
                continue;
            };
            let pairs = one.operand_values().zip(other.operand_values());
            let differs = pairs.filter(|(x, y)| !self.is_same(*x, *y));
            let largest = differs.filter_map(|(x, _)| bytes(x)).max();
            let mut operands = one.operand_values();
            if largest.is_some() || operands.any(|value| following.contains(&key(value))) {
                following.extend(one.result_values().map(key));
            }
            let grows = one.result_values().map(bytes).max() > Some(largest);
            let users = one.result_values().flat_map(ValueExt::users);
            let mut others = users.filter(|user| !is_product(*user));
            if largest.is_some() && !grows && others.next().is_some() {
                self.separate(one, other);
                is_changed = true;
            }
        }
        (following, is_changed)
    }

    /// Leaves to each body what its own operations need and what follows from a difference: it cannot come from behind
    /// the conditional. Answers whether there is any.
    fn part_what_needs(&mut self, following: &HashSet<usize>) -> bool {
        let mut is_changed = false;
        for side in self.loops {
            for operation in side.operations().into_iter().rev() {
                if self.partner(operation).is_some() {
                    continue;
                }
                operation.for_each_op(Walk::PreOrder, |inner| {
                    for maker in inner.operand_values().filter_map(ValueExt::defining_op) {
                        let Some(partner) = self.partner(maker) else {
                            continue;
                        };
                        let is_first = maker.parent_block() == Some(self.loops[0].body());
                        let [one, other] = match is_first {
                            true => [maker, partner],
                            false => [partner, maker],
                        };
                        if one
                            .result_values()
                            .any(|value| following.contains(&key(value)))
                        {
                            self.separate(one, other);
                            is_changed = true;
                        }
                    }
                });
            }
        }
        is_changed
    }

    fn separate(&mut self, one: OperationRef<'c, 'a>, other: OperationRef<'c, 'a>) {
        self.partners.remove(&op_key(one));
        self.partners.remove(&op_key(other));
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
    pub(super) fn steps(
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
    pub(super) fn yielded(&self, carried: &[Carried]) -> Vec<(Value<'c, 'a>, Value<'c, 'a>)> {
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
