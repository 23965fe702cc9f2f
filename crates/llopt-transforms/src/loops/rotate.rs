//! Rotation: a part of each iteration is computed in the one before.
//!
//! Let `S` be operations of the body without effects that use only one another, the induction variable, and the
//! carried values. The rotated loop carries their results: `S` of the first iteration comes before the loop, and `S`
//! of the next iteration at the end of the body, where the next induction variable and the next carried values are
//! known. The results computed in the last iteration are not used, so computing them must be harmless.

use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use super::builder::Arithmetic;
use super::carried;
use super::clone::Mapping;
use super::view::For;

/// Rotates a loop by operations of its body, in their order; `None`, without a change, if they cannot be computed
/// ahead.
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
    // Results that the rest of the body uses.
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
