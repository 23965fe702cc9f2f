//! How many times an op runs per execution of its function.
//!
//! A loop whose bounds and step are constants runs as many times as they say, any other loop [`ITERATIONS`] times; where
//! the last iteration was split off, as for loads that are an iteration ahead, the two loops have these together. Both
//! regions of a conditional count as executed each time. Blocks connected by branches count as executed once.

use std::collections::HashMap;

use llopt_dialects::arith::{self, ConstantOp};
use llopt_dialects::meaning::facts::Control;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, ValueExt};
use melior::ir::{BlockLike, BlockRef, OperationRef, Value};

/// The assumed number of iterations of a loop.
const ITERATIONS: f64 = 32.0;

/// The execution counts of blocks.
pub(super) struct Frequencies {
    blocks: HashMap<usize, f64>,
}

fn key(block: BlockRef<'_, '_>) -> usize {
    block.to_raw().ptr as usize
}

impl Frequencies {
    /// Counts through the regions of functions.
    pub(super) fn of(functions: &[OperationRef<'_, '_>]) -> Self {
        let mut frequencies = Self {
            blocks: HashMap::new(),
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
        let inside = frequency * times(operation);
        for region in operation.region_refs() {
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
        Control::For => trip_count(operation).unwrap_or_else(|| shared_iterations(operation)),
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

/// The assumed number of iterations of a loop, of which another loop may run the last one.
fn shared_iterations(operation: OperationRef<'_, '_>) -> f64 {
    // Whether a loop with the same step has the bound of this one as its other bound, and the place between both is what
    // splitting off iterations computes: nothing of a loop may be left, so the first loop may end where it begins.
    let is_split = |bound: usize, other_bound: usize| {
        let Some(value) = operation.operand_value(bound) else {
            return false;
        };
        let choice = value.defining_op().and_then(arith::SelectOp::of);
        value.uses().any(|used| {
            let other = used.operation;
            let first = if bound == 1 { operation } else { other };
            used.operand == other_bound
                && other != operation
                && Control::of(other) == Control::For
                && other.parent_block() == operation.parent_block()
                && other.operand_value(2) == operation.operand_value(2)
                && choice.is_some_and(|choice| {
                    let begins = choice.operation().operand_value(2);
                    begins.is_some() && begins == first.operand_value(0)
                })
        })
    };
    match (is_split(0, 1), is_split(1, 0)) {
        (true, _) => 1.0,
        (false, true) => ITERATIONS - 1.0,
        (false, false) => ITERATIONS,
    }
}

/// The number of iterations of a loop with constant bounds and step.
fn trip_count(operation: OperationRef<'_, '_>) -> Option<f64> {
    let constant = |operand: usize| {
        ConstantOp::defining(operation.operand_value(operand)?)?
            .value()?
            .as_i64()
    };
    let (lower, upper, step) = (constant(0)?, constant(1)?, constant(2)?);
    if step <= 0 {
        return None;
    }
    let length = upper.checked_sub(lower)?.max(0) as u64;
    Some((length.div_ceil(step.unsigned_abs()) as f64).max(1.0))
}
