//! By how much a value grows from one iteration of a loop to the next, where that is the same constant for all
//! iterations and all elements.
//!
//! The induction variable grows by the step, what comes from outside of the loop by nothing, and a carried value by what
//! is added to it. A sum grows by the sum of both, a multiple by the multiple, and ops that move elements change nothing,
//! as all elements grow alike. What is computed from values that do not grow does not grow either. Pointers grow in
//! elements.

use llopt_dialects::arith::{AddIOp, ConstantOp, ExtSIOp, MulIOp, SubIOp};
use llopt_dialects::tables::types::element_or_self;
use llopt_dialects::tt::{AddPtrOp, BroadcastOp, ExpandDimsOp, SplatOp, TransOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt};
use melior::ir::operation::OperationLike;
use melior::ir::{Value, ValueLike};

use super::induction::constant;
use super::view::For;

/// The most values that are looked at.
const MOST: u32 = 256;

/// The constant by which a value grows in each iteration.
pub(crate) fn advance<'c: 'a, 'a>(of: For<'c, 'a>, value: Value<'c, 'a>) -> Option<i64> {
    let mut left = MOST;
    grown(of, value, &mut left)
}

fn grown<'c: 'a, 'a>(of: For<'c, 'a>, value: Value<'c, 'a>, left: &mut u32) -> Option<i64> {
    if of.is_outside(value) {
        return Some(0);
    }
    if value == of.number() {
        return constant(of.step());
    }
    *left = left.checked_sub(1)?;
    let carried = of.carried();
    if let Some(index) = carried.iter().position(|carried| *carried == value) {
        return added(of, of.yielded()[index], value, left);
    }
    let made = value.defining_op()?;
    let mut of_operand = |index: usize| grown(of, made.operand_value(index)?, left);
    if AddIOp::of(made).is_some() || AddPtrOp::of(made).is_some() {
        return of_operand(0)?.checked_add(of_operand(1)?);
    }
    if SubIOp::of(made).is_some() {
        return of_operand(0)?.checked_sub(of_operand(1)?);
    }
    let moves = SplatOp::of(made).is_some()
        || BroadcastOp::of(made).is_some()
        || ExpandDimsOp::of(made).is_some()
        || TransOp::of(made).is_some()
        || ConvertLayoutOp::of(made).is_some()
        || ExtSIOp::of(made).is_some();
    if moves {
        return of_operand(0);
    }
    if MulIOp::of(made).is_some() {
        let growth = [of_operand(0)?, of_operand(1)?];
        return match growth {
            [0, 0] => Some(0),
            [growth, 0] => growth.checked_mul(uniform(made.operand_value(1)?)?),
            [0, growth] => growth.checked_mul(uniform(made.operand_value(0)?)?),
            _ => None,
        };
    }
    let is_same = made.is_memory_effect_free()
        && made.region_refs().len() == 0
        && (0..made.operand_count()).all(|index| of_operand(index) == Some(0));
    is_same.then_some(0)
}

/// What is added to a carried value to get the next one.
fn added<'c: 'a, 'a>(
    of: For<'c, 'a>,
    next: Value<'c, 'a>,
    carried: Value<'c, 'a>,
    left: &mut u32,
) -> Option<i64> {
    if next == carried {
        return Some(0);
    }
    *left = left.checked_sub(1)?;
    let made = next.defining_op().filter(|_| !of.is_outside(next))?;
    let (first, second) = (made.operand_value(0)?, made.operand_value(1)?);
    let (rest, by) = if AddPtrOp::of(made).is_some() {
        (first, second)
    } else if AddIOp::of(made).is_some() {
        match uniform(second) {
            Some(_) => (first, second),
            None => (second, first),
        }
    } else {
        return None;
    };
    added(of, rest, carried, left)?.checked_add(uniform(by)?)
}

/// The number that all elements of a value are.
fn uniform(value: Value<'_, '_>) -> Option<i64> {
    if let Some(number) = constant(value) {
        return Some(number);
    }
    if let Some(splat) = SplatOp::defining(value) {
        return uniform(splat.src());
    }
    let bits = ConstantOp::defining(value)?.value()?.splat_bits()?;
    let width = element_or_self(value.r#type()).bit_width()?.clamp(1, 64);
    let unused = 64 - width;
    Some((bits << unused).cast_signed() >> unused)
}
