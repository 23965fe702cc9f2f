//! A part of each iteration, computed in the one before.
//!
//! Let `S` be operations of the body without effects that use nothing of the body but each other, the number, and the
//! carried values. Rotated, the loop carries what they compute: `S` for the first iteration stands before the loop,
//! and `S` for the next one at the end of the body, where the next number and the next carried values are known.
//! The last time what it computes is not used, so it must do no harm to compute it.

use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use super::builder::Arithmetic;
use super::carried;
use super::clone::Mapping;
use super::view::For;

/// Rotates a loop by operations of its body, in their order; `None`, and nothing is done, where they are no part that
/// can be computed ahead.
pub fn rotate<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    part: &[OperationRef<'c, 'a>],
) -> Option<For<'c, 'a>> {
    let is_of_part = |operation: OperationRef<'c, 'a>| part.contains(&operation);
    let is_known = |value: Value<'c, 'a>| {
        of.is_outside(value)
            || value
                .argument_of()
                .is_some_and(|(block, _)| block == of.body())
            || value.defining_op().is_some_and(is_of_part)
    };
    let can_be_ahead = |operation: &OperationRef<'c, 'a>| {
        operation.is_memory_effect_free()
            && operation.is_speculatable()
            && operation.region_refs().len() == 0
            && operation.operand_values().all(is_known)
    };
    if part.is_empty() || !part.iter().all(can_be_ahead) {
        return None;
    }
    // What the rest of the body uses.
    let used: Vec<Value> = part
        .iter()
        .flat_map(|operation| operation.result_values())
        .filter(|value| value.users().any(|user| !is_of_part(user)))
        .collect();

    let copy =
        |rewriter: &mut Rewriter<'c, 'a>, mut mapping: Mapping<'c, 'a>| -> Vec<Value<'c, 'a>> {
            for &operation in part {
                mapping.copy(rewriter, operation);
            }
            used.iter().map(|&value| mapping.get(value)).collect()
        };
    rewriter.set_before(of.operation());
    let initial = copy(rewriter, Mapping::iteration(of, of.lower(), &of.initial()));
    let rotated = carried::add(rewriter, of, &initial, |rewriter, of, arguments| {
        for (value, &argument) in used.iter().zip(arguments) {
            value.replace_uses_except(argument, part);
        }
        let location = of.operation().loc();
        let next = Arithmetic { rewriter, location }.add(of.number(), of.step());
        copy(rewriter, Mapping::iteration(of, next, &of.yielded()))
    });
    for operation in part.iter().rev() {
        operation.erase();
    }
    Some(rotated)
}
