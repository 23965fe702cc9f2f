//! The registers of a thread that a loop needs.
//!
//! A thread needs the most registers that are live after one operation of a loop: those of values from outside that the
//! loop or what follows it still needs, and those of its own. Addresses are not counted: the pipeline makes one base and
//! offsets of them. A conversion that only renames registers has those of its operand, which are live as long as its result.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::{BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_layout::plan::Movement;
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, ValueExt};
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

use super::ring;
use crate::loops::view::For;

/// Registers of a thread in addition to carried values and results of products. The median of what `ptxas` takes beside these, in
/// 65 kernels with pipelined products, is 62; a half takes 34 to 96.
pub(super) const BESIDE: u32 = 64;

/// Registers of a thread for a value, unless it is an address or names those of another one.
pub(super) fn words(value: Value<'_, '_>, plans: &Plans) -> u32 {
    let is_renamed = value.defining_op().is_some_and(|maker| {
        ConstantOp::of(maker).is_some()
            || SplatOp::of(maker).is_some()
            || BroadcastOp::of(maker).is_some()
            || ExpandDimsOp::of(maker).is_some()
            || MakeRangeOp::of(maker).is_some()
            || ConvertLayoutOp::of(maker).is_some_and(|conversion| renames(conversion, plans))
    });
    let Some(tensor) = RankedTensor::of(value.r#type()).filter(|_| !is_renamed) else {
        return 0;
    };
    let element = tensor.element();
    let is_address =
        Pointer::of(element).is_some() || element.is_integer() && element.bit_width() != Some(8);
    if is_address {
        0
    } else {
        ring::words(value, plans)
    }
}

/// Whether the result of a conversion is in the registers of its operand.
pub(super) fn renames(conversion: ConvertLayoutOp<'_, '_>, plans: &Plans) -> bool {
    let tensor = |value: Value<'_, '_>| ring::tensor(plans, value.r#type());
    let (Some(from), Some(to)) = (tensor(conversion.src()), tensor(conversion.result())) else {
        return false;
    };
    let plan = plans.conversion(conversion.operation(), &from, &to);
    plan.is_ok_and(|plan| {
        matches!(
            plan.movement,
            Movement::Nothing | Movement::Registers { .. }
        )
    })
}

/// The operations that need the registers of a value, under its own name or under another one.
pub(super) fn users<'c: 'a, 'a>(value: Value<'c, 'a>, plans: &Plans) -> Vec<OperationRef<'c, 'a>> {
    let mut found = Vec::new();
    let mut names = vec![value];
    while let Some(name) = names.pop() {
        for user in name.users() {
            let conversion = ConvertLayoutOp::of(user).filter(|of| renames(*of, plans));
            names.extend(conversion.map(ConvertLayoutOp::result));
            found.push(user);
        }
    }
    found
}

/// The most registers of a thread that are live after one operation of a loop.
pub(super) fn live_registers<'c: 'a, 'a>(of: For<'c, 'a>, plans: &Plans) -> u32 {
    live_after(of, &[], plans).into_iter().max().unwrap_or(0)
}

/// The registers of a thread that are live after each operation of a loop, without what loads bring `ahead` to shared
/// memory: an operation may write where its operands were.
pub(crate) fn live_after<'c: 'a, 'a>(
    of: For<'c, 'a>,
    ahead: &[OperationRef<'c, 'a>],
    plans: &Plans,
) -> Vec<u32> {
    let operations = of.operations();
    let end = operations.len();
    let mut live = vec![across(of, plans); end + 1];
    let place = |user: OperationRef<'c, 'a>| {
        let within = operations.iter().position(|own| user.is_within(*own));
        within.unwrap_or(end)
    };
    let own = operations.iter().enumerate();
    let own = own.filter(|(_, operation)| !ahead.contains(operation));
    let own = own.flat_map(|(at, operation)| {
        operation
            .result_values()
            .map(move |result| (at, result))
            .collect::<Vec<_>>()
    });
    let carried = of.carried().into_iter().map(|value| (0, value));
    for (first, value) in carried.chain(own) {
        let size = words(value, plans);
        if size == 0 {
            continue;
        }
        if let Some(last) = users(value, plans).into_iter().map(place).max() {
            live[first..last.max(first)]
                .iter_mut()
                .for_each(|sum| *sum += size);
        }
    }
    live
}

/// Registers of values from outside a loop that are needed in it or after it.
pub(super) fn across<'c: 'a, 'a>(of: For<'c, 'a>, plans: &Plans) -> u32 {
    let mut sum = 0;
    let mut inner = of.operation();
    while let Some(block) = inner.parent_block() {
        let needed = |value: Value<'c, 'a>| {
            value.users().any(|user| {
                let is_initial = user == inner;
                let is_inside = user.is_within(inner) && !is_initial;
                let follows = block
                    .operations()
                    .find(|own| user.is_within(*own))
                    .is_some_and(|own| own != inner && inner.is_before(own));
                is_inside || follows
            })
        };
        let mut values: Vec<Value> = block.argument_values().collect();
        let before = block.operations().take_while(|own| *own != inner);
        values.extend(before.flat_map(|own| own.result_values().collect::<Vec<_>>()));
        sum += values
            .into_iter()
            .filter(|value| needed(*value))
            .map(|value| words(value, plans))
            .sum::<u32>();
        let Some(parent) = inner.parent_op() else {
            break;
        };
        inner = parent;
    }
    sum
}
