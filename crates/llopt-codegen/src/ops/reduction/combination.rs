//! The combination of two elements in a reduction or a scan.

use llopt_plan::element::Element;
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::registers::Registers;
use crate::values::{storage, words};
use crate::walk::function::{FunctionLowering, Lowered};
use crate::walk::regions;

/// One value per operand.
pub(crate) type Tuple<'ctx> = Vec<V<'ctx>>;

/// The value of an element type in the lane at distance `lanes`.
pub(crate) fn shuffle_value<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    element: Element,
    value: V<'ctx>,
    lanes: u32,
) -> V<'ctx> {
    storage::to_register(
        e,
        element,
        words::shuffle(e, hooks, storage::to_memory(e, element, value), None, lanes),
    )
}

/// Combines neighbours until one tuple is left.
pub(crate) fn combine_all<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    level: &mut Vec<Tuple<'ctx>>,
) -> Lowered<Tuple<'ctx>> {
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        for pair in level.chunks(2) {
            next.push(match pair {
                [a, b] => combine(lowering, op, region, a, b)?,
                _ => pair[0].clone(),
            });
        }
        *level = next;
    }
    level
        .pop()
        .ok_or_else(|| lowering.invalid(op, "there is nothing to combine"))
}

/// Runs the combine region.
pub(crate) fn combine<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    a: &[V<'ctx>],
    b: &[V<'ctx>],
) -> Lowered<Tuple<'ctx>> {
    let arguments: Vec<Registers<'ctx>> =
        a.iter().chain(b).map(|value| vec![*value].into()).collect();
    Ok(regions::inline(lowering, op, region, &arguments)?
        .into_iter()
        .map(|registers| registers[0])
        .collect())
}
