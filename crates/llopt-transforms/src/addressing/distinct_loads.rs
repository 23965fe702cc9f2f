//! `--distinct-loads`: loads of tiles in which addresses repeat load each address once.
//!
//! A word of packed weights holds several numbers, and kernels compute the address of the word of each number: the rows of
//! a tile of weights of four bits are those of `k / 8`, so that eight rows are the same words.
//!
//! ```text
//!   p[k, n] = b + (k / 8) · stride + n          q[j, n] = b + j · stride + n
//!
//!   load p : 64 x 64                            load q : 8 x 64 → 8 x 1 x 64 → 8 x 8 x 64 → 64 x 64
//! ```
//!
//! On the left, a ring of buffers has eight copies of each word, and threads issue as many copies to shared memory. On the
//! right there is one, and what is repeated are registers, or reads of shared memory.
//!
//! # The sample of a tensor
//!
//! Let addresses, mask and what is read instead be the same throughout aligned runs of `c` positions along a dimension, as
//! [`crate::axis`] proves. Their *samples* are the tensors of every `c`-th element along it. An op that works on
//! each element by itself computes the sample of its result from those of its operands; ranges, splats and constants have
//! samples of their own; a loop that carries a tensor carries its sample, too. Where the extent along the dimension is one,
//! nothing varies along it, and a tensor is its own sample. All other tensors have none, and a load from addresses without a sample
//! stays as it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::meaning::fold::{bits, resized};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{self, LoadOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith as build;
use melior::ir::{Attribute, BlockLike, OperationRef, Type, Value, ValueLike};

use crate::axis::AxisAnalysis;
use crate::loops::carried;
use crate::loops::view::{self, For};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith"],
    ..PassSpec::new("distinct-loads", "load each address of a tile once", run)
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Rewrites all loads of a module in which addresses repeat.
pub fn rewrite(module: OperationRef<'_, '_>) {
    // What is loaded has one dimension less along which addresses repeat each time.
    while rewrite_along_one(module) {}
}

/// Rewrites loads along a dimension each; whether there are any.
fn rewrite_along_one(module: OperationRef<'_, '_>) -> bool {
    let mut loads = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| loads.extend(LoadOp::of(op)));
    if loads.is_empty() {
        return false;
    }
    let analysis = AxisAnalysis::of(module);
    let repeated: Vec<_> = loads
        .into_iter()
        .filter_map(|load| Some((load, Run::of(load, &analysis)?)))
        .collect();
    let mut rewriter = Rewriter::new(module.ctx());
    let mut samples = Samples::new();
    let mut is_changed = false;
    for (load, run) in repeated {
        if let Some(sampling) = Sampling::of(load, run, &mut samples) {
            sampling.rewrite(&mut rewriter, load);
            is_changed = true;
        }
    }
    if is_changed {
        // The tensors of addresses from which nothing loads any more.
        for of in view::inner_first(module) {
            carried::drop_unread(&mut rewriter, of);
        }
    }
    is_changed
}

/// Positions along a dimension throughout which tensors are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    dim: usize,
    length: i64,
}

impl Run {
    /// The first dimension along which a load reads the same addresses in runs.
    fn of(load: LoadOp<'_, '_>, analysis: &AxisAnalysis) -> Option<Self> {
        let tensor = RankedTensor::of(load.result().r#type())?;
        if load.is_volatile() || tensor.encoding().is_some() {
            return None;
        }
        // What is read instead is a constant in most kernels, and facts are those of integers.
        let is_uniform = |value: &Value| constant(*value).is_some();
        let operands = load.operation().operand_values();
        let operands: Vec<Value> = operands.filter(|value| !is_uniform(value)).collect();
        let facts: Vec<_> = operands.iter().map(|of| analysis.facts(*of)).collect();
        let runs = tensor.extents().iter().enumerate().map(|(dim, &extent)| {
            let constancy = facts.iter().map(|of| of.along(dim).constancy.get());
            let length = constancy.min().unwrap_or(1);
            Self {
                dim,
                length: i64::try_from(length).unwrap_or(1).min(extent),
            }
        });
        let mut runs = runs.zip(tensor.extents());
        runs.find(|(run, extent)| run.length > 1 && *extent % run.length == 0)
            .map(|(run, _)| run)
    }

    /// The type of a sample of a tensor.
    fn sampled<'c>(self, tensor: RankedTensor<'c>) -> Type<'c> {
        let mut shape = tensor.shape();
        shape[self.dim] /= self.length;
        RankedTensor::get(&shape, tensor.element(), tensor.encoding())
    }

    /// The same run along another dimension.
    fn along(self, dim: usize) -> Self {
        Self { dim, ..self }
    }
}

/// The attribute of a constant whose elements are all the same.
fn constant<'c>(value: Value<'c, '_>) -> Option<Attribute<'c>> {
    let value = ConstantOp::defining(value)?.value()?;
    bits(value).map(|_| value)
}

/// The samples of tensors along dimensions, with the length of runs.
type Samples<'c, 'a> = HashMap<(usize, Run), Value<'c, 'a>>;

/// The samples that a load needs.
struct Sampling<'s, 'c, 'a> {
    run: Run,
    /// Tensors that loops carry, with the dimension that is sampled, by the number of loops and conditions around them: no
    /// loop is inside of one that comes later.
    carried: BTreeMap<usize, Vec<(Value<'c, 'a>, usize)>>,
    visited: HashSet<(usize, usize)>,
    samples: &'s mut Samples<'c, 'a>,
}

impl<'s, 'c: 'a, 'a> Sampling<'s, 'c, 'a> {
    /// The samples that a load needs, if all of them exist.
    fn of(load: LoadOp<'c, 'a>, run: Run, samples: &'s mut Samples<'c, 'a>) -> Option<Self> {
        let mut sampling = Self {
            run,
            carried: BTreeMap::new(),
            visited: HashSet::new(),
            samples,
        };
        let operands: Vec<_> = load.operation().operand_values().collect();
        operands
            .into_iter()
            .all(|value| sampling.exists(value, run))
            .then_some(())?;
        Some(sampling)
    }

    /// Whether a value has a sample.
    fn exists(&mut self, value: Value<'c, 'a>, run: Run) -> bool {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return true;
        };
        if tensor.extents()[run.dim] == 1
            || self.samples.contains_key(&(key(value), run))
            || !self.visited.insert((key(value), run.dim))
        {
            return true;
        }
        if tensor.extents()[run.dim] % run.length != 0 || tensor.encoding().is_some() {
            return false;
        }
        let Some(op) = value.defining_op() else {
            return self.is_carried(value, run);
        };
        if constant(value).is_some() {
            return true;
        }
        match Rule::of(op, run) {
            Some(Rule::Elements) => {
                let operands: Vec<_> = op.operand_values().collect();
                operands.into_iter().all(|value| self.exists(value, run))
            }
            Some(Rule::Source(dim)) => op
                .operand_value(0)
                .is_some_and(|source| self.exists(source, run.along(dim))),
            Some(Rule::Range | Rule::Splat) => true,
            None => false,
        }
    }

    /// Whether a loop carries a value that has a sample in all iterations.
    fn is_carried(&mut self, value: Value<'c, 'a>, run: Run) -> bool {
        let Some((of, position)) = position(value) else {
            return false;
        };
        let around = std::iter::successors(Some(of.operation()), |inner| inner.parent_op());
        let depth = around.count();
        self.carried
            .entry(depth)
            .or_default()
            .push((value, run.dim));
        let (initial, next) = (of.initial()[position], of.yielded()[position]);
        self.exists(initial, run) && self.exists(next, run)
    }

    fn rewrite(mut self, rewriter: &mut Rewriter<'c, 'a>, load: LoadOp<'c, 'a>) {
        let carried = std::mem::take(&mut self.carried);
        for mut left in carried.into_values() {
            while let Some(&(first, _)) = left.first() {
                let block = |value: Value<'c, 'a>| value.argument_of().map(|(block, _)| block);
                let (own, others) = left
                    .into_iter()
                    .partition(|(value, _)| block(*value) == block(first));
                self.carry(rewriter, own);
                left = others;
            }
        }
        let (run, result) = (self.run, load.result());
        let loaded = self.elements(rewriter, load.operation(), result, run);
        let whole = result.r#type();
        let Some(sample) = RankedTensor::of(loaded.r#type()) else {
            return;
        };
        let location = load.operation().loc();
        rewriter.set_after_value(loaded);
        let mut put = |made| rewriter.insert(made).result_value(0);
        let repeated = if sample.extents()[run.dim] == 1 {
            put(tt::BroadcastOp::build(location, whole, loaded))
        } else {
            let mut shape = sample.shape();
            shape.insert(run.dim + 1, 1);
            let apart = RankedTensor::get(&shape, sample.element(), None);
            shape[run.dim + 1] = run.length;
            let wide = RankedTensor::get(&shape, sample.element(), None);
            let axis = (run.dim + 1) as i64;
            put(tt::ExpandDimsOp::build(location, apart, loaded, axis))
                .and_then(|apart| put(tt::BroadcastOp::build(location, wide, apart)))
                .and_then(|wide| put(tt::ReshapeOp::build(location, whole, wide, false, false)))
        };
        if let Some(repeated) = repeated {
            self.samples.retain(|of, _| of.0 != key(result));
            self.samples.insert((key(repeated), run), loaded);
            rewriter.replace(load.operation(), &[repeated]);
        }
    }

    /// Lets a loop carry the samples of tensors that it carries.
    fn carry(&mut self, rewriter: &mut Rewriter<'c, 'a>, values: Vec<(Value<'c, 'a>, usize)>) {
        let run = self.run;
        let of_loop =
            |(value, dim)| position(value).map(|(of, at)| (value, of, at, run.along(dim)));
        let values: Vec<_> = values.into_iter().filter_map(of_loop).collect();
        let Some(&(_, of, ..)) = values.first() else {
            return;
        };
        let initial = of.initial();
        let initial: Vec<Value> = values
            .iter()
            .map(|(_, _, at, run)| self.sample(rewriter, initial[*at], *run))
            .collect();
        carried::add(rewriter, of, &initial, |rewriter, new, arguments| {
            for ((value, _, _, run), argument) in values.iter().zip(arguments) {
                self.samples.insert((key(*value), *run), *argument);
            }
            let yielded = new.yielded();
            let next = values.iter();
            next.map(|(_, _, at, run)| self.sample(rewriter, yielded[*at], *run))
                .collect()
        });
    }

    /// The sample of a value that has one.
    fn sample(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        value: Value<'c, 'a>,
        run: Run,
    ) -> Value<'c, 'a> {
        let tensor = RankedTensor::of(value.r#type());
        let Some(tensor) = tensor.filter(|tensor| tensor.extents()[run.dim] > 1) else {
            return value;
        };
        if let Some(&sample) = self.samples.get(&(key(value), run)) {
            return sample;
        }
        let Some(op) = value.defining_op() else {
            return value;
        };
        let sample = match (constant(value), Rule::of(op, run)) {
            (Some(constant), _) => {
                rewriter.set_after(op);
                let context = rewriter.context();
                let resized = resized(constant, run.sampled(tensor));
                let made = resized.map(|of| build::constant(context, of, op.loc()));
                made.and_then(|made| rewriter.insert(made).result_value(0))
            }
            (None, Some(Rule::Range)) => range(rewriter, op, run),
            (None, _) => Some(self.elements(rewriter, op, value, run)),
        };
        let sample = sample.unwrap_or(value);
        self.samples.insert((key(value), run), sample);
        sample
    }

    /// A copy of an op for the samples of its operands.
    fn elements(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        op: OperationRef<'c, 'a>,
        result: Value<'c, 'a>,
        run: Run,
    ) -> Value<'c, 'a> {
        let of_operands = match Rule::of(op, run) {
            Some(Rule::Source(dim)) => run.along(dim),
            _ => run,
        };
        let operands: Vec<Value> = op.operand_values().collect();
        let operands: Vec<Value> = operands
            .into_iter()
            .map(|value| self.sample(rewriter, value, of_operands))
            .collect();
        rewriter.set_after(op);
        let copy = rewriter.clone_op(op);
        for (index, operand) in operands.into_iter().enumerate() {
            copy.set_operand_value(index, operand);
        }
        // Promises are those of the whole tensor.
        for (name, _) in copy.discardable_attrs() {
            copy.remove_attr(name);
        }
        let Some(made) = copy.result_value(0) else {
            return result;
        };
        if let Some(tensor) = RankedTensor::of(result.r#type()) {
            made.set_type(run.sampled(tensor));
        }
        made
    }
}

/// The loop that carries a value, and its position among those.
fn position<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<(For<'c, 'a>, usize)> {
    let (block, index) = value.argument_of()?;
    let of = For::of(block.parent_operation()?)?;
    Some((of, index.checked_sub(1)?))
}

/// How the sample of a result is made.
enum Rule {
    /// By the op, from the samples of its operands.
    Elements,
    /// By the op, from the sample of its operand along this dimension.
    Source(usize),
    Range,
    Splat,
}

impl Rule {
    fn of(op: OperationRef<'_, '_>, run: Run) -> Option<Self> {
        let facts = OpFacts::of(op);
        if op.region_refs().len() > 0 || op.result_values().len() != 1 {
            return None;
        }
        match facts.integers {
            Integers::Splat => Some(Self::Splat),
            Integers::Range => Some(Self::Range),
            Integers::Broadcast => Some(Self::Source(run.dim)),
            Integers::ExpandDims => {
                let axis = dimensions::axis(op)?;
                let dim = run.dim - usize::from(run.dim > axis);
                Some(Self::Source(dim))
            }
            Integers::Transpose => {
                let dim = *dimensions::order(op)?.get(run.dim)?;
                Some(Self::Source(dim))
            }
            _ if LoadOp::of(op).is_some_and(|load| !load.is_volatile()) => Some(Self::Elements),
            _ => {
                let computes = op.has_trait(Trait::Elementwise) && op.operand_values().len() > 0;
                (computes && op.is_memory_effect_free()).then_some(Self::Elements)
            }
        }
    }
}

/// Every so many numbers of a range.
fn range<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    op: OperationRef<'c, 'a>,
    run: Run,
) -> Option<Value<'c, 'a>> {
    let range = tt::MakeRangeOp::of(op)?;
    let sampled = run.sampled(RankedTensor::of(range.result().r#type())?);
    let (start, location, context) = (range.start(), op.loc(), rewriter.context());
    let count = (range.end() - start) / run.length;
    rewriter.set_after(op);
    let mut put = |made| rewriter.insert(made).result_value(0);
    let numbers = put(tt::MakeRangeOp::build(location, sampled, 0, count))?;
    let mut splat = |value: i64| {
        let value = attr::splat(sampled, value.cast_unsigned())?;
        put(build::constant(context, value, location))
    };
    let (step, first) = (splat(run.length)?, splat(start)?);
    let numbers = rewriter
        .insert(build::muli(numbers, step, location))
        .result_value(0)?;
    let sum = rewriter.insert(build::addi(numbers, first, location));
    sum.result_value(0)
}
