//! The analysis: axis facts of every value of a module, by sparse forward data flow.
//!
//! Values flow in two ways. Most ops compute results from operands, and [`super::op`] says what the facts of a result
//! are. Control flow passes values on unchanged ([`crate::flow`]): an edge runs from each operand of a branch to a
//! block argument, from the operands of `scf.yield` to the arguments and results of its loop, from the operands of a
//! call to the arguments of the callee. A value with edges into it has the meet of what flows in.
//!
//! All values start unvisited; facts only ever descend; an op is visited again when an operand has
//! descended. Ops are taken in program order, so a function without loops takes one pass and a loop
//! two or three.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_void;
use std::ops::Range;

use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use llopt_plan::facts::ValueFacts;
use melior::ir::{OperationRef, Value, ValueLike};
use rustc_hash::FxHashMap;

use super::{AxisFacts, DimFacts, Pow2, op};
use crate::flow::{self, Carry, Edge, Flow};

/// Axis facts of the values of a module (or of any other op), as it was when they were computed.
#[derive(Debug, Default)]
pub struct AxisAnalysis {
    known: ValueFacts,
}

impl AxisAnalysis {
    /// Analyses all functions at and below `root`.
    pub fn of<'c: 'a, 'a>(root: OperationRef<'c, 'a>) -> Self {
        let mut solver = Solver::of(root);
        let facts = solver.solve(true);
        Self {
            known: ValueFacts::new(solver.indices, facts),
        }
    }

    /// The same, and what holds whatever ops promise ([`ValueFacts::proven`]).
    pub fn with_proofs<'c: 'a, 'a>(root: OperationRef<'c, 'a>) -> Self {
        let mut solver = Solver::of(root);
        let facts = solver.solve(true);
        let promised = solver.ops.iter().any(|op| op::promises(op.operation));
        let proven = promised.then(|| solver.solve(false));
        let known = ValueFacts::new(solver.indices, facts);
        Self {
            known: match proven {
                Some(proven) => known.with_proven(proven),
                None => known,
            },
        }
    }

    /// What is known about a value; nothing about one that the analysis did not reach.
    pub fn facts<'c>(&self, value: impl ValueLike<'c>) -> AxisFacts {
        let kind = value.r#type();
        let known = self.known.of(value).cloned();
        known.unwrap_or_else(|| op::unknown(kind))
    }

    /// The facts, value by value.
    #[must_use]
    pub fn into_facts(self) -> ValueFacts {
        self.known
    }
}

fn key<'c>(value: &impl ValueLike<'c>) -> *const c_void {
    value.to_raw().ptr
}

/// An op, numbered in program order. Its operands and results are ranges of [`Solver::numbers`].
struct Visited<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    operands: Range<usize>,
    results: Range<usize>,
    flow: Flow,
    edges: Vec<Edge<usize>>,
}

/// The positions of the ops that use each value, value by value in one list.
#[derive(Default)]
struct Users {
    /// Where those of each value begin, and where the last ones end.
    begins: Vec<usize>,
    positions: Vec<usize>,
}

impl Users {
    fn of(values: usize, ops: &[Visited<'_, '_>], numbers: &[usize]) -> Self {
        let mut begins = vec![0; values + 1];
        for op in ops {
            for &operand in &numbers[op.operands.clone()] {
                begins[operand + 1] += 1;
            }
        }
        for value in 0..values {
            begins[value + 1] += begins[value];
        }
        let mut next = begins.clone();
        let mut positions = vec![0; begins[values]];
        for (position, op) in ops.iter().enumerate() {
            for &operand in &numbers[op.operands.clone()] {
                positions[next[operand]] = position;
                next[operand] += 1;
            }
        }
        Self { begins, positions }
    }

    fn of_value(&self, value: usize) -> &[usize] {
        &self.positions[self.begins[value]..self.begins[value + 1]]
    }
}

#[derive(Default)]
struct Solver<'c, 'a> {
    indices: FxHashMap<*const c_void, usize>,
    facts: Vec<Option<AxisFacts>>,
    /// The values that ops take and make.
    numbers: Vec<usize>,
    users: Users,
    ops: Vec<Visited<'c, 'a>>,
    /// Values that nothing in the module determines, with their facts.
    entries: Vec<(usize, AxisFacts)>,
    queue: BinaryHeap<Reverse<usize>>,
    queued: Vec<bool>,
    /// Whether what ops promise is true.
    trusts: bool,
}

impl<'c: 'a, 'a> Solver<'c, 'a> {
    fn of(root: OperationRef<'c, 'a>) -> Self {
        let mut solver = Self::default();
        solver.collect(root);
        solver.users = Users::of(solver.indices.len(), &solver.ops, &solver.numbers);
        solver
    }

    fn index(&mut self, value: Value<'c, 'a>) -> usize {
        let next = self.indices.len();
        *self.indices.entry(key(&value)).or_insert(next)
    }

    /// Numbers values, and says where their numbers are.
    fn numbered(&mut self, values: impl Iterator<Item = Value<'c, 'a>>) -> Range<usize> {
        let begin = self.numbers.len();
        for value in values {
            let number = self.index(value);
            self.numbers.push(number);
        }
        begin..self.numbers.len()
    }

    /// Numbers the ops below `root` in program order, and their values.
    fn collect(&mut self, root: OperationRef<'c, 'a>) {
        let symbols = flow::Symbols::of(root);
        // An explicit stack: the parser bounds the nesting, but this thread's stack may be smaller than the parser's.
        let mut stack = vec![root];
        while let Some(operation) = stack.pop() {
            self.collect_op(operation, &symbols);
            let below = stack.len();
            for region in operation.region_refs() {
                for block in region.blocks() {
                    stack.extend(block.operations());
                }
            }
            // What is pushed last is taken first.
            stack[below..].reverse();
        }
    }

    fn collect_op(&mut self, operation: OperationRef<'c, 'a>, symbols: &flow::Symbols<'c, 'a>) {
        let operands = self.numbered(operation.operand_values());
        let results = self.numbered(operation.result_values());
        let flow::Step {
            flow,
            edges,
            entries,
        } = flow::step(operation, symbols);
        let edges = edges
            .into_iter()
            .map(|edge| edge.map(|value| self.index(value)))
            .collect();
        for value in entries {
            let index = self.index(value);
            self.entries.push((index, op::from_outside(value)));
        }
        self.ops.push(Visited {
            operation,
            operands,
            results,
            flow,
            edges,
        });
    }

    /// The facts of all values, by number, if what ops promise is true or whether or not it is.
    fn solve(&mut self, trusts: bool) -> Vec<Option<AxisFacts>> {
        self.trusts = trusts;
        self.facts = vec![None; self.indices.len()];
        self.queued = vec![true; self.ops.len()];
        self.queue = (0..self.ops.len()).map(Reverse).collect();
        for entry in 0..self.entries.len() {
            let (value, facts) = self.entries[entry].clone();
            self.descend(value, facts);
        }
        self.settle();
        std::mem::take(&mut self.facts)
    }

    fn settle(&mut self) {
        let mut updates = Vec::new();
        while let Some(Reverse(position)) = self.queue.pop() {
            self.queued[position] = false;
            self.visit(&self.ops[position], &mut updates);
            for (value, facts) in updates.drain(..) {
                self.descend(value, facts);
            }
        }
    }

    /// The facts that flow out of an op into values, from what is known of its operands now.
    fn visit(&self, op: &Visited<'c, 'a>, updates: &mut Vec<(usize, AxisFacts)>) {
        updates.extend(op.edges.iter().filter_map(|edge| {
            let sources: Option<Vec<&AxisFacts>> = edge
                .sources
                .iter()
                .map(|&source| self.facts[source].as_ref())
                .collect();
            Some((edge.target, carried(edge.carry, &sources?)))
        }));
        if op.flow == Flow::Computes {
            let operands: Option<Vec<&AxisFacts>> = self.numbers[op.operands.clone()]
                .iter()
                .map(|&operand| self.facts[operand].as_ref())
                .collect();
            if let Some(operands) = operands {
                let results = op::results(op.operation, &operands, self.trusts);
                let numbers = self.numbers[op.results.clone()].iter().copied();
                updates.extend(numbers.zip(results));
            }
        }
    }

    /// Meets the facts of a value with `facts` and queues its users if that changed them.
    fn descend(&mut self, value: usize, facts: AxisFacts) {
        let known = &mut self.facts[value];
        let lower = match known {
            None => facts,
            Some(known) => known.meet(&facts),
        };
        if known.as_ref() == Some(&lower) {
            return;
        }
        *known = Some(lower);
        for &user in self.users.of_value(value) {
            if !self.queued[user] {
                self.queued[user] = true;
                self.queue.push(Reverse(user));
            }
        }
    }
}

/// The facts that arrive at the end of an edge.
fn carried(carry: Carry, sources: &[&AxisFacts]) -> AxisFacts {
    match (carry, sources) {
        (Carry::Value, [source]) => (*source).clone(),
        (Carry::Induction, [lower, step]) => induction(lower, step),
        _ => AxisFacts::unknown(1, Pow2::ONE),
    }
}

/// `lower`, `lower + step`, `lower + 2·step` …: divisible by what divides both, and at least zero if
/// it starts there and counts upwards.
fn induction(lower: &AxisFacts, step: &AxisFacts) -> AxisFacts {
    AxisFacts {
        dims: vec![DimFacts {
            divisibility: lower.divisor().min(step.divisor()),
            ..DimFacts::UNKNOWN
        }],
        step: Pow2::ONE,
        constant: None,
        non_negative: lower.non_negative && step.non_negative,
    }
}
