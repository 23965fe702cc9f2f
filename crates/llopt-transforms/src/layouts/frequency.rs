//! How many times an op runs per execution of its function.
//!
//! A loop whose bounds and step are constants runs as many times as they say, any other loop [`ITERATIONS`] times, or as
//! often as it may at most, if that is known and less; where the last iterations were split off, as for loads that are an
//! iteration ahead, and for tiles that are not whole, the loops have these together. A loop over what is left of its bound
//! after whole groups of iterations (`n - n % 4` to `n`), as unrolling leaves it, runs as often as the mean over all
//! remainders. So does one behind a loop of which each iteration is a group of the program's ([`GROUPED`]), and that one runs
//! as often as there are groups. Of a conditional one region counts as executed, each as often as the others; one that is known to be rare,
//! once in so many times. Blocks connected by branches count as executed once.

use llopt_dialects::arith::{self, ConstantOp};
use llopt_dialects::meaning::facts::Control;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, ValueExt};
use melior::ir::{BlockLike, BlockRef, OperationRef, Value};
use rustc_hash::FxHashMap;

use crate::loops::induction::most_iterations;
use crate::loops::unroll::{GROUPED, RARE};
use crate::loops::view::For;

/// The assumed number of iterations of a loop.
const ITERATIONS: f64 = 32.0;

/// The execution counts of blocks.
pub(super) struct Frequencies {
    blocks: FxHashMap<usize, f64>,
}

fn key(block: BlockRef<'_, '_>) -> usize {
    block.to_raw().ptr as usize
}

impl Frequencies {
    /// Counts through the regions of functions.
    pub(super) fn of(functions: &[OperationRef<'_, '_>]) -> Self {
        let mut frequencies = Self {
            blocks: FxHashMap::default(),
        };
        for &function in functions {
            frequencies.add(function, 1.0);
        }
        frequencies
    }

    fn add(&mut self, operation: OperationRef<'_, '_>, frequency: f64) {
        let regions = operation.region_refs().len();
        if regions == 0 {
            return;
        }
        for (index, region) in operation.region_refs().enumerate() {
            let inside = frequency * times_of_region(operation, index);
            for block in region.blocks() {
                self.blocks.insert(key(block), inside);
                for operation in block.operations() {
                    self.add(operation, inside);
                }
            }
        }
    }

    fn of_block(&self, block: Option<BlockRef<'_, '_>>) -> f64 {
        block
            .and_then(|block| self.blocks.get(&key(block)).copied())
            .unwrap_or(1.0)
    }

    /// The execution count of an op.
    pub(super) fn of_op(&self, operation: OperationRef<'_, '_>) -> f64 {
        self.of_block(operation.parent_block())
    }

    /// The execution count of the definition of a value.
    pub(super) fn of_value(&self, value: Value<'_, '_>) -> f64 {
        self.of_block(value.parent_block())
    }

    /// The place at which something that `user` needs of `value` runs least often, and its execution count: before
    /// the user, or before an op around it that does not contain the definition of the value.
    pub(super) fn rarest_place<'c: 'a, 'a>(
        &self,
        value: Value<'c, 'a>,
        user: OperationRef<'c, 'a>,
    ) -> (OperationRef<'c, 'a>, f64) {
        let home = value.parent_block().map(key);
        let mut best = (user, self.of_op(user));
        let mut place = user;
        while place.parent_block().map(key) != home {
            let Some(around) = place
                .parent_op()
                .filter(|&op| Control::of(op) != Control::Function)
            else {
                break;
            };
            place = around;
            let frequency = self.of_op(place);
            if frequency < best.1 {
                best = (place, frequency);
            }
        }
        best
    }
}

/// How often the regions of an op run for each time that it does.
pub(crate) fn times(operation: OperationRef<'_, '_>) -> f64 {
    match Control::of(operation) {
        Control::For => trip_count(operation)
            .or_else(|| remainder(operation))
            .unwrap_or_else(|| assumed_iterations(operation)),
        Control::While => ITERATIONS,
        Control::Choice => 1.0 / operation.region_refs().len() as f64,
        Control::Computes
        | Control::Function
        | Control::Call
        | Control::Return
        | Control::Condition
        | Control::Masked
        | Control::Yield
        | Control::Result
        | Control::Concurrent
        | Control::Partitions
        | Control::ConcurrentYield
        | Control::PartitionEnd
        | Control::Branch
        | Control::ConditionalBranch => 1.0,
    }
}

/// The assumed number of iterations of a loop: not more than its bounds allow.
fn assumed_iterations(operation: OperationRef<'_, '_>) -> f64 {
    let most = For::of(operation).and_then(most_iterations);
    let most = most.map_or(f64::INFINITY, |most| most as f64);
    shared_iterations(operation).min(most).max(1.0)
}

/// The assumed number of iterations of a loop, of which other loops may run the last ones, one each.
fn shared_iterations<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> f64 {
    if let Some(group) = group_before(operation) {
        return (group - 1.0) / 2.0;
    }
    if is_rare(operation) || continues(operation) {
        return 1.0;
    }
    let (mut parts, mut left) = (vec![operation], ITERATIONS / group(operation));
    while let Some(next) = next(&parts).filter(|_| left > 1.0) {
        parts.push(next);
        left -= 1.0;
    }
    left
}

/// The iterations of the program that each one of a loop is.
fn group(operation: OperationRef<'_, '_>) -> f64 {
    let grouped: Option<u32> = operation
        .discardable_attr(GROUPED)
        .and_then(AttributeExt::as_int);
    f64::from(grouped.unwrap_or(1))
}

/// The iterations of a group, if a loop runs those that are left over by a loop of groups.
fn group_before<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<f64> {
    let begins = operation.operand_value(0).filter(|_| is_rare(operation))?;
    let mut before = begins.uses().filter(|used| used.operand == 1);
    let of_loop = before.find(|used| Control::of(used.operation) == Control::For)?;
    Some(group(of_loop.operation)).filter(|group| *group > 1.0)
}

/// Whether a loop runs what another one has left.
fn continues<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> bool {
    operation.operand_value(0).is_some_and(|begins| {
        let mut others = begins.uses().filter(|used| used.operand == 1);
        others.any(|used| follows(&[used.operation], operation))
    })
}

/// A loop that runs what the last of these has left.
fn next<'c: 'a, 'a>(parts: &[OperationRef<'c, 'a>]) -> Option<OperationRef<'c, 'a>> {
    let between = parts.last()?.operand_value(1)?;
    let mut users = between.users();
    users.find(|user| follows(parts, *user))
}

/// Whether a loop runs what the last of others has left: it has the same step, and it begins where the last one ends. The
/// place between both is what splitting off iterations computes: nothing of a loop may be left, so that place may be the
/// beginning of the first one.
fn follows<'c: 'a, 'a>(parts: &[OperationRef<'c, 'a>], next: OperationRef<'c, 'a>) -> bool {
    let [first, ..] = parts else {
        return false;
    };
    let last = parts.last().unwrap_or(first);
    let Some(between) = last.operand_value(1) else {
        return false;
    };
    let choice = between.defining_op().and_then(arith::SelectOp::of);
    let begins = choice.and_then(|choice| choice.operation().operand_value(2));
    let is_beginning =
        |of: &OperationRef<'c, 'a>| begins.is_some() && begins == of.operand_value(0);
    (is_beginning(first) || is_beginning(last))
        && !parts.contains(&next)
        && Control::of(next) == Control::For
        && next.operand_value(0) == Some(between)
        && next.parent_block() == last.parent_block()
        && next.operand_value(2) == last.operand_value(2)
}

/// Whether a loop, or the second block of a conditional, is known to be hardly ever executed.
fn is_rare(operation: OperationRef<'_, '_>) -> bool {
    operation.discardable_attr(RARE).is_some()
}

/// How often each region of an op runs for each time that it does.
fn times_of_region(operation: OperationRef<'_, '_>, index: usize) -> f64 {
    match Control::of(operation) {
        Control::Choice if is_rare(operation) => match index {
            0 => 1.0 - 1.0 / ITERATIONS,
            _ => 1.0 / ITERATIONS,
        },
        _ => times(operation),
    }
}

fn constant(value: Value<'_, '_>) -> Option<i64> {
    ConstantOp::defining(value)?.value()?.as_i64()
}

/// The mean number of iterations of a loop from `n - n % k` to `n`.
fn remainder(operation: OperationRef<'_, '_>) -> Option<f64> {
    let whole = arith::SubIOp::of(operation.operand_value(0)?.defining_op()?)?;
    let end = operation
        .operand_value(1)
        .filter(|end| *end == whole.lhs())?;
    let rest = whole.rhs().defining_op()?;
    let is_rest = arith::RemSIOp::of(rest).is_some() || arith::RemUIOp::of(rest).is_some();
    let group = rest.operand_value(1).and_then(constant);
    let group = group.filter(|_| is_rest && rest.operand_value(0) == Some(end))?;
    let step = constant(operation.operand_value(2)?)?;
    if step <= 0 || group <= 1 {
        return None;
    }
    // The sum over all remainders from 1 to k - 1, each rounded up to whole steps, over k.
    let (whole, rest) = ((group - 1) / step, (group - 1) % step);
    let (whole, rest) = (whole as f64, rest as f64);
    let steps = step as f64 * whole * (whole + 1.0) / 2.0 + rest * (whole + 1.0);
    Some(steps / group as f64)
}

/// The number of iterations of a loop with constant bounds and step.
fn trip_count(operation: OperationRef<'_, '_>) -> Option<f64> {
    let constant = |operand: usize| constant(operation.operand_value(operand)?);
    let (lower, upper, step) = (constant(0)?, constant(1)?, constant(2)?);
    if step <= 0 {
        return None;
    }
    let length = upper.checked_sub(lower)?.max(0) as u64;
    Some((length.div_ceil(step.unsigned_abs()) as f64).max(1.0))
}
