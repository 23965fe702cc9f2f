//! The registers that are live at the operations of a block.
//!
//! A tensor is live from the operation that makes it to its last use, under whatever names its registers have in between. Tensors of
//! indices, addresses and conditions count nothing, nor what is computed from numbers of threads and scalars: it is computed
//! again at each use. What a product reads from a buffer is read a step along k at a time.

use std::collections::{HashMap, HashSet};

use llopt_dialects::meaning::facts::{Control, OpFacts, Transfer};
use llopt_dialects::tables::module::{num_warps, threads_per_warp};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{BroadcastOp, DotOp};
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, ValueExt, Walk, key};
use llopt_plan::late_operands::held_words;
use llopt_plan::plans::Plans;
use llopt_plan::product;
use melior::ir::{BlockLike, BlockRef, OperationRef, Value, ValueLike};

/// The registers that are live at the operations of a block.
pub(super) struct Live<'c, 'a> {
    pub(super) operations: Vec<OperationRef<'c, 'a>>,
    positions: HashMap<usize, usize>,
    /// Words at each operation.
    pub(super) words: Vec<u32>,
}

impl<'c: 'a, 'a> Live<'c, 'a> {
    pub(super) fn of(block: BlockRef<'c, 'a>, plans: &Plans) -> Self {
        let operations: Vec<OperationRef<'c, 'a>> = block.operations().collect();
        let numbers = operations.iter().enumerate();
        let mut live = Self {
            positions: numbers
                .map(|(at, operation)| (key_of(*operation), at))
                .collect(),
            words: vec![0; operations.len()],
            operations,
        };
        for argument in block.argument_values() {
            live.count(argument, 0, plans);
        }
        for at in 0..live.operations.len() {
            for result in live.operations[at].result_values() {
                live.count(result, at, plans);
            }
        }
        let outside: u32 = held_outside(block)
            .into_iter()
            .map(|value| words(value, plans))
            .sum();
        for words in &mut live.words {
            *words += outside;
        }
        live
    }

    /// The operation of the block in which an operation is.
    pub(super) fn position(&self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        let outer = std::iter::successors(Some(operation), |inner| inner.parent_op());
        let mut numbers = outer.map(|outer| self.positions.get(&key_of(outer)).copied());
        numbers.find_map(|number| number)
    }

    /// The operations that use a value, or what only renames its registers.
    pub(super) fn uses(&self, value: Value<'c, 'a>) -> Vec<usize> {
        let mut open = vec![value];
        let mut found = Vec::new();
        while let Some(value) = open.pop() {
            for user in value.users() {
                found.extend(self.position(user));
                if renames(user) {
                    open.extend(user.result_values());
                }
            }
        }
        found
    }

    /// Counts a value from where it is made to its last use.
    fn count(&mut self, value: Value<'c, 'a>, made: usize, plans: &Plans) {
        let words = words(value, plans);
        if words == 0 {
            return;
        }
        let Some(last) = self.uses(value).into_iter().max() else {
            return;
        };
        let fragment = read_by_product(value, plans).map(|part| part.min(words));
        for at in made..=last {
            self.words[at] += match fragment {
                Some(_) if at < last => 0,
                Some(fragment) => fragment,
                None => words,
            };
        }
    }
}

pub(super) fn threads(operation: OperationRef<'_, '_>) -> u32 {
    num_warps(operation).unwrap_or(1) * threads_per_warp(operation)
}

pub(super) fn key_of(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// Whether the registers of an operation's result are those of its operand.
pub(super) fn renames(operation: OperationRef<'_, '_>) -> bool {
    let transfer = OpFacts::of(operation).layouts;
    matches!(
        transfer,
        Transfer::ExpandDims | Transfer::Transpose | Transfer::Reshape
    ) || BroadcastOp::of(operation).is_some()
}

/// The value whose registers a value has.
pub(super) fn root<'c: 'a, 'a>(value: Value<'c, 'a>) -> Value<'c, 'a> {
    let mut value = value;
    while let Some(made) = value.defining_op().filter(|made| renames(*made)) {
        match made.operand_value(0) {
            Some(source) => value = source,
            None => break,
        }
    }
    value
}

/// Words that a value holds in registers of its own: none for what is computed from numbers of threads and scalars.
pub(super) fn words(value: Value<'_, '_>, plans: &Plans) -> u32 {
    let is_free = value.defining_op().is_some_and(|made| {
        let mut operands = made.operand_values();
        renames(made)
            || made.is_memory_effect_free()
                && made.region_refs().next().is_none()
                && !operands.any(|operand| operand.r#type().is_tensor())
    });
    match is_free {
        true => 0,
        false => held_words(value, plans.types()).unwrap_or(0),
    }
}

/// Words of a value that is read from a buffer and that only a product uses: those of one step along k.
pub(super) fn read_by_product(value: Value<'_, '_>, plans: &Plans) -> Option<u32> {
    LocalLoadOp::defining(value)?;
    part_of_product(value, plans)
}

/// Words of a value that only a product uses, for one step along k.
pub(super) fn part_of_product(value: Value<'_, '_>, plans: &Plans) -> Option<u32> {
    part_of_only_product(value, value.users(), plans)
}

/// The same if these are its users.
pub(super) fn part_of_only_product<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    mut users: impl Iterator<Item = OperationRef<'c, 'a>>,
    plans: &Plans,
) -> Option<u32> {
    let dot = DotOp::of(users.next()?).filter(|dot| value != dot.c())?;
    if users.next().is_some() {
        return None;
    }
    let shape = RankedTensor::of(dot.a().r#type())?.shape();
    let depth = u32::try_from(*shape.last()?).ok()?;
    let selection = product::selection(dot, plans.types(), plans.target());
    let step = selection.map_or(1, |selection| selection.instruction.k);
    Some((words(value, plans) * step.min(depth)).div_ceil(depth.max(1)))
}

/// The values from outside a block that are in registers for all of it: those that are needed behind it, and those that
/// a loop around it needs in each iteration.
pub(super) fn held_outside<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let mut held = Vec::new();
    let mut known = HashSet::new();
    let mut add = |value: Value<'c, 'a>| {
        let value = root(value);
        if known.insert(key(value)) {
            held.push(value);
        }
    };
    let mut inner = BlockLike::parent_operation(&block);
    while let Some(operation) = inner {
        let Some(around) = operation.parent_block() else {
            break;
        };
        if matches!(Control::of(operation), Control::For | Control::While) {
            operation.for_each_op(Walk::PreOrder, |user| {
                for value in user.operand_values() {
                    let made = value.defining_op();
                    if made.is_some_and(|made| !made.is_within(operation)) {
                        add(value);
                    }
                }
            });
        }
        let is_behind = |user: OperationRef<'c, 'a>| {
            let mut outer = std::iter::successors(Some(user), |inner| inner.parent_op());
            let outer = outer.find(|outer| outer.parent_block() == Some(around));
            outer.is_some_and(|outer| operation.is_before(outer))
        };
        let mut before: Vec<Value<'c, 'a>> = around.argument_values().collect();
        let earlier = std::iter::successors(operation.previous_op(), |other| other.previous_op());
        before.extend(earlier.flat_map(|other| other.result_values()));
        for value in before {
            if value.users().any(is_behind) {
                add(value);
            }
        }
        inner = operation.parent_op();
    }
    held
}
