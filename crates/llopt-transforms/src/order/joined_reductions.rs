//! `--join-reductions`: reductions that follow one another become one, if they need nothing of each other.
//!
//! Warps exchange partial results through shared memory, behind a barrier of the block. Two sums of tensors with one layout
//! wait for two barriers, one after the other:
//!
//! ```text
//!   a = reduce x                    p = x * y
//!   p = x * y                  →    a, b = reduce x, p
//!   b = reduce p
//! ```
//!
//! A reduction of two tensors has the partial results of both in memory at once, and waits for one. Each thread also combines
//! its elements of both tensors in one place, so that `y` is not needed behind the first barrier.
//!
//! The second reduction moves up to the first one, with what it needs that only computes; what it needs of the memory, or of
//! the first, keeps it where it is. It is done if that is cheaper by the model ([`price`]): a sum of integers by one
//! instruction for a warp stays by itself.

use std::collections::HashSet;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{ReduceOp, ReduceReturnOp};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, Walk, key};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::element::Element;
use llopt_plan::plans::Plans;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::reduction::price;
use llopt_plan::types;
use melior::ir::operation::OperationLike;
use melior::ir::{Block, Location, OperationRef, Region, RegionLike, Type, ValueLike};

use crate::allocation::plans_of;
use crate::loops::clone::Mapping;

/// The pass.
pub static JOIN: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "join-reductions",
        "combine tensors together whose reductions need nothing of each other",
        |module, run| {
            join(module, &*plans_of(module, run)?);
            Ok(())
        },
    )
};

/// Joins the reductions of all blocks.
fn join(module: OperationRef<'_, '_>, plans: &Plans) {
    let mut reductions = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        reductions.extend(Reduction::of(operation, plans));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    let mut earlier: Option<Reduction> = None;
    for next in reductions {
        let needed = earlier
            .as_ref()
            .filter(|earlier| earlier.pays_with(&next, plans))
            .and_then(|earlier| needed_between(earlier.operation, next.operation));
        earlier = match (earlier, needed) {
            (Some(earlier), Some(needed)) => {
                for operation in needed {
                    rewriter.move_before(operation, earlier.operation);
                }
                Reduction::of(joined(&mut rewriter, &earlier, &next), plans)
            }
            _ => Some(next),
        };
    }
}

/// A reduction whose partial results go through shared memory.
struct Reduction<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    /// The type of its first operand, of which all others have the layout.
    tensor: Type<'c>,
    axis: i64,
    elements: Vec<Element>,
    combination: Combination,
    cost: f32,
}

impl<'c: 'a, 'a> Reduction<'c, 'a> {
    fn of(operation: OperationRef<'c, 'a>, plans: &Plans) -> Option<Self> {
        let reduce = ReduceOp::of(operation)?;
        let operands = operation.operand_values();
        let elements =
            operands.map(|operand| types::element(RankedTensor::of(operand.r#type())?.element()));
        let tensor = operation.operand_values().next()?.r#type();
        let mut found = Self {
            operation,
            tensor,
            axis: reduce.axis(),
            elements: elements.collect::<Option<_>>()?,
            combination: Combination::of(reduce.combine_op()),
            cost: 0.0,
        };
        found.cost = found.price(&found.elements, &found.combination, plans)?;
        Some(found)
    }

    /// What it costs to reduce tensors of these elements in its layout; `None` where nothing goes through the memory of a block.
    fn price(&self, elements: &[Element], combination: &Combination, plans: &Plans) -> Option<f32> {
        let tensor = plans.types().resolve(self.tensor).ok()?;
        let axis = usize::try_from(self.axis).ok()?;
        let price = price(
            tensor.tensor()?,
            axis,
            elements,
            combination,
            plans.target(),
        );
        (price.block_barriers > 0).then_some(price.cost)
    }

    /// Whether one reduction is cheaper than this and another one.
    fn pays_with(&self, other: &Self, plans: &Plans) -> bool {
        let layout =
            |tensor| RankedTensor::of(tensor).map(|tensor| (tensor.shape(), tensor.encoding()));
        if self.operation.parent_block() != other.operation.parent_block()
            || self.axis != other.axis
            || layout(self.tensor) != layout(other.tensor)
        {
            return false;
        }
        let elements = [&self.elements[..], &other.elements].concat();
        let combination = Combination {
            instructions: self.combination.instructions + other.combination.instructions,
            in_hardware: None,
            is_commutative: self.combination.is_commutative && other.combination.is_commutative,
        };
        let joined = self.price(&elements, &combination, plans);
        joined.is_some_and(|joined| joined < self.cost + other.cost)
    }
}

/// The ops between two of a block that the second one needs, if they only compute and need nothing of the first.
fn needed_between<'c: 'a, 'a>(
    first: OperationRef<'c, 'a>,
    second: OperationRef<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut values: HashSet<_> = second.operand_values().map(key).collect();
    let mut needed = Vec::new();
    let mut next = second.previous_op();
    while let Some(operation) = next {
        let is_needed = operation
            .result_values()
            .any(|result| values.contains(&key(result)));
        if operation == first {
            needed.reverse();
            return (!is_needed).then_some(needed);
        }
        if is_needed {
            let computes =
                operation.is_memory_effect_free() && operation.region_refs().next().is_none();
            if !computes {
                return None;
            }
            values.extend(operation.operand_values().map(key));
            needed.push(operation);
        }
        next = operation.previous_op();
    }
    None
}

/// Replaces two reductions by one at the place of the first.
fn joined<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    first: &Reduction<'c, 'a>,
    second: &Reduction<'c, 'a>,
) -> OperationRef<'c, 'a> {
    let both = [first.operation, second.operation];
    let location = first.operation.loc();
    let operands: Vec<_> = both.iter().flat_map(|one| one.operand_values()).collect();
    let results: Vec<_> = both.iter().flat_map(|one| one.result_values()).collect();
    let types: Vec<Type<'c>> = results.iter().map(|result| result.r#type()).collect();
    let of_elements: Vec<(Type<'c>, Location<'c>)> = operands
        .iter()
        .filter_map(|operand| Some((RankedTensor::of(operand.r#type())?.element(), location)))
        .collect();
    let region = Region::new();
    // The values combined so far, and those that are combined with them.
    region.append_block(Block::new(&of_elements.repeat(2)));
    rewriter.set_before(first.operation);
    let reduce = rewriter.insert(ReduceOp::build(
        location,
        &types,
        &operands,
        first.axis,
        vec![region],
    ));
    if let Some(block) = reduce.region_ref(0).and_then(RegionExt::entry) {
        rewriter.set_to_end(block);
        let arguments: Vec<_> = block.argument_values().collect();
        let mut combined = Vec::new();
        let mut from = 0;
        for one in both {
            let Some(own) = one.region_ref(0).and_then(RegionExt::entry) else {
                continue;
            };
            let width = one.operand_values().len();
            let mut mapping = Mapping::new();
            for (index, argument) in own.argument_values().enumerate() {
                let half = index / width * operands.len();
                mapping.map(argument, arguments[half + from + index % width]);
            }
            from += width;
            for operation in own.operations() {
                match ReduceReturnOp::of(operation) {
                    Some(_) => {
                        combined.extend(operation.operand_values().map(|value| mapping.get(value)))
                    }
                    None => drop(mapping.copy(rewriter, operation)),
                }
            }
        }
        rewriter.insert(ReduceReturnOp::build(location, &combined));
    }
    let mut made = reduce.result_values();
    for one in both {
        let values: Vec<_> = made.by_ref().take(one.result_count()).collect();
        rewriter.replace(one, &values);
    }
    reduce
}
