//! What a pipelined loop computes when, before there is any code: the [laws](super) as a function from a value and a lead to
//! its source, and the slots that follow from it.

use std::collections::HashMap;
use std::ffi::c_void;

use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::ir::{OperationRef, Value, ValueLike};

use super::super::view::For;

/// An operation of the body, and its stage.
#[derive(Clone, Copy)]
pub struct Staged<'c, 'a> {
    /// The operation.
    pub operation: OperationRef<'c, 'a>,
    /// Its stage.
    pub stage: usize,
}

/// What a body runs.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// All operations; what is ahead by more than `on_time` iterations is guarded.
    All { on_time: usize },
    /// Those that are not of the first stage, guarded if they are ahead.
    Rest,
}

/// The loop behind the one that runs most.
#[derive(Clone, Copy)]
pub(super) struct Second {
    /// The first loop runs groups of so many iterations.
    pub(super) group: u32,
    pub(super) part: Part,
}

/// Why there is no such pipeline: an operation uses a value that does not exist yet.
#[derive(Clone, Copy)]
pub struct Early<'c, 'a> {
    /// The operation.
    pub operation: OperationRef<'c, 'a>,
}

/// The source of a value in the pipelined loop.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source<'c, 'a> {
    /// It is the same everywhere.
    Outside(Value<'c, 'a>),
    /// The induction variable of an iteration ahead.
    Number(usize),
    /// A result that was computed in this iteration of the pipelined loop.
    Current(Value<'c, 'a>),
    /// The content of a slot: the value, and its lead.
    Slot(Value<'c, 'a>, usize),
}

pub(super) type Key = *const c_void;

pub(super) fn key(value: Value<'_, '_>) -> Key {
    value.to_raw().ptr
}

/// The old loop.
pub(super) struct Plan<'p, 'c, 'a> {
    pub(super) of: For<'c, 'a>,
    pub(super) order: &'p [Staged<'c, 'a>],
    pub(super) stages: usize,
    pub(super) yielded: Vec<Value<'c, 'a>>,
    /// The position in the order of a result's operation.
    pub(super) places: HashMap<Key, usize>,
}

impl<'c: 'a, 'a> Plan<'_, 'c, 'a> {
    pub(super) fn lead(&self, place: usize) -> usize {
        self.stages - 1 - self.order[place].stage
    }

    /// The position of a value among the carried values.
    pub(super) fn carried(&self, value: Value<'c, 'a>) -> Option<usize> {
        let (block, index) = value.argument_of()?;
        (block == self.of.body()).then_some(index)?.checked_sub(1)
    }

    /// The source of a value with a lead; `None` if it does not exist before a position of the order.
    pub(super) fn source(
        &self,
        value: Value<'c, 'a>,
        lead: usize,
        before: usize,
    ) -> Option<Source<'c, 'a>> {
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
    pub(super) fn operands(operation: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
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
    pub(super) fn slots(&self) -> Result<Vec<(Value<'c, 'a>, usize)>, Early<'c, 'a>> {
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
