//! Where control flow joins descriptors, and which of their parts differ there.

use std::collections::HashMap;
use std::ops::ControlFlow;

use llopt_dialects::arith::SelectOp;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::TensorDesc;
use llopt_dialects::tt::MakeTensorDescOp;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, key};
use melior::ir::{BlockLike, BlockRef, OperationRef, Value, ValueLike};

use super::part::{Known, Part};
use crate::flow::{self, Carry, Flow, Symbols};

/// A descriptor of which nobody can say the parts.
pub struct Opaque<'c, 'a> {
    /// The op to report.
    pub operation: OperationRef<'c, 'a>,
    /// What is the matter with it, in words that complete "it …".
    pub reason: &'static str,
    /// Whether a unit that reads descriptors from memory would know the parts.
    pub is_in_memory: bool,
}

/// An operand of an op that control flow hands on to a join.
#[derive(Clone, Copy)]
pub(super) struct Feed<'c, 'a> {
    pub(super) operation: OperationRef<'c, 'a>,
    pub(super) operand: usize,
    pub(super) source: Value<'c, 'a>,
    pub(super) join: usize,
}

/// Descriptors that are one of several: all of `values` are the one that comes in.
pub(super) struct Join<'c, 'a> {
    pub(super) descriptor: TensorDesc<'c>,
    /// Block arguments and results.
    pub(super) values: Vec<Value<'c, 'a>>,
    /// Whether it is a parameter of a function that the launcher calls.
    pub(super) is_parameter: bool,
    incoming: Vec<Value<'c, 'a>>,
    parts: Vec<(Part, State<'c, 'a>)>,
}

/// What a part is at a join.
#[derive(Clone, Copy)]
enum State<'c, 'a> {
    /// Nothing has come in yet.
    Unseen,
    /// The part of one descriptor only.
    Of(Origin<'c, 'a>),
    /// Several: the join has a part of its own.
    Own,
}

/// The descriptor whose part is meant.
#[derive(Clone, Copy)]
pub(super) enum Origin<'c, 'a> {
    /// The one that an op makes.
    Made(MakeTensorDescOp<'c, 'a>),
    /// A value of a join that has the part as its own.
    Joined(Value<'c, 'a>),
}

/// All joins of a module.
pub(super) struct Joins<'c, 'a> {
    pub(super) all: Vec<Join<'c, 'a>>,
    pub(super) feeds: Vec<Feed<'c, 'a>>,
    pub(super) selects: Vec<SelectOp<'c, 'a>>,
    /// The join of a value.
    of: HashMap<usize, usize>,
}

/// The type of a value as a descriptor.
pub(super) fn descriptor_of<'c>(value: Value<'c, '_>) -> Option<TensorDesc<'c>> {
    TensorDesc::of(value.r#type())
}

/// Whether a value of a block can be named in another block, as far as regions are concerned.
fn is_visible(from: BlockRef<'_, '_>, to: BlockRef<'_, '_>) -> bool {
    let region = from.parent_region();
    let mut block = Some(to);
    while let Some(at) = block {
        if at.parent_region() == region {
            return true;
        }
        block = at
            .parent_operation()
            .and_then(|around| around.parent_block());
    }
    false
}

impl<'c: 'a, 'a> Joins<'c, 'a> {
    /// Finds them below an op.
    ///
    /// # Errors
    /// A descriptor comes from elsewhere, and is not made.
    pub(super) fn of(root: OperationRef<'c, 'a>) -> Result<Self, Opaque<'c, 'a>> {
        let mut joins = Self {
            all: Vec::new(),
            feeds: Vec::new(),
            selects: Vec::new(),
            of: HashMap::new(),
        };
        let symbols = Symbols::of(root);
        let outcome = root.walk_ops(Walk::PreOrder, |operation| {
            match joins.note(operation, &symbols) {
                Ok(()) => ControlFlow::Continue(()),
                Err(opaque) => ControlFlow::Break(opaque),
            }
        });
        if let ControlFlow::Break(opaque) = outcome {
            return Err(opaque);
        }
        for feed in &joins.feeds {
            joins.all[feed.join].incoming.push(feed.source);
        }
        joins.find_own();
        Ok(joins)
    }

    /// What one op contributes.
    fn note(
        &mut self,
        operation: OperationRef<'c, 'a>,
        symbols: &Symbols<'c, 'a>,
    ) -> Result<(), Opaque<'c, 'a>> {
        let opaque = |reason| {
            Err(Opaque {
                operation,
                reason,
                is_in_memory: false,
            })
        };
        let is_descriptor = |value: &Value<'c, 'a>| descriptor_of(*value).is_some();
        for region in operation.region_refs() {
            for argument in region.blocks().flat_map(BlockExt::argument_values) {
                self.join_of(argument);
            }
        }
        if let Some(maker) = MakeTensorDescOp::of(operation) {
            let of = descriptor_of(maker.result());
            let expected = of.map(|of| Part::Base.r#type(operation.ctx(), of));
            if expected != Some(maker.base().r#type()) {
                return opaque("describes elements of another type than its pointer points to");
            }
            return Ok(());
        }
        if let Some(select) = SelectOp::of(operation) {
            if let Some(join) = operation.result_value(0).and_then(|of| self.join_of(of)) {
                self.selects.push(select);
                let chosen = [select.true_value(), select.false_value()];
                self.all[join].incoming.extend(chosen);
            }
            return Ok(());
        }
        let step = flow::step(operation, symbols);
        if step.entries.iter().any(is_descriptor) {
            if Control::of(operation) != Control::Function {
                return opaque("hands a tensor descriptor on in a way that is not known");
            }
            for entry in step.entries {
                if let Some(join) = self.join_of(entry) {
                    self.all[join].is_parameter = true;
                }
            }
        }
        let edges = step.edges.into_iter();
        let edges = edges.filter(|edge| edge.carry == Carry::Value && is_descriptor(&edge.target));
        for edge in edges {
            if operation.operand_value(edge.operand) != Some(edge.sources[0]) {
                return opaque("hands a tensor descriptor on to a partition");
            }
            self.feed(operation, edge.operand, edge.target);
        }
        if step.flow == Flow::Computes && operation.result_values().any(|of| is_descriptor(&of)) {
            return Err(Opaque {
                operation,
                reason: "says neither where the tensor of its descriptor is nor how large",
                is_in_memory: true,
            });
        }
        for result in operation.result_values() {
            self.join_of(result);
        }
        Ok(())
    }

    /// An operand that is handed on to a value.
    fn feed(&mut self, operation: OperationRef<'c, 'a>, operand: usize, target: Value<'c, 'a>) {
        let source = operation.operand_value(operand);
        let (Some(source), Some(join)) = (source, self.join_of(target)) else {
            return;
        };
        let before = self.feeds.iter().rev();
        let mut before = before.take_while(|feed| feed.operation == operation);
        let same = before.find(|feed| feed.operand == operand);
        match same.map(|feed| feed.join) {
            // What takes the same operand is the same.
            Some(other) => self.merge(other, join),
            None => self.feeds.push(Feed {
                operation,
                operand,
                source,
                join,
            }),
        }
    }

    /// The join of a value that is a descriptor; a new one if there is none.
    fn join_of(&mut self, value: Value<'c, 'a>) -> Option<usize> {
        let descriptor = descriptor_of(value)?;
        let number = *self.of.entry(key(value)).or_insert(self.all.len());
        if number == self.all.len() {
            let parts = Part::all(descriptor).into_iter();
            self.all.push(Join {
                descriptor,
                values: vec![value],
                is_parameter: false,
                incoming: Vec::new(),
                parts: parts.map(|part| (part, State::Unseen)).collect(),
            });
        }
        Some(number)
    }

    /// Makes one join of two.
    fn merge(&mut self, into: usize, from: usize) {
        if into == from {
            return;
        }
        let values = std::mem::take(&mut self.all[from].values);
        let incoming = std::mem::take(&mut self.all[from].incoming);
        self.of
            .extend(values.iter().map(|&value| (key(value), into)));
        for feed in self.feeds.iter_mut().filter(|feed| feed.join == from) {
            feed.join = into;
        }
        let is_parameter = self.all[from].is_parameter;
        let join = &mut self.all[into];
        join.values.extend(values);
        join.incoming.extend(incoming);
        join.is_parameter |= is_parameter;
    }

    /// Determines which joins have a part as their own.
    fn find_own(&mut self) {
        for join in self.all.iter_mut().filter(|join| join.is_parameter) {
            for (_, state) in &mut join.parts {
                *state = State::Own;
            }
        }
        loop {
            self.propagate();
            let mut own = Vec::new();
            for number in 0..self.all.len() {
                for index in 0..self.all[number].parts.len() {
                    if self.differs(number, index) {
                        own.push((number, index));
                    }
                }
            }
            if own.is_empty() {
                return;
            }
            for (number, index) in own {
                self.all[number].parts[index].1 = State::Own;
            }
        }
    }

    /// Lets parts reach all joins that have none of their own, each the first that comes.
    fn propagate(&mut self) {
        for (_, state) in self.all.iter_mut().flat_map(|join| &mut join.parts) {
            if let State::Of(_) = state {
                *state = State::Unseen;
            }
        }
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for number in 0..self.all.len() {
                for index in 0..self.all[number].parts.len() {
                    let (part, state) = self.all[number].parts[index];
                    if !matches!(state, State::Unseen) {
                        continue;
                    }
                    let mut incoming = self.all[number].incoming.iter();
                    if let Some(origin) = incoming.find_map(|&value| self.origin(value, part)) {
                        self.all[number].parts[index].1 = State::Of(origin);
                        has_changed = true;
                    }
                }
            }
        }
    }

    /// Whether a part that a join has from elsewhere is not the same along all ways, or has no name there.
    fn differs(&self, number: usize, index: usize) -> bool {
        let join = &self.all[number];
        let (part, state) = join.parts[index];
        let origin = match state {
            _ if join.values.is_empty() || !part.matters(join.descriptor) => return false,
            State::Own => return false,
            State::Unseen => return true,
            State::Of(origin) => origin,
        };
        let first = Self::name_of(origin, part);
        let place = match first {
            Known::Constant(_) => None,
            Known::Value(value) => ValueExt::parent_block(value),
        };
        let blocks = join
            .values
            .iter()
            .filter_map(|&of| ValueExt::parent_block(of));
        let has_name = place.is_none_or(|from| blocks.clone().all(|to| is_visible(from, to)));
        let is_same = |&value: &Value<'c, 'a>| {
            let other = self.origin(value, part);
            other.is_some_and(|other| Self::name_of(other, part) == first)
        };
        !has_name || !join.incoming.iter().all(is_same)
    }

    /// What identifies a part: equal names are equal parts.
    fn name_of(origin: Origin<'c, 'a>, part: Part) -> Known<'c, 'a> {
        match origin {
            Origin::Made(maker) => part.made_by(maker),
            Origin::Joined(value) => Known::Value(value),
        }
    }

    /// The descriptor whose part that of a descriptor is.
    pub(super) fn origin(&self, value: Value<'c, 'a>, part: Part) -> Option<Origin<'c, 'a>> {
        if let Some(maker) = MakeTensorDescOp::defining(value) {
            return Some(Origin::Made(maker));
        }
        let join = &self.all[*self.of.get(&key(value))?];
        let (_, state) = join.parts.iter().find(|(of, _)| *of == part)?;
        match *state {
            State::Unseen => None,
            State::Of(origin) => Some(origin),
            State::Own => Some(Origin::Joined(value)),
        }
    }

    /// The join of a value.
    pub(super) fn join(&self, value: Value<'c, 'a>) -> Option<&Join<'c, 'a>> {
        Some(&self.all[*self.of.get(&key(value))?])
    }
}

impl Join<'_, '_> {
    /// The parts that are handed on to it: those of its own.
    pub(super) fn own(&self) -> Vec<Part> {
        let parts = self.parts.iter();
        let own = parts.filter(|(_, state)| matches!(state, State::Own));
        own.map(|(part, _)| *part).collect()
    }
}
