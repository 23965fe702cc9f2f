//! Products whose second factor alone is widened, where instructions take only the first one from registers.
//!
//! What is loaded with fewer bits than it is multiplied with goes through registers. The instructions of groups of warps
//! read their second factor in shared memory: if it is the widened one, it is loaded from there, widened, stored again with
//! its many bits, and waited for, in each iteration. The first factor may come from registers. So the transposed
//! product is computed, in which the two have changed places:
//!
//! ```text
//!   for … iter(sum = start)                 for … iter(turned = startᵀ)
//!     a = load …                              a = load …
//!     b = widen (load …)                      b = widen (load …)
//!     sum = dot a, b, sum                     turned = dot bᵀ, aᵀ, turned
//!                                           sum = turnedᵀ
//! ```
//!
//! A transposition of registers or of a buffer is another name for what it transposes; the one of the sum happens once, on
//! its way to where it is stored. That is done before tensors have layouts, so that nothing else has to know of it.
//!
//! Without enough rows for such an instruction warps multiply alone, from registers on either side, and the product
//! stays as it is; so does one whose other factor would have to be stored for this.

use llopt_dialects::arith;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, InputPrecision, LoadOp, TransOp};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk, attr};
use llopt_target::Target;
use llopt_target::matrix::{MatrixInstruction, instructions_for};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use super::products::elements_of;
use super::relation::element_bits;
use super::slices::Summed;
use crate::loops::view::BOUNDS;

/// Transposes the products of a function for which that is better.
pub(super) fn transpose<'c: 'a, 'a>(function: OperationRef<'c, 'a>, target: Target) {
    let mut products = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        let summed = Summed::of(operation);
        products.extend(summed.filter(|summed| is_better(summed.dot, target)));
    });
    for product in products {
        turn(&product);
    }
}

/// Whether the second factor of a product is widened and the first one is not, an instruction takes the first one from
/// registers and the second one not, and both products have the rows that it has.
fn is_better(dot: DotOp<'_, '_>, target: Target) -> bool {
    let [a, b, d] = [dot.a(), dot.b(), dot.d()].map(|value| RankedTensor::of(value.r#type()));
    let (Some(a), Some(b), Some(d)) = (a, b, d) else {
        return false;
    };
    let rounds = dot.input_precision() == InputPrecision::Tf32;
    let first = |of: RankedTensor, rounds| elements_of(of.element(), rounds).first().copied();
    let elements = (first(b, rounds), first(a, rounds), first(d, false));
    let (Some(one), Some(other), Some(sum)) = elements else {
        return false;
    };
    let takes_one = |row: &MatrixInstruction| {
        row.warps > 1 && row.a.place.takes_registers() && !row.b.place.takes_registers()
    };
    let has_rows =
        |row: &MatrixInstruction| d.shape().iter().all(|extent| *extent >= i64::from(row.m));
    let mut rows = instructions_for(target, one, other, sum);
    rows.any(|row| takes_one(row) && has_rows(row)) && is_widened(dot.b()) && is_loaded(dot.a())
}

/// Whether a factor is what a load of its block brings.
fn is_loaded(factor: Value<'_, '_>) -> bool {
    let mut value = factor;
    while let Some(trans) = TransOp::defining(value) {
        value = trans.src();
    }
    LoadOp::defining(value).is_some()
}

/// Whether a factor is computed from what is loaded with fewer bits for an element.
fn is_widened(factor: Value<'_, '_>) -> bool {
    let bits = |value: Value| RankedTensor::of(value.r#type()).map_or(u32::MAX, element_bits);
    let mut open = vec![factor];
    let mut seen = Vec::new();
    while let Some(maker) = open.pop().and_then(|value| value.defining_op()) {
        if seen.contains(&maker) || maker.region_refs().next().is_some() {
            continue;
        }
        seen.push(maker);
        match LoadOp::of(maker) {
            Some(load) if bits(load.result()) < bits(factor) => return true,
            Some(_) => {}
            None => open.extend(maker.operand_values()),
        }
    }
    false
}

/// Writes the transposed product in the place of one.
fn turn<'c: 'a, 'a>(product: &Summed<'c, 'a>) -> Option<()> {
    let Summed {
        dot,
        around,
        carried,
    } = *product;
    let (operation, location) = (dot.operation(), dot.operation().loc());
    let sum = RankedTensor::of(dot.d().r#type())?;
    let transposed = |value: Value<'c, 'a>| {
        let tensor = RankedTensor::of(value.r#type())?;
        let shape: Vec<i64> = tensor.shape().into_iter().rev().collect();
        let of = RankedTensor::get(&shape, tensor.element(), None);
        Some(TransOp::build(location, of, value, &[1, 0]))
    };
    let extents: Vec<i64> = sum.shape().into_iter().rev().collect();
    let turned = RankedTensor::get(&extents, sum.element(), None);

    // Before the loop: what the sum begins with.
    let home = around.operation().parent_block()?;
    let start = around.initial()[carried];
    let bits = arith::ConstantOp::defining(start)
        .and_then(|constant| constant.operation().attr("value"))
        .and_then(AttributeExt::splat_bits);
    let begin = match bits {
        Some(bits) => {
            let same = attr::splat(turned, bits)?;
            melior::dialect::arith::constant(operation.ctx(), same, location)
        }
        None => transposed(start)?,
    };
    let begin = home.insert_operation_before(around.operation(), begin);

    // In the loop: the factors change places.
    let body = operation.parent_block()?;
    let [a, b] = [dot.b(), dot.a()].map(|factor| {
        let factor = body.insert_operation_before(operation, transposed(factor)?);
        factor.result_value(0)
    });
    let argument = around.carried()[carried];
    argument.set_type(turned);
    let (precision, imprecise) = (dot.input_precision(), dot.max_num_imprecise_acc());
    let next = DotOp::build(location, a?, b?, argument, precision, imprecise);
    let next = body.insert_operation_before(operation, next);
    let number = BOUNDS + carried;
    around
        .operation()
        .set_operand_value(number, begin.result_value(0)?);
    around
        .terminator()
        .set_operand_value(carried, next.result_value(0)?);

    // After the loop: the sum as it was.
    let result = around.results()[carried];
    let users: Vec<_> = result.uses().collect();
    result.set_type(turned);
    let whole = home.insert_operation_after(around.operation(), transposed(result)?);
    for user in users {
        user.operation
            .set_operand_value(user.operand, whole.result_value(0)?);
    }
    operation.erase();
    Some(())
}
