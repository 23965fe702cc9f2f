//! `--skip-idle-iterations`: loops end where all further iterations do nothing.
//!
//! ```text
//! for i = 0 to 64                           for i = 0 to min(64, n)
//!   x = load p + i if i < n, else 0    →      x = load p + i
//!   sum += x                                  sum += x
//! ```
//!
//! Authors bound loops by a constant, or by the largest of many sizes, and mask what is beyond the size of a program: pixels of
//! windows, blocks of a list, rows of a group.
//!
//! # When it is correct
//!
//! A condition `i < n` of the loop's number `i` and of a number `n` that is known before the loop fails in all iterations
//! from the first one in which it fails. Let it fail. Then some values of the body are known: masks that it is a part of are
//! false, loads under them give what is there instead, sums with zero are the other term. If what the loop carries
//! stays what it was, value by value, and nothing is stored, the iteration is idle, and the loop may end before. A loop inside
//! is idle if each of its iterations is; values that are carried but not used behind the loop may be anything.
//!
//! Instead of a number, a tensor may be compared: `i * k + r < n` fails everywhere if `i k >= n` where no element of `r` is
//! negative. Numbers are assumed not to overflow, as in all address computations.
//!
//! `x + 0.0` is `x` for every number but -0. A sum of two numbers is -0 only if both are, so what starts as another number and
//! changes by sums never is (IEEE 754, section 6.3).
//!
//! # When it is done
//!
//! The new bound costs a few operations once. But loops of which the number of iterations is a constant are unrolled, and
//! loops whose bound follows from `n` itself end there anyway, so neither those of few iterations nor these change.

use std::collections::{HashMap, HashSet};

use llopt_dialects::arith::{self, CmpIPredicate};
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{self, LoadOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{
    AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, Walk, key,
};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::{GreedyConfig, Patterns, Rewriter};
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};

use crate::loops::builder::Arithmetic;
use crate::loops::motion::{hoist, invariant_slice};
use crate::loops::view::{For, If};
use crate::ranges::Range;
use crate::split_k::does_more_than_read;

/// The least number of iterations of a loop with constant bounds that may end earlier.
const LEAST: i128 = 16;
/// The most conditions by which a loop ends.
const MOST_ENDS: usize = 4;
/// The most operations from which a bound is computed that are looked at.
const LONGEST_WAY: usize = 64;
/// How many operations are followed backwards from a value.
const MOST_DEPTH: u32 = 128;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf"],
    ..PassSpec::new(
        "skip-idle-iterations",
        "end loops where all further iterations do nothing",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Ends the loops of a module before iterations that do nothing, where that is proved.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut loops = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| loops.extend(For::of(operation)));
    let mut rewriter = Rewriter::new(module.ctx());
    let mut has_ended = false;
    for of in loops {
        for end in End::all_of(of) {
            end.set(&mut rewriter);
            has_ended = true;
        }
    }
    if has_ended {
        let patterns = Patterns::with_canonicalization(module.ctx(), &[]);
        // What is not folded after so many rounds is still correct.
        let _ = patterns.apply(module, GreedyConfig::default());
    }
}

/// Where a loop may end: from the first number on with `number * factor + offset >= bound`.
struct End<'c, 'a> {
    of: For<'c, 'a>,
    /// The comparison that fails from there on.
    comparison: OperationRef<'c, 'a>,
    bound: Value<'c, 'a>,
    number: Scaled<'c, 'a>,
    /// The operations of the body that compute what the end is computed from.
    slice: Vec<OperationRef<'c, 'a>>,
}

/// A multiple of a loop's number, and what is added to it.
struct Scaled<'c, 'a> {
    factor: i64,
    offsets: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> End<'c, 'a> {
    /// The ends of a loop that are worth it.
    fn all_of(of: For<'c, 'a>) -> Vec<Self> {
        let mut known = HashMap::new();
        let [lower, upper, step] = of.bounds().map(|bound| Range::of(bound, &mut known));
        let is_long = upper.least != upper.most
            || lower.least != lower.most
            || upper.most - lower.most >= LEAST * step.most.max(1);
        if !is_long || of.is_unsigned() || of.number().r#type().integer().is_none() {
            return Vec::new();
        }
        let body = of.operations().into_iter();
        let ends = body.filter_map(|operation| Self::by(of, operation, &mut known));
        let ends = ends.filter(|end| end.is_new() && end.is_idle());
        ends.take(MOST_ENDS).collect()
    }

    /// The end by a comparison.
    fn by(
        of: For<'c, 'a>,
        comparison: OperationRef<'c, 'a>,
        known: &mut HashMap<usize, Range>,
    ) -> Option<Self> {
        let compared = arith::CmpIOp::of(comparison)?;
        let (number, bound) = match compared.predicate()? {
            CmpIPredicate::Slt => (compared.lhs(), compared.rhs()),
            CmpIPredicate::Sgt => (compared.rhs(), compared.lhs()),
            _ => return None,
        };
        let (number, bound) = match RankedTensor::of(number.r#type()) {
            Some(_) => (least(number, known)?, splat(bound)?),
            None => (number, bound),
        };
        let number = Scaled::of(of, number)?;
        let mut slice = invariant_slice(of, bound)?;
        for offset in &number.offsets {
            slice.extend(invariant_slice(of, *offset)?);
        }
        let is_as_wide = bound.r#type() == of.number().r#type();
        is_as_wide.then_some(Self {
            of,
            comparison,
            bound,
            number,
            slice,
        })
    }

    /// Whether the loop may still go on behind the end: its bound is not computed from the end's.
    fn is_new(&self) -> bool {
        let bounds = sources(self.of.upper());
        let ends = sources(self.bound);
        let is_constant = |value: &Value<'c, 'a>| {
            let made = value.defining_op();
            made.is_some_and(|made| arith::ConstantOp::of(made).is_some())
        };
        match (bounds, ends) {
            (Some(bounds), Some(ends)) => {
                let mut shared = ends.iter().filter(|end| !is_constant(end));
                shared.all(|end| !bounds.contains(end)) && !ends.iter().all(is_constant)
            }
            _ => false,
        }
    }

    /// Whether iterations in which the comparison fails do nothing.
    fn is_idle(&self) -> bool {
        let mut idle = Idle {
            fails: self.comparison,
            values: HashMap::new(),
            depth: 0,
        };
        let of = self.of;
        idle.has_no_effect(of.body()) && idle.keeps(of)
    }

    fn set(self, rewriter: &mut Rewriter<'c, 'a>) {
        let of = self.of;
        hoist(of, self.slice);
        rewriter.set_before(of.operation());
        let location = of.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let mut end = self.bound;
        for offset in self.number.offsets {
            end = arithmetic.subtract(end, offset);
        }
        if self.number.factor != 1 {
            // Of a bound that is not positive, an iteration too many is left.
            let r#type = end.r#type();
            let one = arithmetic.constant(r#type, 1);
            let factor = arithmetic.constant(r#type, self.number.factor);
            let last = arithmetic.subtract(end, one);
            let last = arithmetic.divide_signed(last, factor);
            end = arithmetic.add(last, one);
        }
        let upper = arithmetic.lesser(of.upper(), end);
        of.set_bound(1, upper);
        if let Some(result) = self.comparison.result_value(0)
            && RankedTensor::of(result.r#type()).is_none()
        {
            let always = arithmetic.always();
            result.replace_all_uses(always);
        }
    }
}

impl<'c: 'a, 'a> Scaled<'c, 'a> {
    /// A number of the body as a multiple of the loop's and something that is known before the loop.
    fn of(of: For<'c, 'a>, number: Value<'c, 'a>) -> Option<Self> {
        if number == of.number() {
            return Some(Self {
                factor: 1,
                offsets: Vec::new(),
            });
        }
        let operation = number.defining_op()?;
        match arith::Op::of(operation)? {
            arith::Op::AddI(sum) => {
                let is_fixed = |value| invariant_slice(of, value).is_some();
                let (number, offset) = match is_fixed(sum.rhs()) {
                    true => (sum.lhs(), sum.rhs()),
                    false => (sum.rhs(), sum.lhs()),
                };
                let mut scaled = Self::of(of, number)?;
                scaled.offsets.push(is_fixed(offset).then_some(offset)?);
                Some(scaled)
            }
            arith::Op::MulI(product) => {
                let (number, factor) = match integer(product.rhs()) {
                    Some(factor) => (product.lhs(), factor),
                    None => (product.rhs(), integer(product.lhs())?),
                };
                let is_number = number == of.number() && factor > 0;
                is_number.then_some(Self {
                    factor,
                    offsets: Vec::new(),
                })
            }
            _ => None,
        }
    }
}

/// The number that a constant is.
fn integer(value: Value<'_, '_>) -> Option<i64> {
    let range = Range::of(value, &mut HashMap::new());
    let is_constant = range.least == range.most;
    is_constant
        .then(|| i64::try_from(range.least).ok())
        .flatten()
}

/// The number that a tensor has everywhere.
fn splat<'c: 'a, 'a>(tensor: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let operation = tensor.defining_op()?;
    match OpFacts::of(operation).integers {
        Integers::Splat => operation.operand_value(0),
        Integers::Broadcast | Integers::ExpandDims | Integers::Reshape => {
            splat(operation.operand_value(0)?)
        }
        _ => None,
    }
}

/// The number to which no negative one is added anywhere in a tensor.
fn least<'c: 'a, 'a>(
    tensor: Value<'c, 'a>,
    known: &mut HashMap<usize, Range>,
) -> Option<Value<'c, 'a>> {
    if let Some(number) = splat(tensor) {
        return Some(number);
    }
    let operation = tensor.defining_op()?;
    match OpFacts::of(operation).integers {
        Integers::Broadcast | Integers::ExpandDims | Integers::Reshape => {
            return least(operation.operand_value(0)?, known);
        }
        _ => {}
    }
    let sum = arith::AddIOp::of(operation)?;
    let mut is_counted = |value| Range::of(value, known).least >= 0;
    match (is_counted(sum.lhs()), is_counted(sum.rhs())) {
        (_, true) if splat(sum.lhs()).is_some() => splat(sum.lhs()),
        (true, _) => splat(sum.rhs()),
        _ => None,
    }
}

/// What a number is computed from by arithmetic: arguments, constants, loaded numbers.
fn sources<'c: 'a, 'a>(number: Value<'c, 'a>) -> Option<Vec<Value<'c, 'a>>> {
    let (mut found, mut queue, mut seen) = (Vec::new(), vec![number], 0);
    while let Some(value) = queue.pop() {
        seen += 1;
        if seen > LONGEST_WAY {
            return None;
        }
        let made = value.defining_op();
        match made.filter(|made| arith::Op::of(*made).is_some() && made.operand_values().len() > 0)
        {
            Some(made) => queue.extend(made.operand_values()),
            None => found.push(value),
        }
    }
    Some(found)
}

/// What a value is in an idle iteration.
#[derive(Clone, Copy, PartialEq)]
enum Meaning<'c, 'a> {
    /// All bits of all elements are zero.
    Zero,
    /// It is another value, or simply itself.
    Same(Value<'c, 'a>),
}

/// The values of an iteration in which a comparison fails.
#[derive(Clone)]
struct Idle<'c, 'a> {
    fails: OperationRef<'c, 'a>,
    /// Those that were found already, by value.
    values: HashMap<usize, Meaning<'c, 'a>>,
    depth: u32,
}

impl<'c: 'a, 'a> Idle<'c, 'a> {
    /// Whether a block neither stores nor does anything else that shows.
    fn has_no_effect(&mut self, block: BlockRef<'c, 'a>) -> bool {
        block.operations().into_iter().all(|operation| {
            if let Some(branch) = If::of(operation) {
                let [first, second] = branch.blocks();
                let fails =
                    operation.operand_value(0).map(|of| self.meaning(of)) == Some(Meaning::Zero);
                let mut is_fine = |block: Option<BlockRef<'c, 'a>>| {
                    block.is_none_or(|block| self.has_no_effect(block))
                };
                return is_fine(second) && (fails || is_fine(first));
            }
            let regions = operation.region_refs();
            if For::of(operation).is_some() {
                let blocks = regions
                    .into_iter()
                    .filter_map(|region| region.single_block());
                return blocks
                    .collect::<Vec<_>>()
                    .into_iter()
                    .all(|block| self.has_no_effect(block));
            }
            let mask = match tt::Op::of(operation) {
                Some(tt::Op::Load(load)) if load.is_volatile() => return false,
                Some(tt::Op::Store(store)) => store.mask(),
                Some(tt::Op::AtomicRmw(update)) => update.mask(),
                _ => None,
            };
            !does_more_than_read(operation)
                || mask.is_some_and(|mask| self.meaning(mask) == Meaning::Zero)
        })
    }

    /// Whether a loop carries what it carried before, as far as that is used behind it.
    fn keeps(&mut self, of: For<'c, 'a>) -> bool {
        let carried = of.carried().into_iter().zip(of.yielded()).zip(of.results());
        let carried: Vec<_> = carried.collect();
        carried.into_iter().all(|((argument, next), result)| {
            !result.has_uses() || self.meaning(next) == Meaning::Same(argument)
        })
    }

    fn meaning(&mut self, value: Value<'c, 'a>) -> Meaning<'c, 'a> {
        if let Some(known) = self.values.get(&key(value)) {
            return *known;
        }
        let made = value.defining_op().filter(|_| self.depth < MOST_DEPTH);
        self.depth += 1;
        let found = made.and_then(|made| self.made(made, value));
        self.depth -= 1;
        let found = found.unwrap_or(Meaning::Same(value));
        self.values.insert(key(value), found);
        found
    }

    /// What a result of an op is, if it is something else than itself.
    fn made(
        &mut self,
        made: OperationRef<'c, 'a>,
        result: Value<'c, 'a>,
    ) -> Option<Meaning<'c, 'a>> {
        if made == self.fails {
            return Some(Meaning::Zero);
        }
        if let Some(branch) = If::of(made) {
            return self.of_branch(branch, result);
        }
        if let Some(of) = For::of(made) {
            return self.of_loop(of, result);
        }
        if let Some(load) = LoadOp::of(made) {
            let is_masked = self.is_zero(load.mask()?);
            return is_masked
                .then(|| Some(self.meaning(load.other()?)))
                .flatten();
        }
        if let Some(op) = arith::Op::of(made) {
            return self.of_arithmetic(made, op);
        }
        if let Some(product) = tt::DotOp::of(made) {
            let adds_zero = self.is_zero(product.a()) && self.is_zero(product.b());
            let sum = product.c();
            return (adds_zero && NeverNegativeZero::holds(sum)).then(|| self.meaning(sum));
        }
        if let Some(reduction) = tt::ReduceOp::of(made) {
            let mut operands = reduction.operation().operand_values();
            let keeps_zero =
                combines_zeros_to_zero(made) && operands.all(|operand| self.is_zero(operand));
            return keeps_zero.then_some(Meaning::Zero);
        }
        match OpFacts::of(made).integers {
            Integers::Splat
            | Integers::Same
            | Integers::Bits
            | Integers::ExpandDims
            | Integers::Broadcast
            | Integers::Transpose
            | Integers::Reshape => self
                .is_zero(made.operand_value(0)?)
                .then_some(Meaning::Zero),
            _ => None,
        }
    }

    fn is_zero(&mut self, value: Value<'c, 'a>) -> bool {
        self.meaning(value) == Meaning::Zero
    }

    fn of_arithmetic(
        &mut self,
        made: OperationRef<'c, 'a>,
        op: arith::Op<'c, 'a>,
    ) -> Option<Meaning<'c, 'a>> {
        use arith::Op;
        let operand = |index: usize| made.operand_value(index);
        match op {
            Op::Constant(constant) => {
                let value = constant.value()?;
                let bits = value.splat_bits().or_else(|| value.as_bits());
                (bits == Some(0)).then_some(Meaning::Zero)
            }
            Op::AndI(_) | Op::MulI(_) => {
                let [x, y] = [operand(0)?, operand(1)?];
                (self.is_zero(x) || self.is_zero(y)).then_some(Meaning::Zero)
            }
            Op::AddI(_) | Op::OrI(_) | Op::XOrI(_) => {
                let [x, y] = [operand(0)?, operand(1)?];
                match (self.is_zero(x), self.is_zero(y)) {
                    (true, _) => Some(self.meaning(y)),
                    (_, true) => Some(self.meaning(x)),
                    _ => None,
                }
            }
            Op::SubI(_) | Op::SubF(_) => {
                let [x, y] = [operand(0)?, operand(1)?];
                self.is_zero(y).then(|| self.meaning(x))
            }
            Op::AddF(_) => {
                let [x, y] = [operand(0)?, operand(1)?];
                let sum = match (self.is_zero(x), self.is_zero(y)) {
                    (true, _) => y,
                    (_, true) => x,
                    _ => return None,
                };
                NeverNegativeZero::holds(sum).then(|| self.meaning(sum))
            }
            Op::Select(_) => {
                let [x, y] = [self.meaning(operand(1)?), self.meaning(operand(2)?)];
                (self.is_zero(operand(0)?) || x == y).then_some(y)
            }
            Op::ExtSI(_)
            | Op::ExtUI(_)
            | Op::TruncI(_)
            | Op::ExtF(_)
            | Op::TruncF(_)
            | Op::SIToFP(_)
            | Op::UIToFP(_)
            | Op::Bitcast(_) => self.is_zero(operand(0)?).then_some(Meaning::Zero),
            _ => None,
        }
    }

    /// The result of a conditional, if its condition fails, or both of its blocks give the same.
    fn of_branch(&mut self, branch: If<'c, 'a>, result: Value<'c, 'a>) -> Option<Meaning<'c, 'a>> {
        let position = branch.results().into_iter().position(|of| of == result)?;
        let mut given = |block: Option<BlockRef<'c, 'a>>| {
            let end = block?.operations().last()?;
            Some(self.meaning(end.operand_value(position)?))
        };
        let [first, second] = branch.blocks();
        let [first, second] = [given(first)?, given(second)?];
        let fails = self.is_zero(branch.operation().operand_value(0)?);
        (fails || first == second).then_some(second)
    }

    /// The result of a loop that keeps what it carries: what is supposed to be kept is given up where it is not, until all
    /// that is left follows from itself.
    fn of_loop(&mut self, of: For<'c, 'a>, result: Value<'c, 'a>) -> Option<Meaning<'c, 'a>> {
        let initial: Vec<Meaning<'c, 'a>> = of
            .initial()
            .into_iter()
            .map(|value| self.meaning(value))
            .collect();
        let mut kept: Vec<bool> = vec![true; initial.len()];
        loop {
            let mut inside = self.clone();
            for (index, argument) in of.carried().into_iter().enumerate() {
                if kept[index] {
                    inside.values.insert(key(argument), initial[index]);
                }
            }
            let next: Vec<Meaning<'c, 'a>> = of
                .yielded()
                .into_iter()
                .map(|value| inside.meaning(value))
                .collect();
            let still = |index: usize| kept[index] && next[index] == initial[index];
            let still: Vec<bool> = (0..kept.len()).map(still).collect();
            if still == kept {
                break;
            }
            kept = still;
        }
        let position = of.results().into_iter().position(|own| own == result)?;
        kept[position].then_some(initial[position])
    }
}

/// Whether a reduction of zeros is zero: its body is one of these operations.
fn combines_zeros_to_zero(reduction: OperationRef<'_, '_>) -> bool {
    use arith::Op;
    let body = reduction
        .region_ref(0)
        .and_then(|region| region.single_block());
    let operations = body.into_iter().flat_map(BlockExt::operations);
    let [operation, end] = operations.collect::<Vec<_>>()[..] else {
        return false;
    };
    let combines = matches!(
        arith::Op::of(operation),
        Some(
            Op::AddF(_)
                | Op::AddI(_)
                | Op::OrI(_)
                | Op::AndI(_)
                | Op::XOrI(_)
                | Op::MaxSI(_)
                | Op::MaxUI(_)
                | Op::MinSI(_)
                | Op::MinUI(_)
        )
    );
    combines && end.operand_value(0) == operation.result_value(0)
}

/// A proof that floats, or elements of tensors of them, are never -0.
#[derive(Clone, Default)]
struct NeverNegativeZero {
    /// Carried values of which it is supposed while it is shown of what the loop carries next.
    supposed: HashSet<usize>,
    depth: u32,
}

impl NeverNegativeZero {
    fn holds(value: Value<'_, '_>) -> bool {
        Self::default().of(value)
    }

    fn of<'c: 'a, 'a>(&mut self, value: Value<'c, 'a>) -> bool {
        if self.depth == MOST_DEPTH {
            return false;
        }
        self.depth += 1;
        let before = self.supposed.clone();
        let holds = match value.defining_op() {
            Some(made) => self.of_made(made, value),
            None => {
                let argument = value.argument_of();
                let of = argument.and_then(|(block, number)| {
                    let of = For::of(melior::ir::BlockLike::parent_operation(&block)?)?;
                    Some((of, number.checked_sub(1)?))
                });
                of.is_some_and(|(of, index)| self.of_carried(of, index))
            }
        };
        self.depth -= 1;
        if !holds {
            // What was shown by a supposition that does not hold is not shown.
            self.supposed = before;
        }
        holds
    }

    fn of_carried<'c: 'a, 'a>(&mut self, of: For<'c, 'a>, index: usize) -> bool {
        let carried = of.carried().get(index).copied();
        let (first, next) = (
            of.initial().get(index).copied(),
            of.yielded().get(index).copied(),
        );
        let (Some(carried), Some(first), Some(next)) = (carried, first, next) else {
            return false;
        };
        !self.supposed.insert(key(carried)) || self.of(first) && self.of(next)
    }

    fn of_made<'c: 'a, 'a>(&mut self, made: OperationRef<'c, 'a>, value: Value<'c, 'a>) -> bool {
        use arith::Op;
        if let Some(of) = For::of(made) {
            let index = of.results().into_iter().position(|own| own == value);
            return index.is_some_and(|index| self.of_carried(of, index));
        }
        if let Some(product) = tt::DotOp::of(made) {
            return self.of(product.c());
        }
        let mut operand = |index: usize| {
            let operand = made.operand_value(index);
            operand.is_some_and(|operand| self.of(operand))
        };
        match arith::Op::of(made) {
            Some(Op::Constant(constant)) => {
                let value = constant.value();
                let bits = value.and_then(|value| value.splat_bits().or_else(|| value.as_bits()));
                let width = made.result_value(0);
                let width = width.and_then(|of| of.r#type().element_or_self().bit_width());
                match (bits, width) {
                    (Some(bits), Some(width @ 1..=64)) => bits != 1 << (width - 1),
                    _ => false,
                }
            }
            Some(Op::AddF(_)) => operand(0) || operand(1),
            Some(Op::Select(_)) => operand(1) && operand(2),
            Some(Op::MulF(product)) => product.lhs() == product.rhs(),
            Some(Op::ExtF(_)) => operand(0),
            Some(Op::SIToFP(_) | Op::UIToFP(_)) => true,
            Some(_) => false,
            None => {
                let moves = matches!(
                    OpFacts::of(made).integers,
                    Integers::Splat
                        | Integers::Same
                        | Integers::ExpandDims
                        | Integers::Broadcast
                        | Integers::Transpose
                        | Integers::Reshape
                );
                moves && operand(0)
            }
        }
    }
}
